# SPDX-License-Identifier: MIT
"""What a process costs, from /proc, and what the bus daemon knows of its clients."""
import os

STATISTICS = "org.freedesktop.DBus.Debug.Stats"


def memory(pid):
    """kB: VmRSS now, VmHWM at most. (Not getrusage's maximum, which a child begins with its parent's.)"""
    found = {}
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                found[name] = int(value.split()[0])
    return found


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def processor(pid):
    """Seconds on a processor so far, all living threads."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def switches(pid):
    """Context switches so far, all living threads."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


async def match_rules(bluez, without=()):
    """Match rules at the bus daemon, of all its clients but these."""
    [rules] = await bluez.call(
        "/org/freedesktop/DBus", STATISTICS, "GetAllMatchRules", destination="org.freedesktop.DBus"
    )
    return sum(len(each) for name, each in rules.items() if name not in without)
