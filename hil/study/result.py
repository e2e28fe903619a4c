"""A study as Python reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.hil.common.locate import locate
from torqueloop.hil.study.measures import Function
from torqueloop.hil.study.page import write_page
from torqueloop.hil.study.repeats import Point, points
from torqueloop.hil.study.store import PAGE, SIGNALS, TABLE, table
from torqueloop.hil.study.study import Study, Timing, Told, read_study, run_study, study_of
from torqueloop.hil.study.work import Outcome


@dataclass(frozen=True)
class StudyResult:
    """All runs of a study, in their order."""

    study: Study
    path: Path
    runs: Sequence[Outcome]
    timing: Timing
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def failed(self) -> list[Outcome]:
        """Runs that could not be made."""
        return [o for o in self.runs if o.error]

    def __getitem__(self, name: str) -> list[float]:
        """A column, NaN where a run has none."""
        known = {n for o in self.runs for n in (*o.line.values, *o.metrics)}
        if name not in known:
            raise UnknownNameError("there is no column {value}", value=name, hint=did_you_mean(name, known))
        found = [o.line.values.get(name, o.metrics.get(name)) for o in self.runs]
        return [float("nan") if v is None else v for v in found]

    def table(self) -> Any:
        """As a pyarrow table, the same as runs.parquet."""
        return table(self.runs)

    def frame(self) -> Any:
        """As a pandas data frame with a row for each run."""
        return self.table().to_pandas().set_index("run")

    def best(self, n: int = 10) -> list[Outcome]:
        """The best runs by [objective], the best first. ConfigError without one."""
        job = self.study.job
        if job.config.objective is None:
            raise ConfigError("the study has no [objective]", table="objective")
        good = [o for o in self.runs if job.cost(o) < float("inf")]
        return sorted(good, key=job.cost)[:n]

    def points(self) -> list[Point]:
        """With `repeats`: the runs of each point taken together, in the order of the design; else none."""
        return points(self.study.job, self.runs, list(self.study.job.config.metrics))

    def signals(self, run: int) -> dict[str, Any]:
        """Signals kept of a run, by name, with their times under "t" (NumPy)."""
        from pyarrow import parquet

        path = self.path / SIGNALS / f"{run:06d}.parquet"
        if not path.is_file():
            raise ConfigError("no signals were kept of run {value}", key="run", value=run,
                              allowed="signals = [...] in [study]")  # fmt: skip
        read = parquet.read_table(path)
        return {name: read[name].to_numpy() for name in read.column_names}

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"<study {self.path}: {len(self.runs)} runs, {len(self.failed)} failed>"


def sweep(
    study: Path | str | None = None,
    *,
    of: Path | str | None = None,
    vary: Mapping[str, Any] | None = None,
    scatter: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    minimise: str | None = None,
    maximise: str | None = None,
    subject_to: Sequence[str] = (),
    method: str = "differential_evolution",
    design: str = "grid",
    runs: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    duration_s: float | None = None,
    signals: Sequence[str] = (),
    every: int = 1,
    name: str = "sweep",
    out: Path | str | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    html: bool = True,
    told: Callable[[int], AbstractContextManager[Told]] | None = None,
    values: Mapping[str, Any] | None = None,
) -> StudyResult:
    """Run a study: a file, or `of` (a scenario or rig) with what is varied.

        tl.sweep(of="wot_4hp22", vary={"model.components.car.m_kg": [1400, 1500, 1600]},
                 metrics={"v_end": {"signal": "car.v", "take": "last", "unit": "kmh"}})

    The keyword arguments are the tables of a study file (docs/study_file.md); a metric may be a function of a module
    (run -> number) as well. values: dotted key -> value instead of the file's. jobs: processes at a time, default one
    for each CPU. scheduler: address of a Dask scheduler instead. out: folder of the study, default runs/TIME-NAME; one
    that holds a part of this study is gone on with.
    """
    if (study is None) == (of is None):
        raise ConfigError("needs either a study file or `of`", key="study", value=study)
    if study is not None:
        made = read_study(locate(study, "studies"), values)
    else:
        functions: dict[str, Function] = {}
        tables = {}
        for key, metric in (metrics or {}).items():
            if callable(metric):
                functions[f"python:{key}"] = metric
                metric = {"python": f"python:{key}"}
            tables[key] = metric
        table_: dict[str, Any] = {"name": name, "of": str(of), "design": design, "repeats": repeats, "seed": seed,
                                  "signals": list(signals), "every": every}  # fmt: skip
        table_ |= {k: v for k, v in (("runs", runs), ("duration_s", duration_s)) if v is not None}
        data: dict[str, Any] = {"study": table_, "vary": _listed(vary), "scatter": dict(scatter or {}),
                                "set": dict(set or {}), "metrics": tables}  # fmt: skip
        if minimise is not None or maximise is not None:
            goal = {"minimise": minimise} if minimise is not None else {"maximise": maximise}
            data["objective"] = {**goal, "subject_to": list(subject_to), "method": method}
        made = study_of(data, functions)
    folder = (
        Path(out)
        if out is not None
        else Path("runs") / (f"{time.strftime('%Y%m%d-%H%M%S')}-{made.job.config.study.name}")
    )
    outcomes, timing = run_study(made, folder, jobs, scheduler, told)
    result = StudyResult(made, folder, outcomes, timing, {"table": folder / TABLE})
    if html:
        result.files["page"] = write_page(folder / PAGE, made, outcomes, timing)
    return result


def _listed(vary: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values as a file has them: any sequence of numbers is a list."""
    return {k: dict(v) if isinstance(v, Mapping) else [float(x) for x in v] for k, v in (vary or {}).items()}


__all__ = ["StudyResult", "sweep"]
