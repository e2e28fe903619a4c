"""Study files: what is run, which values differ from run to run, what is looked at.

    [study]
    name = "shift_3_4"
    of = "wot_4hp22"                    # scenario of a powertrain, scenario of a rig, or a rig
    design = "sobol"
    runs = 256

    [vary]                              # one column of the table each
    overlap_s = { low = -0.2, high = 0.2 }
    "model.components.car.m_kg" = { values = [1400.0, 1500.0, 1700.0] }

    [set]                               # where they go; "= ..." is computed from the names above
    'scenario.inputs."C12.p_bar".1.0' = "= 18.0 + overlap_s"

    [metrics]
    a_range = { signal = "car.a", take = "range", from_s = 18.0, until_s = 20.0 }
    cost = "a_range + 0.1 * energy_residual_rel"

Keys begin with what they belong to (hil/study/parameter_paths.py). A name in [vary] or [scatter] that is such a key
needs no entry in [set].
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, FolderName, InFile

#: how the points of a study are found
DESIGNS = ("grid", "list", "random", "sobol", "latin_hypercube", "optimise")
Design = Literal["grid", "list", "random", "sobol", "latin_hypercube", "optimise"]
#: what is taken of a signal, see hil/study/measures.py
Take = Literal[
    "min", "max", "mean", "rms", "std", "range", "first", "last", "integral", "steepest", "extremes", "reverse"
]
#: most runs of one study
RUNS_MAX = 1_000_000


class StudyTable(ConfigTable):
    """[study]: what is run, and how its points are chosen."""

    #: name of the study, in reports and as the name of its folder
    name: FolderName
    #: what it is for, in a sentence
    text: str = ""
    #: a scenario of a powertrain, a scenario of a rig, or a rig: file, or the bare name of an installed one
    of: Annotated[str, InFile("scenarios")]
    #: grid: every combination; list: the values one beside the other; random, sobol, latin_hypercube: points in the
    #: ranges; optimise: the points an optimiser asks for
    design: Design = "grid"
    #: number of points of random, sobol, latin_hypercube; most points of optimise
    runs: Annotated[int, Field(ge=1, le=RUNS_MAX)] | None = None
    #: runs of each point, which differ in what [scatter] draws
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    #: all random numbers of the study come from it
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    #: simulated time [s]; default: that of what is run
    duration_s: Annotated[float, Field(gt=0, le=1e5)] | None = None
    #: signals kept of every run, one Parquet file each
    signals: list[str] = []
    #: every so many ticks a sample is kept
    every: Annotated[int, Field(ge=1, le=100_000)] = 1


class Varied(ConfigTable):
    """An entry of [vary]: the values of one column. Values, or a range."""

    #: the values, in this order
    values: list[float] | None = None
    #: lower end of the range
    low: float | None = None
    #: upper end
    high: float | None = None
    #: values on the range, ends included (grid, list)
    steps: Annotated[int, Field(ge=2, le=RUNS_MAX)] | None = None
    #: steps of the range, and points in it: even in the value, or in its logarithm
    scale: Literal["linear", "log"] = "linear"
    #: where an optimiser begins; default: the middle
    start: float | None = None

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("array",)

    @model_validator(mode="after")
    def _one(self) -> Varied:
        if (self.values is None) == (self.low is None or self.high is None):
            raise BadValue("needs either values or low and high", key="values", value=self.values)
        if self.values is not None and not self.values:
            raise BadValue("values is empty", key="values", value=[], allowed="at least one number")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise BadValue("high = {value} is not above low", key="high", value=self.high, allowed=f"> {self.low:g}")
        if self.scale == "log" and self.low is not None and self.low <= 0.0:
            raise BadValue("low = {value} has no logarithm", key="low", value=self.low, allowed="> 0")
        if self.values is not None and (self.steps is not None or self.start is not None):
            raise BadValue("steps and start belong to a range", key="values", value=self.values)
        if self.start is not None and not self.low <= self.start <= self.high:  # type: ignore[operator]
            raise BadValue("start = {value} is outside", key="start", value=self.start,
                           allowed=f"{self.low:g} .. {self.high:g}")  # fmt: skip
        return self


class Scattered(ConfigTable):
    """An entry of [scatter]: a number drawn anew for every run, from the seed of that run."""

    #: mean of a normal distribution
    mean: float | None = None
    #: its standard deviation
    sd: Annotated[float, Field(gt=0)] | None = None
    #: lower end of an even distribution; of a normal one: where it is cut off
    low: float | None = None
    #: upper end
    high: float | None = None

    @model_validator(mode="after")
    def _one(self) -> Scattered:
        if (self.mean is None) != (self.sd is None):
            raise BadValue("mean and sd belong together", key="mean", value=self.mean)
        if self.mean is None and (self.low is None or self.high is None):
            raise BadValue("needs mean and sd, or low and high", key="low", value=self.low)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise BadValue("high = {value} is not above low", key="high", value=self.high, allowed=f"> {self.low:g}")
        if self.mean is not None:
            low, high = self.low, self.high
            if (low is not None and low > self.mean) or (high is not None and high < self.mean):
                raise BadValue("mean = {value} is cut off", key="mean", value=self.mean, allowed="low <= mean <= high")
        return self


class Metric(ConfigTable):
    """An entry of [metrics]: a number taken of a run. A text is computed from the metrics before it and of the run."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: signal it is taken of
    signal: str | None = None
    #: min, max, mean, rms, std, range (max - min), first, last, integral over time, steepest (largest slope),
    #: extremes (turning points further apart than `prominence`), reverse (how far it goes against its first sign)
    take: Take = "max"
    #: it is taken from here on [s]
    from_s: Annotated[float, Field(ge=0, le=1e5)] = 0.0
    #: to here; default: the end [s]
    until_s: Annotated[float, Field(gt=0, le=1e5)] | None = None
    #: of `extremes`: what counts as one, in the unit of the signal (SI)
    prominence: Annotated[float, Field(gt=0)] | None = None
    #: unit of the metric, as "kmh", "bar", "rpm"; default: SI
    unit: str = ""
    #: instead of a signal: an expression of metrics
    value: str | None = None
    #: instead: "FILE.py:FUNCTION", called with what is run (result["engine.w"], result.time) and giving a number
    python: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Metric:
        if sum(x is not None for x in (self.signal, self.value, self.python)) != 1:
            raise BadValue("needs one of signal, value, python", key="signal", value=self.signal)
        if (self.prominence is not None) != (self.take == "extremes"):
            raise BadValue('prominence belongs to take = "extremes"', key="prominence", value=self.prominence)
        if self.until_s is not None and self.until_s <= self.from_s:
            raise BadValue("until_s = {value} is not after from_s", key="until_s", value=self.until_s,
                           allowed=f"> {self.from_s:g}")  # fmt: skip
        return self


