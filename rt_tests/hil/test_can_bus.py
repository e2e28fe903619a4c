"""CAN gateway: two participants on python-can's virtual bus and on UDP multicast, faults of the bus, start and stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import can
import msgpack
import pytest
from rig_help import free_port
from waiting import PATIENCE_S, wait_for

from torqueloop.cython_kernels.rings.ring import FrameRing
from torqueloop.hil.can import bus as can_bus
from torqueloop.hil.can.bus import CanBusConfig, CanBusError, CanGateway, PythonCanPort, multicast_works, open_bus
from torqueloop.hil.can.multicast import MulticastPort, pack_frame, unpack_frame

MULTICAST_OK, MULTICAST_REASON = multicast_works()
needs_multicast = pytest.mark.skipif(not MULTICAST_OK, reason=f"no multicast on this machine: {MULTICAST_REASON}")


@pytest.fixture(params=["virtual", pytest.param("udp_multicast", marks=needs_multicast)])
def config(request: pytest.FixtureRequest) -> CanBusConfig:
    if request.param == "virtual":
        return CanBusConfig("virtual", request.node.name)
    return CanBusConfig(port=free_port())


class Node:
    """A gateway with its rings, seen from the tick's side."""

    def __init__(self, port: can_bus.CanPort, capacity: int = 4096, **options: object) -> None:
        self.rx, self.tx = FrameRing(capacity), FrameRing(capacity)
        self.gateway = CanGateway(port, self.rx, self.tx, **options)  # type: ignore[arg-type]

    def received(self, n: int) -> list[tuple[int, bytes]]:
        wait_for(lambda: len(self.rx) >= n)
        return [(can_id, data) for can_id, data, _, _ in self.rx.pop_all(n + 10)]


@pytest.fixture
def pair(config: CanBusConfig) -> Iterator[tuple[Node, Node]]:
    a, b = Node(open_bus(config), bell=True, own_ids=[0x110]), Node(open_bus(config), own_ids=[0x210])
    with a.gateway, b.gateway:
        yield a, b


def test_frames_cross_in_order_and_come_back_to_nobody(pair: tuple[Node, Node]) -> None:
    a, b = pair
    sent_a = [(0x110, bytes([i, *range(7)])) for i in range(100)]
    sent_b = [(0x210 if i % 2 else 0x98FEDCBA, bytes([i] * (i % 9))) for i in range(100)]
    for frame_a, frame_b in zip(sent_a, sent_b, strict=True):
        assert a.tx.push(*frame_a) and b.tx.push(*frame_b)
        a.gateway.ring()
    assert b.received(100) == sent_a
    assert a.received(100) == sent_b
    for node in pair:
        # a frame may be at the other end before its sender has counted it
        wait_for(lambda node=node: node.gateway.stats().tx == 100)
        stats = node.gateway.stats()
        assert stats.rx == stats.tx == 100 and stats.alive
        assert stats.foreign_frames == stats.rx_dropped == stats.tx_failed == stats.malformed == 0
    # neither saw itself: the rings are empty after both have had time to echo
    time.sleep(0.1)
    assert len(a.rx) == len(b.rx) == 0


def test_arrival_time_is_the_clock_of_the_loop(config: CanBusConfig) -> None:
    a, b = open_bus(config), Node(open_bus(config), clock_ns=lambda: 12345)
    with b.gateway:
        a.send(0x1, b"x")
        wait_for(lambda: len(b.rx) == 1)
        assert b.rx.pop() == (1, b"x", 12345, 0)
    a.close()


def test_stop_sends_what_is_queued_and_takes_what_has_arrived(config: CanBusConfig) -> None:
    a, b = Node(open_bus(config)), Node(open_bus(config))
    for i in range(300):
        a.tx.push(0x100, i.to_bytes(2, "big"))
    b.gateway.start()
    a.gateway.start()
    assert a.gateway.stop()
    assert a.gateway.stats().tx == 300
    assert b.gateway.stop()
    assert [int.from_bytes(data, "big") for _, data in b.received(300)] == list(range(300))
    assert a.gateway.stats().error is None and not a.gateway.alive


def test_full_ring_drops_and_counts(config: CanBusConfig) -> None:
    a, b = open_bus(config), Node(open_bus(config), capacity=16)
    with b.gateway:
        for i in range(50):
            a.send(0x1, bytes([i]))
        wait_for(lambda: b.gateway.stats().rx_dropped == 34)
        assert b.gateway.stats().rx == 16
        # the oldest were kept: nothing is overwritten under the reader
        assert [data[0] for _, data in b.received(16)] == list(range(16))
    a.close()


