"""What the measurements in the machine are judged by when they are run by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from vm_measure import missed_ticks


def test_missed_ticks_are_found_wherever_a_stage_keeps_them() -> None:
    stages = {
        "telemetry": {"reads": {"ticks": 20_000, "missed": 0}, "stopped": {"ticks": 20_000, "missed": 3}},
        "restbus": {"ticks": 10_000, "missed": 0},
        "rig": {"ticks": 60_000, "missed": 1},
        "machine": {"status": 0},
    }
    assert missed_ticks(stages) == ["telemetry: stopped: 3 of 20000 ticks missed", "rig: 1 of 60000 ticks missed"]


def test_rates_that_were_tried_and_found_too_high_are_no_failure() -> None:
    assert missed_ticks({"rates": {"highest_Hz": 12_000, "tried": [{"rate_Hz": 16_000, "missed": 5}]}}) == []
