"""Kinds of components that packages add, found by entry points of the group "torqueloop.components".

    [project.entry-points."torqueloop.components"]
    MyBrake = "my_package.brakes:MyBrake"

The name is the word used in files; the class is a Component (core/describe/component.py) like ours: it contributes
parts that the kernels know. What comes of it is compiled, checked, reported and hashed as ours are.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from torqueloop.core.components import KINDS
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import ConfigError

GROUP = "torqueloop.components"


def kinds() -> Mapping[str, type[Component]]:
    """Our kinds and those of packages; ConfigError names the package that offers something else."""
    return _kinds(*sys.path)


@cache
def _kinds(*path: str) -> Mapping[str, type[Component]]:
    """The search path is a key of the cache: a package may be put there later."""
    found: dict[str, type[Component]] = dict(KINDS)
    entries = {(e.name, e.value): e for e in entry_points(group=GROUP)}.values()
    for entry in sorted(entries, key=lambda e: (e.name, e.value)):
        if entry.name in found:
            raise ConfigError(f"the component kind {entry.name!r} of {_origin(entry)} exists already",
                              allowed="another name in its entry point")  # fmt: skip
        found[entry.name] = _load(entry)
    return found


def _load(entry: EntryPoint) -> type[Component]:
    try:
        kind = entry.load()
    except Exception as error:  # whatever the package's import raises
        problem = f"the component kind {entry.name!r} of {_origin(entry)} cannot be loaded"
        raise ConfigError(f"{problem}: {type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Component)) or inspect.isabstract(kind):
        raise ConfigError(f"{entry.name!r} of {_origin(entry)} is no component", allowed="a subclass of Component")
    if kind.contribute is Component.contribute:
        # it would be in the graph and do nothing: a force of 0 that nobody sees
        raise ConfigError(f"the component kind {entry.name!r} of {_origin(entry)} contributes nothing",
                          allowed="a method contribute(self, b)")  # fmt: skip
    return kind


def _origin(entry: EntryPoint) -> str:
    dist = entry.dist
    package = "an unknown package" if dist is None else f"{dist.name} {dist.version}"
    return f"{package} ({entry.value})"
