"""The latency report: made here, its exact gates hold; what it does with results that do not."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from torqueloop.hil.results.run import RunStats, SafeState, StreamStats

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """scripts/bench/latency_report.py as a module."""
    sys.path.insert(0, str(ROOT / "scripts" / "bench"))
    yield importlib.import_module("latency_report")
    sys.path.remove(str(ROOT / "scripts" / "bench"))


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """The report of this machine in build/latency-report, for CI to publish."""
    out = ROOT / "build" / "latency-report"
    (out / "report.json").unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "scripts" / "bench" / "latency_report.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    # a script that breaks has status 1 too, but leaves no report
    assert done.returncode in (0, 1) and (out / "report.json").exists(), done.stderr[-3000:]
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["passed"] == (done.returncode == 0)
    suites = {s.get("name") for s in ElementTree.parse(out / "junit.xml").getroot()}
    assert suites == {"virtual", "real", "instructions", "vm"}
    assert "<h1>Latency report" in (out / "index.html").read_text(encoding="utf-8")
    return report


@pytest.mark.proof
@pytest.mark.rt
@pytest.mark.parametrize("name", ["virtual", "real", "instructions", "vm"])
def test_exact_gates_of_this_machine(made: dict[str, Any], name: str) -> None:
    """All of them at once: a failure lists every gate that does not hold."""
    (part,) = [p for p in made["parts"] if p["name"] == name]
    failed = {gate["name"]: gate["text"] for gate in part["gates"] if not gate["passed"]}
    assert failed == {}
    if part["skipped"]:
        pytest.skip(f"{name}: {part['skipped']}")
    assert part["gates"], "a part that was measured has gates"


# --- the script itself ------------------------------------------------------------------------------------------


def test_a_failed_gate_fails_the_report_in_all_three_forms(script: ModuleType, tmp_path: Path) -> None:
    good, bad = script.Part("virtual", "Virtual"), script.Part("vm", "Machine", skipped="only half of it")
    good.gate("ticks", True, 12)
    bad.gate("missed < 1", False, "3 <b> missed")
    assert script.passed([good]) and not script.passed([good, bad])
    script.write_all([good, bad], tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] is False and report["parts"][1]["gates"][0]["text"] == "3 <b> missed"
    suites = {s.get("name"): s for s in ElementTree.parse(tmp_path / "junit.xml").getroot()}
    assert (suites["vm"].get("failures"), suites["vm"].get("skipped"), suites["vm"].get("tests")) == ("1", "1", "2")
    failure = suites["vm"].find("testcase/failure")
    assert failure is not None and failure.get("message") == "3 <b> missed"
    page = (tmp_path / "index.html").read_text()
    assert "3 &lt;b&gt; missed" in page and "verdict failed" in page and "only half of it" in page


def test_lost_records_fail_the_report(script: ModuleType) -> None:
    good = StreamStats(chunks=9)
    for bad in (StreamStats(lost_records=1), StreamStats(discarded_bytes=8), StreamStats(cause="OSError: full"), None):
        part = script.Part("virtual", "Virtual")
        script.recorded(part, RunStats(recording={} if bad is None else {"signals": good, "bus": bad}))
        assert [g.passed for g in part.gates] == [False], bad
    part = script.Part("virtual", "Virtual")
    script.recorded(part, RunStats(recording={"signals": good}))
    assert [g.passed for g in part.gates] == [True]


def test_results_of_the_vm_become_tables_and_gates(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "measure.json"
    assert "not there" in script.vm(path).skipped
    path.write_text("{broken")
    assert [g.passed for g in script.vm(path).gates] == [False]
    late = {"p50": 1.5, "p99": 2.0, "p999": 3.0, "max": 4.0, "mean": 1.6, "count": 60_000}
    found: dict[str, Any] = {
        "kernel": "6.1-rt",
        "rig": {"ticks": 60_000, "missed": 0, "wake_lateness_us": late},
        "cyclictest": {"p50": 1.0, "p999": 2.5},
        "reaction_echo": {"p50_ns": 100.0},
        "detectors": {"missed": {"kind": "missed", "says": "2 periods late", "tick": 501}},
        **{name: {"status": 0} for name in ("reaction_socket", "reaction_full", "rates", "clients")},
    }
    path.write_text(json.dumps(found))
    part = script.vm(path)
    assert [(g.name, g.passed) for g in part.gates] == [("every stage was measured", True), ("rig: missed ticks", True)]
    assert part.values["ratios"] == {"wake_p999": pytest.approx(1.2)}
    assert part.tables["rig [µs]"][1][:3] == ["wake_lateness_us", "60000", "1.5"]
    assert part.tables["detectors"][1] == ["missed", "2 periods late"]
    found["rig"]["missed"] = 2
    found["rates"] = {"error": "RuntimeError: no"}
    path.write_text(json.dumps(found))
    assert {g.name: g.passed for g in script.vm(path).gates} == {
        "every stage was measured": True,
        "rig: missed ticks": False,
        "rates was measured": False,
    }
    # a stage that left nothing is no stage that passed
    for path_text in ("{}", json.dumps({k: v for k, v in found.items() if k != "clients"})):
        path.write_text(path_text)
        gates = {g.name: (g.passed, g.text) for g in script.vm(path).gates}
        passed, text = gates["every stage was measured"]
        assert not passed and "clients" in text


def test_instruction_counts_are_compared_both_ways(script: ModuleType) -> None:
    """5 % is the limit up and down; another compiler makes numbers that cannot be compared."""
    compare = script.step_baseline.compare
    here = {"compiler": "GCC 12", "machine": "x86_64"}
    baseline = {"made_with": here, "instructions": {"a": 1000.0, "b": 2000.0, "gone": 1.0}}
    assert compare(baseline, {"a": 1049.0, "b": 1901.0, "gone": 1.0}, here)["passed"]
    found = compare(baseline, {"a": 1051.0, "b": 1899.0, "new": 1.0}, here)
    assert found["off"] == ["a", "b", "gone", "new"] and not found["passed"]
    other = compare(baseline, {"a": 2000.0, "b": 2000.0, "gone": 1.0}, {**here, "compiler": "GCC 14"})
    assert other["passed"] and not other["comparable"] and "GCC 14" in other["different"][0]


def test_missing_valgrind_is_said(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = importlib.import_module("instruction_counts")
    monkeypatch.setattr(counts.shutil, "which", lambda name: None)
    with pytest.raises(counts.CountingError, match="valgrind is not installed"):
        counts.instruction_counts([], lambda: None)


def test_endurance_gates_growth_faults_and_losses(script: ModuleType) -> None:
    """Samples of 5 minutes: what grows after the first minute fails, what grew in it does not."""
    endurance = importlib.import_module("endurance")
    still = {"minor_faults": 900, "major_faults": 0, "locked_kib": 1000, "tcu_rss_kib": 5, "vehicle_rss_kib": 5}
    steady = [{"t_s": 10.0 * k, "rss_kib": 100_000 + 5000 * min(k, 5), **still} for k in range(31)]
    stats = RunStats(recording={"signals": StreamStats(chunks=9), "bus": StreamStats(chunks=9)})
    assert all(gate["passed"] for gate in endurance.judge(steady, stats, "ended"))

    def failed(samples: list[dict[str, Any]], stats: RunStats = stats, state: str = "ended") -> list[str]:
        return [g["name"] for g in endurance.judge(samples, stats, state) if g["passed"] is False]

    assert failed([{**s, "rss_kib": 100_000 + 20 * s["t_s"]} for s in steady]) == ["growth of rss_kib"]
    assert failed([*steady[:-1], {**steady[-1], "minor_faults": 901}]) == ["minor_faults of the loop"]
    latched = SafeState(True, "engine.w left its limits", "limit", 100)
    assert failed(steady, replace(stats, safe_state=latched)) == ["ended by itself"]
    for bad in (StreamStats(lost_records=3), StreamStats(discarded_bytes=8, cause="OSError: No space left on device")):
        assert failed(steady, replace(stats, recording={**stats.recording, "bus": bad})) == ["records lost"]
    assert failed(steady, replace(stats, recording={})) == ["records lost"], "nothing recorded is not nothing lost"
    short = endurance.judge(steady[:5], stats, "interrupted")
    assert [g["passed"] for g in short[:4]] == [None] * 4 and short[-1]["passed"] is False
