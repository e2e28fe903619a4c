"""The table of runs fits the screen it is printed on, and says what it leaves out."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from torqueloop.hil.runs.listing import RunRow, print_runs

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
