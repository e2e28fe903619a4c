"""[[steps]] of a rig or scenario file: what the driver does, one thing after the other, each begun by a condition.

    [[steps]]
    name = "kick down"
    when = "car.v > 60 km/h"        # default: at once when the step before is over
    for_s = 0.2                     # it must have held so long
    within_s = 30.0                 # the run fails if the step has not begun by then
    set = { pedal = 1.0, kickdown = 1, lever = "D" }
    over_s = 0.2                    # linearly within this time; words and single entries { to = 1, over_s = 0 } jump
    hold_s = 2.0                    # the next step begins no earlier than so long after this one

Steps run in the tick (cython_kernels/tick/scenario.pyx). What they set: signals of the driver, and model inputs that
nothing else writes ("input.NAME": grade, ambient temperature). From its first step on a signal is the steps' and not
its table's any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.tick import scenario as kernel
from torqueloop.hil.common.conditions import Condition, parse_condition, readable
from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.common.levers import word_value
from torqueloop.hil.rig.describe.signals import SignalTable

#: a step whose condition never comes ends the run after this time [s]
WITHIN_S = 60.0
_Time = Annotated[float, Field(ge=0, le=1e5)]


class Move(ConfigTable):
    """One entry of `set`: where to, or with a time of its own."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("number", "string")

    #: value to go to, in SI; a position of the lever
    to: float | str
    #: linearly within this time [s]
    over_s: _Time = 0.0


