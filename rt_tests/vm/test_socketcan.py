"""The tick's CAN port on a real CAN interface: filters, own frames, error frames, interface down, overflow, peers.

Needs vcan0 (up, mtu 72) and, where a test names them, can-utils; the rights to set an interface down. Each test says
why it is skipped.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torqueloop.cython_kernels.can.socketcan import BUS_STATES, DATA, ERROR, OWN, STOLEN, NativePort
from torqueloop.cython_kernels.clock.clock import now_ns
from torqueloop.hil.can.bus import CanBusConfig, CanBusError, CanGateway, open_bus
from torqueloop.hil.can.raw_socket import interface_info, open_raw

CHANNEL = "vcan0"
FD, BRS = 4, 8
EXTENDED = 0x80000000
#: how long a frame may take on a slow emulated machine before a test gives up [s]
PATIENCE_S = 20.0


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


def cansend(frame: str) -> None:
    subprocess.run([tool("cansend"), CHANNEL, frame], check=True, timeout=60)


def link(*words: str) -> None:
    ip = shutil.which("ip") or "/sbin/ip"
    done = subprocess.run([ip, "link", "set", CHANNEL, *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"ip link set {CHANNEL} {' '.join(words)}: {done.stderr.strip()}")


class Port:
    """A native port on vcan0."""

    def __init__(self, ids: tuple[int, ...] = (0x210,), own: tuple[int, ...] = (0x110,), **options: Any) -> None:
        self.raw = open_raw(CHANNEL, ids, own, **options)
        self.port = NativePort(own)
        self.port.open(self.raw.sock.fileno(), self.raw.fd_frames)
        self.seen: list[tuple[int, int, bytes, int, int]] = []

    def until(self, enough: Callable[[], bool]) -> bool:
        end = time.monotonic() + PATIENCE_S
        while True:
            self.seen += self.port.receive(64)
            if enough():
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.01)

    def count(self, name: str) -> int:
        return int(self.port.counters()[name])


@pytest.fixture
def make() -> Iterator[Callable[..., Port]]:
    made: list[Port] = []

    def build(*args: Any, **options: Any) -> Port:
        made.append(Port(*args, **options))
        return made[-1]

    yield build
    for p in made:
        p.port.close()
        p.raw.close()
    subprocess.run([shutil.which("ip") or "/sbin/ip", "link", "set", CHANNEL, "up"], capture_output=True)


def test_only_our_identifiers_come_through(make: Callable[..., Port]) -> None:
    p = make((0x210, EXTENDED | 0x18FF0001))
    for frame in ("210#01", "211#02", "010#03", "18FF0001#04", "00000210#05", "210#R2", "18FF0002#06"):
        cansend(frame)
    cansend("210#FF")
    assert p.until(lambda: any(f[2] == b"\xff" for f in p.seen))
    assert [(k, i, d) for k, i, d, _, _ in p.seen] == [
        (DATA, 0x210, b"\x01"), (DATA, EXTENDED | 0x18FF0001, b"\x04"), (DATA, 0x210, b"\xff")
    ]  # fmt: skip


def test_own_frames_come_back_as_confirmation_with_their_latency(make: Callable[..., Port]) -> None:
    p, other = make(), make((0x110,), (0x210,))
    for k in range(20):
        assert p.port.send(0x110, bytes([k]))
    assert p.until(lambda: p.count("tx_confirmed") == 20)
    counters = p.port.counters()
    assert [k for k, *_ in p.seen] == [OWN] * 20
    assert counters["unconfirmed"] == 0 and counters["unconfirmed_forgotten"] == 0
    assert counters["send_latency_us"]["count"] == 20 and counters["send_latency_us"]["min"] >= 0
    assert counters["foreign_frames"] == 0 and p.port.foreign_id is None
    # the other node hears them as data
    assert other.until(lambda: len(other.seen) == 20) and {k for k, *_ in other.seen} == {DATA}


def test_frames_with_our_identifier_from_another_node_are_stolen(make: Callable[..., Port]) -> None:
    p = make()
    cansend("110#AA")
    assert p.until(lambda: p.count("foreign_frames") == 1)
    assert p.port.foreign_id == 0x110 and p.seen[0][0] == STOLEN


def test_kernel_stamps_lie_between_sending_and_reading(make: Callable[..., Port]) -> None:
    p, other = make(), make((0x110,), (0x210,))
    before = now_ns()
    other.port.send(0x210, b"x")
    assert p.until(lambda: bool(p.seen))
    assert before - 1_000_000 <= p.seen[0][3] <= now_ns()
    assert p.port.counters()["timestamps"] == "kernel"


def test_error_frames_change_the_state_and_are_no_data(make: Callable[..., Port]) -> None:
    p = make()
    states = []
    # controller: tx warning, tx passive with counters; bus off; restarted
    for frame in ("20000204#0008000000006000", "20000204#0020000000008005", "20000040#0000000000000000",
                  "20000100#0000000000000000"):  # fmt: skip
        n = p.count("error_frames")
        cansend(frame)
        assert p.until(lambda n=n: p.count("error_frames") == n + 1)
        states.append(BUS_STATES[p.port.state])
    assert states == ["warning", "passive", "bus off", "active"]
    counters = p.port.counters()
    assert (counters["bus_tx_errors"], counters["bus_rx_errors"]) == (128, 5)
    assert counters["rx_taken"] == 0 and {k for k, *_ in p.seen} == {ERROR}


def test_interface_down_and_up_again(make: Callable[..., Port]) -> None:
    p = make()
    link("down")
    try:
        assert not p.port.send(0x110, b"lost")
        assert BUS_STATES[p.port.state] == "interface down" and p.count("tx_down") == 1
        p.seen += p.port.receive()
        assert p.port.word(5)["down_since_ns"] == 5 and p.port.word(9)["down_since_ns"] == 5
        # time counts, not frames
        assert p.port.word(9)["tx_lost_in_row"] == 0
    finally:
        link("up")
    assert p.port.send(0x110, b"there") and BUS_STATES[p.port.state] == "active"
    assert p.until(lambda: p.count("tx_confirmed") == 1)
    cansend("210#01")
    assert p.until(lambda: any(k == DATA for k, *_ in p.seen)), "the filters are still there"
    assert p.port.word(20)["down_since_ns"] == 0


def test_a_downed_interface_is_seen_by_reading_alone(make: Callable[..., Port]) -> None:
    p = make()
    link("down")
    try:
        assert p.until(lambda: BUS_STATES[p.port.state] == "interface down")
    finally:
        link("up")
    cansend("210#02")
    assert p.until(lambda: BUS_STATES[p.port.state] == "active")


def test_a_downed_interface_cannot_be_opened_and_says_why() -> None:
    link("down")
    try:
        with pytest.raises(CanBusError, match="is down: `ip link set"):
            open_raw(CHANNEL, [1])
    finally:
        link("up")


def test_fd_frames_of_all_lengths_go_both_ways(make: Callable[..., Port]) -> None:
    p, other = make((0x210, 0x110), ()), make((0x110,), (0x210,))
    lengths = [0, 1, 8, 12, 16, 20, 24, 32, 48, 64]
    for n in lengths:
        assert other.port.send(0x210, bytes(range(n)), FD | BRS)
    cansend("210##1" + bytes(range(12)).hex())
    cansend("210#0102")
    assert p.until(lambda: len(p.seen) == len(lengths) + 2)
    got = [(d, f) for _, _, d, _, f in p.seen]
    assert got == [(bytes(range(n)), FD | BRS) for n in [*lengths, 12]] + [(b"\x01\x02", 0)]


def test_a_flood_is_counted_and_what_was_kept_is_read(make: Callable[..., Port]) -> None:
    p = make(receive_buffer_bytes=1 << 14)
    n = 3000
    subprocess.run(
        [tool("cangen"), CHANNEL, "-g", "0", "-I", "210", "-L", "8", "-n", str(n), "-p", "10"], check=True, timeout=120
    )
    while frames := p.port.receive(64):
        p.seen += frames
    assert 0 < len(p.seen) < n
    cansend("210#EE")
    assert p.until(lambda: p.seen[-1][2] == b"\xee")
    assert p.count("rx_dropped") + len(p.seen) == n + 1 and p.count("rx_taken") == len(p.seen)


def test_a_flood_of_foreign_identifiers_costs_nothing(make: Callable[..., Port]) -> None:
    p = make()
    subprocess.run(
        [tool("cangen"), CHANNEL, "-g", "0", "-I", "555", "-L", "8", "-n", "5000", "-p", "10"], check=True, timeout=120
    )
    cansend("210#EE")
    assert p.until(lambda: bool(p.seen)) and len(p.seen) == 1 and p.count("rx_dropped") == 0


def test_a_queue_that_takes_no_more_refuses_with_a_count() -> None:
    # vcan hands frames on at once, so a token bucket in front of it plays the slow bus
    tc = shutil.which("tc") or "/sbin/tc"
    made = subprocess.run(
        [tc, "qdisc", "add", "dev", CHANNEL, "root", "tbf", "rate", "8kbit", "burst", "100", "limit", "200"],
        capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no token bucket on {CHANNEL}: {made.stderr.strip()}")
    p = Port(send_buffer_bytes=1 << 20)
    try:
        results = [p.port.send(0x110, bytes([k])) for k in range(100)]
        lost = results.count(False)
        assert lost > 0 and p.count("tx_enobufs") == lost and p.port.word(1)["tx_lost_in_row"] > 0
    finally:
        subprocess.run([tc, "qdisc", "del", "dev", CHANNEL, "root"], capture_output=True)
        p.port.close()
        p.raw.close()


def test_python_can_and_the_gateway_talk_to_the_port(make: Callable[..., Port]) -> None:
    from torqueloop.cython_kernels.rings.ring import FrameRing

    p = make((0x210, 0x310), (0x110,))
    bus = open_bus(CanBusConfig("socketcan", CHANNEL, fd=True))
    rx, tx = FrameRing(64), FrameRing(64)
    with CanGateway(bus, rx, tx, own_ids=[0x210, 0x310]):
        assert p.port.send(0x110, b"classic") and p.port.send(0x110, bytes(48), FD | BRS)
        tx.push(0x210, b"\x01\x02")
        tx.push(0x310, bytes(range(64)), 0, FD | BRS)
        assert p.until(lambda: len([1 for k, *_ in p.seen if k == DATA]) == 2)
        end = time.monotonic() + PATIENCE_S
        while len(rx) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    assert [(i, d, f) for k, i, d, _, f in p.seen if k == DATA] == [
        (0x210, b"\x01\x02", 0), (0x310, bytes(range(64)), FD | BRS)
    ]  # fmt: skip
    assert [(i, d, f) for i, d, _, f in rx.pop_all()] == [(0x110, b"classic", 0), (0x110, bytes(48), FD | BRS)]


def test_iso_tp_of_the_kernel_on_the_same_bus_disturbs_nothing(make: Callable[..., Port]) -> None:
    try:
        a, b = (socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_ISOTP) for _ in range(2))
    except (AttributeError, OSError) as error:
        pytest.skip(f"no ISO-TP in this kernel: {error}")
    p = make()
    with a, b:
        a.bind((CHANNEL, 0x7E8, 0x7E0))
        b.bind((CHANNEL, 0x7E0, 0x7E8))
        b.settimeout(PATIENCE_S)
        a.send(bytes(range(200)))
        p.port.send(0x110, b"x")
        assert b.recv(4096) == bytes(range(200))
    assert p.until(lambda: p.count("tx_confirmed") == 1)
    assert p.count("rx_taken") == p.count("error_frames") == 0


def test_the_socket_has_the_options_it_was_given(make: Callable[..., Port]) -> None:
    p = make()
    assert p.raw.sock.getblocking() is False and p.raw.fd_frames
    assert p.raw.info["filters"] == 2 and p.raw.info["channel"] == CHANNEL
    assert struct.unpack("=I", p.raw.sock.getsockopt(101, 2, 4))[0] == 0x1FFFFFFF
    assert Path(f"/sys/class/net/{CHANNEL}").is_dir()
