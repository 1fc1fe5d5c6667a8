// SPDX-License-Identifier: MIT

/// Finds what a misspelt word may have meant.
enum Suggestion {
    /// The nearest of the known words, if it is near: at most a third of its letters differ.
    static func closest(to word: String, among known: [String]) -> String? {
        let letters = Array(word.prefix(Limits.suggestionCharacters + 1))
        guard letters.count <= Limits.suggestionCharacters else { return nil }
        let ranked = known.map { (word: $0, distance: distance(letters, Array($0))) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(1, best.word.count / 3) ? best.word : nil
    }

    /// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for i in 1...left.count {
            var row = [i]
            row.reserveCapacity(right.count + 1)
            for j in 1...right.count {
                var cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1))
                if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
                    cost = min(cost, beforeLast[j - 2] + 1)
                }
                row.append(cost)
            }
            (beforeLast, last) = (last, row)
        }
        return last[right.count]
    }
}
