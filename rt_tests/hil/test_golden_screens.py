"""Parts of the console that a run without trouble does not show, against the numbers they are made of."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import pytest
from golden_runs import golden_run
from golden_screens import shows
from rich.console import Console, RenderableType

from torqueloop.hil.report.console import _can
from torqueloop.hil.report.latency_console import timing
from torqueloop.hil.results.clock import Timing
from torqueloop.hil.results.links import BusStats, NativeStats, RxMessage


def printed(part: RenderableType | None) -> list[list[str]]:
    """Lines of cells. A distribution is one cell, also when it has gaps."""
    console = Console(width=240, record=True, color_system=None, file=open("/dev/null", "w"))
    console.print(part)
    lines = re.sub(r"[▁▂▃▄▅▆▇█][▁▂▃▄▅▆▇█ ]*", "bars", console.export_text()).splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip()]


def columns(lines: list[list[str]], title: str) -> tuple[list[str], list[list[str]]]:
    """(heading, rows) of the table below a title."""
    at = next(k for k, line in enumerate(lines) if line == [title])
    rows = []
    for line in lines[at + 2 :]:
        if len(line) < 3 or len(line) > len(lines[at + 1]) + 1:
            break
        rows.append(line)
    return lines[at + 1], rows


def test_the_time_of_a_late_loop_is_told_with_its_percentiles_phases_and_worst_ticks() -> None:
    clock = golden_run("desk_4hp22").report.stats.clock
    told: dict[str, Any] = asdict(clock)
    lines = printed(timing(clock))
    keys = {"mean": "mean", "p50": "p50", "p99": "p99", "p99.9": "p999", "max": "max"}
    head, rows = columns(lines, "real time")
    assert head[0] == "µs"
    for name, value in zip(head[1:5], rows[0][1:5], strict=True):
        assert shows(value, told["compute_us"][keys[name]]), (name, value)
    head, rows = columns(lines, "phases")
    total = sum(p["mean"] for p in told["phase_us"].values())
    assert [row[0] for row in rows] == list(told["phase_us"])
    for row in rows:
        phase = told["phase_us"][row[0]]
        assert all(shows(cell, phase[keys[name]]) for name, cell in zip(head[1:5], row[1:5], strict=True)), row
        assert float(row[5].removesuffix(" %")) == pytest.approx(100 * phase["mean"] / total, abs=0.51)
    assert head[1:5] == ["mean", "p50", "p99", "max"]
    longest = [line for line in lines if line[0] == "longest"]
    for line, tick in zip(longest, told["worst"]["by_compute"], strict=False):
        assert shows(line[3], tick["compute_us"]) and shows(line[2], tick["lateness_us"])
        name, _, value = line[4].partition(" ")
        assert tick["phase_us"][name] == max(tick["phase_us"].values()) and shows(value, tick["phase_us"][name])
        assert shows(line[5], tick["minor_faults"] + tick["major_faults"]) and shows(
            line[6], tick["involuntary_switches"]
        )
    assert len(longest) == 3


def test_latencies_of_a_native_port_are_told_by_direction_and_percentile() -> None:
    into = Timing(count=9, mean=1.0, min=0.5, max=47.0, p50=11.0, p90=19.0, p99=23.0, p999=31.0, p9999=41.0)
    out = Timing(count=9, mean=2.0, min=0.7, max=97.0, p50=53.0, p90=59.0, p99=61.0, p999=71.0, p9999=83.0)
    bus = BusStats(rx={"A": RxMessage()}, native=NativeStats(receive_latency_us=into, send_latency_us=out))
    lines = printed(_can("CAN received", bus))
    head, rows = columns(lines, "CAN latency")
    assert head == ["µs", "p50", "p99", "p99.9", "max"]
    assert [[row[0], *map(float, row[1:])] for row in rows[:2]] == [
        ["stamp to tick", 11.0, 23.0, 31.0, 47.0],
        ["send to bus", 53.0, 61.0, 71.0, 97.0],
    ]
