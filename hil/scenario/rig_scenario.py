"""Scenarios on a rig: what the driver does in steps, and what must come out.

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

A check may instead name a signal: { signal = "car.v", expected = 100.0, tolerance = 2.0, unit = "kmh", ... } asks that
it stays that close to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, field_validator, model_validator

from torqueloop.core.describe.errors import ConfigError, RangeError, UnknownNameError, did_you_mean
from torqueloop.hil.common.conditions import parse_condition
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile, validate
from torqueloop.hil.common.config_layers import read_layers, split_key
from torqueloop.hil.common.locate import find
from torqueloop.hil.report.shift_quality import CRITERIA
from torqueloop.hil.results.scenario import KINDS, SHIFT, CheckSpec, ScenarioInfo, StepSpec
from torqueloop.hil.rig.devices.steps import Step

#: gates of every scenario
GATES = {
    "no_safe_state": "safe_state_latched == 0",
    "energy": "energy_residual_rel <= 1e-6",
    "nothing_lost": "recording_lost == 0",
}
_Time = Annotated[float, Field(ge=0, le=1e5)]
_WHOLE = re.compile(r"\$([A-Za-z_]\w*)")
_INSIDE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


class ScenarioTable(ConfigTable):
    """[scenario]"""

    #: what it is called in reports
    name: str
    #: what it shows, in a sentence
    text: str = ""
    #: rig file, relative to the scenario file, or the bare name of an installed one
    rig: Annotated[str, InFile("rigs")]
    #: the run is this long at most; it ends when the steps are over [s]
    duration_s: Annotated[float, Field(gt=0, le=1e5)] = 60.0


class Parameter(ConfigTable):
    """One entry of [parameters]: a number, or with its range."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("number",)

    #: used unless another one is given
    value: float
    #: smallest that may be given instead
    min: float = -math.inf
    #: largest
    max: float = math.inf

    model_config: ClassVar[ConfigDict] = {**ConfigTable.model_config, "allow_inf_nan": True}

    @model_validator(mode="after")
    def _inside(self) -> Parameter:
        if not self.min <= self.value <= self.max:
            raise BadValue("{value} is out of its own range", key="value", value=self.value,
                           allowed=f"{self.min:g} .. {self.max:g}")  # fmt: skip
        return self


class Check(ConfigTable):
    """One entry of [[checks]]."""

    #: what must come out, in words
    name: Annotated[str, Field(min_length=1, max_length=120)]
    #: name of a step: looked at while it runs, each time it does; default: the whole run
    during: str = ""
    #: looked at from so long after its beginning on [s]
    from_s: _Time = 0.0
    #: and until so long after its beginning; default: its end [s]
    until_s: _Time | None = None
    #: condition that holds at every instant
    always: str | None = None
    #: at none
    never: str | None = None
    #: at one
    eventually: str | None = None
    #: at the last
    at_end: str | None = None
    #: of `eventually`: for so long without a break [s]
    for_s: _Time = 0.0
    #: instead of a condition: the shifts of this name ("3-2"; "*": every one) that are commanded meanwhile; there must
    #: be one ...
    shift: str | None = None
    #: ... and each meets this condition on its criteria (docs/shift_quality.md), "time < 1 s and flare < 200 rpm"
    quality: str | None = None
    #: instead of a condition: this signal stays within `tolerance` of `expected`
    signal: str | None = None
    #: of `signal`, in `unit`
    expected: float | None = None
    #: of `signal`, in `unit`
    tolerance: Annotated[float, Field(gt=0)] | None = None
    #: of `expected` and `tolerance`, as keys have it ("kmh", "bar"); default: SI
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
    """One entry of [on]: what is different on one rig. It has a `reason`, which is part of the library's page."""

    #: why
    reason: Annotated[str, Field(min_length=1)]
    #: other values of [parameters], within the same ranges
    parameters: dict[str, float] = {}
    #: other texts of [words]
    words: dict[str, str] = {}
    #: beside [set], other values of the rig file by dotted key
    set: dict[str, Any] = {}