def test_frame_of_another_node_with_our_identifier_is_counted_and_kept_away(pair: tuple[Node, Node]) -> None:
    a, b = pair
    b.tx.push(0x110, b"foreign")
    b.tx.push(0x210, b"good")
    assert a.received(1) == [(0x210, b"good")]
    assert a.gateway.stats().foreign_frames == 1


def test_remote_and_error_frames_do_not_reach_the_tick() -> None:
    peer = can.Bus(interface="virtual", channel="flags")
    node = Node(open_bus(CanBusConfig("virtual", "flags")))
    with node.gateway:
        peer.send(can.Message(arbitration_id=1, is_remote_frame=True, is_extended_id=False))
        peer.send(can.Message(arbitration_id=0x40, is_error_frame=True, dlc=8, data=bytes(8)))
        peer.send(can.Message(arbitration_id=2, is_fd=True, data=bytes(12), is_extended_id=False))
        peer.send(can.Message(arbitration_id=3, data=b"ok", is_extended_id=False))
        # the format of a frame is the codec's business
        assert node.received(2) == [(2, bytes(12)), (3, b"ok")]
        stats = node.gateway.stats()
    assert (stats.remote_frames, stats.error_frames, stats.malformed, stats.bus_off) == (1, 1, 0, True)
    peer.shutdown()


def test_identifier_filter_of_the_adapter_is_used() -> None:
    peer = can.Bus(interface="virtual", channel="filter")
    port = open_bus(CanBusConfig("virtual", "filter"), ids=[0x10, 0x80000020])
    for can_id, extended in ((0x10, False), (0x10, True), (0x20, True), (0x20, False), (0x30, False)):
        peer.send(can.Message(arbitration_id=can_id, is_extended_id=extended))
    frames = [port.recv(0.0) for _ in range(6)]
    assert [f[0] for f in frames if f] == [0x10, 0x80000020]
    port.close()
    peer.shutdown()


# --- a bus that breaks ---


class BrokenPort:
    """A bus that fails on demand."""

    name = "broken"
    own_echoes = malformed = kernel_drops = 0
    bus_off = False

    def __init__(self) -> None:
        self.fail_recv = threading.Event()
        self.fail_send = 0
        self.hang = threading.Event()
        self.closed = False
        self.sent: list[int] = []

    def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
        if self.fail_recv.wait(timeout_s):
            raise CanBusError("cable cut")
        return None

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        while self.hang.is_set():
            time.sleep(0.01)
        if self.fail_send > 0:
            self.fail_send -= 1
            raise CanBusError("no buffer space")
        self.sent.append(can_id)

    def close(self) -> None:
        self.closed = True


def test_death_of_the_receiver_is_visible_and_told_once() -> None:
    port, told = BrokenPort(), list[str]()
    node = Node(port, on_failure=told.append)
    with node.gateway:
        assert node.gateway.alive
        port.fail_recv.set()
        wait_for(lambda: not node.gateway.alive)
        wait_for(lambda: bool(told))
    assert node.gateway.error == "can-rx: cable cut" and told == ["can-rx: cable cut"]
    assert node.gateway.stats().rx_failed == can_bus.FAILURES_MAX and port.closed


def test_some_refused_frames_are_counted_and_the_rest_is_sent() -> None:
    port = BrokenPort()
    port.fail_send = can_bus.FAILURES_MAX - 1
    node = Node(port)
    with node.gateway:
        for i in range(60):
            node.tx.push(i, b"")
        wait_for(lambda: len(port.sent) == 60 - can_bus.FAILURES_MAX + 1)
        assert node.gateway.alive
    assert node.gateway.stats().tx_failed == can_bus.FAILURES_MAX - 1


def test_a_bus_that_takes_nothing_kills_the_gateway() -> None:
    port, told = BrokenPort(), list[str]()
    port.fail_send = 10**9
    node = Node(port, on_failure=told.append)
    with node.gateway:
        for i in range(60):
            node.tx.push(i, b"")
        wait_for(lambda: bool(told))
        assert not node.gateway.alive and node.gateway.error == "can-tx: no buffer space"


