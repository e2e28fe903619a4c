"""Metrics of many runs over time: an index of a folder of run directories, trends, gates against an earlier run.

The index is an SQLite file in the folder. It holds nothing of its own: what it says comes from each run's report.json,
it is brought up to date whenever it is asked, and may be deleted at any time. A run whose report has changed is read
anew, one that is gone is forgotten, one that is being written, half deleted or of another version is left out and
named.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError, did_you_mean
from torqueloop.core.describe.reading import read_json
from torqueloop.hil.results.files import VERSION, run_dirs

#: name of the index in its folder, and the version of its tables
INDEX, TABLES = ".torqueloop-runs.sqlite", 1
REPORT = "report.json"
_SCHEMA = """
CREATE TABLE run (path TEXT PRIMARY KEY, stamp TEXT, started TEXT, rig TEXT, clock TEXT, version TEXT, passed INTEGER);
CREATE TABLE metric (path TEXT, name TEXT, value REAL, PRIMARY KEY (name, path)) WITHOUT ROWID;
CREATE TABLE unread (path TEXT PRIMARY KEY, stamp TEXT, why TEXT);
"""


@dataclass(frozen=True)
class Point:
    """One run in a trend."""

    path: str
    started: str
    rig: str
    clock: str
    version: str
    passed: bool
    value: float | None


@dataclass(frozen=True)
class History:
    """What the index of a folder knows."""

    folder: Path
    runs: int
    #: run directory -> why it is left out
    unread: dict[str, str]
    #: the index could not be kept in the folder (read-only): it was made in memory
    in_memory: bool = False


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The index of a folder, brought up to date."""
    if not os.path.isdir(folder):
        raise ConfigError("no such folder: {value}", key="folder", value=folder)
    with closing(_connected(folder)) as index:
        with index:
            _update(index, folder)
        yield index


def history(folder: Path | str) -> History:
    """How many runs the index has, and which it has left out."""
    folder = Path(folder)
    with opened(folder) as index:
        [(runs,)] = index.execute("SELECT count(*) FROM run").fetchall()
        unread = dict(index.execute("SELECT path, why FROM unread ORDER BY path").fetchall())
        kept = os.path.isfile(folder / INDEX)
    return History(folder, runs, unread, not kept)


def trend(folder: Path | str, metric: str, last: int = 50, rig: str | None = None) -> list[Point]:
    """A metric over the last runs of a folder (of one rig), the earliest first. ConfigError for one no run has."""
    with opened(Path(folder)) as index:
        known = [name for (name,) in index.execute("SELECT DISTINCT name FROM metric")]
        if metric not in known:
            hint = did_you_mean(metric, known)
            raise ConfigError("no run has a metric {value}", key="trend", value=metric, hint=hint)
        rows = index.execute(
            "SELECT run.path, started, rig, clock, version, passed, value FROM run LEFT JOIN metric ON "
            "metric.path = run.path AND metric.name = ? WHERE ? IS NULL OR rig = ? "
            "ORDER BY started DESC, run.path DESC LIMIT ?", (metric, rig, rig, last),
        ).fetchall()  # fmt: skip
    return [
        Point(path, started, name, clock, version, bool(passed), value)
        for path, started, name, clock, version, passed, value in reversed(rows)
    ]


def last_good(folder: Path | str, rig: str, clock: str | None = None, without: Path | None = None) -> Path:
    """The latest run of a rig that passed. ConfigError when there is none."""
    folder = Path(folder)
    with opened(folder) as index:
        rows = index.execute(
            "SELECT path FROM run WHERE passed AND rig = ? AND (? IS NULL OR clock = ?) "
            "ORDER BY started DESC, path DESC",
            (rig, clock, clock),
        ).fetchall()
    for (path,) in rows:
        if without is None or (folder / path).resolve() != without.resolve():
            return folder / str(path)
    raise ConfigError("no run of {value} that passed is in " + str(folder), key="gate-against", value=rig)


# --- the index ------------------------------------------------------------------------------------------------------


def _connected(folder: Path) -> sqlite3.Connection:
    for place in (str(folder / INDEX), ":memory:"):
        index = None
        try:
            index = sqlite3.connect(place, timeout=30.0)
            [(version,)] = index.execute("PRAGMA user_version").fetchall()
            if version != TABLES:
                for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    index.execute(f'DROP TABLE "{name}"')
                index.executescript(_SCHEMA)
                index.execute(f"PRAGMA user_version = {TABLES}")
            index.execute("DELETE FROM unread WHERE 0")  # a file that cannot be written is seen here
            return index
        except sqlite3.OperationalError:
            if index is not None:
                index.close()
        except sqlite3.DatabaseError:
            # not an index, or torn: it can be made again
            if index is not None:
                index.close()
            Path(place).unlink(missing_ok=True)
            return _connected(folder)
    raise ConfigError("no index can be made of {value}", key="folder", value=folder)


