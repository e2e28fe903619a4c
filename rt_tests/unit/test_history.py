"""History of runs: the index follows the folder, whatever is in it; trends; gates against an earlier run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli import app
from torqueloop.hil.results.files import VERSION
from torqueloop.hil.results.gates import evaluate, parse_gates
from torqueloop.hil.runs import history as hi


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
