"""The time of a run: ticks, deadlines, percentiles. The words are those of docs/clock.md.

A value that is None was not measured in this run: a run on the virtual clock has no deadlines, an offline one no ticks
of a loop. A gate on such a value fails and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from torqueloop.core.describe.classes import dataclass

#: metadata of a field that is data for plots, no metric
NO_METRIC: Mapping[str, Any] = {"metric": None}
#: metadata of a field whose parts are metrics under their own names, without its name in front
INLINE: Mapping[str, Any] = {"metric": ""}


@dataclass(frozen=True)
class Timing:
    """A time over many ticks [us]: percentiles, extremes and the whole histogram."""

    count: int = 0
    mean: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    p999: float = 0.0
    p9999: float = 0.0
    #: how many were below 0
    negative: int = 0
    #: (lower edge [us], count) of every class that is not empty
    hist: list[tuple[float, int]] = field(default_factory=list, metadata=NO_METRIC)


@dataclass(frozen=True)
class Margin(Timing):
    """Margin to the next grid point [us]: its small values matter."""

    p1: float = 0.0
    p0_1: float = 0.0


@dataclass(frozen=True)
class Grace:
    """The ticks of the start-up grace, counted apart."""

    ticks: int = 0
    missed: int = 0
    late_started: int = 0
    dropped: int = 0
    overruns: int = 0
    lost_time_s: float = 0.0
    lateness_max_us: float = 0.0
    compute_max_us: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0


@dataclass(frozen=True)
class WorstTick:
    """One of the worst ticks: where its time went, and what the system did to it."""

    tick: int
    lateness_us: float
    compute_us: float
    margin_us: float
    #: by name of the phase
    phase_us: dict[str, float]
    minor_faults: int = 0
    major_faults: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    #: name of its run, where several are taken together
    run: str | None = None

    @property
    def name(self) -> str:
        """Number of the tick, after the name of its run where there are several."""
        return f"{self.run} {self.tick}" if self.run is not None else str(self.tick)

    @property
    def longest_phase(self) -> str:
        """Where most of its time went; empty when the phases were not measured."""
        return max(self.phase_us, key=lambda name: self.phase_us[name]) if self.phase_us else ""


@dataclass(frozen=True)
class WorstTicks:
    """The worst ticks after the grace, worst first."""

    #: empty without deadlines
    by_lateness: list[WorstTick] = field(default_factory=list)
    by_compute: list[WorstTick] = field(default_factory=list)


@dataclass(frozen=True)
class ClockStats:
    """Statistics of the loop's time, without the start-up grace except for `ticks`."""

    #: ticks done, those of the grace included
    ticks: int = 0
    missed: int | None = None
    late_started: int | None = None
    dropped: int | None = None
    #: missed, of all grid points after the grace, also those dropped
    missed_ratio: float | None = None
    overruns: int | None = None
    overruns_in_row_max: int | None = None
    lost_time_s: float | None = None
    margin_min_us: float | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    compute_us: Timing | None = None
    wake_lateness_us: Timing | None = None
    margin_us: Margin | None = None
    #: by name of the phase, in their order
    phase_us: dict[str, Timing] = field(default_factory=dict)
    worst: WorstTicks = field(default_factory=WorstTicks, metadata=NO_METRIC)
    grace: Grace | None = None
    #: wall time since arming [s], and simulated time by it
    run_s: float | None = None
    real_time_factor: float | None = None
    #: how the clock was set
    policy: str | None = None
    max_catch_up: int | None = None
    grace_s: float | None = None
    spin_us: float | None = None

    def shortened(self) -> ClockStats:
        """Without the large parts."""
        return replace(self, phase_us={}, worst=WorstTicks())
