"""Precompiled steps, generated at build time from the drivelines listed in configs/topologies.toml."""

import importlib
import pkgutil

_done = False


def import_all() -> None:
    """Import every generated module once; each registers its step with the kernel model."""
    global _done
    if _done:
        return
    _done = True
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