class Objective(ConfigTable):
    """[objective]: which runs are good."""

    #: metric that is to be small
    minimise: str | None = None
    #: or one that is to be large
    maximise: str | None = None
    #: conditions on metrics of a run that counts, as of gates
    subject_to: list[str] = []
    #: of optimise: a method of scipy.optimize, or "optuna" (extra [optuna])
    method: str = "differential_evolution"

    @model_validator(mode="after")
    def _one(self) -> Objective:
        if (self.minimise is None) == (self.maximise is None):
            raise BadValue("needs either minimise or maximise", key="minimise", value=self.minimise)
        return self


class StudyConfig(ConfigTable):
    """One study file."""

    FOLDER: ClassVar[str] = "studies"

    study: StudyTable
    #: column -> its values: a list, or { low = ..., high = ... }
    vary: dict[str, Varied] = {}
    #: column -> what is drawn for every run
    scatter: dict[str, Scattered] = {}
    #: key -> value; "= ..." is computed from the columns
    set: dict[str, Any] = {}
    #: name -> what is taken of a run: { signal = ..., take = ... }, or an expression of metrics
    metrics: dict[str, Metric] = {}
    objective: Objective | None = None

    @field_validator("vary", mode="before")
    @classmethod
    def _lists(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        found = {k: {"values": v} if isinstance(v, list) else v for k, v in table.items() if k != "source"}
        return {k: _numbers(v) for k, v in found.items()}

    @field_validator("scatter", mode="before")
    @classmethod
    def _scatter(cls, table: Any) -> Any:
        return {k: _numbers(v) for k, v in table.items() if k != "source"} if isinstance(table, dict) else table

    @field_validator("metrics", mode="before")
    @classmethod
    def _texts(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {k: {"value": v} if isinstance(v, str) else _numbers(v) for k, v in table.items() if k != "source"}

    @model_validator(mode="after")
    def _together(self) -> StudyConfig:
        if not self.vary and not self.scatter:
            raise BadValue("nothing differs from run to run", key="vary", value=None, allowed="at least one entry")
        for name in self.vary.keys() & self.scatter.keys():
            raise BadValue("{value} is varied and scattered", key="scatter", value=name)
        names, design = list(self.vary), self.study.design
        sampled = design in ("random", "sobol", "latin_hypercube", "optimise")
        if sampled and self.study.runs is None:
            raise BadValue(f"design {design} needs the number of runs", key="study", value=None, allowed="study.runs")
        if not sampled and self.study.runs is not None:
            raise BadValue("the number of runs follows from the values", key="study", value=self.study.runs,
                           allowed="no study.runs with grid and list")  # fmt: skip
        for name in names:
            varied = self.vary[name]
            if not sampled and varied.values is None and varied.steps is None:
                raise BadValue(f"{name}: design {design} needs values or steps", key="vary", value=name)
            if design == "optimise" and varied.values is not None:
                raise BadValue(f"{name}: an optimiser needs a range", key="vary", value=name, allowed="low, high")
        if design == "list" and names:
            lengths = {n: len(v.values) if v.values is not None else v.steps for n, v in self.vary.items()}
            if len(set(lengths.values())) > 1:
                raise BadValue("the columns are not of one length", key="vary", value=str(lengths))
        if design == "optimise" and (self.objective is None or self.scatter):
            raise BadValue("an optimiser needs [objective], and no [scatter]", key="objective", value=None)
        if self.study.repeats > 1 and not self.scatter:
            raise BadValue("repeats without [scatter] would be the same run again", key="study",
                           value=self.study.repeats, allowed="repeats = 1")  # fmt: skip
        return self


def _numbers(table: Any) -> Any:
    """Whole numbers as numbers; counts stay."""
    if not isinstance(table, dict):
        return table
    return {k: float(v) if type(v) is int and k != "steps" else v for k, v in table.items()}
