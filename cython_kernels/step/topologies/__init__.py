"""Precompiled steps, generated at build time from the drivelines listed in configs/topologies.toml; and those that a
user has built of his own drivelines (`torqueloop compile`), from the folders given to `add_folder`."""

import importlib
import pkgutil
from collections.abc import Callable

_done = False
_more: list[Callable[[], object]] = []


def add_folder(folder: Callable[[], object]) -> None:
    """A folder with built steps, asked for when steps are first needed."""
    _more.append(folder)


def import_all() -> None:
    """Import every generated module once; each registers its step with the kernel model."""
    global _done
    if _done:
        return
    _done = True
    __path__.extend(str(folder()) for folder in _more)
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
