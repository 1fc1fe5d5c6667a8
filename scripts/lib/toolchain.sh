# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the scripts: the Swift toolchain, which no distribution's packages bring.

# need_swift: says how to get Swift 6 unless it is there.
need_swift() {
    local version
    if ! command -v swift >/dev/null; then
        cat >&2 <<'TEXT'
Swift is missing: this project needs Swift 6.1 or later.
Install it with swiftly, Swift's own installer, as https://www.swift.org/install/linux/ describes, then run this again.
TEXT
        return 1
    fi
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p' | head -n 1)
    if [ "$(printf '%s\n' 6.1 "${version:-0}" | sort -V | head -n 1)" != 6.1 ]; then
        echo "Swift ${version:-of an unknown version} is too old: this project needs Swift 6.1 or later" \
            "(https://www.swift.org/install/linux/)." >&2
        return 1
    fi
}
