# SPDX-License-Identifier: MIT
"""The registry of cases."""
import dataclasses
import fnmatch
import importlib
import pkgutil
from collections.abc import Callable

SUBJECTS = ("nearby", "reference")


class LeftOut(Exception):
    """Raised by a case that finds out only now that it is not for here; says why."""


@dataclasses.dataclass
class Case:
    name: str
    run: Callable
    bugs: tuple[str, ...] = ()  # the public reports that it stands for
    timeout: float = 60  # seconds, stretched by LAB_PATIENCE
    core: bool = False  # belongs to the handoff and fault core, which runs on every BlueZ
    subjects: tuple[str, ...] = ("nearby",)  # whom it may be run against

    @property
    def about(self):
        return (self.run.__doc__ or "").strip().split("\n")[0]


REGISTRY: dict[str, Case] = {}


def case(name, **fields):
    """Registers a coroutine function of one argument, the lab."""

    def register(function):
        if name in REGISTRY:
            raise ValueError(f"two cases named {name}")
        REGISTRY[name] = Case(name, function, **fields)
        return function

    return register


def load():
    import suite

    for module in sorted(each.name for each in pkgutil.iter_modules(suite.__path__)):
        importlib.import_module(f"suite.{module}")


def chosen(filters, core=False):
    """In the order in which the suite's modules register them."""
    for each in REGISTRY.values():
        if core and not each.core:
            continue
        if filters and not any(each.name.startswith(part) or fnmatch.fnmatch(each.name, part) for part in filters):
            continue
        yield each
