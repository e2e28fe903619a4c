"""A folder of run directories as a table, from what report.json and run.json say: no run is judged anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError, TorqueloopError, did_you_mean
from torqueloop.core.describe.reading import read_json
from torqueloop.hil.report.console_parts import number, table
from torqueloop.hil.results.files import read_run_info, run_dirs
from torqueloop.hil.results.run import RunInfo


@dataclass(frozen=True)
class RunRow:
    """One run directory."""

    name: str
    path: str
    #: "passed", "failed"; "running", "killed" ... for one without a report; "unreadable"
    verdict: str
    started: str = ""
    rig: str = ""
    clock: str = ""
    ticks: int | None = None
    duration_s: float | None = None
    missed: int | None = None
    compute_p99_us: float | None = None
    shifts: int | None = None
    safe_state: str = ""
    hash: str = ""
    #: gates and checks that failed, in words; why a run cannot be read
    failed: str = ""


#: columns and their titles, in the order they are shown
COLUMNS = {
    "name": "run", "verdict": "verdict", "started": "started", "rig": "rig", "clock": "clock", "ticks": "ticks",
    "duration_s": "s", "missed": "missed", "compute_p99_us": "compute p99 µs", "shifts": "shifts",
    "safe_state": "safe state", "hash": "hash", "failed": "failed",
}  # fmt: skip


def list_runs(folder: Path | str = "runs", sort: str = "started", reverse: bool = False) -> list[RunRow]:
    """All run directories below a folder, sorted by a column; what was not measured comes last."""
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise ConfigError("no such folder: {value}", key="folder", value=folder)
    names = [f.name for f in fields(RunRow)]
    if sort not in names:
        raise ConfigError(
            "no column {value}", key="sort", value=sort, allowed=", ".join(names), hint=did_you_mean(sort, names)
        )
    rows = [_row(path, folder) for path in run_dirs(folder)]
    known = sorted((r for r in rows if _key(r, sort) is not None), key=_sorter(sort), reverse=reverse)
    return known + [r for r in rows if _key(r, sort) is None]


def _key(row: RunRow, column: str) -> Any:
    value = getattr(row, column)
    return None if value == "" else value


def _sorter(column: str) -> Callable[[RunRow], Any]:
    return lambda row: getattr(row, column)


def _row(path: Path, folder: Path) -> RunRow:
    name = str(path.relative_to(folder)) if path != folder else path.resolve().name
    try:
        info = read_run_info(path)
    except TorqueloopError as error:
        return RunRow(name, str(path), "unreadable", failed=str(error))
    assert info is not None
    judged = _judged(path)
    metrics = judged.get("metrics", {})
    failed = [g["text"] for g in judged.get("gates", []) if not g["passed"]]
    failed += [c["name"] for c in judged.get("checks", []) if not c["passed"] and c["counts"]]
    stats = info.stats
    clock = stats.clock if stats is not None else None
    return RunRow(
        name,
        str(path),
        _verdict(info, judged),
        info.started,
        info.rig,
        info.clock,
        clock.ticks if clock is not None else None,
        metrics.get("duration_s") if judged else info.duration_s,
        clock.missed if clock is not None else None,
        clock.compute_us.p99 if clock is not None and clock.compute_us is not None else None,
        metrics.get("shifts"),
        stats.safe_state.kind if stats is not None and stats.safe_state.latched else "",
        (stats.hash or "") if stats is not None and info.over else "",
        "; ".join(failed) or (info.error or ""),
    )


def _judged(path: Path) -> dict[str, Any]:
    """report.json, of a run that is over and was judged; empty: there is none."""
    try:
        value = read_json(path / "report.json")
    except ConfigError:
        return {}
    return value if isinstance(value, dict) else {}


def _verdict(info: RunInfo, judged: dict[str, Any]) -> str:
    if judged:
        return "passed" if judged.get("passed") else "failed"
    if info.over:
        return info.state
    alive = info.pid is not None and os.path.exists(Path(f"/proc/{info.pid}"))
    return info.state if alive else "killed"


def print_runs(rows: list[RunRow], console: Console) -> None:
    """The table; columns that say nothing are left out."""
    shown = [c for c in COLUMNS if any(_key(r, c) is not None for r in rows)]
    made = table(f"{len(rows)} runs", *(COLUMNS[c] for c in shown))
    for column, name in zip(made.columns, shown, strict=True):
        column.justify = "right" if name in ("ticks", "duration_s", "missed", "compute_p99_us", "shifts") else "left"
    for row in rows:
        style = {"passed": "green", "failed": "bold red"}.get(row.verdict, "yellow")
        cells = []
        for name in shown:
            value = _key(row, name)
            text = "" if value is None else value if isinstance(value, str) else number(value)
            cells.append(
                Text(text[:19].replace("T", " ") if name == "started" else text, style if name == "verdict" else "")
            )
        made.add_row(*cells)
    console.print(made)
