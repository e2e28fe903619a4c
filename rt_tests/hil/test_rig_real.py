"""The rig on the real clock with its processes: start, stop, Ctrl-C, faults of whole processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rig_help import children, rig_file

from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.record.run_data import read_run_json
from torqueloop.hil.report.build import write_report
from torqueloop.hil.rig.parts import build
from torqueloop.hil.rig.plan import load_plan
from torqueloop.hil.rig.replay import replay
from torqueloop.hil.rig.session import run_rig

CODE = (
    "import sys; from torqueloop.hil.rig.session import run_rig; "
    "run_rig(sys.argv[1], 'real', 60.0, sys.argv[2], progress=False, html=False)"
)


@pytest.fixture
def desk(tmp_path, multicast):
    """The desk rig on a port of its own; a loaded test machine may hold everything up for long."""
    return rig_file(
        tmp_path,
        ("_Pressure_1 = 0.3", "_Pressure_1 = 2.0"),
        ("_Pressure_2 = 0.3", "_Pressure_2 = 2.0"),
        ("age_limit_s = 0.1", "age_limit_s = 2.0"),
        ("overrun_limit = 50", "overrun_limit = 0"),
        ("watchdog_s = 0.5", "watchdog_s = 5.0"),
        own_bus=True,
    )


def test_real_run_replays_to_the_same_hash_and_leaves_no_process(desk, tmp_path):
    result = run_rig(desk, "real", 2.0, tmp_path / "r", progress=False, html=False)
    stats = result.stats
    assert not stats["safe_state"]["latched"], stats["safe_state"]
    assert stats["ticks"] == 2000 and stats["missed"] == stats["late_started"] + stats["dropped"]
    assert stats["can"]["rx"]["TCU_Pressure_1"]["ok"] > 100 and stats["vehicle"]["taken"] > 100
    assert children(os.getpid()) == []
    rig = build(load_plan(result.out / read_run_json(result.out)["rig_file"]), 2.0).rig
    data, at = read_stream(result.out / "inputs").payload(), 0
    rig.begin(int.from_bytes(data[24:32], "little"))  # now_ns of the first record
    while at < len(data):
        at = rig.replay(data, at)
    assert f"{rig.state_hash:016x}" == stats["hash"]


def test_a_machine_that_cannot_keep_up_does_not_pass(desk, tmp_path):
    """200 ticks in a row take 3 ms of CPU each."""
    result = run_rig(desk, "real", 0.6, tmp_path / "r", progress=False, html=False, inject_busy=(100, 200, 3_000_000))
    assert result.stats["missed"] > 100 and result.stats["missed_ratio"] > 0.05
    assert [g.passed for g in result.report.gates if g.text == "missed_ratio <= 0.05"] == [False]
    assert result.exit_status == 1


def started(desk: Path, out: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(desk), str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if out.exists() and read_run_json(out).get("stats", {}).get("ticks", 0) > 0:
            return process
        assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
        time.sleep(0.05)
    process.kill()
    raise AssertionError("the run did not begin")


def test_ctrl_c_ends_the_run_in_order(desk, tmp_path):
    process = started(desk, tmp_path / "r")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    info = read_run_json(tmp_path / "r")
    assert info["state"] == "interrupted" and info["ended"]
    assert (tmp_path / "r" / "report.json").is_file()
    assert children(process.pid) == []


def test_killed_rig_leaves_no_companion_behind(desk, tmp_path):
    process = started(desk, tmp_path / "r")
    assert len(children(process.pid)) == 2
    process.kill()
    process.wait(10)
    deadline = time.monotonic() + 10
    while children(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children(process.pid) == []
    assert len(read_stream(tmp_path / "r" / "signals").chunks) > 0
    assert read_run_json(tmp_path / "r")["state"] == "running"
    report = write_report(tmp_path / "r", html=False)
    assert not report.run.ended and report.exit_status == 1
    assert report.metrics["ticks_recorded"] >= report.stats["ticks"] - 1000, "at most the last second is lost"
    again = replay(tmp_path / "r")
    assert again.passed and again.compared == report.metrics["ticks_recorded"]


def test_killed_control_unit_latches_the_safe_state(desk, tmp_path):
    process = started(desk, tmp_path / "r")
    for pid in [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if "tcu" in words and f"{process.pid}" in words:
            os.kill(pid, signal.SIGKILL)
    assert process.wait(20) == 0
    safe = read_run_json(tmp_path / "r")["stats"]["safe_state"]
    assert safe["latched"] and safe["kind"] in ("thread", "tcu_silent") and "tcu" in safe["cause"].lower()
