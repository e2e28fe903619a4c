"""Run a reference case on the kernel and compare every column with its reference trajectory.

The main trajectory is advanced at a fixed step, split only at the events of the input signals. Rows that lie between
two steps are evaluated on a copy of the state, advanced from the last step to the row's time: the main trajectory is
the same whatever rows are asked for.

Errors are relative to the column's range (max - min; absolute if it is constant):
    raw       |y(t) - ref|
    shifted   the smallest |y(t + d) - ref| over |d| <= 10 us, taken from y(t - d), y(t), y(t + d)
    beyond    max(0, shifted - deviation): what exceeds the error of the reference itself
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.case_import import MODE_QUANTITIES, Case, Column, ImportedCase, import_case, read_case
from torqueloop.core.errors import TorqueloopError

#: allowed shift in time, s: event times of a reference are that exact, and light shafts accelerate at 1e4 rad/s2 in one
SHIFT = 1e-5
#: rows this near to an event of the reference are left out when modes are compared, s
EVENT_MARGIN = 1e-4
#: two instants closer than this are the same, s
SAME_TIME = 1e-9

#: quantities that may jump: their two one-sided values at an event differ
JUMPING = frozenset({"a", "tau", "f", "a_rel"})
#: distance from an event at which the right-hand value of a jumping quantity is taken, s
RIGHT_SIDE = 1e-8


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
    samples: np.ndarray | None = None

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
    compared, modes = [], []
    for k, column in enumerate(case.columns):
        name = f"{imported.names.get(column.component, '')}.{column.quantity}"
        if column.quantity == "mode" and name in trajectory.output_index:
            modes.append((k, column, trajectory.output_index[name]))
        elif column.quantity in MODE_QUANTITIES:
            continue
        elif name in trajectory.output_index:
            compared.append((k, column, trajectory.output_index[name]))
        else:
            result.unsupported.append(f"column {column.name}")
    _compare(case, trajectory, compared, modes, result)
    result.counters = trajectory.counters()
    return result


class Trajectory:
    """The kernel, its inputs and the main trajectory of a case, with values at any time on the way."""

    def __init__(self, imported: ImportedCase, h: float, order: str | int, kernel: str) -> None:
        from torqueloop.cython_kernels.model import KernelModel, KernelState

        compiled = imported.driveline.compile()
        arrays = dict(compiled.arrays)
        if str(order) != "auto":
            arrays["order"] = int(order)
        self.output_index = {name: k for k, name in enumerate(compiled.output_names)}
        self.model = KernelModel(arrays, h, kernel)
        self.state = KernelState(self.model)
        #: state at the start of a step, and the copy advanced to a time inside it
        self.before, self.probe = KernelState(self.model), KernelState(self.model)
        self.order = int(arrays["order"])
        self.kernel = str(self.model.kernel_name)
        self.h = h
        self.t_start = imported.case.t_start
        self.signals = []
        for name in compiled.input_names:
            signal = imported.inputs.get(name, compiled.default_inputs.get(name))
            if signal is None:
                raise TorqueloopError(f"input {name} of case {imported.case.name} is not connected")
            self.signals.append(signal)

    def counters(self) -> dict[str, int]:
        return {name: int(value) for name, value in dict(self.state.counters).items()}

    def cuts(self, step: int) -> list[float]:
        """Ends of a step and the events of all inputs inside it; an event on a grid point replaces that point."""
        ends = [self.t_start + k * self.h for k in (step, step + 1)]
        events = sorted({t for s in self.signals for t in s.event_times(ends[0] - SAME_TIME, ends[1] + SAME_TIME)})
        ends = [min([t for t in events if abs(t - end) <= SAME_TIME], default=end) for end in ends]
        cuts = [ends[0]]
        for t in events:
            if t - cuts[-1] > SAME_TIME and ends[1] - t > SAME_TIME:
                cuts.append(t)
        return [*cuts, ends[1]]

    def inputs(self, t0: float, t1: float, whole: bool) -> np.ndarray:
        """Inputs at 0, h/2, h after t0 on the branch valid between t0 and t1.

        A whole step takes the values at its start (from the right), middle and end (from the left); a part of a step
        continues the parabola through those of the part.
        """
        middle = 0.5 * (t0 + t1)
        values = np.array([
            [s.after(t0) for s in self.signals],
            [s.value(middle) for s in self.signals],
            [s.before(t1) for s in self.signals],
        ])  # fmt: skip
        if whole:
            return values
        x = np.array([0.0, 0.5, 1.0]) * self.h / (t1 - t0)
        weights = np.stack([(2.0 * x - 1.0) * (x - 1.0), 4.0 * x * (1.0 - x), x * (2.0 * x - 1.0)], axis=1)
        return np.ascontiguousarray(weights @ values)

    def values(self, times: Sequence[float]) -> np.ndarray:
        """Outputs at the given (sorted) times; advances the main trajectory as far as needed."""
        rows = np.empty((len(times), len(self.output_index)))
        done, step = 0, 0
        while done < len(times) and times[done] <= self.t_start + SAME_TIME:
            rows[done] = self.model.outputs(self.state)
            done += 1
        while done < len(times):
            cuts = self.cuts(step)
            whole = len(cuts) == 2
            for t0, t1 in zip(cuts[:-1], cuts[1:], strict=True):
                in3 = self.inputs(t0, t1, whole)
                self.before.restore(self.state)
                while done < len(times) and times[done] < t1 - SAME_TIME:
                    self.probe.restore(self.before)
                    self._advance(self.probe, in3, times[done] - t0)
                    rows[done] = self.model.outputs(self.probe)
                    done += 1
                # a whole step is exactly h, whatever the rounding of its ends
                self._advance(self.state, in3, self.h if whole else t1 - t0)
                while done < len(times) and times[done] <= t1 + SAME_TIME:
                    rows[done] = self.model.outputs(self.state)
                    done += 1
            step += 1
        return rows

    def _advance(self, state: Any, in3: np.ndarray, dt: float) -> None:
        if self.model.advance(state, in3, min(dt, self.h)) != 0:
            raise TorqueloopError(f"the state is not finite any more after step {state.step_no}")


def _compare(
    case: Case,
    trajectory: Trajectory,
    compared: list[tuple[int, Column, int]],
    modes: list[tuple[int, Column, int]],
    result: CaseResult,
) -> None:
    """Fill `result` with the errors of all columns."""
    rows = np.flatnonzero((case.time <= case.comparable_until) & (case.time <= case.t_stop + SAME_TIME))
    t = case.time[rows]
    last = np.append(np.diff(t) > 0.0, True)
    repeated = np.append(False, np.diff(t) == 0.0)
    right = last & repeated
    wanted = np.unique(np.concatenate([t, t - SHIFT, t + SHIFT, t[right] + RIGHT_SIDE]))
    wanted = wanted[wanted >= case.t_start]
    try:
        values = trajectory.values(wanted.tolist())
    except TorqueloopError as error:
        result.failure = str(error)
        return

    def at(times: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(wanted, times), 0, len(wanted) - 1)

    samples = []
    here, early, late = at(t), at(np.maximum(t - SHIFT, case.t_start)), at(t + SHIFT)
    after = np.where(right, at(t + RIGHT_SIDE), here)
    for k, column, output in compared:
        reference = case.values[rows, k]
        y = values[after if column.quantity in JUMPING else here, output]
        low = np.minimum(np.minimum(values[early, output], values[late, output]), y)
        high = np.maximum(np.maximum(values[early, output], values[late, output]), y)
        span = float(reference.max() - reference.min()) or 1.0
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
    for k, column, output in modes:
        same = np.rint(values[here, output]) == np.rint(case.values[rows, k])
        result.modes[column.name] = float(np.mean(same[away])) if away.any() else 1.0


@dataclass(frozen=True)
class Convergence:
    """A case at several step sizes, compared with the reference and with our own solution at a far smaller step."""

    results: list[CaseResult]
    #: largest difference to our solution at `h_fine`, relative to the column's range, for each of `results`
    own: list[float]
    h_fine: float

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
            observed = ""
            if k and self.own[k] > 0.0 and self.own[k - 1] > 0.0:
                observed = f"{math.log(self.own[k - 1] / self.own[k]) / math.log(self.results[k - 1].h / r.h):.1f}"
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