def test_any_exception_of_a_thread_is_a_failure() -> None:
    port = BrokenPort()
    port.send = lambda can_id, data, flags: 1 / 0  # type: ignore[assignment]
    node = Node(port)
    with node.gateway:
        node.tx.push(1, b"")
        wait_for(lambda: node.gateway.error is not None)
    assert node.gateway.error == "can-tx: division by zero"


def test_a_driver_that_hangs_does_not_hang_the_stop() -> None:
    port = BrokenPort()
    port.hang.set()
    node = Node(port)
    node.gateway.start()
    node.tx.push(1, b"")
    wait_for(lambda: len(node.tx) == 0)
    assert node.gateway.stop(timeout_s=0.1) is False and not port.closed
    port.hang.clear()
    assert node.gateway.stop() is True and port.closed


# --- multicast ---


@needs_multicast
def test_frames_are_those_of_python_can() -> None:
    """Both directions against python-can's own packing, without its sockets."""
    utils = pytest.importorskip("can.interfaces.udp_multicast.utils")
    for can_id, data in ((0x7FF, b""), (0x80000000 | 0x1FFFFFFF, bytes(range(8)))):
        theirs = utils.unpack_message(pack_frame(can_id, data), check=True)
        assert theirs.arbitration_id == can_id & 0x1FFFFFFF and theirs.is_extended_id == bool(can_id >> 31)
        assert bytes(theirs.data) == data and theirs.dlc == len(data)
        assert unpack_frame(utils.pack_message(theirs)) == (can_id, data, 0)


@needs_multicast
def test_fd_frames_are_those_of_python_can_too() -> None:
    utils = pytest.importorskip("can.interfaces.udp_multicast.utils")
    for n, flags in ((0, 4), (8, 4 | 8), (12, 4 | 16), (64, 4 | 8 | 16)):
        theirs = utils.unpack_message(pack_frame(0x123, bytes(n), flags), check=True)
        assert theirs.is_fd and bytes(theirs.data) == bytes(n)
        assert (theirs.bitrate_switch, theirs.error_state_indicator) == (bool(flags & 8), bool(flags & 16))
        assert unpack_frame(utils.pack_message(theirs)) == (0x123, bytes(n), flags)


@pytest.mark.parametrize("kind", ["virtual", pytest.param("udp_multicast", marks=needs_multicast)])
def test_fd_frames_go_through_two_gateways(kind: str) -> None:
    channel = "fd" if kind == "virtual" else can_bus.DEFAULT_GROUP
    config = CanBusConfig(kind, channel, port=free_port(), fd=True)
    a, b = Node(open_bus(config), bell=True), Node(open_bus(config))
    frames = [(0x210, bytes(range(64)), 4 | 8), (0x211, b"classic", 0), (0x80000210, bytes(12), 4)]
    with a.gateway, b.gateway:
        for can_id, data, flags in frames:
            a.tx.push(can_id, data, 0, flags)
        a.gateway.ring()
        got: list[tuple[int, bytes, int]] = []

        def come() -> bool:
            got.extend((i, d, f) for i, d, _, f in b.rx.pop_all())
            return len(got) == 3

        wait_for(come)
    assert got == frames


@needs_multicast
def test_packets_that_are_no_frames_are_counted_and_survived() -> None:
    port = free_port()
    a, b = MulticastPort(port=port), MulticastPort(port=port)
    good = pack_frame(0x123, b"ok")
    fields = msgpack.unpackb(good)
    bad = [
        b"", b"\xc1", b"hello", msgpack.packb([1, 2]), msgpack.packb({"arbitration_id": 1}), good[:-1], good + b"x",
        *(msgpack.packb(fields | change) for change in (
            {"arbitration_id": 0x800}, {"arbitration_id": "1"}, {"dlc": 3}, {"data": "ok"},
            {"is_fd": True, "data": bytes(9), "dlc": 9},
            {"data": bytes(9), "dlc": 9}, {"data": bytes(400), "dlc": 400}, {"arbitration_id": -1}, {"dlc": None},
        )),
    ]  # fmt: skip
    for packet in bad:
        a._sender.send(packet)
    a._sender.send(good)
    assert b.recv(PATIENCE_S) == (0x123, b"ok", 0)
    assert b.malformed == len(bad)
    a.close()
    b.close()


