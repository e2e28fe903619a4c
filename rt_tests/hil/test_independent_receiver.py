"""What another process sees that shares no code with us (python-can, autosar-e2e, opendbc, cantools): disturbances of
what the rig sends, from a log; of what it receives, and the rules of protection, both ways on a bus, tick by tick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

import torqueloop as tl
from torqueloop.hil.record.bus_log import write_bus_log

pytest.importorskip("e2e", reason="autosar-e2e is not installed")
pytest.importorskip("opendbc.can", reason="opendbc is not installed")

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "rt_tests" / "judges"))

from judgetools.sent import CASES, IDLE, IDLE_VALUE, sort, windows  # noqa: E402

RECEIVER = ROOT / "rt_tests" / "judges" / "independent_receiver.py"


@pytest.mark.proof
def test_each_disturbance_of_what_is_sent_is_in_a_log_in_its_window_and_nothing_outside(tmp_path: Path) -> None:
    times = windows(len(CASES))
    faults = [
        {**what, "from_s": begin, "until_s": end} for (what, _, _), (begin, end) in zip(CASES, times, strict=True)
    ]
    # a value that does not come back to a right one in the middle: the receiver's constant
    run = tl.run(
        "desk_vw_mqb", clock="virtual", duration=round(times[-1][1] + 0.2, 2), out=tmp_path / "run", html=False,
        overrides={"faults": faults, "bus.car.rx_timeout_s": None, "gates": {}},
    )  # fmt: skip
    log = tmp_path / "bus.blf"
    write_bus_log(run.path, log)
    command = [sys.executable, str(RECEIVER), str(log), str(ROOT / "configs" / "can" / "vw_mqb.dbc"),
               "--channel", "1", "--constant", f"{IDLE}={IDLE_VALUE}"]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=PATIENCE_S)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert lines.pop()["frames"] > 2000
    seen, outside = sort([(line["after"], line["message"], line["what"]) for line in lines], CASES)
    assert outside == [] and [(s.fault, s.said) for s in seen if not s.passed] == []


@pytest.mark.proof
def test_what_is_received_is_disturbed_in_its_window_and_the_rules_hold_both_ways() -> None:
    command = [sys.executable, str(RECEIVER), "prove", "received", "rules", "--quick"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    if told.returncode == 77:
        pytest.skip(told.stderr.strip())
    assert told.returncode == 0, told.stdout + told.stderr
    assert "82 messages, 35 rules: 1640 right frames, 1019 flips" in told.stdout and "WRONG" not in told.stdout


def test_the_judges_import_nothing_of_torqueloop() -> None:
    code = "import sys, runpy; sys.argv = ['x', 'prove', '--help']\n"
    code += f"try: runpy.run_path({str(RECEIVER)!r}, run_name='__main__')\nexcept SystemExit: pass\n"
    code += "print([m for m in sys.modules if m.partition('.')[0] == 'torqueloop'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert told.stdout.splitlines()[-1] == "[]"
