"""Scenario files: what is run, what happens in steps, and what must come out.

    [scenario]
    name = "kick_down"
    text = "Kick-down at 60 km/h: the gearbox shifts down at once and the car pulls."
    rig = "desk_4hp22"              # any rig file; --rig on the command line takes another one
    duration_s = 60.0               # at most: the run ends when the steps are over

    [parameters]                    # "$v_kmh" below is this number, "${v_kmh}" stands in a longer text
    v_kmh = { value = 60.0, min = 40.0, max = 90.0 }

    [driver]                        # what the driver does before the steps, as in a rig file
    brake = 0.3
    lever = "N"

    [[steps]]                       # hil/rig/devices/steps.py
    name = "kick down"
    when = "car.v > ${v_kmh} km/h"
    set = { pedal = 1.0, kickdown = 1 }

    [[checks]]
    name = "second gear within 0.8 s"
    during = "kick down"
    eventually = "TCU_Status.gear_actual == 2"     # or always, never, at_end
    until_s = 0.8

    [on.desk_6hp26]                 # what is different on the rig of this file name (--rig), see OnRig
    parameters = { v_kmh = 55.0 }
    words = { reverse = "D" }

    [gates]                         # beside GATES; the rig file's gates are about its own drive and do not hold here
    [set]                           # other values of the rig file: dotted key = value
    "vehicle.config.grade" = 0.05

A driveline alone takes the place of the rig (hil/scenario/offline.py); then [set] is about the driveline file:

    [scenario]
    powertrain = "car_4hp22"

    [inputs]                        # every input of the model with its unit: constant, points [t_s, value], or a source
    "engine.pedal" = [[0.0, 0.0], [0.5, 0.0], [0.7, 1.0]]
    "C4.p_bar" = 12.0

    [[steps]]                       # from its first step on, an input is the steps' and not its table's any more
    name = "coast"
    when = "car.v > 60 km/h"
    set = { "input.engine.pedal" = 0.0 }

A check may instead name a signal: { signal = "car.v", expected = 100.0, tolerance = 2.0, unit = "kmh", ... } asks that
it stays that close to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, field_validator, model_validator

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.describe.renamed import remedy, signals_in
from torqueloop.hil.common.conditions import parse_condition
from torqueloop.hil.common.config_file import BadValue, ConfigTable, FolderName, InFile, validate
from torqueloop.hil.common.config_layers import Layers, read_layers, split_key, with_overrides
from torqueloop.hil.common.locate import find
from torqueloop.hil.report.shift_quality import CRITERIA
from torqueloop.hil.results.scenario import KINDS, SHIFT, CheckSpec, ScenarioInfo, StepSpec
from torqueloop.hil.rig.devices.steps import Step
from torqueloop.hil.rig.schema.monitor_table import Monitors

#: gates of every scenario of a rig
GATES = {
    "no_safe_state": "safe_state_latched == 0",
    "energy": "energy_residual_rel <= 1e-6",
    "nothing_lost": "recording_lost == 0",
}
_Time = Annotated[float, Field(ge=0, le=1e5)]
_WHOLE = re.compile(r"\$([A-Za-z_]\w*)")
_INSIDE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


class ScenarioTable(ConfigTable):
    """[scenario]: what is run: a rig, or a driveline alone."""

    #: Name of the scenario in reports.
    name: FolderName
    #: What the scenario shows, in a sentence.
    text: str = ""
    #: Rig file, relative to the scenario file, or the bare name of an installed one.
    rig: Annotated[str, InFile("rigs")] | None = None
    #: Driveline file instead of a rig, relative to the scenario file, or the bare name of an installed one.
    powertrain: Annotated[str, InFile("powertrains")] | None = None
    #: Longest duration of the run [s]. The run ends earlier when its steps are over.
    duration_s: Annotated[float, Field(gt=0, le=1e5)] = 60.0
    #: Driveline alone: time between two samples [s].
    tick_s: Annotated[float, Field(ge=1e-5, le=0.1)] = 1e-3
    #: Driveline alone: number of steps in a tick.
    substeps: Annotated[int, Field(ge=1, le=64)] = 1

    @model_validator(mode="before")
    @classmethod
    def _old_names(cls, table: Any) -> Any:
        if isinstance(table, dict) and "set" in table:
            raise BadValue("[scenario] set is now written [set]", key="set", value=None, allowed="[set]")
        return table

    @model_validator(mode="after")
    def _one(self) -> ScenarioTable:
        if (self.rig is None) == (self.powertrain is None):
            raise BadValue("a scenario is of a rig or of a driveline", key="rig", value=self.rig,
                           allowed="one of rig = ..., powertrain = ...")  # fmt: skip
        if self.rig is not None:
            for key in sorted({"tick_s", "substeps"} & self.model_fields_set):
                raise BadValue("{key} = {value}: a rig has its own", key=key, value=getattr(self, key),
                               allowed=f'[set] "clock.{key}" = ...')  # fmt: skip
        return self


class Parameter(ConfigTable):
    """One entry of [parameters]: a number, or a number with its range."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("number",)

    #: Value that is used unless another one is given.
    value: float
    #: Smallest value that may be given instead.
    min: float = -math.inf
    #: Largest value that may be given instead.
    max: float = math.inf

    model_config: ClassVar[ConfigDict] = {**ConfigTable.model_config, "allow_inf_nan": True}

    @model_validator(mode="after")
    def _inside(self) -> Parameter:
        if not self.min <= self.value <= self.max:
            raise BadValue("{value} is out of its own range", key="value", value=self.value,
                           allowed=f"{self.min:g} .. {self.max:g}")  # fmt: skip
        return self


