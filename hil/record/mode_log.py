"""Mode changes of the friction elements: taken from the tick's ring, kept for modes.csv."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from torqueloop.cython_kernels.rings.ring import DataRing
from torqueloop.hil.record.run_data import ModeChange, write_modes

#: mode_t of cython_kernels/tick/tick.pxd
_RECORD = struct.Struct("<qdii")


class ModeLog:
    """All mode changes so far, in order."""

    def __init__(self, ring: DataRing, elements: Sequence[str]) -> None:
        self._ring, self._elements = ring, elements
        self.changes: list[ModeChange] = []

    def drain(self) -> None:
        """Take what the tick has published."""
        for step, t_s, element, mode in _RECORD.iter_unpack(self._ring.drain()):
            self.changes.append(ModeChange(step, t_s, self._elements[element], mode))

    @property
    def lost(self) -> int:
        """Changes that did not fit into the ring."""
        return self._ring.dropped

    def write(self, path: Path) -> None:
        """modes.csv"""
        write_modes(path, self.changes)
