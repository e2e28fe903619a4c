"""Processes of our own start without libraries that few of them use.

python-can imports asammdf where it is installed, for its MF4 files, and that brings pandas and canmatrix along, half of
all that a process imports. Here it is imported when MF4 is needed. cantools imports python-can
itself (with asyncio and ssl) for its tester, which waits until somebody uses it.

    put_off_asammdf()       in the entry point of a process of ours, before anything imports python-can
    with_asammdf()          before python-can's readers and writers of MF4 are used

Not in `import torqueloop`: torqueloop does not change what python-can does in other programs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

#: the module of python-can that asks for asammdf, and what it has defined when it is through
_ASKING, _LAST = "can.io.mf4", "MF4Reader"
#: executed when one of its names is first used
_LAZY = "cantools.tester"


class _NotYet(MetaPathFinder):
    """asammdf is not found while python-can is being imported for the first time; by others, and later, it is. The
    module _LAZY is found, and waits."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "asammdf" and _ASKING in sys.modules and not hasattr(sys.modules[_ASKING], _LAST):
            raise ModuleNotFoundError("asammdf is imported when MF4 is written or read", name=name)
        spec = PathFinder.find_spec(name, path) if name == _LAZY else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def put_off_asammdf() -> None:
    """From here on, importing python-can does not import asammdf, and importing cantools not python-can."""
    if not any(isinstance(finder, _NotYet) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NotYet())


def with_asammdf() -> bool:
    """python-can as it is with asammdf; False where that is not installed."""
    module = importlib.import_module(_ASKING)
    if module.asammdf is None:
        # its classes look their names up in the module: running it again is enough for those that exist already
        importlib.reload(module)
    return module.asammdf is not None
