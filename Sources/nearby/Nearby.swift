// SPDX-License-Identifier: MIT

@main
struct Nearby {
    static func main() {}
}
