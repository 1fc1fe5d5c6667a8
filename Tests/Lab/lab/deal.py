# SPDX-License-Identifier: MIT
"""The cases that are left to be run, as files in a folder that the guests of one BlueZ share: who moves one away has it.

`left/ROUND-ORDER-NUMBER` waits, `GUEST/…` is under way there, and what has had its verdict is gone. A case that the kernel has
kept from its verdict is put back by lab.sh, once, as `…-again`.
"""
import os
import time
import zlib


def lay(folder, cases, rounds):
    """ORDER has first what may take longest, so that several guests end together; of that, neighbours are parted: they are of
    one kind, and the large transfers, say, would all be under way at the same time."""
    order = sorted(range(len(cases)), key=lambda each: (-cases[each].timeout, zlib.crc32(cases[each].name.encode())))
    for turn in range(rounds):
        for place, number in enumerate(order):
            with open(os.path.join(folder, "left", f"{turn:03}-{place:04}-{number + 1}"), "x", encoding="utf-8"):
                pass


class Deal:
    """One guest's hand. `in_order`: it takes them as they are numbered."""

    def __init__(self, folder, guest, in_order=False):
        self._in_order = in_order
        self._left = os.path.join(folder, "left")
        self._mine = os.path.join(folder, guest)
        os.makedirs(self._mine, exist_ok=True)

    def take(self):
        """The number of the next case, counted from 1; None when none is left."""
        # More than once: a guest found nothing, once, where 200 were left and others took from them. Not understood.
        for _ in range(5):
            for name in sorted(os.listdir(self._left), key=self._place):
                try:
                    os.rename(os.path.join(self._left, name), os.path.join(self._mine, name))
                except FileNotFoundError:
                    continue  # another guest was faster
                return int(name.split("-")[2])
            time.sleep(0.2)
        return None

    def _place(self, name):
        turn, place, number = name.split("-")[:3]
        return turn, int(number if self._in_order else place)

    def judged(self):
        """The case has had its verdict."""
        for name in os.listdir(self._mine):
            os.remove(os.path.join(self._mine, name))
