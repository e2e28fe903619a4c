"""Several runs of one rig added up: what is added are whole histograms, counters and worst ticks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import change, write_run
from typer.testing import CliRunner

from torqueloop.cython_kernels.clock.histogram import Histogram
from torqueloop.cython_kernels.clock.loop_clock import ClockScript
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.cli import app
from torqueloop.hil.report.collect import ReportError
from torqueloop.hil.report.latency import PHASES
from torqueloop.hil.report.merged import merge, write_merged
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.write import write_report
from torqueloop.hil.results.clock import Timing, WorstTick, WorstTicks
from torqueloop.hil.rig.run.run_stats import margin


def run_dir(folder: Path, rows: list[tuple[int, int]], **info: object) -> Path:
    """A run directory whose times are those of a loop that ran by a script."""
    rig = Rig(4, 1e-3)
    rig.set_clock("skip")
    rig.set_script(ClockScript(rows))
    rig.run()
    write_run(folder, duration_s=0.5)
    c, account = rig.counters(), rig.account
    clock = {name: c[name] for name in ("ticks", "missed", "dropped", "late_started", "overruns", "lost_time_s")}
    clock |= {
        "wake_lateness_us": Timing(**account.lateness.summary()),
        "compute_us": Timing(**account.compute.summary()),
        "margin_us": margin(account.margin),
        "margin_min_us": c["margin_min_us"],
        "phase_us": {name: Timing(**h.summary()) for name, h in zip(PHASES, account.phases, strict=True)},
        "worst": WorstTicks(**{key: [WorstTick(**e) for e in found] for key, found in account.worst().items()}),
        "policy": "skip",
    }
    change(folder, clock, gates={"in time": "missed == 0"}, **info)
    return folder


ROWS_A = [(1000 + 37 * k % 5000, 9000 + 11 * k % 600) for k in range(300)]
ROWS_B = [(2000 + 41 * k % 7000, 8700 + 13 * k % 900) for k in range(200)]
ROWS_B[100] = (3_500_000, 8000)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    base = tmp_path_factory.mktemp("merged")
    return [write_report(run_dir(base / n, rows), html=False) for n, rows in (("a", ROWS_A), ("b", ROWS_B))]


def test_times_of_all_runs_are_those_of_their_values_together(reports: list[Report]) -> None:
    together, stats = Histogram(), merge(reports).stats.clock
    for rows in (ROWS_A, ROWS_B):
        for k, (delay, _) in enumerate(rows):
            together.add(delay if k else 0)
    expected = together.summary()
    assert [list(b) for b in stats.wake_lateness_us.hist] == expected.pop("hist")
    assert {k: getattr(stats.wake_lateness_us, k) for k in expected} == pytest.approx(expected)
    assert stats.compute_us.count == stats.phase_us["step"].count == 500
    assert stats.margin_us.count == 500 and stats.margin_us.p1 > 0


def test_low_percentiles_of_the_margin_and_worst_ticks_are_those_of_all_values(
    reports: list[Report],
) -> None:
    """The margin is the period less the end of the work; a class of the histogram is up to 6 % wide."""
    merged = merge(reports).stats.clock
    ends = [list(r.stats.clock.margin_us.hist) for r in reports]
    values = np.sort(np.concatenate([np.repeat([edge for edge, _ in h], [n for _, n in h]) for h in ends]))
    for name, share in (("p0_1", 0.001), ("p1", 0.01)):
        wanted = values[max(0, math.ceil(share * len(values)) - 1)]
        assert getattr(merged.margin_us, name) == pytest.approx(wanted, rel=0.07, abs=1.0), name
    assert merged.margin_us.p0_1 < merged.margin_us.p1
    every = [w for r in reports for w in r.stats.clock.worst.by_compute]
    assert [w.compute_us for w in merged.worst.by_compute] == sorted((w.compute_us for w in every), reverse=True)[:32]
    late = [w for r in reports for w in r.stats.clock.worst.by_lateness]
    assert [w.lateness_us for w in merged.worst.by_lateness] == sorted((w.lateness_us for w in late), reverse=True)[:32]


def test_counters_are_summed_and_the_worst_of_all_runs_kept(reports: list[Report]) -> None:
    merged = merge(reports)
    stats = merged.stats.clock
    assert (stats.ticks, stats.missed, stats.dropped) == (500, 3, 3)
    assert stats.margin_min_us == min(r.stats.clock.margin_min_us for r in reports)
    assert len(stats.worst.by_lateness) == 32
    assert (stats.worst.by_lateness[0].run, stats.worst.by_lateness[0].tick) == ("b", 100)
    assert {entry.run for entry in stats.worst.by_compute} == {"a", "b"}
    assert merged.exit_status == 1, "run b missed ticks"
    assert [line.split(":")[0] for line in merged.stats.degraded] == ["a", "b"]


def test_files_hold_the_sum_and_each_run(reports: list[Report], tmp_path: Path) -> None:
    files = write_merged(merge(reports), tmp_path / "new" / "folder")
    data = json.loads(files["json"].read_text())
    assert [r["passed"] for r in data["runs"]] == [True, False] and data["stats"]["clock"]["ticks"] == 500
    again = Histogram()
    again.load(data["stats"]["clock"]["wake_lateness_us"])
    assert again.count == 500, "what was added up can be added up again"
    page = files["html"].read_text()
    assert "2 runs" in page and "b 100" in page and "degraded:" in page


def test_runs_that_do_not_belong_together_are_refused(reports: list[Report], tmp_path: Path) -> None:
    other = write_report(run_dir(tmp_path / "other", ROWS_A, rig="another"), html=False)
    with pytest.raises(ReportError, match=r"rig = another, but desk_4hp22"):
        merge([*reports, other])


def test_histogram_rebuilt_from_a_recording_is_refused(reports: list[Report], tmp_path: Path) -> None:
    killed = write_report(write_run(tmp_path / "killed", duration_s=0.5), html=False)
    with pytest.raises(ReportError, match="not whole"):
        merge([*reports, killed])


def test_command_line_takes_several_runs(reports: list[Report], tmp_path: Path) -> None:
    folders = [str(r.run.path) for r in reports]
    result = CliRunner().invoke(app, ["report", *folders, "--no-html", "--json", "--out", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["stats"]["clock"]["missed"] == 3
    assert (tmp_path / "m" / "merged.html").is_file()
    result = CliRunner().invoke(app, ["report", *folders, "--no-html"], env={"COLUMNS": "160"})
    assert "2 runs of desk_4hp22" in result.stdout and "b 100" in result.stdout
