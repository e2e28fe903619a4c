"""Run a study: its lines on the workers there are, what is finished kept at once, table and page at the end."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import read_json
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.common.config_layers import OUTSIDE, load_config
from torqueloop.hil.study.design import Line, count, line, lines, place, unit_place
from torqueloop.hil.study.measures import Function
from torqueloop.hil.study.optimise import METHODS, optimise
from torqueloop.hil.study.parameter_paths import target_of, used_columns
from torqueloop.hil.study.pool import run_all, run_batch, workers
from torqueloop.hil.study.store import JOURNAL, SIGNALS, STUDY, Store, need_parquet, read_journal
from torqueloop.hil.study.study_tables import StudyConfig
from torqueloop.hil.study.work import Job, Outcome

#: called with (finished runs, best so far or None) whenever some are finished
Progress = Callable[[int, Outcome | None], None]


@dataclass(frozen=True)
class Study:
    """A study that is read and checked."""

    job: Job
    #: file it was read from, for messages and the folder
    source: str
    #: runs it has; of an optimiser: at most
    runs: int


@dataclass(frozen=True)
class Timing:
    """How long it took."""

    #: from the first line handed out to the last one back [s]
    wall_s: float
    #: workers at a time
    at_a_time: int
    #: runs made now (those of an earlier, interrupted session are not in it)
    runs: int
    #: simulating alone, of all workers together [s]
    run_s: float

    @property
    def overhead(self) -> float:
        """Everything that is not simulating, as a part of it: reading, compiling, measuring, writing, waiting."""
        return self.wall_s * self.at_a_time / self.run_s - 1.0 if self.run_s > 0.0 else 0.0

    @property
    def text(self) -> str:
        """One line for console and page."""
        if not self.runs:
            return "nothing was left to run"
        share = 100.0 / (1.0 + self.overhead)
        return (f"{self.runs} runs in {self.wall_s:.1f} s, {self.at_a_time} at a time: "
                f"{self.runs / self.wall_s:.1f} runs/s; the workers simulate {share:.0f} % of that time")  # fmt: skip


def read_study(path: Path | str, values: Mapping[str, Any] | None = None) -> Study:
    """Read a study file; values: dotted key -> value instead of the file's. ConfigError for every mistake in it."""
    config = load_config(path, StudyConfig, values)
    return make_study(config, Path(path), {})


def study_of(data: Mapping[str, Any], functions: Mapping[str, Function]) -> Study:
    """A study from Python: the content of a file, and functions for [metrics] python."""
    config = validate(dict(data), StudyConfig, "tl.sweep")
    return make_study(config, Path("tl.sweep"), functions)


def make_study(config: StudyConfig, path: Path, functions: Mapping[str, Function]) -> Study:
    """Check what the file cannot say of itself."""
    runs = count(config)
    target = target_of(path, config.study.of)
    try:
        unused = [name for name in (*config.vary, *config.scatter) if name not in used_columns(target, config)]
    except TorqueloopError as error:
        raise ConfigError(str(error), file=str(path), table="set") from None
    if unused:
        allowed = f"used in [set], or a key of {', '.join(target.owners)}"
        raise ConfigError("{value} changes nothing", file=str(path), table="vary", key=unused[0], value=unused[0],
                          allowed=allowed)  # fmt: skip
    objective = config.objective
    if config.study.design == "optimise" and objective is not None and objective.method not in METHODS:
        raise ConfigError("{key} = {value} is unknown", file=str(path), table="objective", key="method",
                          value=objective.method, allowed=", ".join(METHODS))  # fmt: skip
    told = json.dumps([config.model_dump(mode="json"), str(target.path)], sort_keys=True)
    name = hashlib.sha256(f"{told}{time.time_ns()}".encode()).hexdigest()[:16]
    return Study(Job(name, config, target, path.resolve().parent, functions=functions), str(path), runs)


def located(study: Study, error: ConfigError) -> ConfigError:
    """A mistake that shows only in a run: the study file is where it stands."""
    if not error.file or error.file.startswith((OUTSIDE, "values set from outside")):
        error.file = study.source
    return error


