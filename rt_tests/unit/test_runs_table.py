"""The table of runs fits the screen it is printed on, and says what it leaves out."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from torqueloop.hil.results.clock import ClockStats, Timing
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo, RunStats, SafeState
from torqueloop.hil.runs.listing import RunRow, list_runs, print_runs

ROWS = [
    RunRow("one", "runs/one", "passed", "2026-11-24T13:19:17", "desk_4hp22", "virtual", 25_000, 25.0, 0, 1.4, 3, "",
           "0d13fc9e04d9ed06"),
    RunRow("another", "runs/another", "failed", "2026-11-24T13:20:17", "desk_4hp22", "real", 25_000, 25.0, 17, 64.5, 3,
           "limit", "43022985d69070c6", failed="missed==0; compute_p99_us<50"),
]  # fmt: skip


def printed(width: int) -> list[str]:
    stream = io.StringIO()
    print_runs(ROWS, Console(file=stream, width=width, color_system=None))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_screen_and_run_verdict_and_failures_stay(width: int) -> None:
    lines = printed(width)
    assert max(map(len, lines)) <= width
    assert [line.split()[:2] for line in lines[1:4:1]] == [["run", "verdict"], ["one", "passed"], ["another", "failed"]]
    assert lines[4].strip() == "missed==0; compute_p99_us<50"


def test_columns_without_room_are_named() -> None:
    assert "hash" in "".join(printed(80)[5:]) and "not shown" in printed(80)[5]
    assert "43022985d69070c6" in printed(200)[3] and "not shown" not in printed(200)[-1]


def test_a_row_is_what_the_run_has_left(tmp_path: Path) -> None:
    """No two numbers of it are equal."""
    compute = Timing(400, p50=3.0, p99=8.5, max=11.0)
    stats = RunStats(ClockStats(ticks=390, missed=7, overruns=2, compute_us=compute), hash="abc",
                     safe_state=SafeState(True, "too fast", "limit", 12))  # fmt: skip
    info = RunInfo("desk", state="safe", started="2026-01-01T12:00:00", ended="2026-01-01T12:00:25", clock="real",
                   duration_s=25.0, tick_s=1e-3, stats=stats, error="broken")  # fmt: skip
    path = tmp_path / "nightly" / "one"
    path.mkdir(parents=True)
    write_run_info(path, info)
    (row,) = list_runs(tmp_path)
    wanted = RunRow("nightly/one", str(path), "safe", "2026-01-01T12:00:00", "desk", "real", 390, 25.0, 7, 8.5, None,
                    "limit", "abc", "broken")  # fmt: skip
    assert row == wanted
    judged = {
        "passed": False,
        "metrics": {"duration_s": 24.5, "shifts": 3},
        "gates": [{"text": "a < 1", "passed": False}],
        "checks": [{"name": name, "passed": False, "counts": name == "c"} for name in "cd"],
    }
    (path / "report.json").write_text(json.dumps(judged))
    (row,) = list_runs(tmp_path)
    assert row == replace(wanted, verdict="failed", duration_s=24.5, shifts=3, failed="a < 1; c")
    write_run_info(path, replace(info, stats=replace(stats, safe_state=SafeState(step=12)), ended=None))
    (row,) = list_runs(tmp_path)
    assert (row.safe_state, row.hash) == ("", "")