class Check(ConfigTable):
    """One entry of [[checks]]: what must come out. A check has one of the keys always, never, eventually, at_end, shift
    and signal."""

    #: What must come out, in words.
    name: Annotated[str, Field(min_length=1, max_length=120)]
    #: Name of a step. The check applies while this step runs, each time it does. By default it applies to the whole
    #: run.
    during: str = ""
    #: The check begins this long after the beginning of its step, or of the run [s].
    from_s: _Time = 0.0
    #: The check ends this long after the beginning of its step, or of the run [s]. By default it ends when they end.
    until_s: _Time | None = None
    #: Condition that must hold at every sample.
    always: str | None = None
    #: Condition that must hold at no sample.
    never: str | None = None
    #: Condition that must hold at one sample, or for `for_s` without a break.
    eventually: str | None = None
    #: Condition that must hold at the last sample.
    at_end: str | None = None
    #: With `eventually`: the condition must hold for this long without a break [s].
    for_s: _Time = 0.0
    #: Instead of a condition: name of shifts, "3-2", or "*" for all. Each of them that is commanded in the time of the
    #: check must meet `quality`, and there must be at least one.
    shift: str | None = None
    #: Condition on the criteria of a shift (docs/shift_quality.md), such as "time < 1 s and flare < 200 rpm".
    quality: str | None = None
    #: Instead of a condition: signal that must stay within `tolerance` of `expected`.
    signal: str | None = None
    #: With `signal`: expected value, in `unit`.
    expected: float | None = None
    #: With `signal`: largest difference from `expected`, in `unit`.
    tolerance: Annotated[float, Field(gt=0)] | None = None
    #: Unit of `expected` and `tolerance`, such as "kmh" or "bar". By default it is the SI unit.
    unit: str = ""

    @model_validator(mode="after")
    def _one(self) -> Check:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) + (self.signal is not None) + (self.shift is not None) != 1:
            raise BadValue("a check has one of these", key="always", value=given,
                           allowed=f"{', '.join(KINDS)}, signal, shift")  # fmt: skip
        if (self.shift is None) != (self.quality is None):
            raise BadValue("shift and quality belong together", key="shift", value=self.shift)
        if (self.signal is None) != (self.expected is None) or (self.signal is None) != (self.tolerance is None):
            raise BadValue("signal, expected and tolerance belong together", key="signal", value=self.signal)
        if self.for_s and self.eventually is None:
            raise BadValue("for_s = {value} is for eventually", key="for_s", value=self.for_s)
        if self.until_s is not None and self.until_s < self.from_s:
            raise BadValue("until_s = {value} is before from_s", key="until_s", value=self.until_s,
                           allowed=f">= {self.from_s:g}")  # fmt: skip
        return self

    def spec(self) -> CheckSpec:
        """As the results keep it. ConfigError for a condition that cannot be read."""
        if self.signal is not None:
            assert self.expected is not None and self.tolerance is not None
            low, high = self.expected - self.tolerance, self.expected + self.tolerance
            kind, text = "always", f"{self.signal} >= {low!r} {self.unit} and {self.signal} <= {high!r} {self.unit}"
        elif self.shift is not None:
            assert self.quality is not None
            return CheckSpec(self.name, SHIFT, _criteria(self.quality), self.during, self.from_s, self.until_s,
                             shift=self.shift.replace("→", "-"))  # fmt: skip
        else:
            kind = next(kind for kind in KINDS if getattr(self, kind) is not None)
            text = getattr(self, kind)
        if (now := signals_in(text)) != text:
            raise UnknownNameError("{key} = {value} has a name of before", key=kind, value=text,
                                   hint=remedy(text, now))  # fmt: skip
        try:
            parse_condition(text)
        except ConfigError as error:
            error.key = kind
            raise
        return CheckSpec(self.name, kind, text, self.during, self.from_s, self.until_s, self.for_s)


