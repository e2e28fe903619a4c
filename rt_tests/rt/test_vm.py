"""Real SocketCAN on a PREEMPT_RT kernel: scripts/test --vm boots the machine of scripts/vm.py, these tests judge it.

One boot serves all; it runs beside the other tests (vm_process.py). Its time counts instructions, so what is asserted
does not depend on the host; the numbers are in build/vm-results/measure.json.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vm_process
from vm_process import RESULTS

import torqueloop
import torqueloop as tl
from torqueloop.cython_kernels.tick.rig import CAUSES
from torqueloop.hil.rig.run.session import RunSpec, run_rig

CONFIGS = Path(torqueloop.__file__).parent / "configs"

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


def test_the_first_200_ticks_are_as_late_as_the_others_and_no_page_is_missing(found):
    rig = found["rig"]
    assert rig["minor_faults"] == 0 and rig["major_faults"] == 0
    for first, others in rig["start_p99_us"].values():
        assert first <= 1.2 * others


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


def test_the_c_controller_behind_a_card_and_a_canopen_module_drives_through_all_gears(found, tmp_path):
    """In the rhythm of the same controller with its pins in memory, on the virtual clock of this computer."""
    io = found["io"]
    assert (
        io["ticks"] == 1000 * vm_process.SECONDS and io["missed"] == 0 and io["overruns"] == 0 and io["degraded"] == []
    )
    assert not io["safe_state"]["latched"] and io["replayed"]
    assert set(io["devices"]) == {"card", "lines", "adc", "dac", "duty", "pwm", "room", "module"}
    for device in io["devices"].values():
        assert max(device["reads"], device["writes"]) == io["ticks"] and device["failed"] == 0
    rig = tmp_path / "rig.toml"
    # the road of the machine's rig is in its tick, and has no brakes
    rig.write_text(f"""extends = "{CONFIGS / "examples" / "external" / "desk_4hp22_pins.toml"}"
without = ["vehicle", "gates", 'inputs."road.F"', 'inputs."road.F_hold"']
plant.powertrain = "{CONFIGS / "powertrains" / "car_4hp22.toml"}"
record.every = 1
""")
    result = run_rig(rig, RunSpec("virtual", float(vm_process.SECONDS), tmp_path / "run"))
    log = re.findall(r"t = ([\d.]+) s: (\d) -> (\d)", (result.out / "tcu.log").read_text())
    expected = np.array([[float(x) for x in line] for line in log])
    shifts = np.array(io["shifts"])
    assert [list(row) for row in shifts[:, 1:]] == [[0, 1], [1, 2], [2, 3], [3, 4]] == expected[:, 1:].tolist()
    # one period of the unit, and the steps of the card (0.3 mV: 0.3 rpm)
    np.testing.assert_allclose(np.diff(shifts[:, 0]), np.diff(expected[:, 0]), atol=0.02)
    drive = tl.read_run(result.out)
    for name, value in io["end"].items():
        np.testing.assert_allclose(value, drive.signal(name)[-1], rtol=2e-3)


@pytest.mark.parametrize("way", ["card", "lines"])
def test_a_value_passes_the_tick_from_pin_to_pin_in_a_tick_as_in_a_loop_in_c(found, way):
    rig, bare = found["io"]["edges"][way]["rig"], found["io"]["edges"][way]["loop"]
    assert rig["seen"] == bare["seen"] == 400 and rig["missed"] == bare["missed"] == 0 and not rig["latched"]
    assert 0.25e6 < bare["p50_ns"] < 0.75e6, "edges come at all phases of a tick"
    for quantile in ("p50_ns", "p99_ns", "max_ns"):
        # to a tick comes the time that it takes, 96 us with all devices
        assert rig[quantile] <= bare[quantile] + 150e3


#: what happens -> the device that is named, and what is said of it; ten ticks without an answer come before five
#: heartbeats of 20 ms
LOST = {
    "killed": r"module: its values are old",
    "frozen": r"module: its values are old",
    "slow": r"module: its values are old",
    "cut off": r"module: (writing has failed|its values are old)",
    "card slow": r"card: a call took longer than limit_us",
    "card frozen": r"card: a call took longer than limit_us",
    "lines lost": r"lines: reading has failed",
}
SAFE = {"n_out": -0.25, "pong": -0.75, "contact_d": 0.0, "answer": 1.0, "pedal": -100.0, "lamp": 12.0}


@pytest.mark.parametrize("case", LOST)
def test_a_device_that_is_lost_latches_by_name_and_the_pins_are_safe(found, case):
    """Card and chips, looked at from outside while the rig still runs; a lost chip keeps what it had."""
    lost = found["io_faults"][case]
    assert lost["latched"] and lost["kind"] == "io" and lost["replayed"] and lost["still_runs"]
    assert re.match(f"I/O device {LOST[case]} ", lost["cause"]), lost["cause"]
    kept = {"contact_d", "answer"} if case == "lines lost" else set()
    for pin, safe in SAFE.items():
        assert abs(lost["before"][pin] - safe) > 0.1, pin
        assert lost["after"][pin] == pytest.approx(lost["before"][pin] if pin in kept else safe, abs=3.1e-4), pin


def test_a_rig_that_is_killed_leaves_all_devices_at_safe_values(found):
    killed = found["io_faults"]["rig killed"]
    assert all(abs(killed["before"][pin] - safe) > 0.1 for pin, safe in SAFE.items())
    assert killed["after"] == pytest.approx(SAFE, abs=3.1e-4)
    assert "error values 0 0" in killed["module"]


def test_each_cause_of_the_safe_state_latches_alone_and_says_what_it_is(found):
    """The stage itself compares cause, sentence and tick."""
    assert "error" not in found["detectors"], found["detectors"]["error"]
    latched = {name.partition(",")[0]: safe["kind"] for name, safe in found["detectors"].items()}
    assert latched == {cause: cause for cause in CAUSES}


def test_setup_host_changes_what_it_says_and_undo_restores_the_machine(found):
    host = found["setup_host"]
    first, again, undone = (host[name] for name in ("apply", "apply again", "undo"))
    assert set(host["planned"]) <= set(first["changed"]) and again["changed"] == [] and host["left"] == []
    wanted = {path: value for path, value in host["wanted"].items() if path in first["values"]}
    assert first["values"] == again["values"] and wanted
    assert {path: first["values"][path] for path in wanted} == wanted
    assert set(undone["values"].values()) <= {"950000", "1", "always"}
    # the machine has neither systemd nor udev: each command is named
    refused = [f"`{command}` ended with status 127" for command in host["commands"]]
    assert refused == [line for line in first["lines"] if line.endswith("status 127")]


def test_real_clients_on_the_bus(found):
    """rt_tests/vm ran inside: every test passed, none was left out."""
    assert found["clients"].get("status") == 0, found["clients"]
    cases = list(ElementTree.parse(RESULTS / "clients.xml").iter("testcase"))
    bad = [c.get("name") for c in cases if any(c.find(k) is not None for k in ("failure", "error", "skipped"))]
    assert bad == [] and len(cases) >= 31, "all of rt_tests/vm ran"
