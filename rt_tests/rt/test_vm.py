"""Real SocketCAN on a PREEMPT_RT kernel: scripts/test --vm boots the machine of scripts/vm.py, these tests judge it.

One boot serves all; it runs beside the other tests (vm_process.py). Its time counts instructions, so what is asserted
does not depend on the host; the numbers are in build/vm-results/measure.json.
"""

from __future__ import annotations

import json
import os
import statistics
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
import vm_process
from vm_process import RESULTS

#: exit status of scripts/vm_measure.py where there can be no machine
SKIPPED = 77

pytestmark = pytest.mark.rt


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What one boot of the machine measured."""
    if os.environ.get("TORQUELOOP_VM") != "1":
        pytest.skip("the virtual machine is part of `scripts/test --vm`")
    status, printed = vm_process.wait()
    print(printed)
    if status == SKIPPED:
        pytest.skip(f"no virtual machine here: {printed.strip().splitlines()[-1]}")
    assert (RESULTS / "measure.json").exists(), printed[-2000:]
    result: dict[str, Any] = json.loads((RESULTS / "measure.json").read_text(encoding="utf-8"))
    return result


def test_a_drive_at_1_khz_misses_no_tick(found):
    rig, ticks = found["rig"], 1000 * vm_process.SECONDS
    assert rig["ticks"] == ticks and rig["missed"] == 0 and rig["overruns"] == 0
    assert not rig["safe_state"]["latched"] and rig["degraded"] == []
    assert rig["shifts"][:4] == ["N-1", "1-2", "2-3", "3-4"], "the control unit drove the car through its gears"
    assert rig["can"]["rx_bad"] == 0 and rig["can"]["rx_dropped"] == 0 and rig["can"]["tx_lost"] == 0
    assert rig["can"]["rx_frames"] >= ticks // 2 - 10 and rig["can"]["tx_frames"] == 3 * ticks // 10 + ticks


def test_wake_lateness_is_that_of_cyclictest(found):
    assert found["cyclictest"]["count"] == 10_000
    # one phase between rig and control unit in each of three runs; where their timers meet a wake takes 3 us more
    wakes = found["rig"]["wake_p999_us"]
    assert len(wakes) == 3
    assert statistics.median(wakes) <= 1.2 * found["cyclictest"]["p999"], wakes
    assert max(wakes) <= 2.0 * found["cyclictest"]["p999"], wakes


@pytest.mark.parametrize("quantile", ["p50_ns", "p99_ns"])
def test_socket_and_codec_answer_within_half_more_than_a_c_echo(found, quantile):
    echo, ours = found["reaction_echo"], found["reaction_socket"]
    assert echo["lost"] == 0 and ours["lost"] == 0 and ours["sent"] == ours["answers"] == echo["answers"]
    assert ours[quantile] <= 1.5 * echo[quantile]


def test_reaction_through_the_tick_is_one_tick_and_100_us(found):
    full = found["reaction_full"]
    assert full["lost"] == 0 and full["missed"] == 0
    assert full["p99_ns"] <= 1e3 * (full["tick_us"] + 100.0)


def test_several_kilohertz_without_a_missed_tick(found):
    assert found["rates"]["highest_Hz"] >= 4000, found["rates"]["tried"]


def test_the_rest_of_three_buses_is_sent_whole_without_a_missed_tick(found):
    """200 protected messages; frames by the kernel's own count."""
    rest = found["restbus"]
    assert rest["messages"] == 200 and rest["ticks"] == 10_000 and rest["missed"] == 0 and rest["overruns"] == 0
    assert rest["degraded"] == [] and len(rest["buses"]) == 3
    assert all(bus["sent"] == bus["tx_frames"] == bus["due"] and bus["lost"] == 0 for bus in rest["buses"].values())


def test_real_clients_on_the_bus(found):
    """rt_tests/vm ran inside: every test passed, none was left out."""
    assert found["clients"].get("status") == 0, found["clients"]
    cases = list(ElementTree.parse(RESULTS / "clients.xml").iter("testcase"))
    bad = [c.get("name") for c in cases if any(c.find(k) is not None for k in ("failure", "error", "skipped"))]
    assert bad == [] and len(cases) >= 31, "all of rt_tests/vm ran"
