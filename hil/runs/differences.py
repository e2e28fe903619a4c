"""What a comparison of two runs has found, as data."""

from __future__ import annotations

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.runs.recorded_run import RecordedRun


@dataclass(frozen=True)
class SignalDifference:
    """How far a signal of B is from that of A."""

    name: str
    unit: str
    #: largest difference, and when [s]
    largest: float
    at_s: float
    #: root of the mean square
    rms: float
    #: the largest one relative to the range of the signal in both runs
    relative: float
    within: bool


@dataclass(frozen=True)
class MetricDifference:
    """A metric in both runs; None: not measured there."""

    name: str
    a: float | str | None
    b: float | str | None
    #: the machine decides it: no difference of the runs
    machine: bool
    within: bool

    @property
    def difference(self) -> float | None:
        """B - A, of numbers."""
        if isinstance(self.a, str) or isinstance(self.b, str) or self.a is None or self.b is None:
            return None
        return self.b - self.a


@dataclass(frozen=True)
class Differences:
    """Two runs and their differences."""

    a: RecordedRun
    b: RecordedRun
    tolerance: float
    #: signals of both, the most different first
    signals: list[SignalDifference]
    metrics: list[MetricDifference]
    #: what could not be compared, in words
    remarks: list[str]

    @property
    def different(self) -> list[str]:
        """Names of the signals and metrics that differ beyond the tolerance."""
        return [s.name for s in self.signals if not s.within] + [m.name for m in self.metrics if not m.within]

    @property
    def equal(self) -> bool:
        """Nothing differs beyond the tolerance, and something was compared."""
        return not self.different and not self.remarks and bool(self.signals or self.metrics)