class RigScenarioConfig(ConfigTable):
    """One scenario file of a rig."""

    FOLDER: ClassVar[str] = "manoeuvres"

    scenario: ScenarioTable
    #: numbers that may be changed from outside
    parameters: dict[str, Parameter] = {}
    #: texts by name, put in like parameters: "${reverse}.tau" is the torque of the element that [words] names
    words: dict[str, str] = {}
    #: file name of a rig without its ending -> what is different there
    on: dict[str, OnRig] = {}
    #: driver tables instead of the rig file's, which hold until a step sets the signal
    driver: dict[str, Any] = {}
    #: what the driver does, one after the other
    steps: Annotated[list[Step], Field(min_length=1)]
    #: what must come out
    checks: list[Check] = []
    #: name -> condition on the metrics of the run, see hil/results/gates.py
    gates: dict[str, str] = {}
    #: other values of the rig file by dotted key
    set: dict[str, Any] = {}

    @field_validator("parameters", mode="before")
    @classmethod
    def _short(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {k: v if isinstance(v, dict) else {"value": v} for k, v in table.items() if k != "source"}

    @model_validator(mode="after")
    def _names(self) -> RigScenarioConfig:
        steps = [step.name for step in self.steps]
        for k, check in enumerate(self.checks, 1):
            if check.during and check.during not in steps:
                raise BadValue(f"check {k}: there is no step {{value}}", key="checks", value=check.during,
                               allowed=", ".join(steps))  # fmt: skip
        return self


@dataclass(frozen=True)
class RigScenario:
    """A scenario ready to run: the rig file and what is different in it."""

    name: str
    text: str
    rig: Path
    duration_s: float
    #: dotted key -> value instead of the rig file's
    overrides: dict[str, Any]
    info: ScenarioInfo


def load_rig_scenario(
    path: Path | str, parameters: Mapping[str, float] | None = None, rig: Path | None = None
) -> RigScenario:
    """Read a scenario of a rig, its parameters put in; every mistake is a ConfigError. rig: instead of its own."""
    path = Path(path)
    layers = read_layers(path, RigScenarioConfig)
    stem = (rig or Path(str((layers.data.get("scenario") or {}).get("rig", "")))).stem
    here = _here(layers.data, stem, str(path))
    values: dict[str, float | str] = {**_words(layers.data, here, str(path))}
    numbers = _parameters(layers.data, here.parameters | dict(parameters or {}), str(path))
    values |= numbers
    for table in ("steps", "checks", "driver", "set", "gates"):
        if table in layers.data:
            layers.data[table] = _put_in(layers.data[table], values, str(path), table)
    config = validate(layers.data, RigScenarioConfig, str(path), layers.file_of)
    config.set.update(here.set)
    try:
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
    return RigScenario(config.scenario.name, config.scenario.text, rig, config.scenario.duration_s,
                       _overrides(config, layers.data), info)  # fmt: skip


@contextmanager
def of_the_scenario(path: Path | str) -> Iterator[None]:
    """Mistakes in steps are those of the scenario file, not of the rig file they are put into."""
    try:
        yield
    except ConfigError as error:
        if error.table is not None and error.table.split()[0] == "steps":
            error.file = str(path)
        raise


def _overrides(config: RigScenarioConfig, data: dict[str, Any]) -> dict[str, Any]:
    """What becomes of a scenario in a rig file."""
    found: dict[str, Any] = {}
    for key, value in config.set.items():
        split_key(key)
        found[key] = value
    found |= {f"driver.{name}": value for name, value in config.driver.items() if name != "source"}
    found["rig.name"] = config.scenario.name
    found["rig.duration_s"] = config.scenario.duration_s
    found["steps"] = data["steps"]
    # the rig file's gates are about its own drive
    found["gates"] = GATES | {name: text for name, text in config.gates.items() if name != "source"}
    return found


# --- parameters -----------------------------------------------------------------------------------------------------


def _here(data: dict[str, Any], rig: str, file: str) -> OnRig:
    """What is different on this rig."""
    table = data.get("on")
    own = {"scenario": data.get("scenario"), "steps": [{"name": "-"}], "on": table if isinstance(table, dict) else {}}
    return validate(own, RigScenarioConfig, file).on.get(rig, OnRig(reason="-"))


def _words(data: dict[str, Any], here: OnRig, file: str) -> dict[str, str]:
    """Name -> text of [words], those of this rig instead."""
    table = data.get("words")
    table = table if isinstance(table, dict) else {}
    own = {"scenario": data.get("scenario"), "steps": [{"name": "-"}], "words": table}
    known = validate(own, RigScenarioConfig, file).words
    for name in here.words:
        if name not in known:
            raise UnknownNameError("the scenario has no word {value}", file=file, table="on", key=name, value=name,
                                   hint=did_you_mean(name, known), allowed=", ".join(known) or "none")  # fmt: skip
    for name in known:
        if name in (data.get("parameters") or {}):
            raise ConfigError("{key} is a parameter and a word", file=file, table="words", key=name)
    return {**known, **here.words}


def _parameters(data: dict[str, Any], given: Mapping[str, float], file: str) -> dict[str, float]:
    """Name -> value of [parameters], those given from outside instead of the file's."""
    table = data.get("parameters", {})
    if not isinstance(table, dict):
        return {}
    own = {"scenario": data.get("scenario"), "steps": [{"name": "-"}], "parameters": table}
    known = validate(own, RigScenarioConfig, file).parameters
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
