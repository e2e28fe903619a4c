"""One line of a study run in whatever process: what is sent there, and what comes back.

Everything here can be pickled: a `Job` goes to local processes and to Dask workers. Each process keeps what it has read
and compiled for the job it works on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.hil.results.gates import Gate, evaluate, parse_gates
from torqueloop.hil.study.design import Line
from torqueloop.hil.study.measures import Function, Measure, Signals, check, measures
from torqueloop.hil.study.parameter_paths import Target, changes
from torqueloop.hil.study.runners import Runner, runner
from torqueloop.hil.study.study_tables import StudyConfig


@dataclass(frozen=True)
class Outcome:
    """What came of a line."""

    line: Line
    #: metric -> number; None: not measured
    metrics: dict[str, float | None] = field(default_factory=dict)
    #: state hash of the run
    hash: str = ""
    #: simulating alone, and everything about the run [s]
    run_s: float = 0.0
    took_s: float = 0.0
    #: why there are no metrics
    error: str = ""
    #: what its steps did not resolve, each with its remedy
    remarks: tuple[str, ...] = ()
    #: of a rig: the gates, checks and monitors that failed, each with its reason
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A study as its workers need it."""

    #: distinguishes it from others in the memory of a worker
    name: str
    config: StudyConfig
    target: Target
    #: folder that files in [metrics] are relative to
    folder: Path
    #: where kept signals go, one file for each run; None: nowhere
    signals: Path | None = None
    #: functions of the user's own, by the text that names them in `config`
    functions: Mapping[str, Function] = field(default_factory=dict)

    @cached_property
    def runner(self) -> Runner:
        """What runs it, here."""
        return runner(self.target, self.config.study.duration_s)

    @cached_property
    def measures(self) -> list[Measure]:
        """Its metrics, ready to be taken."""
        return measures(self.config.metrics, self.folder, self.functions)

    @cached_property
    def constraints(self) -> list[Gate]:
        """What a run that counts meets."""
        objective = self.config.objective
        try:
            return parse_gates(objective.subject_to if objective is not None else [], table="objective")
        except ConfigError as error:
            error.key = "subject_to"
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("runner", "measures", "constraints")}

    def check(self, first: Line) -> None:
        """Everything that can be said of the study before its first run, by the values of a line. ConfigError."""
        _ = self.constraints
        _ = self.measures
        self.runner.check(changes(self.target, self.config, first.values, first.seed))

    def run(self, line: Line, strict: bool = False) -> Outcome:
        """Run a line. A run that cannot be made is an outcome as well; strict: it is an error."""
        begun = time.perf_counter()
        try:
            done = self.runner.run(changes(self.target, self.config, line.values, line.seed))
            metrics: dict[str, Any] = dict(done.metrics)
            if strict:
                check(self.measures, done.signals, metrics)
            for measure in self.measures:
                metrics[measure.name] = measure.of(done.signals, metrics)
            if self.signals is not None:
                self._keep(line.run, done.signals)
        except TorqueloopError as error:
            if strict:
                raise
            return Outcome(line, error=str(error), took_s=time.perf_counter() - begun)
        finite = {k: float(v) if math.isfinite(v) else None for k, v in metrics.items()}
        took_s = time.perf_counter() - begun
        return Outcome(line, finite, done.hash, done.run_s, took_s, remarks=done.remarks, failures=done.failures)

    def _keep(self, run: int, signals: Signals) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        assert self.signals is not None
        chosen = slice(None, None, self.config.study.every)
        columns = {"t": signals.time[chosen], **{name: signals[name][chosen] for name in self.config.study.signals}}
        units = {name: signals.units[name] for name in self.config.study.signals} | {"t": "s"}
        fields = [pa.field(n, pa.float64(), metadata={"unit": units[n]}) for n in columns]
        table = pa.table([np.ascontiguousarray(c) for c in columns.values()], schema=pa.schema(fields))
        self.signals.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, self.signals / f"{run:06d}.parquet", use_dictionary=False)

    def good(self, outcome: Outcome) -> bool:
        """A run that counts: it was made, and meets [objective] subject_to."""
        objective = self.config.objective
        if outcome.error or objective is None:
            return not outcome.error
        return all(result.passed for result in evaluate(self.constraints, outcome.metrics))

    def cost(self, outcome: Outcome) -> float:
        """What is to be small; infinite for a run that does not count."""
        objective = self.config.objective
        assert objective is not None
        name = objective.minimise or objective.maximise
        value = outcome.metrics.get(str(name))
        if value is None or not self.good(outcome):
            return math.inf
        return value if objective.minimise is not None else -value


#: the job this process works on
_AT_WORK: list[Job] = []


def work(job: Job, lines: Sequence[Line]) -> list[Outcome]:
    """Run some lines; what was read for the job before serves again."""
    if not _AT_WORK or _AT_WORK[0].name != job.name:
        _AT_WORK[:] = [job]
    return [_AT_WORK[0].run(line) for line in lines]
