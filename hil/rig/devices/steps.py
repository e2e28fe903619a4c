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
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import scenario as kernel
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.conditions import readable
from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.common.levers import word_value
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.schema.rig_file import DRIVER

#: a step whose condition never comes ends the run after this time [s]
WITHIN_S = 60.0
#: signals of the driver that a step may move on every rig
COMMON = tuple(f"driver.{name}" for name in DRIVER)
_Time = Annotated[float, Field(ge=0, le=1e5)]


class Move(ConfigTable):
    """One entry of `set`: a value, or a value with a time of its own."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("number", "string")

    #: New value in SI, or a position of the lever.
    to: float | str
    #: Time of the linear change to the new value [s].
    over_s: _Time = 0.0


class Step(ConfigTable):
    """[[steps]]: one thing that happens."""

    #: Name of the step in reports and checks.
    name: Annotated[str, Field(min_length=1, max_length=80)]
    #: Condition that begins the step. By default it begins when the step before has ended.
    when: str | None = None
    #: The step begins when the condition has held for this long [s].
    for_s: _Time = 0.0
    #: The step does not begin before this time of the run [s].
    at_s: _Time = 0.0
    #: The step must begin at most this long after the end of the step before [s]. Otherwise the run ends and has
    #: failed.
    within_s: Annotated[float, Field(gt=0, le=1e5)] = WITHIN_S
    #: Signal -> new value. The signal belongs to the driver ("pedal"), or is a model input that nothing else writes
    #: ("input.NAME").
    set: dict[str, Move] = {}
    #: Time of the linear change to the new values, for entries of `set` without a time of their own [s].
    over_s: _Time = 0.0
    #: The next step begins no earlier than this long after this one [s].
    hold_s: _Time = 0.0
    #: Name of an earlier step. Instead of beginning, this step goes back to that one, `times` times.
    back_to: str | None = None
    #: Number of times that the step goes back before it begins.
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


def target_of(name: str) -> str:
    """The signal an entry of `set` means."""
    return name if name.startswith(("input.", "driver.")) else f"driver.{name}"


def value_of(name: str, move: Move) -> float:
    """The number an entry of `set` goes to; words of lever and gear as numbers."""
    value = word_value(target_of(name), move.to) if isinstance(move.to, str) else float(move.to)
    if not math.isfinite(value):
        raise ConfigError(f"{{key}}: {name} = {{value}} is not finite", key="set", value=move.to)
    return value


class StepTables(ConfigTable):
    """What the rig file has of them."""

    #: What the driver does, one step after the other. The run ends after the last step. See hil/rig/devices/steps.py.
    steps: list[Step] = []


class Steps(Device[StepTables]):
    """Signals scenario.state ..., and of each signal that steps move scenario.SIGNAL.to ..."""

    TABLES = StepTables
    GROUPS = ("scenario",)

    def signals(self) -> None:
        steps = self.given.steps
        #: names of the signals they move
        self.targets = list(dict.fromkeys(target_of(name) for step in steps for name in step.set))
        for target in self.targets:
            if target in COMMON and target not in self.table:
                self.table.add(target, "1", 0.0)
        names = [f"scenario.{name}" for name in kernel.SIGNALS if steps]
        names += [f"scenario.{target}.{part}" for target in self.targets for part in kernel.RAMP_SIGNALS]
        self.first_slot = self.table.add_all((name, "1") for name in names)
        # how far a signal of the steps is on its way is no more than the signal itself
        self.table.internal.update(n for n in names if n.startswith(("scenario.driver.", "scenario.input.")))

    def plan(self) -> None:
        # when the steps so far are over at the earliest [s]
        earliest = 0.0
        numbers = {step.name: k for k, step in reversed(list(enumerate(self.given.steps)))}
        #: the steps with indices into `moved` for names, ticks for times
        self.rows: list[kernel.Step] = []
        for k, step in enumerate(self.given.steps):
            where: dict[str, Any] = {"file": self.file, "table": f"steps {k + 1}"}
            if 0.0 < step.at_s < earliest:
                raise RangeError("{key} = {value}: it would begin while the step before still lasts", **where,
                                 key="at_s", value=step.at_s, allowed=f">= {earliest:g}")  # fmt: skip
            earliest = max(earliest, step.at_s) + step.hold_s
            if numbers[step.name] != k:
                raise ConfigError("{key}: two steps are called {value}", **where, key="name", value=step.name)
            back = -1 if step.back_to is None else numbers.get(step.back_to, k)
            try:
                for name in step.set:
                    self._check_target(target_of(name))
                moves = [self._move(name, move) for name, move in step.moves().items()]
            except ConfigError as error:
                raise error.located(**where, key=error.key or "set") from None
            try:
                when = () if step.when is None else self.table.condition(step.when)
            except ConfigError as error:
                error.key = "when"
                raise error.located(**where) from None
            if back >= k:
                raise ConfigError("{key} = {value}: no such step before this one", **where, key="back_to",
                                  value=step.back_to,
                                  allowed=", ".join(s.name for s in self.given.steps[:k]))  # fmt: skip
            self.rows.append((when, moves, back, step.times, self._ticks(step.for_s), self._ticks(step.at_s),
                              self._ticks(step.within_s + step.for_s), self._ticks(step.hold_s)))  # fmt: skip
        #: slots of the signals they move
        self.moved = [self.table.slot(target) for target in self.targets]
        self._check_ranges()

    def _move(self, name: str, move: Move) -> tuple[int, float, int]:
        return self.targets.index(target_of(name)), value_of(name, move), self._ticks(move.over_s)

    def _check_target(self, target: str) -> None:
        if target not in self.table or not target.startswith(("driver.", "input.")):
            known = {n for n in self.table.names if n.startswith(("driver.", "input."))} | set(COMMON)
            raise UnknownNameError("{key}: there is no signal {value}", key="set", value=target,
                                   hint=did_you_mean(target, known))  # fmt: skip
        if any(dst == self.table.slot(target) for _, dst, _, _ in self.rig.in_copies):
            raise ConfigError("{key}: {value} is written by [inputs] in every tick", key="set", value=target,
                              allowed="signals of the driver, model inputs without a signal")  # fmt: skip

    def _check_ranges(self) -> None:
        """What goes to a model input stays in the range its law is made for, as the tables of [driver] do."""
        for number, step in enumerate(self.given.steps, 1):
            for name, move in step.moves().items():
                value, slot = value_of(name, move), self.table.slot(target_of(name))
                copies = [(dst, gain, offset) for src, dst, gain, offset in self.rig.in_copies if src == slot]
                if self.table.names[slot].startswith("input."):
                    copies.append((slot, 1.0, 0.0))
                for dst, gain, offset in copies:
                    model_input = self.table.names[dst].removeprefix("input.")
                    self.rig.in_range(model_input, value * gain + offset, f"steps {number}", "set")

    def _ticks(self, t_s: float) -> int:
        return round(t_s / self.tick_s)

    def scenario(self) -> kernel.Scenario:
        """The tables of the tick."""
        made = kernel.Scenario(len(self.table), self.first_slot, self.moved)
        made.set_steps(self.rows)
        return made

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        if self.rows:
            tick.set_scenario(self.scenario())
