"""Verdicts on a scenario: did each step begin, does each check hold; from the recorded signals alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.describe.renamed import signals_in
from torqueloop.hil.common.conditions import Condition, parse_condition
from torqueloop.hil.common.levers import word_value
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import runs_of
from torqueloop.hil.report.shift_quality import CRITERIA, ShiftQuality
from torqueloop.hil.results.scenario import SHIFT, CheckSpec, ScenarioInfo, StepSpec

#: signals of the steps
STEP, STATE = "scenario.step", "scenario.state"
TIMED_OUT = 2.0


@dataclass(frozen=True)
class Verdict:
    """What became of a step or a check."""

    name: str
    #: "step" or "check"
    kind: str
    passed: bool
    #: when the step began; when the check failed, or was decided [s]
    t_s: float | None
    text: str = ""
    #: signals it looked at
    signals: tuple[str, ...] = ()


def verdicts(info: ScenarioInfo, signals: Signals | None, quality: Sequence[ShiftQuality] = ()) -> list[Verdict]:
    """All steps in their order, then all checks. quality: of the shifts of the run."""
    if signals is None or not signals.n:
        lost = "no signals were recorded"
        return [Verdict(s.name, "step", False, None, lost) for s in info.steps] + [
            Verdict(c.name, "check", False, None, lost) for c in info.checks
        ]
    return [*_steps(info.steps, signals), *(_check(c, info, signals, quality) for c in info.checks)]


# --- steps ----------------------------------------------------------------------------------------------------------


def _steps(steps: list[StepSpec], signals: Signals) -> Iterator[Verdict]:
    if steps and STEP not in signals.names:
        yield Verdict(steps[0].name, "step", False, None, f"{STEP} was not recorded")
        return
    number = signals[STEP] if steps else np.zeros(0)
    t = signals.t
    over = ""
    for k, step in enumerate(steps, 1):
        at = _began(k, number)
        if len(at):
            yield Verdict(step.name, "step", True, float(t[at[0]]))
        elif over:
            yield Verdict(step.name, "step", False, None, over)
        else:
            yield _not_begun(k, step, signals)
            over = "an earlier step did not begin"


def _began(k: int, number: NDArray[np.float64]) -> NDArray[np.intp]:
    """Samples in which step k runs. One that goes back does not run itself until its repetitions are over: where the
    number falls from the step before, it has begun."""
    at = np.flatnonzero(number == k)
    if len(at):
        return at
    return np.flatnonzero((number[:-1] == k - 1) & (number[1:] < k - 1)) + 1


def _not_begun(k: int, step: StepSpec, signals: Signals) -> Verdict:
    """A step that was waited for: what its condition saw."""
    number, t = signals[STEP], signals.t
    waited = np.flatnonzero(number == k - 1)
    timed_out = STATE in signals.names and signals[STATE][-1] == TIMED_OUT
    text = f"did not begin within {step.within_s:g} s" if timed_out else "had not begun when the run ended"
    end = float(t[waited[-1]]) if len(waited) else float(t[-1])
    if not step.when:
        return Verdict(step.name, "step", False, end, text)
    condition = _resolved(step.when, signals)
    if isinstance(condition, str):
        return Verdict(step.name, "step", False, end, f"{text}: {condition}")
    seen = [_seen(name, condition, signals, waited) for name in condition.signals]
    held = f" for {step.for_s:g} s" if step.for_s else ""
    text += f": {step.when}{held}; seen: {', '.join(seen)}"
    return Verdict(step.name, "step", False, end, text, tuple(condition.signals))


def _seen(name: str, condition: Condition, signals: Signals, at: NDArray[np.intp]) -> str:
    x = signals[name][at] if len(at) else signals[name]
    (least, most, last), unit = condition.shown(name, x.min(), x.max(), x[-1], unit=signals.units.get(name, "1"))
    return f"{name} {least} .. {most}{unit}, last {last}{unit}"


def _there(name: str, condition: Condition, signals: Signals, k: int) -> str:
    (value,), unit = condition.shown(name, signals[name][k], unit=signals.units.get(name, "1"))
    return f"{name} = {value}{unit}"


# --- checks ---------------------------------------------------------------------------------------------------------


def _check(check: CheckSpec, info: ScenarioInfo, signals: Signals, quality: Sequence[ShiftQuality]) -> Verdict:
    if check.kind == SHIFT:
        return _shifts(check, info, signals, quality)
    condition = _resolved(check.condition, signals)
    if isinstance(condition, str):
        return Verdict(check.name, "check", False, None, condition)
    names = tuple(condition.signals)
    windows = _windows(check, info, signals)
    if not windows:
        where = f"step {check.during!r} never began" if check.during else "the run is shorter than that"
        return Verdict(check.name, "check", False, None, f"not looked at: {where}", names)
    holds = condition.holds({name: signals[name] for name in names})
    for number, (a, b) in enumerate(windows, 1):
        at, text = _fails(check, holds[a:b], signals.t[a:b])
        if text:
            which = f" (repetition {number} of {len(windows)})" if len(windows) > 1 else ""
            k = min(a + at, b - 1)
            values = ", ".join(_there(name, condition, signals, k) for name in names)
            text = f"{check.kind} {check.condition}: {text}{which}, where {values}"
            return Verdict(check.name, "check", False, float(signals.t[k]), text, names)
    a, b = windows[-1]
    decided = signals.t[a + int(np.argmax(holds[a:b]))] if check.kind == "eventually" else signals.t[b - 1]
    return Verdict(check.name, "check", True, float(decided), "", names)


def _shifts(check: CheckSpec, info: ScenarioInfo, signals: Signals, quality: Sequence[ShiftQuality]) -> Verdict:
    """Every shift of this name that was commanded while its step ran; there must be one."""
    condition = parse_condition(check.condition).resolved(CRITERIA.__getitem__, word_value)
    t = signals.t
    spans = [(t[a], t[b - 1]) for a, b in _windows(check, info, signals)]
    looked = [q for q in quality if check.shift in ("*", q.name) and any(a <= q.begin_s <= b for a, b in spans)]
    if not looked:
        there = ", ".join(f"{q.name} at {q.begin_s:.3f} s" for q in quality) or "none"
        where = f"while step {check.during!r} ran" if check.during else "in the run"
        which = "no shift" if check.shift == "*" else f"no shift {check.shift}"
        return Verdict(check.name, "check", False, None, f"{which} {where}; shifts: {there}")
    for q in looked:
        values = {name: getattr(q, name) for name in condition.signals}
        lacking = [name for name, x in values.items() if x is None]
        if lacking:
            return Verdict(check.name, "check", False, q.begin_s, f"{q.name}: {', '.join(lacking)} is not known")
        if not condition.met(values):
            seen = ", ".join(f"{name} = {x:.6g} {CRITERIA[name]}".removesuffix(" 1") for name, x in values.items())
            return Verdict(check.name, "check", False, q.begin_s, f"{q.name}, {check.condition}: {seen}",
                           _pictured(signals))  # fmt: skip
    return Verdict(check.name, "check", True, looked[-1].end_s, "", _pictured(signals))


def _pictured(signals: Signals) -> tuple[str, ...]:
    return tuple(name for name in ("car.a", "turbine.w", "out.w") if name in signals.names)


def _fails(check: CheckSpec, holds: NDArray[np.bool_], t: NDArray[np.float64]) -> tuple[int, str]:
    """(sample, reason) of a failure in one window; reason "": it passes."""
    if check.kind == "always":
        at = int(np.argmin(holds))
        return (at, "") if holds[at] else (at, f"does not hold at {t[at]:.3f} s")
    if check.kind == "never":
        at = int(np.argmax(holds))
        return (at, f"holds at {t[at]:.3f} s") if holds[at] else (at, "")
    if check.kind == "at_end":
        return len(t) - 1, "" if holds[-1] else f"does not hold at {t[-1]:.3f} s"
    longest = 0.0
    for a, b, value in runs_of(holds):
        if value:
            held = float(t[b - 1] - t[a])
            longest = max(longest, held)
            if held >= check.for_s - 1e-9:
                return a, ""
    held_text = f" (for {longest:.3f} s of {check.for_s:g} s)" if check.for_s and longest else ""
    return len(t) - 1, f"does not hold until {t[-1]:.3f} s{held_text}"


def _windows(check: CheckSpec, info: ScenarioInfo, signals: Signals) -> list[tuple[int, int]]:
    """(first, last + 1) of the samples a check looks at, each time its step runs."""
    t = signals.t
    if check.during:
        number = [s.name for s in info.steps].index(check.during) + 1
        spans = [(a, b) for a, b, k in runs_of(signals[STEP]) if k == number] if STEP in signals.names else []
    else:
        spans = [(0, len(t))]
    found = []
    for a, b in spans:
        begin = t[a] + check.from_s
        end = np.inf if check.until_s is None else t[a] + check.until_s
        inside = np.flatnonzero((t[a:b] >= begin - 1e-9) & (t[a:b] <= end + 1e-9))
        if len(inside):
            found.append((a + int(inside[0]), a + int(inside[-1]) + 1))
    return found


def _resolved(text: str, signals: Signals) -> Condition | str:
    """The condition, or why it cannot be looked at."""
    try:
        return parse_condition(signals_in(text)).resolved(lambda name: _unit(name, signals), word_value)
    except TorqueloopError as error:
        return str(error).replace("None", "condition")


def _unit(name: str, signals: Signals) -> str:
    if name not in signals.names:
        raise TorqueloopError(f"{name} was not recorded")
    return signals.units[name]
