"""Shared by the tests of docs/clock.md: a rig without physics that runs by a script, and what it left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from torqueloop.cython_kernels.clock.loop_clock import ClockScript
from torqueloop.cython_kernels.rings.ring import DataRing
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.record.signals import signal_dtype

#: period [ns]
T = 1_000_000
#: time at which a script begins; the first wake-up is one period later [ns]
BEGIN = 1_000_000_000
OVERRUN, MISSED, SLIPPED, GRACE = 1, 2, 128, 256


@dataclass
class Played:
    """One run by a script."""

    rig: Rig
    script: ClockScript
    #: sample records
    ticks: np.ndarray[Any, Any]

    @property
    def counters(self) -> dict[str, Any]:
        return self.rig.counters()

    @property
    def lateness(self) -> list[float]:
        """Wake lateness of each tick in periods."""
        return [round(x / T, 6) for x in self.ticks["wake_lateness_ns"].tolist()]

    @property
    def starts(self) -> list[float]:
        """Start of each tick after arming, in periods."""
        return [round((x - self.counters["arm_ns"]) / T, 6) for x in self.ticks["t_wall_ns"].tolist()]

    @property
    def flags(self) -> list[int]:
        return [int(x) for x in self.ticks["flags"]]


def play(
    rows: list[Any],
    arm_wake: int = 0,
    stop_wake: int = -1,
    every: int = 1,
    rig: Rig | None = None,
    again: tuple[int, int] = (-1, -1),
    **clock: Any,
) -> Played:
    """Run the loop by rows of (delay of the wake-up, time of the tick or of each phase) in periods.
    again: wake-ups that find the commands to disarm and to arm again."""
    rig = rig or Rig(4, T * 1e-9)
    samples = DataRing(1 << 20)
    rig.set_clock(**clock)
    rig.set_record([2], samples, None, None, None, every)
    script = ClockScript([[round(x * T) for x in row] for row in rows], BEGIN, arm_wake, stop_wake, *again)
    rig.set_script(script)
    rig.run()
    return Played(rig, script, np.frombuffer(b"".join(iter(samples.drain, b"")), signal_dtype(1)))


def stall(tick: int = 2, length: float = 3.6, n: int = 8, other: float = 0.1) -> list[tuple[float, float]]:
    """Ticks of `other` periods, one of them much longer."""
    return [(0.0, length if k == tick else other) for k in range(n)]


def longest_row(run: Played) -> int:
    """Most ticks in a row that began a period or more after the grid point they served (the last tick is not known)."""
    row = longest = 0
    for k in range(len(run.ticks) - 1):
        # the first point not yet served at the next wake-up is one after the point this tick served
        served = run.ticks["t_wall_ns"][k + 1] - run.ticks["wake_lateness_ns"][k + 1] - T
        row = row + 1 if run.ticks["t_wall_ns"][k] - served >= T else 0
        longest = max(longest, row)
    return longest
