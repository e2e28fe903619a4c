"""A study as Python reads it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.hil.common.locate import default_folder, locate
from torqueloop.hil.study.measures import Function
from torqueloop.hil.study.page import write_page
from torqueloop.hil.study.repeats import Point, points
from torqueloop.hil.study.store import PAGE, SIGNALS, TABLE, table
from torqueloop.hil.study.study import Progress, Study, Timing, read_study, run_study, study_of
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

    @property
    def not_passed(self) -> list[Outcome]:
        """Runs of a rig in which a gate, a check or a monitor failed; `failures` of each say which, with the reason."""
        return [o for o in self.runs if o.failures]

    @property
    def unresolved(self) -> list[Outcome]:
        """Runs whose steps did not resolve what happened in them; `remarks` of each say what, with the remedy."""
        return [o for o in self.runs if o.remarks]

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
    study: Path | str | Mapping[str, Any],
    *,
    values: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    html: bool = True,
    progress: Callable[[int], AbstractContextManager[Progress]] | None = None,
    told: Callable[[int], AbstractContextManager[Progress]] | None = None,
) -> StudyResult:
    """Run a study: a file, the name of an installed one, or the tables of such a file (docs/study_file.md).

        tl.sweep({"study": {"of": "wot_4hp22"}, "vary": {"model.components.car.m_kg": [1400, 1500, 1600]},
                  "metrics": {"v_end": {"signal": "car.v", "take": "last", "unit": "kmh"}}})

    In tables, a metric may be a function of a module (run -> number) as well, and the study needs no name. values:
    dotted key -> value instead of the file's. jobs: processes at a time, default one for each CPU. scheduler: address
    of a Dask scheduler instead. out: folder of the study, default runs/TIME-NAME; a folder with a part of this
    study is continued. progress: called with the number of runs, it gives a context. Its value
    is called with the number of finished runs and the best one. `told` is the former name of progress.
    """
    if told is not None:
        warnings.warn("sweep(told=...) is called sweep(progress=...)", DeprecationWarning, stacklevel=2)
    made = _from_tables(study) if isinstance(study, Mapping) else read_study(locate(study, "studies"), values)
    folder = Path(out or default_folder(made.job.config.study.name))
    outcomes, timing = run_study(made, folder, jobs, scheduler, progress or told)
    result = StudyResult(made, folder, outcomes, timing, {"table": folder / TABLE})
    if html:
        result.files["page"] = write_page(folder / PAGE, made, outcomes, timing)
    return result


def _from_tables(tables: Mapping[str, Any]) -> Study:
    """A study of the tables of a file, with functions among the metrics and any sequence of numbers for a list."""
    given = {name: dict(table) for name, table in tables.items()}
    given["study"] = {"name": "sweep", **given.get("study", {})}
    for key, way in given.get("vary", {}).items():
        given["vary"][key] = dict(way) if isinstance(way, Mapping) else [float(x) for x in way]
    functions: dict[str, Function] = {}
    for key, metric in given.get("metrics", {}).items():
        if callable(metric):
            functions[f"python:{key}"] = metric
            given["metrics"][key] = {"python": f"python:{key}"}
    return study_of(given, functions)


__all__ = ["StudyResult", "sweep"]
