"""The loop's time in every form of the report: console, page, JUnit, JSON, metrics for gates."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console
from synthetic_run import change, write_run

from torqueloop.cython_kernels.clock.loop_clock import ClockScript
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.report import latency
from torqueloop.hil.report.console import print_report
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.write import write_report
from torqueloop.hil.results.clock import Grace, Timing, WorstTick, WorstTicks
from torqueloop.hil.results.run import Measure
from torqueloop.hil.rig.run.run_stats import margin

REASON = "no SCHED_FIFO: Operation not permitted"


def clock_stats() -> dict[str, Any]:
    """Statistics of a loop that ran by a script: 400 ticks, one of them with a stall, two of them in the grace."""
    rows = [(3_000 + 17 * k % 900, 400, 200, 9_000 + 13 * k % 700, 2_000, 1_000, 1_500) for k in range(400)]
    rows[250] = (3_000, 400, 200, 3_300_000, 2_000, 1_000, 1_500)
    rig = Rig(4, 1e-3)
    rig.set_clock("skip", grace_ticks=2)
    rig.set_script(ClockScript(rows))
    rig.run()
    counters, account = rig.counters(), rig.account
    names = ("ticks", "missed", "late_started", "dropped", "overruns", "lost_time_s", "margin_min_us")
    return {
        **{name: counters[name] for name in names},
        "grace": Grace(**counters["grace"]),
        "wake_lateness_us": Timing(**account.lateness.summary()),
        "compute_us": Timing(**account.compute.summary()),
        "margin_us": margin(account.margin),
        "phase_us": {n: Timing(**h.summary()) for n, h in zip(latency.PHASES, account.phases, strict=True)},
        "worst": WorstTicks(**{key: [WorstTick(**e) for e in found] for key, found in account.worst().items()}),
        "policy": "skip",
        "max_catch_up": 5,
        "grace_s": 0.002,
        "spin_us": 0.0,
        "minor_faults": 7,
        "major_faults": 0,
        "voluntary_switches": 400,
        "involuntary_switches": 3,
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = write_run(tmp_path_factory.mktemp("latency") / "run", duration_s=2.0)
    measure = Measure("priority", "SCHED_FIFO 80", False, REASON, "grant <CAP_SYS_NICE>", "loop")
    change(folder, clock_stats(), realtime=[measure])
    return write_report(
        folder, ["missed == 2", "phase_step_max_us > 2000", "lateness_p999_us < 4", "minor_faults == 7"]
    )


def shown(report: Report) -> str:
    text = io.StringIO()
    print_report(report, Console(file=text, width=140))
    return text.getvalue()


@pytest.mark.proof
def test_degraded_real_time_is_said_in_every_output(made: Report) -> None:
    assert f"degraded: {REASON}" in shown(made)
    assert json.loads(made.files["json"].read_text())["run"]["stats"]["degraded"] == [REASON]
    page = made.files["html"].read_text()
    assert f"Real time degraded:</b> {REASON}" in page and f"degraded:</span> {REASON}" in page
    for suite in ElementTree.parse(made.files["junit"]).getroot():
        properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert properties["degraded"] == REASON
        assert properties["missed"] == "2" and properties["policy"] == "skip"
    assert made.metrics["degraded"] == 1


def test_run_that_was_not_degraded_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", duration_s=0.5)
    change(folder, stats={"degraded": []})
    report = write_report(folder, html=False)
    assert "degraded" not in shown(report).replace("real time not degraded", "")
    assert json.loads(report.files["json"].read_text())["run"]["stats"]["degraded"] == []
    values = {p.get("value") for p in ElementTree.parse(report.files["junit"]).iter("property")}
    assert "no" in values


def test_figures_of_the_clock_are_metrics_for_gates(made: Report) -> None:
    m = made.metrics
    assert m["lateness_p999_us"] == m["wake_lateness_p999_us"] and m["lateness_max_us"] == m["wake_lateness_max_us"]
    assert m["grace_ticks"] == 2 and m["grace_lateness_max_us"] >= 3.0
    assert m["phase_latch_p50_us"] == pytest.approx(0.4, rel=0.02) and m["margin_p0_1_us"] <= 0 < m["margin_p50_us"]
    assert (m["minor_faults"], m["major_faults"], m["involuntary_switches"]) == (7, 0, 3)
    assert m["policy"] == "skip" and not any(name.startswith("worst") for name in m)
    assert {g.text: g.passed for g in made.gates if g.source == "command line"} == {
        "missed == 2": True,
        "phase_step_max_us > 2000": True,
        "lateness_p999_us < 4": False,
        "minor_faults == 7": True,
    }


def test_console_shows_phases_and_the_worst_ticks(made: Report) -> None:
    text = shown(made)
    for words in ("of the mean tick", "dropped 2", "minor page faults 7", "switches (taken off) 3"):
        assert words in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("latest", "longest"))]
    assert len(rows) == 6
    assert rows[0][:2] == ["latest", "251"] and rows[3][:2] == ["longest", "250"] and "step" in rows[3]
    assert "policy skip" in text and "max catch-up" not in text
    assert "grace: ticks 2" in text


def test_page_shows_figures_phases_worst_ticks_and_set_up(made: Report) -> None:
    page = made.files["html"].read_text()
    for figure in ("wake_lateness_us", "compute_us", "exceedance", "worst"):
        assert f'data-figure="{figure}"' in page
    for words in (
        "the 32 latest ticks",
        "the 32 longest ticks",
        "start-up grace, counted apart",
        "0 of 1 measures took",
    ):
        assert words in page
    assert "grant &lt;CAP_SYS_NICE&gt;" in page, "text of a run cannot become markup"


def test_report_json_holds_the_whole_histograms(made: Report) -> None:
    stats = json.loads(made.files["json"].read_text())["run"]["stats"]["clock"]
    for timing in (stats["wake_lateness_us"], stats["compute_us"], *stats["phase_us"].values()):
        assert sum(n for _, n in timing["hist"]) == timing["count"] == 398


def test_run_without_figures_of_the_clock_has_a_report_all_the_same(tmp_path: Path) -> None:
    report = write_report(write_run(tmp_path / "run", duration_s=0.5))
    assert "worst ticks" not in shown(report) and "latest ticks" not in report.files["html"].read_text()
