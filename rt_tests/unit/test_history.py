"""History of runs: the index follows the folder, whatever is in it; trends; gates against an earlier run."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli import app
from torqueloop.hil.results.files import VERSION
from torqueloop.hil.results.gates import evaluate, parse_gates
from torqueloop.hil.runs import history as hi
from torqueloop.hil.runs.history_page import bars, plot, print_trend, write_page


def judged(folder: Path, name: str, started: str, passed: bool = True, rig: str = "desk", **metrics) -> Path:
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    run = {"started": started, "rig": rig, "clock": "virtual"}
    numbers = {"word": "x", **metrics}
    report = {"format": VERSION, "torqueloop": "0.1.0", "passed": passed, "run": run, "metrics": numbers}
    (path / "run.json").write_text(json.dumps({"format": VERSION, **run}))
    (path / "report.json").write_text(json.dumps(report))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(1, 6):
        more = {"missed": k, "compute_p99_us": 10.0 * k, "nothing": None}
        judged(tmp_path, f"run-{k}", f"2026-01-0{k}T10:00:00", passed=k != 4, **more)
    judged(tmp_path, "nightly/other", "2026-01-09T10:00:00", rig="other", missed=77)
    return tmp_path


def values(folder: Path, metric: str = "missed", **more) -> list[float | None]:
    return [p.value for p in hi.trend(folder, metric, **more)]


def test_a_trend_is_in_the_order_of_time(folder: Path) -> None:
    assert values(folder) == [1, 2, 3, 4, 5, 77] and values(folder, last=2) == [5, 77]
    assert values(folder, rig="desk") == [1, 2, 3, 4, 5]
    assert values(folder, "compute_p99_us") == [10, 20, 30, 40, 50, None], "the other rig has not measured it"
    assert [p.passed for p in hi.trend(folder, "missed")] == [True, True, True, False, True, True]


def test_the_index_follows_the_folder(folder: Path) -> None:
    """What is new, changed, gone, or no report any more; and it may be deleted, torn or of another version."""
    assert values(folder) == [1, 2, 3, 4, 5, 77] and (folder / hi.INDEX).is_file()
    judged(folder, "run-6", "2026-01-06T10:00:00", missed=600)
    judged(folder, "run-1", "2026-01-01T10:00:00", missed=10000)
    for file in (folder / "run-2").iterdir():
        file.unlink()
    assert values(folder) == [10000, 3, 4, 5, 600, 77]
    for wrong in (b"", b"no database, but long enough to be looked at " * 40):
        (folder / hi.INDEX).write_bytes(wrong)
        assert values(folder) == [10000, 3, 4, 5, 600, 77]
    with sqlite3.connect(folder / hi.INDEX) as index:
        index.execute("PRAGMA user_version = 99")
    assert values(folder) == [10000, 3, 4, 5, 600, 77]
    index.close()


def test_what_cannot_be_read_is_left_out_and_said(folder: Path) -> None:
    """A run that is being written, half deleted, of an older version, or garbage."""
    (folder / "run-1" / "report.json").unlink()
    (folder / "run-2" / "report.json").write_text('{"format": 1}')
    (folder / "run-3" / "report.json").write_text("{")
    (folder / "run-4" / "report.json").write_text(json.dumps({"format": VERSION, "metrics": 3}))
    told = hi.history(folder)
    assert told.runs == 2 and set(told.unread) == {"run-1", "run-2", "run-3", "run-4"} and not told.in_memory
    assert "has not ended, was killed" in told.unread["run-1"] and "of format 1" in told.unread["run-2"]
    assert values(folder) == [5, 77]
    judged(folder, "run-1", "2026-01-01T10:00:00", missed=1)
    assert values(folder) == [1, 5, 77], "as soon as it is there"


def test_the_last_good_run(folder: Path) -> None:
    assert hi.last_good(folder, "desk") == folder / "run-5"
    assert hi.last_good(folder, "desk", without=folder / "run-5") == folder / "run-3", "run-4 has failed"
    with pytest.raises(ConfigError, match="'desk'"):
        hi.last_good(folder, "desk", clock="real")


def test_gates_against_a_run(tmp_path: Path) -> None:
    good = {"missed": 0, "compute_p99_us": 40.0, "shifts": 3, "shift_quality_jerk_worst_mps3": 20.0}
    good["lateness_p99_us"] = None
    gates = hi.gates_against(judged(tmp_path, "good", "2026-01-01", **good))
    assert gates == ["missed <= 0", "compute_p99_us <= 57", "shifts >= 3", "shift_quality_jerk_worst_mps3 <= 23"]

    def failed(**metrics) -> list[str]:
        return [g.text for g in evaluate(parse_gates(gates), {**good, **metrics}) if not g.passed]

    assert failed() == [] and failed(compute_p99_us=56.9, shifts=4) == []
    assert failed(missed=1) == ["missed <= 0"] and failed(shifts=2) == ["shifts >= 3"]
    assert failed(shift_quality_jerk_worst_mps3=23.1) == ["shift_quality_jerk_worst_mps3 <= 23"]
    assert hi.gates_against(tmp_path / "good", ["compute_p99_us"]) == ["compute_p99_us <= 57"]
    for wrong, words in (("lateness_p99_us", "not measured"), ("mised", "did you mean 'missed'")):
        with pytest.raises(ConfigError, match=words):
            hi.gates_against(tmp_path / "good", [wrong])
    with pytest.raises(ConfigError, match="no report.json"):
        hi.gates_against(tmp_path)


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    def ask(*options: str):
        return CliRunner().invoke(app, ["runs", str(folder), *options])

    told = json.loads(ask("--trend", "missed", "--last", "3", "--json").output)
    assert [p["value"] for p in told["points"]] == [4, 5, 77]
    shown = ask("--trend", "missed")
    assert shown.exit_code == 0 and "run-5" in shown.output and "77" in shown.output
    page = tmp_path / "history.html"
    assert ask("--page", str(page)).exit_code == 0
    text = page.read_text().replace("https://github.com/leeoniya/uPlot", "")
    assert "run-5" in text and "compute_p99_us" in text and "http" not in text
    wrong = ask("--trend", "mised")
    assert wrong.exit_code == 2 and "did you mean 'missed'" in wrong.output.replace("\n", " ")


def test_a_metric_may_be_worse_by_a_part_of_its_amount(tmp_path: Path) -> None:
    """5 % where no rule is known; of a number below 0 the amount counts."""
    judged(tmp_path, "run", "2026-01-01", slip=-40.0, shift_quality_flare_worst_radps=30.0)
    assert hi.gates_against(tmp_path / "run", ["slip"]) == ["slip <= -38"]
    assert hi.gates_against(tmp_path / "run") == ["shift_quality_flare_worst_radps <= 35"]


def test_bars_stand_between_the_smallest_and_the_largest() -> None:
    assert bars([3.0, None, 10.0, 4.0, 6.5, -4.0]) == "▅ █▅▆▁" and bars([2.0, 2.0]) == "▁▁" and bars([None]) == " "


POINTS = [hi.Point(f"run-{k}", f"2026-01-0{k}T10:00:00.123", "desk", "virtual", "0.1.0", k != 2, value)
          for k, value in enumerate((5.0, None, 7.0, 9.0), 1)]  # fmt: skip


def test_a_trend_on_the_console_has_a_run_a_line() -> None:
    console = Console(width=160, record=True, color_system=None, file=open("/dev/null", "w"))
    print_trend("missed", POINTS, console)
    lines = [re.split(r"\s{2,}", line.strip()) for line in console.export_text().splitlines()]
    assert ["run", "started", "rig", "clock", "torqueloop", "verdict", "missed"] in lines
    assert ["run-1", "2026-01-01 10:00:00", "desk", "virtual", "0.1.0", "passed", "5.0"] in lines
    assert ["run-2", "2026-01-02 10:00:00", "desk", "virtual", "0.1.0", "failed"] in lines and ["▁ ▅█"] in lines


def test_a_trend_is_drawn_over_the_runs_with_those_that_failed_apart() -> None:
    points = [*POINTS, hi.Point("run-5", "2026-01-05", "desk", "virtual", "0.1.0", False, 4.0)]
    (panel,) = plot("missed", points).panels
    drawn = [(line.label, list(line.x), list(line.y)) for line in panel.lines]
    good = ([0.0, 2.0, 3.0], [5.0, 7.0, 9.0])
    assert drawn == [("missed", [*good[0], 4.0], [*good[1], 4.0]), ("passed", *good), ("failed", [4.0], [4.0])]


def test_the_page_of_a_folder_has_the_newest_run_first_and_its_verdict(folder: Path, tmp_path: Path) -> None:
    judged(folder, "run-8", "2026-02-01T10:00:00", passed=False, missed=123, compute_p99_us=None)
    assert write_page(folder, tmp_path / "page.html", 50, "desk") == 6
    page = re.sub(r"<script.*?</script>", "", (tmp_path / "page.html").read_text(), flags=re.S)
    rows = [[re.sub("<.*?>", "", c).strip() for c in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", page, re.S)]  # fmt: skip
    newest, *_, oldest = [row[1:] for row in rows if len(row) == 6]
    assert newest == ["run-8", "2026-02-01 10:00:00", "desk", "virtual", "0.1.0"] and oldest[0] == "run-1"
    text = re.sub(r"\s+", " ", re.sub("<.*?>", " ", page))
    assert "6 runs" in text and "missed last: 123" in text and "compute_p99_us last: 50" in text
    # the verdict is that of the newest run
    for target, rig, verdict in (("bad.html", "desk", "failed"), ("good.html", "other", "passed")):
        write_page(folder, tmp_path / target, 50, rig)
        assert f'class="verdict {verdict}"' in (tmp_path / target).read_text()
    (folder / "run-8" / "report.json").unlink()
    write_page(folder, tmp_path / "before.html", 50, "desk")
    assert 'class="verdict passed"' in (tmp_path / "before.html").read_text()
