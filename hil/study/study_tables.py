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
    """[study]: what is run, and how the points of the study are chosen."""

    #: Name of the study in reports, and of its folder.
    name: FolderName
    #: What the study is for, in a sentence.
    text: str = ""
    #: What is run: a scenario of a driveline, a scenario of a rig, or a rig. It is a file, or the bare name of an
    #: installed one.
    of: Annotated[str, InFile("scenarios")]
    #: grid: every combination of the values. list: the n-th run takes the n-th value of every column. random, sobol,
    #: latin_hypercube: points in the ranges. optimise: the points that an optimiser asks for.
    design: Design = "grid"
    #: Number of points of random, sobol and latin_hypercube; largest number of points of optimise.
    runs: Annotated[int, Field(ge=1, le=RUNS_MAX)] | None = None
    #: Number of runs of each point. They differ in what [scatter] draws.
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    #: Seed from which all random numbers of the study follow.
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    #: Simulated time [s]. By default it is that of what is run.
    duration_s: Annotated[float, Field(gt=0, le=1e5)] | None = None
    #: Signals that are kept of every run, in one Parquet file for each run.
    signals: list[str] = []
    #: Number of ticks from one kept sample to the next.
    every: Annotated[int, Field(ge=1, le=100_000)] = 1


class Varied(ConfigTable):
    """An entry of [vary]: the values of one column, as a list or as a range."""

    #: Values of the column. random, sobol and latin_hypercube take each of them with equal probability.
    values: list[float] | None = None
    #: Lower end of the range.
    low: float | None = None
    #: Upper end of the range.
    high: float | None = None
    #: grid and list: number of values on the range, both ends included.
    steps: Annotated[int, Field(ge=2, le=RUNS_MAX)] | None = None
    #: Whether the values on the range are evenly spaced themselves, or their logarithms.
    scale: Literal["linear", "log"] = "linear"
    #: Value at which an optimiser begins. By default it is the middle of the range, on its scale.
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
    """An entry of [scatter]: a random number that is drawn for every run, from the seed of the run."""

    #: Mean of a normal distribution.
    mean: float | None = None
    #: Standard deviation of the normal distribution.
    sd: Annotated[float, Field(gt=0)] | None = None
    #: Lower end of a uniform distribution. Numbers of a normal distribution that are lower are drawn again.
    low: float | None = None
    #: Upper end of a uniform distribution. Numbers of a normal distribution that are higher are drawn again.
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
    """An entry of [metrics]: a number of each run. A text instead of a table is an expression of the metrics above it
    and of the metrics of the run."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: Signal from which the number is computed.
    signal: str | None = None
    #: Number that is computed: min, max, mean, rms, std, range (max - min), first, last, integral over time, steepest
    #: (largest absolute slope), extremes (number of turning points that are at least `prominence` apart), reverse
    #: (largest value of the sign opposite to the first one).
    take: Take = "max"
    #: Beginning of the time that is used [s].
    from_s: Annotated[float, Field(ge=0, le=1e5)] = 0.0
    #: End of the time that is used [s]. By default it is the end of the run.
    until_s: Annotated[float, Field(gt=0, le=1e5)] | None = None
    #: With `extremes`: smallest distance of two turning points, in the unit of the signal (SI).
    prominence: Annotated[float, Field(gt=0)] | None = None
    #: Unit of the metric, such as "kmh", "bar" or "rpm". By default it is the SI unit.
    unit: str = ""
    #: Instead of a signal: an expression of metrics.
    value: str | None = None
    #: Instead of a signal: "FILE.py:FUNCTION". The function is called with the run (result["engine.w"], result.time)
    #: and returns a number.
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
    """[objective]: which runs are best."""

    #: Metric that is to be small.
    minimise: str | None = None
    #: Metric that is to be large.
    maximise: str | None = None
    #: Conditions on the metrics of a run, written like gates. A run counts only if it meets all of them.
    subject_to: list[str] = []
    #: With the design optimise: a method of scipy.optimize, or "optuna" (extra [optuna]).
    method: str = "differential_evolution"

    @model_validator(mode="after")
    def _one(self) -> Objective:
        if (self.minimise is None) == (self.maximise is None):
            raise BadValue("needs either minimise or maximise", key="minimise", value=self.minimise)
        return self


class StudyConfig(ConfigTable):
    """Keys of a study file."""

    FOLDER: ClassVar[str] = "studies"

    study: StudyTable
    #: Column -> its values: a list, or { low = ..., high = ... }.
    vary: dict[str, Varied] = {}
    #: Column -> the distribution from which a number is drawn for every run.
    scatter: dict[str, Scattered] = {}
    #: Key -> value. "= ..." is computed from the columns.
    set: dict[str, Any] = {}
    #: Name -> a number of each run: { signal = ..., take = ... }, or an expression of metrics.
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
