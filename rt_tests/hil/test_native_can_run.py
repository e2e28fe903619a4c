"""Whole runs on the real clock with the tick's own socket. There is no CAN here, so the socket that is opened is UDP
and carries struct can_frame; everything behind it is the product's."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig_help import CONFIGS, Unit, answers
from waiting import PATIENCE_S

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.can.raw_socket import RawSocket, prepare
from torqueloop.hil.record.bus_log import FLAG_TX, read_bus
from torqueloop.hil.rig.run import native_can
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

VCAN = CONFIGS / "rigs" / "vcan_4hp22.toml"


def frame(can_id: int, data: bytes) -> bytes:
    return struct.pack("=IB3x8s", can_id, len(data), data)


class Peer(threading.Thread):
    """What is on the other end: by default a control unit with a step every 5 ms."""

    def __init__(self, sock: socket.socket, send: Callable[[], list[tuple[int, bytes]]] | None = None) -> None:
        super().__init__(daemon=True)
        self.sock, self.over, self.unit, self.steps = sock, threading.Event(), Unit(), 0
        self.send = send or self.control_unit
        self.received: list[tuple[int, bytes]] = []
        sock.setblocking(False)

    def control_unit(self) -> list[tuple[int, bytes]]:
        found = []
        while True:
            try:
                packet = self.sock.recv(100)
            except (BlockingIOError, ConnectionError):
                break
            can_id, n = struct.unpack_from("=IB", packet)
            found.append((can_id, packet[8 : 8 + n]))
        self.received += found
        return answers(self.unit, self.steps * 5e-3, found)

    def run(self) -> None:
        begin = time.monotonic()
        while not self.over.is_set():
            for can_id, data in self.send():
                try:
                    self.sock.send(frame(can_id, data))
                except ConnectionError:
                    pass
            self.steps += 1
            time.sleep(max(0.0, begin + self.steps * 5e-3 - time.monotonic()))


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Peer]]:
    a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    a.bind(("127.0.0.1", 0))
    b.bind(("127.0.0.1", 0))
    a.connect(b.getsockname())
    b.connect(a.getsockname())

    def open_raw(channel: str, ids: Collection[int], own_ids: Collection[int] = (), **options: Any) -> RawSocket:
        assert channel == "vcan0" and len(ids) == len(own_ids) == 3 and options["need_fd"] is False
        raw = RawSocket(a, True, {"channel": channel})
        prepare(raw, options["receive_buffer_bytes"], options["send_buffer_bytes"])
        a.setblocking(False)
        return raw

    monkeypatch.setattr(native_can, "open_raw", open_raw)
    peers: list[Peer] = []

    def start(send: Callable[[], list[tuple[int, bytes]]] | None = None) -> Peer:
        peers.append(Peer(b, send))
        peers[-1].start()
        return peers[-1]

    yield start
    for peer in peers:
        peer.over.set()
        peer.join(PATIENCE_S)
    a.close()
    b.close()


def rig_file(folder: Path, with_tcu: bool = True) -> Path:
    path = folder / "rig.toml"
    gone = [] if with_tcu else ["ecu"]
    path.write_text(f'extends = "{VCAN}"\nwithout = {gone}\n', encoding="utf-8")
    return path


@pytest.mark.proof
def test_a_run_with_a_control_unit_from_outside_replays_to_the_same_bits(
    wire: Callable[..., Peer], tmp_path: Path
) -> None:
    peer = wire()
    path = rig_file(tmp_path, with_tcu=False)
    result = run_rig(path, RunSpec("real", 1.0, tmp_path / "run"))
    can = result.stats.buses["powertrain"]
    assert result.state == "ended" and can.interface.channel == "vcan0"
    assert can.native.rx_taken == can.rx_frames > 0 and can.foreign_frames == can.native.malformed == 0
    # nothing comes back from a UDP socket: what was sent is unconfirmed, and the report says so
    assert can.native.tx_taken == can.tx_frames > 0 and can.native.tx_confirmed == 0 and can.native.unconfirmed > 0
    assert can.native.receive_latency_us.count == can.native.rx_taken
    assert {i for i, _ in peer.received} == {0x110, 0x111, 0x112}
    frames, _, _ = read_bus(tmp_path / "run")
    assert (frames["flags"] & FLAG_TX != 0).sum() == can.native.tx_taken
    metrics = result.report.metrics
    assert metrics["can_receive_latency_p99_us"] >= 0 and metrics["can_errors_bus_off"] == 0
    for name in ("can_rx_dropped", "can_tx_enobufs", "can_error_frames", "can_send_latency_p99_us", "can_tx_lost"):
        assert metrics[name] == 0, name
    checks = {c.name: c for c in result.report.checks}
    assert checks["nobody else sends our CAN messages"].passed and checks["CAN bus without errors"].passed
    assert checks["no frame lost between tick and bus"].passed
    again = replay(tmp_path / "run")
    assert again.passed and again.ticks == result.stats.clock.ticks, str(again.difference)


def test_a_control_unit_that_is_there_already_is_found_before_anything_is_sent(
    wire: Callable[..., Peer], tmp_path: Path
) -> None:
    peer = wire()
    with pytest.raises(TorqueloopError, match="a control unit is on the bus already, it sends TCU_.*--no-participants"):
        run_rig(rig_file(tmp_path), RunSpec("real", 0.5, tmp_path / "run"))
    assert not peer.received


def test_another_rig_on_the_bus_is_found_before_anything_is_sent(wire: Callable[..., Peer], tmp_path: Path) -> None:
    wire(lambda: [(0x111, bytes(8))])
    with pytest.raises(TorqueloopError, match=r"another rig is on the bus, it sends HIL_Driver \(0x111\)"):
        run_rig(rig_file(tmp_path), RunSpec("real", 0.5, tmp_path / "run"))