def _criteria(text: str) -> str:
    """A condition on the criteria of shifts that can be read; ConfigError otherwise."""

    def unit(name: str) -> str:
        if name not in CRITERIA:
            raise UnknownNameError("there is no criterion {value}", key="quality", value=name,
                                   hint=did_you_mean(name, CRITERIA), allowed=", ".join(CRITERIA))  # fmt: skip
        return CRITERIA[name]

    def word(name: str, word: str) -> float:
        raise ConfigError("{key}: {value} is no number", key="quality", value=word)

    try:
        parse_condition(text).resolved(unit, word)
    except ConfigError as error:
        error.key = "quality"
        raise
    return text


class OnRig(ConfigTable):
    """One entry of [on]: what is different on one rig. The page of the scenario library shows the reason."""

    #: Why the scenario is different on this rig.
    reason: Annotated[str, Field(min_length=1)]
    #: Values that replace those of [parameters], within the same ranges.
    parameters: dict[str, float] = {}
    #: Texts that replace those of [words].
    words: dict[str, str] = {}
    #: Values of the rig file by dotted key, in addition to those of [set].
    set: dict[str, Any] = {}


class Values(ConfigTable):
    """The tables of a scenario file whose values are put into its other tables before those are read."""

    #: What is run; the model ScenarioConfig checks it.
    scenario: Any = None
    #: Numbers that may be changed from outside.
    parameters: dict[str, Parameter] = {}
    #: Texts by name, which are put in like parameters: "${reverse}.tau" is the torque of the element that [words]
    #: names.
    words: dict[str, str] = {}
    #: File name of a rig without its ending -> what is different on this rig.
    on: dict[str, OnRig] = {}

    @field_validator("parameters", mode="before")
    @classmethod
    def _short(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {k: v if isinstance(v, dict) else {"value": v} for k, v in table.items() if k != "source"}


class ScenarioConfig(Values):
    """What is run (a rig, or a driveline alone), what happens in steps, and what must come out. A run ends when its
    steps are over, and after `duration_s` at the latest. On a rig, steps set signals of the driver (`pedal`) or inputs
    of the model (`input.NAME`). On a driveline alone they set inputs of the model, which follow `[inputs]` until then.
    An input that a step has set has one value in each tick.
    """

    FOLDER: ClassVar[str] = "scenarios"

    scenario: ScenarioTable
    #: Rig: driver tables that replace those of the rig file. They hold until a step sets the signal.
    driver: dict[str, Any] = {}
    #: Driveline alone: input of the model with its unit, such as "C4.p_bar" -> a constant, points [[t_s, value], ...],
    #: or a source { kind = "Sine", amplitude = ..., f = ... }.
    inputs: dict[str, Any] = {}
    #: What happens, one step after the other.
    steps: list[Step] = []
    #: What must come out.
    checks: list[Check] = []
    #: Name -> condition on the metrics of the run, see hil/results/gates.py.
    gates: dict[str, str] = {}
    #: Values that replace those of the rig file, or of the driveline file, by dotted key.
    set: dict[str, Any] = {}
    monitors: Monitors = Monitors()

    @model_validator(mode="after")
    def _names(self) -> ScenarioConfig:
        steps = [step.name for step in self.steps]
        for k, check in enumerate(self.checks, 1):
            if check.during and check.during not in steps:
                raise BadValue(f"check {k}: there is no step {{value}}", key="checks", value=check.during,
                               allowed=", ".join(steps))  # fmt: skip
        return self

    @model_validator(mode="after")
    def _fits(self) -> ScenarioConfig:
        if self.scenario.rig is not None and self.inputs:
            raise BadValue("[inputs] is for a driveline alone: a rig has its own", key="inputs", value=None,
                           allowed='[driver], [set], or steps that set "input.NAME"')  # fmt: skip
        for key in ("driver", "on") if self.scenario.powertrain is not None else ():
            if getattr(self, key):
                raise BadValue(f"[{key}] is for a rig, this is a driveline alone", key=key, value=None,
                               allowed='[inputs], or steps that set "input.NAME"')  # fmt: skip
        return self


@dataclass(frozen=True)
class Scenario:
    """A scenario ready to run: what is run, and what is different in it."""

    path: Path
    #: the file, parameters put in
    config: ScenarioConfig
    #: None: a driveline alone
    rig: Path | None
    #: dotted key -> value instead of the rig file's, or the driveline file's
    overrides: dict[str, Any]
    info: ScenarioInfo

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return self.config.scenario.name

    @property
    def of_rig(self) -> Path:
        """The rig file. ConfigError for a scenario of a driveline alone."""
        if self.rig is None:
            raise ConfigError("this is a scenario of a driveline alone, not of a rig", file=str(self.path),
                              table="scenario", key="powertrain", value=self.config.scenario.powertrain)  # fmt: skip
        return self.rig

    def driveline(self) -> Path:
        """The driveline file. ConfigError for a scenario of a rig, or when there is no such file."""
        name = self.config.scenario.powertrain
        if name is None:
            raise ConfigError("this is a scenario of a rig, not of a driveline alone", file=str(self.path),
                              table="scenario", key="rig", value=self.config.scenario.rig,
                              hint="`torqueloop scenario` runs both")  # fmt: skip
        try:
            return find(self.path, name, "powertrains")
        except ConfigError as error:
            raise error.located(file=str(self.path), table="scenario", key="powertrain") from None


def load_scenario(
    path: Path | str, parameters: Mapping[str, float] | None = None, rig: Path | None = None,
    values: Mapping[str, Any] | None = None, read: Layers | None = None,
) -> Scenario:  # fmt: skip
    """Read a scenario, its parameters put in; every mistake is a ConfigError.

    parameters: instead of those in the file. rig: instead of its own. values: dotted key of the file -> other value.
    read: the content of the file (`read_layers`) where it has been read before.
    """
    path = Path(path)
    layers = with_overrides(read or read_layers(path, ScenarioConfig), ScenarioConfig, values or {})
    table = layers.data.get("scenario")
    table = table if isinstance(table, dict) else {}
    if rig is not None and "powertrain" in table:
        raise ConfigError("a scenario of a driveline alone runs on no rig", file=str(path), table="scenario",
                          key="powertrain", value=str(table["powertrain"]), allowed="no --rig")  # fmt: skip
    given: dict[str, Any] = {key: layers.data[key] for key in ("parameters", "words", "on") if key in layers.data}
    front = validate(given, Values, str(path), layers.file_of)
    here = front.on.get((rig or Path(str(table.get("rig", "")))).stem, OnRig(reason="-"))
    numbers = _parameters(front, here.parameters | dict(parameters or {}), str(path))
    known: dict[str, float | str] = {**_words(front, here, str(path)), **numbers}
    for name in ("steps", "checks", "driver", "inputs", "set", "gates"):
        if name in layers.data:
            layers.data[name] = _put_in(layers.data[name], known, str(path), name)
    config = validate(layers.data, ScenarioConfig, str(path), layers.file_of)
    try:
        if config.scenario.rig is not None:
            rig = rig or find(path, config.scenario.rig, "rigs")
    except ConfigError as error:
        raise error.located(file=str(path), table="scenario", key="rig") from None
    checks = []
    for k, check in enumerate(config.checks, 1):
        try:
            checks.append(check.spec())
        except ConfigError as error:
            raise error.located(file=str(path), table=f"checks {k}", key=error.key) from None
    steps = [StepSpec(s.name, s.when or "", s.for_s, s.within_s) for s in config.steps]
    info = ScenarioInfo(config.scenario.name, str(path), numbers, steps, checks)
    overrides = dict(config.set) if rig is None else _of_the_rig(config, layers.data, here)
    return Scenario(path, config, rig, overrides, info)


@contextmanager
def of_the_scenario(path: Path | str) -> Iterator[None]:
    """Mistakes in steps are those of the scenario file, not of the rig file they are put into."""
    try:
        yield
    except ConfigError as error:
        if error.table is not None and error.table.split()[0] == "steps":
            error.file = str(path)
        raise


def _of_the_rig(config: ScenarioConfig, data: dict[str, Any], here: OnRig) -> dict[str, Any]:
    """What becomes of a scenario in a rig file."""
    found: dict[str, Any] = {}
    for table, value in data.get("monitors", {}).items():
        inside = value if isinstance(value, dict) else {"": value}
        found |= {f"monitors.{table}.{name}".rstrip("."): one for name, one in inside.items() if name != "source"}
    for key, value in {**config.set, **here.set}.items():
        split_key(key)
        found[key] = value
    found |= {f"driver.{name}": value for name, value in config.driver.items() if name != "source"}
    found["rig.name"] = config.scenario.name
    found["rig.duration_s"] = config.scenario.duration_s
    found["steps"] = data.get("steps", [])
    # the rig file's gates are about its own drive
    found["gates"] = GATES | {name: text for name, text in config.gates.items() if name != "source"}
    return found


# --- parameters -----------------------------------------------------------------------------------------------------


def _words(front: Values, here: OnRig, file: str) -> dict[str, str]:
    """Name -> text of [words], those of this rig instead."""
    for name in here.words:
        if name not in front.words:
            raise UnknownNameError("the scenario has no word {value}", file=file, table="on", key=name, value=name,
                                   hint=did_you_mean(name, front.words),
                                   allowed=", ".join(front.words) or "none")  # fmt: skip
    for name in front.words:
        if name in front.parameters:
            raise ConfigError("{key} is a parameter and a word", file=file, table="words", key=name)
    return {**front.words, **here.words}


def _parameters(front: Values, given: Mapping[str, float], file: str) -> dict[str, float]:
    """Name -> value of [parameters], those given from outside instead of the file's."""
    known = front.parameters
    for name, value in given.items():
        if name not in known:
            raise UnknownNameError("the scenario has no parameter {value}", file=file, table="parameters", key=name,
                                   value=name, hint=did_you_mean(name, known))  # fmt: skip
        if not known[name].min <= value <= known[name].max:
            raise RangeError("{key} = {value} is not allowed", file=file, table="parameters", key=name, value=value,
                             allowed=f"{known[name].min:g} .. {known[name].max:g}")  # fmt: skip
    return {name: float(given.get(name, p.value)) for name, p in known.items()}


def _put_in(value: Any, values: Mapping[str, float | str], file: str, table: str) -> Any:
    """`$name` and `${name}` in all texts of a table."""
    if isinstance(value, dict):
        return {k: _put_in(v, values, file, f"{table}.{k}") for k, v in value.items()}
    if isinstance(value, list):
        return [_put_in(v, values, file, f"{table} {k}" if isinstance(v, dict) else table)
                for k, v in enumerate(value, 1)]  # fmt: skip
    if not isinstance(value, str):
        return value

    def known(match: re.Match[str]) -> float | int | str:
        if match[1] not in values:
            raise UnknownNameError("there is no parameter {value}", file=file, table=table, key="$", value=match[1],
                                   hint=did_you_mean(match[1], values))  # fmt: skip
        found = values[match[1]]
        return int(found) if isinstance(found, float) and found.is_integer() else found

    def text(match: re.Match[str]) -> str:
        found = known(match)
        return found if isinstance(found, str) else f"{found:g}"

    whole = _WHOLE.fullmatch(value)
    return known(whole) if whole else _INSIDE.sub(text, value)
