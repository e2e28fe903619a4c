"""Run a reference case on the kernel and compare every column with its reference trajectory.

Errors are relative to the column's range (max - min; absolute if it is constant):
    raw       |y(t) - ref|
    shifted   the smallest |y(t + d) - ref| over |d| <= 10 us, taken from y(t - d), y(t), y(t + d); at events from
              some more d, as a value that jumps may change fast after it
    beyond    max(0, shifted - deviation): what exceeds the error of the reference itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.reference import MODE_QUANTITIES, Case, Column, ImportedCase, import_case, read_case
from torqueloop.core.reference.case_trajectory import SAME_TIME, Trajectory
from torqueloop.core.signals import Signal

Array = NDArray[np.float64]

#: allowed shift in time, s: event times of a reference are that exact, and light shafts accelerate at 1e4 rad/s2 in one
SHIFT = 1e-5
#: rows this near to an event of the reference are left out when modes are compared, s
EVENT_MARGIN = 1e-4
#: quantities that may jump: their two one-sided values at an event differ
JUMPING = frozenset({"a", "tau", "f", "a_rel", "lossPower", "power"})
#: distance from an event at which the right-hand value of a jumping quantity is taken, s
RIGHT_SIDE = 1e-8
#: shifts tried at the events of the reference: our event may lie a little before or after it, s
SHIFTS_AT_EVENT = (-1e-6, -1e-7, -RIGHT_SIDE, RIGHT_SIDE, 1e-7, 1e-6)
#: a column that changes by less (relative to its largest value, or in its unit) is constant: the rest is rounding
CONSTANT = 1e-13


@dataclass(frozen=True)
class ColumnError:
    """Largest error of one column."""

    name: str
    raw: float
    shifted: float
    deviation: float
    worst_time: float

    @property
    def beyond(self) -> float:
        """What exceeds the error of the reference itself."""
        return max(0.0, self.shifted - self.deviation)

    def as_dict(self) -> dict[str, float]:
        return {"raw": self.raw, "shifted": self.shifted, "deviation": self.deviation, "beyond": self.beyond}


@dataclass
class CaseResult:
    """Comparison of one case at one step size."""

    case: str
    tick: float
    substeps: int
    order: int = 0
    kernel: str = ""
    columns: list[ColumnError] = field(default_factory=list)
    #: mode column -> fraction of rows with the same mode, away from events
    modes: dict[str, float] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    #: "" or why there is no result
    failure: str = ""
    #: our values at the compared rows, one column per entry of `columns`, in units of the column's range
    samples: Array | None = None

    @property
    def h(self) -> float:
        return self.tick / self.substeps

    def worst(self, key: str) -> ColumnError | None:
        """Column with the largest `key` ("raw", "shifted" or "beyond")."""
        return max(self.columns, key=lambda c: getattr(c, key), default=None)

    def largest(self, key: str) -> float | None:
        worst = self.worst(key)
        return None if worst is None else float(getattr(worst, key))

    def as_dict(self) -> dict[str, Any]:
        """One flat JSON object."""
        worst = self.worst("beyond")
        if worst is not None and worst.beyond == 0.0:
            worst = self.worst("shifted")
        return {
            "case": self.case,
            "h": self.h,
            "tick": self.tick,
            "substeps": self.substeps,
            "order": self.order,
            "kernel": self.kernel,
            "columns": {c.name: c.as_dict() for c in self.columns},
            "max_error": self.largest("raw"),
            "max_error_shifted": self.largest("shifted"),
            "max_error_beyond": self.largest("beyond"),
            "worst_column": None if worst is None else worst.name,
            "worst_time": None if worst is None else worst.worst_time,
            "modes_equal": self.modes,
            "counters": self.counters,
            "unsupported": self.unsupported,
            "failure": self.failure,
        }


def run_case(
    directory: str | Path | Case, tick: float = 1e-3, substeps: int = 1, order: str | int = "auto", kernel: str = "auto"
) -> CaseResult:
    """Simulate a case with `substeps` steps per tick and compare it; never raises for what a case may contain."""
    case = directory if isinstance(directory, Case) else read_case(directory)
    imported = import_case(case)
    result = CaseResult(case.name, tick, substeps, unsupported=imported.unsupported)
    if imported.unsupported:
        return result
    try:
        trajectory = Trajectory(imported, tick / substeps, order, kernel)
    except TorqueloopError as error:
        result.failure = str(error)
        return result
    result.order, result.kernel = trajectory.order, trajectory.kernel
    compared: list[_Compared] = []
    modes: list[_Compared] = []
    for k, column in enumerate(case.columns):
        found = _Compared.of(k, column, imported, trajectory)
        if found is not None:
            (modes if column.quantity == "mode" else compared).append(found)
        elif column.quantity not in MODE_QUANTITIES:
            result.unsupported.append(f"column {column.name}: there is no such result")
    _compare(case, trajectory, compared, modes, result)
    result.counters = trajectory.counters()
    return result


@dataclass(frozen=True)
class _Compared:
    """A column of the case and what it is compared with: a product of outputs, or an input signal."""

    #: position in the columns of the case
    k: int
    column: Column
    outputs: tuple[int, ...]
    factor: float
    signal: Signal | None
    law: Callable[[Array], Array] | None = None

    @staticmethod
    def of(k: int, column: Column, imported: ImportedCase, trajectory: Trajectory) -> _Compared | None:
        """None if there is no such result."""
        path = f"{column.component}.{column.quantity}" + (f"[{column.index}]" if column.index else "")
        if path in imported.signals:
            return _Compared(k, column, (), 1.0, imported.signals[path])
        quantity = imported.quantity(column.component, column.quantity, column.index)
        if any(name not in trajectory.output_index for name in quantity.outputs):
            return None
        outputs = tuple(trajectory.output_index[n] for n in quantity.outputs)
        return _Compared(k, column, outputs, quantity.factor, None, quantity.law)

    def values(self, times: Array, rows: Array, right: NDArray[np.bool_]) -> Array:
        """Our values at the given times (rows: the outputs there); `right`: after the event at this time."""
        if self.signal is not None:
            return np.where(right, self.signal.sample(times, +1), self.signal.sample(times, -1))
        if self.law is not None:
            return self.factor * self.law(rows[:, list(self.outputs)])
        y: Array = self.factor * np.prod(rows[:, list(self.outputs)], axis=1)
        return y


def _compare(
    case: Case,
    trajectory: Trajectory,
    compared: list[_Compared],
    modes: list[_Compared],
    result: CaseResult,
) -> None:
    """Fill `result` with the errors of all columns."""
    rows = np.flatnonzero((case.time <= case.comparable_until) & (case.time <= case.t_stop + SAME_TIME))
    # of three and more rows at one time only the first and the last are sides of the event
    between = np.diff(case.time[rows]) == 0.0
    rows = rows[~(np.append(False, between) & np.append(between, False))]
    t = case.time[rows]
    last = np.append(np.diff(t) > 0.0, True)
    # an event; the first row, too: only after it are torques known
    repeated = np.append(True, np.diff(t) == 0.0)
    right = last & repeated
    at_event = repeated | ~last
    near = np.unique(t[at_event])
    wanted = np.unique(np.concatenate([t, t - SHIFT, t + SHIFT, *(near + d for d in SHIFTS_AT_EVENT)]))
    wanted = wanted[wanted >= case.t_start]
    try:
        values = trajectory.values(wanted.tolist())
    except TorqueloopError as error:
        result.failure = str(error)
        return

    def at(times: Array) -> Array:
        return np.clip(np.searchsorted(wanted, times), 0, len(wanted) - 1)

    samples = []
    here, early, late = at(t), at(np.maximum(t - SHIFT, case.t_start)), at(t + SHIFT)
    after = np.where(right, at(t + RIGHT_SIDE), here)
    shifts = [early, late]
    shifts += [np.where(at_event, at(np.maximum(t + d, case.t_start)), here) for d in SHIFTS_AT_EVENT]
    for each in compared:
        column, reference = each.column, case.values[rows, each.k]
        y, *shifted_y = (
            each.values(wanted[i], values[i], right) for i in (after if column.quantity in JUMPING else here, *shifts)
        )
        low, high = np.min([y, *shifted_y], axis=0), np.max([y, *shifted_y], axis=0)
        span = _span(reference)
        samples.append(y / span)
        raw = np.abs(y - reference) / span
        shifted = np.maximum(np.maximum(low - reference, reference - high), 0.0) / span
        worst = int(shifted.argmax()) if shifted.max() > 0.0 else int(raw.argmax())
        result.columns.append(
            ColumnError(column.name, float(raw.max()), float(shifted.max()), column.deviation, float(t[worst]))
        )
    result.samples = np.array(samples).T
    events = np.array([*case.event_times, math.inf])
    away = np.abs(t[:, None] - events[None, :]).min(axis=1) > EVENT_MARGIN
    away &= t > case.t_start
    for each in modes:
        same = np.rint(each.values(t, values[here], right)) == np.rint(case.values[rows, each.k])
        result.modes[each.column.name] = float(np.mean(same[away])) if away.any() else 1.0


def _span(reference: Array) -> float:
    """Range of a column; 1 if it is constant but for rounding."""
    span = float(reference.max() - reference.min())
    return span if span > CONSTANT * float(np.abs(reference).max()) and span > CONSTANT else 1.0


@dataclass(frozen=True)
class Convergence:
    """A case at several step sizes, compared with the reference and with our own solution at a far smaller step."""

    results: list[CaseResult]
    #: largest difference to our solution at `h_fine`, relative to the column's range, for each of `results`
    own: list[float]
    h_fine: float

    def observed(self, k: int) -> float | None:
        """Order seen between result k-1 and k; None where there is none."""
        if k == 0 or not (self.own[k] > 0.0 and self.own[k - 1] > 0.0):
            return None
        return math.log(self.own[k - 1] / self.own[k]) / math.log(self.results[k - 1].h / self.results[k].h)

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "h": [r.h for r in self.results],
            "own_error": [None if math.isnan(e) else e for e in self.own],
            "observed_order": [self.observed(k) for k in range(len(self.own))],
            "beyond": [r.largest("beyond") for r in self.results],
            "h_fine": self.h_fine,
            "unsupported": self.results[0].unsupported,
            "failure": next((r.failure for r in self.results if r.failure), ""),
        }

    def text(self) -> str:
        """Table; observed order = log2 of the ratio of two successive `own` errors for halved h."""
        lines = [
            f"{self.results[0].case}: largest error relative to the range of its column "
            f"(own: against our own solution at h = {1e3 * self.h_fine:g} ms)",
            f"{'h [ms]':>8} {'own':>10} {'order':>6} {'raw':>10} {'shifted':>10} {'beyond':>10}  worst column",
        ]
        for k, r in enumerate(self.results):
            if r.failure or r.unsupported:
                lines.append(f"{1e3 * r.h:8g}  {r.failure or 'unsupported: ' + ', '.join(r.unsupported)}")
                continue
            slope = self.observed(k)
            observed = "" if slope is None else f"{slope:.1f}"
            worst = r.worst("shifted")
            name = "" if worst is None else f"{worst.name} at {worst.worst_time:.4f} s"
            lines.append(
                f"{1e3 * r.h:8g} {self.own[k]:10.2e} {observed:>6} {r.largest('raw') or 0.0:10.2e} "
                f"{r.largest('shifted') or 0.0:10.2e} {r.largest('beyond') or 0.0:10.2e}  {name}"
            )
        return "\n".join(lines)


def convergence(
    directory: str | Path | Case,
    steps: Sequence[float] = (4e-3, 2e-3, 1e-3, 5e-4),
    order: str | int = "auto",
    kernel: str = "auto",
    refine: int = 8,
) -> Convergence:
    """The case at several step sizes, largest first; the own reference takes steps[-1]/refine."""
    case = directory if isinstance(directory, Case) else read_case(directory)
    results = [run_case(case, h, 1, order, kernel) for h in steps]
    fine = run_case(case, steps[-1], refine, order, kernel)
    own = [
        math.nan if r.samples is None or fine.samples is None else float(np.abs(r.samples - fine.samples).max())
        for r in results
    ]
    return Convergence(results, own, fine.h)