def _update(index: sqlite3.Connection, folder: Path) -> None:
    found = {str(path.relative_to(folder)): path for path in run_dirs(folder)}
    known = dict(index.execute("SELECT path, stamp FROM run UNION ALL SELECT path, stamp FROM unread").fetchall())
    for gone in known.keys() - found.keys():
        _forget(index, gone)
    for path, place in found.items():
        stamp = _stamp(place)
        if known.get(path) == stamp:
            continue
        _forget(index, path)
        try:
            _enter(index, path, stamp, _report(place))
        except (TorqueloopError, KeyError, TypeError, ValueError, AttributeError) as error:
            why = str(error) if isinstance(error, TorqueloopError) else f"{REPORT} is not one: {error!r}"
            index.execute("INSERT INTO unread VALUES (?, ?, ?)", (path, stamp, why))


def _stamp(place: Path) -> str:
    try:
        told = (place / REPORT).stat()
    except OSError:
        return ""
    return f"{told.st_mtime_ns} {told.st_size}"


def _report(place: Path) -> dict[str, Any]:
    if not os.path.isfile(place / REPORT):
        raise ConfigError(f"no {REPORT}: the run has not ended, was killed, or was not judged (torqueloop report)")
    value = read_json(place / REPORT)
    if not isinstance(value, dict) or value.get("format") != VERSION:
        told = value.get("format") if isinstance(value, dict) else None
        raise ConfigError(f"{REPORT} of format {told}; this program reads format {VERSION}")
    return value


def _enter(index: sqlite3.Connection, path: str, stamp: str, report: Mapping[str, Any]) -> None:
    run = report["run"]
    row = (path, stamp, str(run["started"]), str(run["rig"]), str(run["clock"]), str(report["torqueloop"]))
    numbers = [(path, name, float(x)) for name, x in report["metrics"].items() if isinstance(x, (int, float))]
    index.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, int(bool(report["passed"]))))
    index.executemany("INSERT INTO metric VALUES (?, ?, ?)", numbers)


def _forget(index: sqlite3.Connection, path: str) -> None:
    for table in ("run", "metric", "unread"):
        index.execute(f"DELETE FROM {table} WHERE path = ?", (path,))


# --- gates against an earlier run -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """How much worse a metric may be: by this part of what it was, and by this much whatever it was."""

    relative: float = 0.0
    absolute: float = 0.0
    #: smaller is worse
    down: bool = False


#: metrics that are compared with an earlier run. Times of a loop vary with the machine's day by tens of percents, what
#: is simulated does not vary at all and may move by what nobody feels
RULES = {
    "missed": Rule(absolute=0.0),
    "overruns": Rule(absolute=0.0),
    "compute_p99_us": Rule(0.3, 5.0),
    "lateness_p99_us": Rule(0.5, 20.0),
    "safe_state_latched": Rule(),
    "shifts": Rule(down=True),
    "shift_quality_time_worst_s": Rule(0.05, 0.02),
    "shift_quality_flare_worst_radps": Rule(0.1, 2.0),
    "shift_quality_tie_up_worst_mps2": Rule(0.1, 0.1),
    "shift_quality_jerk_worst_mps3": Rule(0.1, 1.0),
    "shift_quality_vdv_worst_mps175": Rule(0.05, 0.01),
    "shift_quality_energy_worst_J": Rule(0.05, 50.0),
    "t_0_100_kmh_s": Rule(0.01, 0.02),
}


def gates_against(run_dir: Path | str, metrics: Iterable[str] = ()) -> list[str]:
    """Gates that hold a run to an earlier one: RULES on the metrics that were measured there, or only on `metrics`.
    ConfigError where it has no report that can be read, or no such metric."""
    report = _report(Path(run_dir))
    wanted = list(metrics) or list(RULES)
    found = []
    for name in wanted:
        value = report["metrics"].get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            if name in metrics:
                raise ConfigError("{value} was not measured in " + str(run_dir), key="gate-against", value=name,
                                  hint=did_you_mean(name, report["metrics"]))  # fmt: skip
            continue
        rule = RULES.get(name, Rule(0.05))
        margin = rule.relative * abs(value) + rule.absolute
        found.append(f"{name} >= {value - margin:.9g}" if rule.down else f"{name} <= {value + margin:.9g}")
    if not found:
        raise ConfigError("{value} has none of the metrics that runs are held to", key="gate-against", value=run_dir)
    return found