def run_study(
    study: Study,
    out: Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int], AbstractContextManager[Progress]] | None = None,
) -> tuple[list[Outcome], Timing]:
    """Make all runs that are not in `out` already. progress: that of `sweep`."""
    need_parquet()
    config = study.job.config
    job = replace(study.job, signals=out / SIGNALS) if config.study.signals else study.job
    store = Store(out)
    first = next(lines(config), None) if config.study.design != "optimise" else middle(config)
    assert first is not None
    try:
        job.check(first)
    except ConfigError as error:
        raise located(study, error) from None
    finished = store.begin(config, study.source, str(job.target.path), job.runner.digest())
    with store, workers(jobs, scheduler) as (executor, at_a_time):
        begun, before = time.perf_counter(), set(finished)
        if not finished:
            # one run here, by which names of signals and metrics are checked
            try:
                outcome = job.run(first, strict=True)
            except ConfigError as error:
                raise located(study, error) from None
            if config.study.design != "optimise":
                finished[0] = outcome
                store.keep([outcome])
        with (progress or _silent)(study.runs) as tell:
            run = _Running(job, store, finished, tell)
            run.tell()
            if config.study.design == "optimise":
                optimise(config, lambda points: run.ask(points, executor, at_a_time), at_a_time)
            else:
                todo = (one for one in lines(config) if one.run not in finished)
                for outcomes in run_all(job, todo, executor, at_a_time):
                    run.take(outcomes)
        wall = time.perf_counter() - begun
    outcomes = sorted(finished.values(), key=lambda o: o.line.run)
    new = [o for o in outcomes if o.line.run not in before]
    timing = Timing(wall, at_a_time, len(new), sum(o.run_s for o in new))
    store.write_table(outcomes)
    return outcomes, timing


def _silent(_: int) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, best: None)


def middle(config: StudyConfig) -> Line:
    """A line in the middle of all ranges."""
    return line(config, 0, [place(v, unit_place(v)) for v in config.vary.values()])


class _Running:
    """What is finished so far."""

    def __init__(self, job: Job, store: Store, finished: dict[int, Outcome], tell: Progress) -> None:
        self._job, self._store, self._finished, self._tell = job, store, finished, tell
        self._asked = 0
        self._best: Outcome | None = None
        self._look(list(finished.values()))

    def _look(self, outcomes: Sequence[Outcome]) -> None:
        if self._job.config.objective is None:
            return
        known = [*([self._best] if self._best is not None else []), *outcomes]
        best = min(known, key=self._job.cost, default=None)
        self._best = best if best is not None and self._job.cost(best) < float("inf") else None

    def tell(self) -> None:
        """Say how far it is."""
        self._tell(len(self._finished), self._best)

    def take(self, outcomes: list[Outcome]) -> None:
        """Keep some finished runs."""
        self._store.keep(outcomes)
        self._finished.update({o.line.run: o for o in outcomes})
        self._look(outcomes)
        self.tell()

    def ask(self, points: Sequence[Sequence[float]], executor: Any, at_a_time: int) -> list[float]:
        """Costs of points, in their order; those of an interrupted session are known."""
        wanted = [line(self._job.config, self._asked + k, point) for k, point in enumerate(points)]
        self._asked += len(wanted)
        new = [w for w in wanted if w.run not in self._finished or self._finished[w.run].line.values != w.values]
        if new:
            self.take(run_batch(self._job, new, executor, at_a_time))
        return [self._job.cost(self._finished[w.run]) for w in wanted]


def again(folder: Path, run: int) -> tuple[Outcome, Outcome]:
    """A run of a finished or interrupted study once more, from its line: (as it was, as it is now)."""
    if not os.path.isfile(folder / STUDY):
        raise ConfigError("{value} is no folder of a study", key="folder", value=str(folder))
    told = read_json(folder / STUDY)
    config = validate(told["study"], StudyConfig, str(folder / STUDY))
    before = {o.line.run: o for o in read_journal(folder / JOURNAL)}
    if run not in before:
        allowed = f"0 .. {max(before)}" if before else "none is finished"
        raise ConfigError("there is no run {value}", key="run", value=run, allowed=allowed)
    target = target_of(folder / STUDY, told["of"])
    job = Job(f"{folder}:{run}", config, target, Path(told["file"]).resolve().parent)
    return before[run], job.run(before[run].line)