@needs_multicast
def test_a_flood_of_packets_that_are_no_frames_does_not_hold_up_a_receiver() -> None:
    class Flood:
        """A socket with another packet each time."""

        def settimeout(self, _: float) -> None: ...
        def recvmsg(self, *_: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, tuple[str, int]]:
            assert port.malformed < 10_000_000, "it never ends"
            return b"garbage", [], 0, ("127.0.0.1", 1)

    port = MulticastPort(port=free_port())
    receiver, port._receiver = port._receiver, Flood()
    assert port.recv(0.0) is None and 1 < port.malformed < 1000
    assert port.recv(0.01) is None
    port._receiver = receiver
    port.close()


def test_a_gateway_stops_in_the_middle_of_a_flood() -> None:
    class Flood(BrokenPort):
        def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
            return 0x123, b"flood", 0

    node = Node(Flood())
    node.gateway.start()
    wait_for(lambda: node.gateway.stats().rx_dropped > 100)
    assert node.gateway.stop(PATIENCE_S) and node.gateway.error is None


@needs_multicast
def test_own_frames_are_recognised_and_those_of_an_equal_neighbour_are_not() -> None:
    port = free_port()
    a, b = MulticastPort(port=port), MulticastPort(port=port)
    a.send(0x5, b"same")
    b.send(0x5, b"same")
    assert a.recv(PATIENCE_S) == (0x5, b"same", 0) and b.recv(PATIENCE_S) == (0x5, b"same", 0)
    wait_for(lambda: a.recv(0.0) is None and a.own_echoes == 1)
    wait_for(lambda: b.recv(0.0) is None and b.own_echoes == 1)
    a.close()
    b.close()


@needs_multicast
def test_packets_lost_in_the_kernel_are_counted() -> None:
    port = free_port()
    a, b = MulticastPort(port=port), MulticastPort(port=port)
    n = 20_000
    for _ in range(n):
        a.send(0x5, bytes(8))
    taken = 0
    while b.recv(0.05) is not None:
        taken += 1
    # the count of drops comes with the next packet
    a.send(0x6, b"")
    assert b.recv(PATIENCE_S) is not None
    assert taken < n and taken + b.kernel_drops == n
    a.close()
    b.close()


@needs_multicast
def test_python_cans_own_multicast_bus_understands_us_and_its_echo_is_removed() -> None:
    config = CanBusConfig(port=free_port(), local_address="0.0.0.0", hop_limit=0)
    plain = CanBusConfig(config.interface, config.channel, config.port)
    try:
        theirs = PythonCanPort(plain)
    except CanBusError as error:
        pytest.skip(f"python-can's multicast class cannot be used on this machine: {error}")
    ours, inside = open_bus(config), open_bus(CanBusConfig(port=config.port))
    theirs.send(0x111, b"from it")
    ours.send(0x222, b"from us")
    assert ours.recv(PATIENCE_S) == (0x111, b"from it", 0)
    assert inside.recv(0.1) is None, "on loopback it is not heard (docs/can.md)"
    inside.close()
    assert theirs.recv(PATIENCE_S) == (0x222, b"from us", 0)
    wait_for(lambda: ours.recv(0.0) is None and ours.own_echoes == 1)
    wait_for(lambda: theirs.recv(0.0) is None and theirs.own_echoes == 1)
    ours.close()
    theirs.close()


def test_what_is_missing_is_said() -> None:
    for config, text in (
        (CanBusConfig(local_address="203.0.113.77"), "no network interface has the address 203.0.113.77"),
        (CanBusConfig(channel="10.0.0.1"), "224.0.0.0"),
        (CanBusConfig("socketcan", "nocan7"), "ip link show nocan7"),
        (CanBusConfig("no_such_adapter", "x"), "no_such_adapter"),
    ):
        with pytest.raises(CanBusError) as error:
            open_bus(config)
        assert text in str(error.value)
    ok, reason = multicast_works(local_address="203.0.113.77")
    assert not ok and "203.0.113.77" in reason


def test_a_gateway_with_nothing_to_send_sleeps_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    class Counted:
        def __init__(self) -> None:
            self.inner = real()

        def register(self, *of: int) -> None:
            self.inner.register(*of)

        def poll(self, timeout_ms: float) -> object:
            nonlocal looks
            looks += 1
            return self.inner.poll(timeout_ms)

    real = can_bus.select.poll
    monkeypatch.setattr(can_bus.select, "poll", Counted)
    with Node(open_bus(CanBusConfig("virtual", "sleeps")), bell=True).gateway:
        begin = time.monotonic()
        time.sleep(0.4)
        looked, passed_s = looks, time.monotonic() - begin
    assert looked <= 2 + passed_s / can_bus.BELL_TIMEOUT_S
