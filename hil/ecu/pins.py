"""Sensors and actuators of a control unit that no bus carries, in memory that its process shares with the rig."""

from __future__ import annotations

import mmap
import os
import weakref

from torqueloop.cython_kernels.rings.ring import LatestSlot

#: bytes of each of the two slots: sensors, then actuators
_HALF = 4096


class Pins:
    """The newest sensors (rig -> unit) and actuators (unit -> rig), each None where the unit has none."""

    def __init__(self, n_sensors: int, n_actuators: int, fd: int | None = None) -> None:
        """fd: descriptor of the memory that the process of the rig has made, which is closed here; None: make it."""
        made = fd is None
        if fd is None and hasattr(os, "memfd_create"):
            fd = os.memfd_create("torqueloop-pins")
            os.ftruncate(fd, 2 * _HALF)
        memory = memoryview(mmap.mmap(-1 if fd is None else fd, 2 * _HALF))
        self.sensors: LatestSlot | None = LatestSlot(n_sensors, memory[:_HALF]) if n_sensors else None
        self.actuators: LatestSlot | None = LatestSlot(n_actuators, memory[_HALF:]) if n_actuators else None
        #: to be handed to the process of the unit; None: this system has no memory that can be handed on
        self.fd: int | None = fd if made else None
        if fd is not None and made:
            weakref.finalize(self, os.close, fd)
        elif fd is not None:
            os.close(fd)
