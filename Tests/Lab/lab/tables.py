# SPDX-License-Identifier: MIT
"""Figures of several candidates as a table, and their ratios."""
import collections
import random
import statistics

RESAMPLES = 2000


class Table:
    def __init__(self):
        self.rows = collections.defaultdict(lambda: collections.defaultdict(list))

    def add(self, column, **values):
        for row, value in values.items():
            if value is not None:
                self.rows[row][column].append(value)

    def print(self, title, columns, rows):
        """`rows`: {name: (label, format)}. Medians, with the range where there is one, and n where it differs."""
        count = max((len(values) for row in self.rows.values() for values in row.values()), default=0)
        print(f"\n| {title}, n={count} | {' | '.join(columns)} |")
        print("|---" * (len(columns) + 1) + "|")
        for row, (label, form) in rows.items():
            cells = []
            for column in columns:
                values = self.rows[row][column]
                if not values:
                    cells.append("–")
                    continue
                low, high = form.format(min(values)), form.format(max(values))
                cells.append(
                    form.format(statistics.median(values)) + ("" if low == high else f" ({low}–{high})")
                    + ("" if len(values) == count else f", n={len(values)}"))
            print(f"| {label} | {' | '.join(cells)} |", flush=True)

    def ratios(self, title, own, wanted):
        """`wanted`: (row, label, the other column, the most that the ratio of medians should be)."""
        for row, label, other, most in wanted:
            print(ratio_line(f"{title}: {label}, {own} to {other}", self.rows[row][own], self.rows[row][other], most))


def interval(own, others):
    """The middle 95 % of the ratio of medians, by resampling."""
    chance = random.Random(1)
    ratios = sorted(
        statistics.median(chance.choices(own, k=len(own))) / statistics.median(chance.choices(others, k=len(others)))
        for _ in range(RESAMPLES))
    return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def ratio_line(label, own, others, target, least=False):
    """The ratio of medians, its interval, and what was wanted."""
    if not own or not others or not all(others):
        return f"{label}: nothing measured"
    middle = statistics.median(own) / statistics.median(others)
    low, high = interval(own, others)
    met = middle >= target if least else middle <= target
    return (
        f"{label}: {middle:.3f} (95 %: {low:.3f}–{high:.3f}; n={len(own)}, {len(others)}; "
        f"wanted {'≥' if least else '≤'} {target}: {'met' if met else 'MISSED'})"
    )
