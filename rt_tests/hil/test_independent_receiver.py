"""Every disturbance of what the rig sends on a maker's bus, seen in another process by a receiver that shares no code
with us (python-can, autosar-e2e, opendbc, cantools): each in its window, and nothing outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torqueloop as tl
from torqueloop.hil.record.bus_log import write_bus_log

pytest.importorskip("e2e", reason="autosar-e2e is not installed")
pytest.importorskip("opendbc.can", reason="opendbc is not installed")

ROOT = Path(__file__).resolve().parents[2]
IDLE, BUS = "Motor_20.MO_Solldrehz_Leerlauf", {"bus": "car", "bitrate": 500000}
ESP, MOTOR = {"message": "ESP_21"}, {"message": "Motor_20"}
#: what is done -> what the receiver must say of it (one of these, of that message)
CASES: list[tuple[dict[str, Any], str, set[str]]] = [
    ({**ESP, "kind": "crc"}, "ESP_21", {"checksum"}),
    ({**ESP, "kind": "crc_random"}, "ESP_21", {"checksum"}),
    ({**ESP, "kind": "counter"}, "ESP_21", {"repeat"}),
    ({**ESP, "kind": "counter_random"}, "ESP_21", {"repeat", "jump"}),
    ({**ESP, "kind": "counter_offset", "value": 3}, "ESP_21", {"jump"}),
    ({**ESP, "kind": "dlc", "value": 6}, "ESP_21", {"length"}),
    ({**ESP, "kind": "drop"}, "ESP_21", {"cycle", "jump"}),
    ({**MOTOR, "kind": "delay", "value": 0.012}, "Motor_20", {"cycle"}),
    ({**MOTOR, "kind": "jitter", "value": 0.015, "seed": 5}, "Motor_20", {"cycle"}),
    ({**MOTOR, "kind": "duplicate"}, "Motor_20", {"repeat"}),
    ({"node": "ESP", "kind": "silent"}, "ESP_21", {"cycle", "jump"}),
    ({"bus": "car", "kind": "bus_off"}, "Motor_20", {"cycle", "jump"}),
    ({**BUS, "kind": "load", "value": 0.3}, "0x7ff", {"unknown"}),
    ({**BUS, "kind": "babble", "value": 0.3}, "0x0", {"unknown"}),
    *(({"signal": IDLE, "kind": kind, "value": value}, "Motor_20", {"value of MO_Solldrehz_Leerlauf"})
      for kind, value in (("value", 1000.0), ("offset", 200.0), ("gain", 1.5), ("noise", 300.0), ("ramp", 5000.0),
                          ("raw", 200))),
]  # fmt: skip
FIRST_S, STEP_S, LASTS_S = 0.4, 0.25, 0.13
#: a late frame, and the one that shows a gap or jump, come up to so long after the window
AFTER_S = 0.06


def test_each_in_its_window_and_nothing_outside(tmp_path: Path) -> None:
    windows = [(FIRST_S + STEP_S * k, FIRST_S + STEP_S * k + LASTS_S) for k in range(len(CASES))]
    faults = [
        {**what, "from_s": begin, "until_s": end} for (what, _, _), (begin, end) in zip(CASES, windows, strict=True)
    ]
    duration = windows[-1][1] + 0.2
    # a value that does not come back to a right one in the middle: the receiver's constant
    run = tl.run(
        "desk_vw_mqb", clock="virtual", duration=round(duration, 2), out=tmp_path / "run", html=False,
        overrides={"faults": faults, "bus.car.rx_timeout_s": None, "gates": {}},
    )  # fmt: skip
    log = tmp_path / "bus.blf"
    write_bus_log(run.path, log)
    command = [sys.executable, str(ROOT / "scripts" / "independent_receiver.py"), str(log),
               str(ROOT / "configs" / "can" / "vw_mqb.dbc"), "--channel", "1", "--constant", f"{IDLE}=760"]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=120)
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert lines.pop()["frames"] > 2000
    seen: list[set[tuple[str, str]]] = [set() for _ in CASES]
    for line in lines:
        at = [k for k, (begin, end) in enumerate(windows) if begin - 1e-3 <= line["after"] <= end + AFTER_S]
        assert at, f"outside of all windows: {line}"
        seen[at[0]].add((line["message"], line["what"]))
    for (what, message, expected), found in zip(CASES, seen, strict=True):
        assert {w for m, w in found if m == message} & expected, (what, found)
        if "node" not in what and "bus" not in what:
            assert {m for m, _ in found} == {message}, (what, found)
