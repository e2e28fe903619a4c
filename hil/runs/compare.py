"""Two runs side by side: signals over each other, metrics in two columns, what differs beyond a tolerance.

A signal is compared at the samples of A that lie in the time both have recorded; where B has no sample at that time its
value is interpolated. The measure of a difference is the largest one, relative to the signal's range in both runs, so
that a speed and a pressure are judged alike; a range that is rounding beside the other signals of its unit (the slip of
an element that sticks) counts as ROUNDING of their largest value. Metrics are compared relative to the larger of their
values. What only the machine decides (times in µs, page faults, ages of messages ...) is shown, but is no difference.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.runs.compare_page import draw, write_page
from torqueloop.hil.runs.differences import Differences, MetricDifference, SignalDifference
from torqueloop.hil.runs.recorded_run import RecordedRun, read_run

Array = NDArray[np.float64]
#: default tolerance: two runs of the same inputs are equal to the bit, another compiler's differ in the last digits [1]
TOLERANCE = 1e-6
#: part of the largest value of all signals of a unit below which a range is no range [1]
ROUNDING = 1e-9
#: metrics of the machine, not of what was simulated
_MACHINE = re.compile(
    r"_us(_|$)|^(run_s|real_time_factor|missed|late_started|dropped|overruns|lost_time_s|degraded|recording_|grace_|phase_)"
    r"|faults$|switches$|_age_|_ns$|wait|endpoint|^control_|high_water|^participants_|kernel$|^policy$|gateway|answer_age"
)


class Comparison(Differences):
    """Two runs and their differences, with their picture and page."""

    def plot(self, path: Path | str, names: list[str] | None = None) -> Path:
        """Draw the signals over each other (png, svg, pdf); names: these, instead of those that differ most."""
        return draw(self, Path(path), names)

    def write_html(self, path: Path | str, names: list[str] | None = None) -> Path:
        """A page with figures, signals and metrics."""
        return write_page(self, Path(path), names)


def compare(a: RecordedRun | Path | str, b: RecordedRun | Path | str, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two runs (directories, or runs that were read). ReportError when one is no run directory."""
    if not 0.0 <= tolerance < 1.0:
        raise RangeError("{key} = {value} is out of range", key="tolerance", value=tolerance, allowed="0 .. < 1")
    a, b = (run if isinstance(run, RecordedRun) else read_run(run) for run in (a, b))
    signals, remarks = _signals(a, b, tolerance)
    return Comparison(a, b, tolerance, signals, _metrics(a, b, tolerance), remarks)


def _signals(a: RecordedRun, b: RecordedRun, tolerance: float) -> tuple[list[SignalDifference], list[str]]:
    first, second = a.report.run.signals, b.report.run.signals
    if first is None or second is None or not len(first.tick) or not len(second.tick):
        empty = [str(run.path) for run, s in ((a, first), (b, second)) if s is None or not len(s.tick)]
        return [], [f"no signals were recorded in {', '.join(empty)}"]
    remarks = []
    for one, other, which in ((first, second, "A"), (second, first, "B")):
        only = [name for name in one.names if name not in other]
        if only:
            more = f" and {len(only) - 8} more" if len(only) > 8 else ""
            remarks.append(f"recorded in {which} only: {', '.join(only[:8])}{more}")
    t = first.t
    inside = (t >= second.t[0] - 1e-9) & (t <= second.t[-1] + 1e-9)
    longer = abs(first.t[-1] - second.t[-1])
    if longer > 0.5 * min(first.tick_s, second.tick_s):
        remarks.append(f"A ends at {first.t[-1]:g} s, B at {second.t[-1]:g} s: compared where both are")
    if not inside.any():
        return [], [*remarks, "the runs have no time in common"]
    same = len(t) == len(second.t) and bool(np.array_equal(first.tick, second.tick)) and first.tick_s == second.tick_s
    names = [name for name in first.names if name in second]
    largest = _largest(first, second, names)
    found = [_signal(name, first, second, inside, same, tolerance, largest) for name in names]
    return sorted(found, key=lambda s: (s.within, -s.relative, s.name)), remarks


def _largest(a: Signals, b: Signals, names: list[str]) -> dict[str, float]:
    """Unit -> largest finite magnitude of its signals in both runs, in that unit."""
    found: dict[str, float] = {}
    for name in names:
        unit = a.units.get(name, "")
        for values in (a[name], b[name]):
            finite = np.abs(values[np.isfinite(values)])
            found[unit] = max(found.get(unit, 0.0), float(finite.max(initial=0.0)))
    return found


def _signal(
    name: str,
    a: Signals,
    b: Signals,
    inside: NDArray[Any],
    same: bool,
    tolerance: float,
    largest: dict[str, float],
) -> SignalDifference:
    x, t = a[name][inside], a.t[inside]
    y = b[name] if same else np.interp(t, b.t, b[name])
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):  # infinity less infinity
        apart = np.where(both, np.abs(y - x), np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.inf))
    k = int(np.argmax(apart))
    values = np.concatenate([x[both], y[both]])
    span = float(np.ptp(values)) if len(values) else 0.0
    unit = a.units.get(name, "")
    scale = max(span or (float(np.abs(values).max()) if len(values) else 0.0), ROUNDING * largest[unit])
    relative = float(apart[k] / scale) if scale > 0.0 else float(apart[k])
    rms = float(np.sqrt(np.mean(apart**2)))
    return SignalDifference(name, unit, float(apart[k]), float(t[k]), rms, relative, relative <= tolerance)


def _metrics(a: RecordedRun, b: RecordedRun, tolerance: float) -> list[MetricDifference]:
    found = []
    for name in sorted({*a.metrics, *b.metrics}):
        x, y = a.metrics.get(name), b.metrics.get(name)
        if x is None and y is None:
            continue
        machine = _MACHINE.search(name) is not None
        found.append(MetricDifference(name, x, y, machine, machine or _alike(x, y, tolerance)))
    return found


def _alike(x: Any, y: Any, tolerance: float) -> bool:
    if isinstance(x, str) or isinstance(y, str) or x is None or y is None:
        return bool(x == y)
    if x == y or (np.isnan(x) and np.isnan(y)):
        return True
    # residuals and differences of large numbers are noise themselves
    return bool(abs(y - x) <= max(tolerance * max(abs(x), abs(y)), 1e-9))
