"""A folder of run directories as a table, from what report.json and run.json say: no run is judged anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError, did_you_mean
from torqueloop.core.describe.reading import read_json
from torqueloop.hil.report.console_parts import number
from torqueloop.hil.results.files import read_run_info, run_dirs
from torqueloop.hil.results.run import RunInfo


@dataclass(frozen=True)
class RunRow:
    """One run directory."""

    name: str
    path: str
    #: that of the report; "running", "killed" ... for one without a report; "unreadable"
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
        raise ConfigError(
            "no such folder: {value}", key="folder", value=folder,
            hint="`torqueloop run` leaves its directory in runs/ unless --out says another one",
        )  # fmt: skip
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
        # a report of before has no verdict
        return str(judged.get("verdict") or ("passed" if judged.get("passed") else "failed"))
    if info.over:
        return info.state
    alive = info.pid is not None and os.path.exists(Path(f"/proc/{info.pid}"))
    return info.state if alive else "killed"


#: columns that go first where the screen is narrow, the least telling first
DISPENSABLE = (
    "hash", "ticks", "compute_p99_us", "clock", "missed", "safe_state", "rig", "shifts", "started", "duration_s",
)  # fmt: skip
NUMBERS = ("ticks", "duration_s", "missed", "compute_p99_us", "shifts")


def _cell(row: RunRow, name: str) -> str:
    value = _key(row, name)
    text = "" if value is None else value if isinstance(value, str) else number(value)
    return text[:19].replace("T", " ") if name == "started" else text


def print_runs(rows: list[RunRow], console: Console) -> None:
    """A line for each run, and below it what failed. Columns that say nothing are left out; so are those for which the
    console is too narrow, and a last line names them."""
    shown = [c for c in COLUMNS if c != "failed" and any(_key(r, c) is not None for r in rows)]
    widths = {c: max(len(COLUMNS[c]), *(len(_cell(r, c)) for r in rows)) for c in shown}
    hidden = []
    for name in DISPENSABLE:
        if name in shown and sum(widths[c] + 2 for c in shown) > console.width:
            shown.remove(name)
            hidden.append(COLUMNS[name])
    console.print(Text(f"{len(rows)} runs", "bold"))
    head = (COLUMNS[c].rjust(widths[c]) if c in NUMBERS else COLUMNS[c].ljust(widths[c]) for c in shown)
    console.print(Text("  ".join(head).rstrip(), "dim"), soft_wrap=True)
    for row in rows:
        style = {"passed": "green", "failed": "bold red"}.get(row.verdict, "yellow")
        line = Text()
        for name in shown:
            text = _cell(row, name)
            text = text.rjust(widths[name]) if name in NUMBERS else text.ljust(widths[name])
            line.append(text, style if name == "verdict" else "").append("  ")
        line.rstrip()
        console.print(line, soft_wrap=True)
        if row.failed:
            console.print(Padding(Text(row.failed, "dim"), (0, 0, 0, 4)))
    if hidden:
        console.print(Text(f"not shown on a narrow screen: {', '.join(hidden)} (--json has them)", "dim"))
