"""A rig whose tick reads and writes a socket itself, driven tick by tick over UDP datagrams with struct can_frame:
frames, error frames and losses reach the signals, latch the safe state, and a replay gives the same bits."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rig_help import CONFIGS, Unit, answers

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.can.raw_socket import RawSocket, prepare
from torqueloop.hil.record.bus_log import FRAME_DTYPE
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan
from torqueloop.hil.rig.run.session import RunSpec, run_rig

VCAN = CONFIGS / "rigs" / "vcan_4hp22.toml"
MS = 1_000_000
ARMED_NS = 10**15


def frame(can_id: int, data: bytes) -> bytes:
    return struct.pack("=IB3x8s", can_id, len(data), data)


def error(classes: int, data: bytes = bytes(8)) -> bytes:
    return frame(0x20000000 | classes, data)


class Bench:
    """The vcan rig with its port on a UDP socket, a soft control unit on the other end, and no vehicle beside it."""

    def __init__(self, plan: RigPlan, parts: RigParts, sock: socket.socket, peer: socket.socket) -> None:
        self.plan, self.parts, self.peer = plan, parts, peer
        peer.setblocking(False)
        sock.setblocking(False)
        self.sock = sock
        raw = RawSocket(sock, True)
        prepare(raw, 1 << 20, 1 << 14)
        assert parts.buses[0].port is not None
        parts.buses[0].port.open(sock.fileno(), True)
        self.unit, self.tick = Unit(), 0
        self.sent: list[tuple[int, bytes]] = []
        self.inputs: list[bytes] = []
        parts.rig.begin(ARMED_NS)

    def run(self, ticks: int, unit: bool = True, *packets: bytes) -> None:
        """Ticks with the vehicle standing still; `packets` come before the first."""
        for packet in packets:
            self.peer.send(packet)
        for _ in range(ticks):
            if unit and self.tick % 5 == 0:
                for can_id, data in answers(self.unit, self.tick * 1e-3, self._received()):
                    self.peer.send(frame(can_id, data))
            now = ARMED_NS + self.tick * MS
            self.parts.vehicle_in.write([self.tick, self.tick, self.tick * 1e-3, 0, 0, 0, 0, 0], now)
            self.parts.rig.ticks(1, now)
            self.tick += 1
            self.inputs.append(self.parts.inputs.drain())

    def _received(self) -> list[tuple[int, bytes]]:
        found = []
        while True:
            try:
                packet = self.peer.recv(100)
            except BlockingIOError:
                break
            can_id, n = struct.unpack_from("=IB", packet)
            found.append((can_id, packet[8 : 8 + n]))
        self.sent += found
        return found

    def value(self, name: str) -> float:
        return self.parts.rig.value(self.plan.table.slot(name))

    def cause(self) -> str:
        cause = self.parts.rig.cause()
        return describe(cause, self.plan.cause_name(cause))

    def replayed_hash(self) -> int:
        """Hash of a fresh rig that is fed the input records."""
        other = build(self.plan, 60.0)
        other.rig.begin(ARMED_NS)
        for record in self.inputs:
            assert other.rig.replay(record) == len(record)
        return other.rig.state_hash


@pytest.fixture
def bench() -> Iterator[Bench]:
    yield from made()


def made(overrides: dict[str, object] | None = None) -> Iterator[Bench]:
    """A bench, closed afterwards."""
    a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    a.bind(("127.0.0.1", 0))
    b.bind(("127.0.0.1", 0))
    a.connect(b.getsockname())
    b.connect(a.getsockname())
    plan = load_plan(VCAN, overrides)
    bench = Bench(plan, build(plan, 60.0), a, b)
    yield bench
    assert bench.parts.buses[0].port is not None
    bench.parts.buses[0].port.close()
    a.close()
    b.close()


def test_the_tick_reads_and_writes_the_socket_and_the_replay_gives_the_same_bits(bench: Bench) -> None:
    bench.run(1500)
    counters = bench.parts.rig.counters()
    assert counters["rx_bad"] == 0 and counters["rx_frames"] >= 600 and not bench.parts.rig.safe_latched
    assert bench.plan.buses[0].database is not None
    assert {can_id for can_id, _ in bench.sent} == {m.can_id for m in bench.plan.buses[0].database.tx_messages}
    assert bench.parts.buses[0].rx is not None and bench.parts.buses[0].rx.counters()["TCU_Pressure_1"]["ok"] >= 299
    port = bench.parts.buses[0].port
    assert port is not None
    assert port.counters()["tx_taken"] == counters["tx_frames"] > 0
    assert port.counters()["receive_latency_us"]["count"] == counters["rx_frames"]
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_more_frames_than_a_tick_takes_wait_for_the_next(bench: Bench) -> None:
    bench.run(1, False, *(frame(0x7A0, bytes([k])) for k in range(100)))
    assert bench.parts.rig.counters()["rx_frames"] == 64
    bench.run(1, False)
    assert bench.parts.rig.counters()["rx_frames"] == 100
    assert bench.parts.buses[0].port is not None and bench.parts.buses[0].port.counters()["rx_limited_ticks"] == 1
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_the_state_of_the_bus_is_a_signal_and_part_of_the_replay(bench: Bench) -> None:
    bench.run(20)
    bench.run(1, True, error(0x204, bytes([0, 0x20, 0, 0, 0, 0, 130, 7])))
    names = tuple(f"bus.powertrain.{n}" for n in ("state", "tx_errors", "rx_errors", "error_frames"))
    assert [bench.value(n) for n in names] == [2.0, 130.0, 7.0, 1.0]
    bench.run(20)
    bench.run(1, True, error(0x204, bytes([0, 0x40, 0, 0, 0, 0, 95, 7])))
    assert [bench.value(n) for n in names] == [0.0, 95.0, 7.0, 2.0]
    assert not bench.parts.rig.safe_latched and bench.replayed_hash() == bench.parts.rig.state_hash


def test_bus_off_for_too_long_latches_the_safe_state_and_a_restart_in_time_does_not(bench: Bench) -> None:
    bench.run(20)
    bench.run(150, True, error(0x40))
    assert bench.value("bus.powertrain.state") == 3 and not bench.parts.rig.safe_latched
    bench.run(100, True, error(0x100))
    assert bench.value("bus.powertrain.state") == 0 and not bench.parts.rig.safe_latched
    first = bench.tick
    bench.run(250, True, error(0x40))
    cause = bench.parts.rig.cause()
    assert cause["latched"] and cause["cause"] == "bus" and cause["tick"] == first + 201
    assert bench.cause().startswith("the CAN bus: bus off for too long")
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_a_fault_takes_the_port_off_the_bus_and_too_long_latches(tmp_path: Path) -> None:
    patient = {f"bus.powertrain.rx_timeout_s.TCU_Pressure_{k}": 10.0 for k in (1, 2)}
    windows = ((0.1, 0.25), (0.5, 0.9))
    faults = [{"bus": "powertrain", "kind": "bus_off", "from_s": a, "until_s": b} for a, b in windows]
    for bench in made({**patient, "faults": faults}):
        bench.run(150)
        assert bench.value("bus.powertrain.state") == 3 and not bench.parts.rig.safe_latched
        bench._received()
        bench.sent.clear()
        bench.run(50, False)
        assert not bench._received(), "nothing goes out"
        bench.run(200)
        assert bench.value("bus.powertrain.state") == 0 and bench.sent and not bench.parts.rig.safe_latched
        # 0.2 s after the second one began
        bench.run(350)
        cause = bench.parts.rig.cause()
        assert cause["latched"] and cause["cause"] == "bus" and cause["tick"] == 500 + 201
        assert bench.cause().startswith("the CAN bus: bus off for too long")
        assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_frames_that_cannot_be_sent_latch_the_safe_state_after_the_limit(bench: Bench) -> None:
    bench.run(20)
    # nobody can be sent to any more: every second send fails with the ICMP answer to the one before
    bench.sock.shutdown(socket.SHUT_WR)
    bench.run(60, False)
    cause = bench.parts.rig.cause()
    limit = bench.plan.buses[0].config.tx_drop_limit
    assert cause["latched"] and cause["cause"] == "bus" and cause["detail"] >= limit
    assert f"takes no frames ({cause['detail']} lost in a row)" in bench.cause()
    assert bench.value("bus.powertrain.tx_lost") >= limit
    assert bench.replayed_hash() == bench.parts.rig.state_hash


def test_a_foreign_frame_with_our_identifier_never_reaches_the_codec(bench: Bench) -> None:
    bench.run(10)
    own = bench.plan.buses[0].database.tx_messages[0].can_id if bench.plan.buses[0].database else 0
    before = bench.parts.rig.counters()["rx_frames"]
    bench.run(1, False, frame(own, bytes(8)))
    port = bench.parts.buses[0].port
    assert port is not None and port.foreign_id == own and port.counters()["foreign_frames"] == 1
    assert bench.parts.rig.counters()["rx_frames"] == before
    log = np.frombuffer(bench.parts.bus_log.drain(), FRAME_DTYPE)
    foreign = log[(log["id"] == own) & (log["flags"] == 0x40)]
    assert len(foreign) == 1, "the log shows it"


def test_an_input_record_that_is_cut_off_is_refused(bench: Bench) -> None:
    bench.run(1)
    other = build(bench.plan, 60.0)
    other.rig.begin(ARMED_NS)
    record = bench.inputs[0]
    for n in (10, 47, 60, len(record) - 1):
        with pytest.raises(ValueError, match="input record"):
            other.rig.replay(record[:n])
    assert other.rig.tick == 0


def test_without_the_interface_the_run_says_what_to_do(tmp_path: Path) -> None:
    if Path("/sys/class/net/vcan0").exists():
        pytest.skip("vcan0 is there")
    with pytest.raises(TorqueloopError, match=r"there is no network interface 'vcan0'.*modprobe vcan"):
        run_rig(VCAN, RunSpec("real", 0.1, tmp_path / "run"))


def test_the_rig_runs_on_the_virtual_clock_without_any_socket(tmp_path: Path) -> None:
    from rig_help import run

    result = run(VCAN, tmp_path / "run", 0.5)
    can = result.stats.buses["powertrain"]
    assert can.native.rx_dropped == can.native.tx_lost == can.foreign_frames == 0 and can.native.bus_state == "active"
    assert not result.stats.safe_state.latched
