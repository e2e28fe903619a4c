"""What the monitors of the recording look at, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.monitors.catalogue import SETTLE_S
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import Array, Band, Shift, acceleration, column, input_speed
from torqueloop.hil.report.shift_quality import ShiftQuality
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.results.run import RunStats

Mask = NDArray[np.bool_]


@dataclass
class Drive:
    """What the monitors look at: columns of the recording (None: not recorded), gears and shifts found in it."""

    t: Array
    w_in: Array | None
    w_out: Array | None
    v: Array | None
    a: Array | None
    pedal: Array | None
    brake: Array | None
    lever: Array | None
    bands: Sequence[Band]
    shifts: Sequence[Shift]
    quality: Sequence[ShiftQuality]
    #: ratio by name of the gear
    ratios: dict[str, float]
    stats: RunStats
    #: any recorded signal by its name
    column: Callable[[str], Array | None]
    #: the run was shorter than the rig file's
    cut_short: bool

    @property
    def forward(self) -> Mask:
        """The lever lets the control unit choose any forward gear, or there is none; the driver asks for no gear."""
        free = np.ones(len(self.t), bool) if self.lever is None else self.lever == LEVERS.index("D")
        wish = self.column("driver.gear")
        return free if wish is None else free & (wish == 0.0)

    def lever_at_rest(self, for_s: float) -> Mask:
        """A gear that the lever asks for has been engaged for so long since it was moved, or since the run began."""
        rests = np.ones(len(self.t), bool)
        moved: list[int] = [] if self.lever is None else (np.flatnonzero(np.diff(self.lever)) + 1).tolist()
        for first, last in pairwise([0, *moved, len(self.t)] if len(self.t) else []):
            until = self.t[last] if last < len(self.t) else np.inf
            # the gear before may be engaged until its elements have opened
            engaged = (max(self.t[first], band.begin_s) for band in self.bands
                       if band.end_s > self.t[first] + SETTLE_S and self._asked(band, first))  # fmt: skip
            rests[self.inside(self.t[first], min(next(engaged, np.inf), until) + for_s)] = False
        return rests

    def _asked(self, band: Band, k: int) -> bool:
        """The lever asks for this gear at this sample: in N the speeds may have the ratio of one by chance."""
        if self.lever is None:
            return True
        lever = LEVERS[int(self.lever[k])]
        return lever not in ("P", "N") and (lever == "R") == str(band.value).startswith("R")

    def inside(self, begin_s: float, end_s: float) -> slice:
        """Samples of a time."""
        first, last = np.searchsorted(self.t, (begin_s - 1e-9, end_s + 1e-9))
        return slice(int(first), int(last))


def drive_of(spec: MonitorSpec, signals: Signals, stats: RunStats, bands: Sequence[Band], shifts: Sequence[Shift],
             quality: Sequence[ShiftQuality], ratios: dict[str, float]) -> Drive:  # fmt: skip
    """The columns the monitors of a run look at. They end where the rig goes to its safe state: what it does there is
    its own."""
    signals = _before_safe_state(spec, signals)
    t = signals.t
    end_s = float(t[-1]) if len(t) else 0.0
    bands = [replace(b, end_s=min(b.end_s, end_s)) for b in bands if b.begin_s <= end_s]
    shifts, quality = [s for s in shifts if s.end_s <= end_s], [q for q in quality if q.end_s <= end_s]

    def reported(fact: str) -> Array | None:
        return column(signals, spec.signals[fact]) if fact in spec.signals else None

    return Drive(
        t, input_speed(signals), column(signals, "out.w"), column(signals, "car.v"), acceleration(signals),
        reported("pedal"), reported("brake"), reported("lever"), bands, shifts, quality, ratios, stats,
        lambda name: column(signals, name, name.partition(".")[2]),  # a bus in front, where it is not needed
        cut_short=len(t) > 0 and float(t[-1]) < spec.duration_s - 1.5 * signals.tick_s,
    )  # fmt: skip


def _before_safe_state(spec: MonitorSpec, signals: Signals) -> Signals:
    cause = column(signals, spec.signals.get("cause", ""))
    if cause is None or not cause.any():
        return signals
    return signals.part(0, max(2, int(np.argmax(cause != 0.0))))


@dataclass(frozen=True)
class Seen:
    """What a monitor has found."""

    failed: bool
    #: what is wrong, or what was seen
    text: str
    #: first time [s], worst value
    first_s: float | None = None
    worst: float | None = None
