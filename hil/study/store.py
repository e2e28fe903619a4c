"""What a study leaves in its folder.

study.json          the study as it was run: file, what it is of, version
runs.jsonl          one line for each finished run, written as they come: an interrupted study goes on from it
runs.parquet        the same as a table, once all are finished
signals/            one Parquet file for each run, where signals are kept
report.html         the page
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import torqueloop
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import read_json
from torqueloop.hil.record.mf4 import MissingExtraError
from torqueloop.hil.study.design import Line
from torqueloop.hil.study.study_tables import StudyConfig
from torqueloop.hil.study.work import Outcome

#: raised when what is written changes its meaning
FORMAT = 1
STUDY, JOURNAL, TABLE, PAGE, SIGNALS = "study.json", "runs.jsonl", "runs.parquet", "report.html", "signals"
#: columns of the table that are neither values nor metrics
OWN_COLUMNS = ("run", "seed", "hash", "run_s", "took_s", "error", "remarks", "failures")


def need_parquet() -> Any:
    """pyarrow; MissingExtraError without it."""
    try:
        import pyarrow

        return pyarrow
    except ImportError:
        raise MissingExtraError("a study needs pyarrow: pip install 'torqueloop[sweep]'") from None


class Store:
    """The folder of a study; a context manager that holds the journal open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal: Any = None

    def begin(self, config: StudyConfig, source: str, of: str, digest: str) -> dict[int, Outcome]:
        """Make the folder, or take up what is in it: finished runs by number. ConfigError: it is of another study."""
        told = {
            "format": FORMAT, "version": torqueloop.__version__, "study": config.model_dump(mode="json"),
            "file": source, "of": of, "digest": digest,
        }  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / STUDY
        if path.exists():
            before = read_json(path)
            for key, what in (("format", "another version"), ("study", "another study"), ("of", "another study"),
                              ("digest", "other files of what is run")):  # fmt: skip
                if not isinstance(before, dict) or before.get(key) != told[key]:
                    raise ConfigError(f"{{value}} holds runs of {what}", key="out", value=str(self.folder),
                                      allowed="a new folder, or the folder of this study to continue it")  # fmt: skip
            return {o.line.run: o for o in read_journal(self.folder / JOURNAL)}
        if any(self.folder.iterdir()):
            raise ConfigError("{value} is not empty, and no folder of a study", key="out", value=str(self.folder))
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return {}

    def __enter__(self) -> Store:
        path = self.folder / JOURNAL
        _cut_half_a_line(path)
        self._journal = path.open("a", encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._journal.close()

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Write finished runs; they are there whatever becomes of this process."""
        self._journal.write("".join(json.dumps(asdict(o), allow_nan=False) + "\n" for o in outcomes))
        self._journal.flush()
        os.fdatasync(self._journal.fileno())

    def write_table(self, outcomes: Iterable[Outcome]) -> Path:
        """runs.parquet, in the order of the runs."""
        from pyarrow import parquet

        path = self.folder / TABLE
        parquet.write_table(table(sorted(outcomes, key=lambda o: o.line.run)), path)
        return path


def table(outcomes: Sequence[Outcome]) -> Any:
    """A pyarrow table: a row for each run, a column for each value and metric."""
    pa = need_parquet()
    values = list(dict.fromkeys(name for o in outcomes for name in o.line.values))
    metrics = list(dict.fromkeys(name for o in outcomes for name in o.metrics))
    columns: dict[str, Any] = {
        "run": pa.array([o.line.run for o in outcomes], pa.int64()),
        "seed": pa.array([o.line.seed for o in outcomes], pa.int64()),
    }
    for name in values:
        columns[name] = pa.array([o.line.values[name] for o in outcomes], pa.float64())
    for name in metrics:
        # a metric with the name of a value is distinguished from it
        key = name if name not in columns else f"metric.{name}"
        columns[key] = pa.array([o.metrics.get(name) for o in outcomes], pa.float64())
    columns["hash"] = pa.array([o.hash for o in outcomes], pa.string())
    columns["run_s"] = pa.array([o.run_s for o in outcomes], pa.float64())
    columns["took_s"] = pa.array([o.took_s for o in outcomes], pa.float64())
    columns["error"] = pa.array([o.error for o in outcomes], pa.string())
    columns["remarks"] = pa.array(["; ".join(o.remarks) for o in outcomes], pa.string())
    columns["failures"] = pa.array(["; ".join(o.failures) for o in outcomes], pa.string())
    return pa.table(columns)


def read_journal(path: Path) -> list[Outcome]:
    """Finished runs; half a line at the end, which a killed process leaves, is none."""
    found: list[Outcome] = []
    if not path.exists():
        return found
    with path.open(encoding="utf-8") as stream:
        for number, text in enumerate(stream, 1):
            if not text.endswith("\n"):
                break
            try:
                data = json.loads(text)
                data |= {key: tuple(data.get(key, ())) for key in ("remarks", "failures")}
                found.append(Outcome(**{**data, "line": Line(**data["line"])}))
            except (ValueError, KeyError, TypeError):
                raise ConfigError(f"line {number} is no finished run", file=str(path)) from None
    return found


def _cut_half_a_line(path: Path) -> None:
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
