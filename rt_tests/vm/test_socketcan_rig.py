"""The vcan rig on a real CAN interface, driven tick by tick: the ticks read and write vcan0 themselves, time counts.
So the reactions come at exact ticks whatever the speed of the machine.

Needs vcan0 (up, mtu 72), can-utils, and the rights to set an interface down. Each test says why it is skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import torqueloop
from torqueloop.cython_kernels.can.socketcan import DATA, NativePort
from torqueloop.hil.can.bus import CanBusError
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.raw_socket import interface_info, open_raw
from torqueloop.hil.ecu.control_unit import EcuInputs, Frame
from torqueloop.hil.ecu.soft_tcu import soft_tcu
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.resolve.plan import load_plan

CONFIGS = Path(torqueloop.__file__).parent / "configs"
CHANNEL = "vcan0"
MS = 1_000_000
ARMED_NS = 10**15


def _missing() -> str | None:
    try:
        interface_info(CHANNEL)
    except CanBusError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_missing() is not None, reason=f"no CAN interface: {_missing()}")


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} of can-utils is not installed")
    return path


def link(*words: str) -> None:
    ip = shutil.which("ip") or "/sbin/ip"
    done = subprocess.run([ip, "link", "set", CHANNEL, *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"ip link set {CHANNEL} {' '.join(words)}: {done.stderr.strip()}")


class Bench:
    """Rig and soft control unit, each on a socket of its own on vcan0; the car stands still."""

    def __init__(self) -> None:
        self.plan = load_plan(CONFIGS / "rigs" / "vcan_4hp22.toml")
        self.parts = build(self.plan, 60.0)
        database, port = self.plan.buses[0].database, self.parts.buses[0].port
        assert database is not None and port is not None
        ids = [bus_id(m) for m in database.rx_messages]
        self.port = port
        self.raw = open_raw(CHANNEL, ids, database.own_ids)
        self.port.open(self.raw.sock.fileno(), True)
        self.other_raw = open_raw(CHANNEL, database.own_ids, ids)
        self.other = NativePort(ids)
        self.other.open(self.other_raw.sock.fileno(), True)
        self.tcu = soft_tcu(CONFIGS / "tcu" / "soft_4hp22.toml", CONFIGS / "can" / "tcu_4hp22.dbc")
        self.tick, self.inputs = 0, list[bytes]()
        self.parts.rig.begin(ARMED_NS)

    def run(self, ticks: int, pause_s: float = 0.0) -> None:
        for _ in range(ticks):
            if self.tick % 5 == 0:
                frames = [(i, d) for kind, i, d, _, _ in self.other.receive(64) if kind == DATA]
                received = tuple(Frame(can_id, data) for can_id, data in frames)
                for answer in self.tcu.step(EcuInputs(self.tick * 1e-3, received)).frames:
                    self.other.send(answer.can_id, answer.data)
            now = ARMED_NS + self.tick * MS
            self.parts.vehicle_in.write([self.tick, self.tick, self.tick * 1e-3, 0, 0, 0, 0, 0], now)
            self.parts.rig.ticks(1, now)
            self.inputs.append(self.parts.inputs.drain())
            self.parts.samples.drain()
            self.parts.bus_log.drain()
            self.tick += 1
            if pause_s:
                time.sleep(pause_s)

    def value(self, name: str) -> float:
        return self.parts.rig.value(self.plan.table.slot(name))

    def cause(self) -> str:
        cause = self.parts.rig.cause()
        return describe(cause, self.plan.cause_name(cause))

    def replayed_hash(self) -> int:
        other = build(self.plan, 60.0)
        other.rig.begin(ARMED_NS)
        for record in self.inputs:
            other.rig.replay(record)
        return other.rig.state_hash

    def close(self) -> None:
        self.port.close()
        self.raw.close()
        self.other.close()
        self.other_raw.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()
    subprocess.run([shutil.which("ip") or "/sbin/ip", "link", "set", CHANNEL, "up"], capture_output=True)


def test_every_frame_of_the_rig_is_confirmed_and_every_one_of_the_control_unit_taken(bench: Bench) -> None:
    bench.run(1000)
    rig, can = bench.parts.rig.counters(), bench.port.counters()
    assert rig["rx_frames"] >= 490 and rig["rx_bad"] == 0 and not bench.parts.rig.safe_latched
    # the frames of the last tick come back in the next
    assert can["tx_taken"] == rig["tx_frames"] == can["tx_confirmed"] + can["unconfirmed"]
    assert can["unconfirmed"] <= 3 and can["unconfirmed_forgotten"] == 0
    assert can["send_latency_us"]["count"] == can["tx_confirmed"] and can["foreign_frames"] == can["rx_dropped"] == 0
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_bus_off_told_by_an_error_frame_latches_after_its_limit(bench: Bench) -> None:
    bench.run(20)
    subprocess.run([tool("cansend"), CHANNEL, "20000040#0000000000000000"], check=True, timeout=60)
    first = bench.tick
    bench.run(260)
    cause = bench.parts.rig.cause()
    assert cause["latched"] and cause["cause"] == "bus" and cause["tick"] == first + 201
    assert bench.cause().startswith("the CAN bus: bus off for too long") and bench.value("bus.powertrain.state") == 3
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_an_interface_that_is_down_for_too_long_latches_a_short_time_does_not(bench: Bench) -> None:
    bench.run(20)
    link("down")
    bench.run(100)
    assert bench.value("bus.powertrain.state") == 4 and bench.value("bus.powertrain.tx_lost") > 0
    assert not bench.parts.rig.safe_latched
    link("up")
    bench.run(100)
    assert bench.value("bus.powertrain.state") == 0 and not bench.parts.rig.safe_latched
    link("down")
    bench.run(260)
    cause = bench.parts.rig.cause()
    assert cause["latched"] and cause["cause"] == "bus"
    assert bench.cause().startswith("the CAN bus: interface down for too long")
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_a_flood_on_our_identifiers_is_bounded_by_tick_and_does_no_harm(bench: Bench) -> None:
    """cangen at full speed on an identifier we receive: its frames fail their checks and change nothing."""
    bench.run(50)
    flood = subprocess.Popen(
        [tool("cangen"), CHANNEL, "-g", "0", "-I", "212", "-L", "8", "-n", "20000", "-p", "10", "-i"]
    )
    before = bench.parts.rig.counters()["rx_frames"]
    ticks = 0
    while flood.poll() is None and ticks < 5000:
        bench.run(1)
        ticks += 1
        now = bench.parts.rig.counters()["rx_frames"]
        assert now - before <= 64, "a tick takes a limited number of frames"
        before = now
    flood.wait(60)
    bench.run(400)
    can, rig = bench.port.counters(), bench.parts.rig.counters()
    assert rig["rx_bad"] > 0 and can["rx_taken"] + can["rx_dropped"] >= 20_000
    assert bench.parts.buses[0].port is not None and bench.replayed_hash() == bench.parts.rig.state_hash


def test_a_flood_of_foreign_identifiers_never_reaches_the_rig(bench: Bench) -> None:
    bench.run(50)
    subprocess.run(
        [tool("cangen"), CHANNEL, "-g", "0", "-I", "5FF", "-L", "8", "-n", "20000", "-p", "10"], check=True, timeout=300
    )
    bench.run(100)
    can = bench.port.counters()
    assert can["rx_dropped"] == 0 and can["rx_limited_ticks"] == 0 and not bench.parts.rig.safe_latched
    assert bench.parts.rig.counters()["rx_bad"] == 0