class Step(ConfigTable):
    """One entry of [[steps]]."""

    #: what it is called in reports and checks
    name: Annotated[str, Field(min_length=1, max_length=80)]
    #: condition that begins it; default: it begins when the step before is over
    when: str | None = None
    #: the condition must have held so long [s]
    for_s: _Time = 0.0
    #: not before this time of the run [s]
    at_s: _Time = 0.0
    #: time after the end of the step before by which it must have begun; later: the run ends, failed [s]
    within_s: Annotated[float, Field(gt=0, le=1e5)] = WITHIN_S
    #: signal -> value to go to: of the driver ("pedal"), or a model input that nothing else writes ("input.NAME")
    set: dict[str, Move] = {}
    #: linearly within this time, where an entry says nothing of its own [s]
    over_s: _Time = 0.0
    #: the next step begins no earlier than so long after this one [s]
    hold_s: _Time = 0.0
    #: instead of beginning, go back to this step ...
    back_to: str | None = None
    #: ... so often; then it begins
    times: Annotated[int, Field(ge=1, le=10**6)] = 1

    @field_validator("set", mode="before")
    @classmethod
    def _short(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {k: v if isinstance(v, dict) else {"to": float(v) if isinstance(v, int) else v}
                for k, v in table.items()}  # fmt: skip

    @field_validator("when")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        return readable(text, "when")

    def moves(self) -> dict[str, Move]:
        """`set` with the time of the step where an entry has none; words jump."""
        return {
            name: m if "over_s" in m.model_fields_set or isinstance(m.to, str) else Move(to=m.to, over_s=self.over_s)
            for name, m in self.set.items()
        }


@dataclass(frozen=True)
class PlannedSteps:
    """The steps with slots for names, ticks for times."""

    #: slot of the first signal of the scenario
    first_slot: int
    #: slots of the signals it moves
    moved: list[int]
    steps: list[kernel.Step]
    names: list[str]


def target_of(name: str) -> str:
    """The signal an entry of `set` means."""
    return name if name.startswith(("input.", "driver.")) else f"driver.{name}"


def add_signals(table: SignalTable, steps: list[Step]) -> int:
    """Signals of a scenario: its own, and the state of each signal it moves. Slot of the first; 0: no steps."""
    if not steps:
        return 0
    for target in _targets(steps):
        if target.startswith("driver.") and target not in table:
            table.add(target, "1", 0.0)
    names = [f"scenario.{name}" for name in kernel.SIGNALS]
    names += [f"scenario.{target}.{part}" for target in _targets(steps) for part in kernel.RAMP_SIGNALS]
    return table.add_all((name, "1") for name in names)


def _targets(steps: list[Step]) -> list[str]:
    return list(dict.fromkeys(target_of(name) for step in steps for name in step.set))


def plan_steps(table: SignalTable, steps: list[Step], first_slot: int, tick_s: float, taken: set[int],
               file: str) -> PlannedSteps:  # fmt: skip
    """Resolve [[steps]]; ConfigError with the step's number, counted from 1. taken: model inputs others write."""
    targets = _targets(steps)
    moved = []
    numbers = {step.name: k for k, step in reversed(list(enumerate(steps)))}
    found: list[kernel.Step] = []
    # when the steps so far are over at the earliest [s]
    earliest = 0.0
    for k, step in enumerate(steps):
        where = {"file": file, "table": f"steps {k + 1}"}
        if 0.0 < step.at_s < earliest:
            raise RangeError("{key} = {value}: it would begin while the step before still lasts", **where, key="at_s",
                             value=step.at_s, allowed=f">= {earliest:g}")  # fmt: skip
        earliest = max(earliest, step.at_s) + step.hold_s
        if numbers[step.name] != k:
            raise ConfigError("{key}: two steps are called {value}", **where, key="name", value=step.name)
        try:
            for name in step.set:
                _check_target(table, target_of(name), taken)
            condition = _condition(table, step.when)
            moves = [(targets.index(target_of(name)), value_of(name, m), _ticks(m.over_s, tick_s))
                     for name, m in step.moves().items()]  # fmt: skip
        except ConfigError as error:
            raise error.located(**where, key=error.key or "set") from None
        back = -1
        if step.back_to is not None:
            back = numbers.get(step.back_to, k)
            if back >= k:
                raise ConfigError("{key} = {value}: no such step before this one", **where, key="back_to",
                                  value=step.back_to, allowed=", ".join(s.name for s in steps[:k]))  # fmt: skip
        code = condition.code(table.slot) if condition is not None else ()
        found.append((code, moves, back, step.times, _ticks(step.for_s, tick_s),
                      _ticks(step.at_s, tick_s), _ticks(step.within_s + step.for_s, tick_s),
                      _ticks(step.hold_s, tick_s)))  # fmt: skip
    moved = [table.slot(target) for target in targets]
    return PlannedSteps(first_slot, moved, found, [step.name for step in steps])


def resolve(table: SignalTable, condition: Condition) -> Condition:
    """A condition on signals of the table, words as numbers."""
    return condition.resolved(table.unit, word_value)


def _condition(table: SignalTable, text: str | None) -> Condition | None:
    if text is None:
        return None
    try:
        return resolve(table, parse_condition(text))
    except ConfigError as error:
        error.key = "when"
        raise


def _check_target(table: SignalTable, target: str, taken: set[int]) -> None:
    if target not in table or not target.startswith(("driver.", "input.")):
        known = [n for n in table.names if n.startswith(("driver.", "input."))]
        raise UnknownNameError("{key}: there is no signal {value}", key="set", value=target,
                               hint=did_you_mean(target, known))  # fmt: skip
    if table.slot(target) in taken:
        raise ConfigError("{key}: {value} is written by [inputs] in every tick", key="set", value=target,
                          allowed="signals of the driver, model inputs without a signal")  # fmt: skip


def value_of(name: str, move: Move) -> float:
    """The number an entry of `set` goes to; words of lever and gear as numbers."""
    value = word_value(target_of(name), move.to) if isinstance(move.to, str) else float(move.to)
    if not math.isfinite(value):
        raise ConfigError(f"{{key}}: {name} = {{value}} is not finite", key="set", value=move.to)
    return value


def _ticks(t_s: float, tick_s: float) -> int:
    return round(t_s / tick_s)


def make_steps(planned: PlannedSteps, n_sig: int) -> kernel.Scenario:
    """The tick's tables."""
    made = kernel.Scenario(n_sig, planned.first_slot, planned.moved)
    made.set_steps(planned.steps)
    return made
