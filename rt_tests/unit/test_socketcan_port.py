"""The tick's CAN port over datagram sockets that carry struct can_frame: no CAN is needed to prove reading, writing,
counting and its state machine. What only a CAN socket has (filters, own frames, interface down) is in rt_tests/vm."""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.socketcan import BUS_STATES, DATA, ERROR, ERROR_NAMES, OTHER, STOLEN, NativePort
from torqueloop.cython_kernels.can.stamps import Stamps
from torqueloop.cython_kernels.clock.clock import now_ns, now_wall_ns
from torqueloop.cython_kernels.probes.reaction import answer_frames
from torqueloop.hil.can.raw_socket import CanBusError, RawSocket, can_filters, interface_info, open_raw, prepare

FD, BRS, ESI = 4, 8, 16
EXTENDED = 0x80000000


def classic(can_id: int, data: bytes = b"", dlc: int | None = None) -> bytes:
    """struct can_frame"""
    return struct.pack("=IB3x8s", can_id, len(data) if dlc is None else dlc, data)


def fd(can_id: int, data: bytes, flags: int = 4, dlc: int | None = None) -> bytes:
    """struct canfd_frame"""
    return struct.pack("=IBB2x64s", can_id, len(data) if dlc is None else dlc, flags, data)


def error(classes: int, data: bytes = bytes(8)) -> bytes:
    return classic(0x20000000 | classes, data)


class Wire:
    """A port on one end of a connection, its peer on the other."""

    def __init__(self, mine: socket.socket, peer: socket.socket, own_ids: tuple[int, ...] = ()) -> None:
        mine.setblocking(False)
        self.mine, self.peer = mine, peer
        self.raw = RawSocket(mine, True)
        prepare(self.raw, 1 << 16, 1 << 14)
        self.port = NativePort(own_ids)
        self.port.open(mine.fileno(), True)

    def put(self, *packets: bytes) -> None:
        for packet in packets:
            self.peer.send(packet)

    def take(self, *packets: bytes) -> list[tuple[int, int, bytes, int, int]]:
        self.put(*packets)
        return self.port.receive()


def udp_pair() -> tuple[socket.socket, socket.socket]:
    a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    a.bind(("127.0.0.1", 0))
    b.bind(("127.0.0.1", 0))
    a.connect(b.getsockname())
    b.connect(a.getsockname())
    return a, b


@pytest.fixture
def udp() -> Iterator[Wire]:
    wire = Wire(*udp_pair(), own_ids=(0x110, EXTENDED | 0x1ABCDE))
    yield wire
    wire.mine.close()
    wire.peer.close()


@pytest.fixture
def unix() -> Iterator[Wire]:
    wire = Wire(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    yield wire
    wire.mine.close()
    wire.peer.close()


# --- receiving


def test_all_waiting_frames_are_read_in_order_over_several_batches(unix: Wire) -> None:
    # an AF_UNIX socket holds about ten datagrams only (max_dgram_qlen); UDP holds more
    wire = Wire(*udp_pair())
    frames = [(0x200 + k, bytes([k]) * (k % 9)) for k in range(100)]
    wire.put(*(classic(i, d) for i, d in frames))
    got = wire.port.receive(200)
    assert [(i, d) for _, i, d, _, _ in got] == frames and {k for k, *_ in got} == {DATA}
    assert wire.port.receive() == [] and wire.port.counters()["rx_limited_ticks"] == 0


def test_what_is_beyond_the_limit_waits_and_is_counted(udp: Wire) -> None:
    udp.put(*(classic(k) for k in range(150)))
    assert [len(udp.port.receive(64)) for _ in range(4)] == [64, 64, 22, 0]
    assert udp.port.counters()["rx_limited_ticks"] == 2


def test_identifiers_flags_and_data_of_both_formats(udp: Wire) -> None:
    data = bytes(range(64))
    got = udp.take(
        classic(EXTENDED | 0x123456, b"12345678"),
        classic(0x7FF, b""),
        fd(0x321, data),
        fd(0x321, data[:12], 4 | 1),
        fd(EXTENDED | 5, data[:3], 4 | 2),
        classic(0x40000000 | 0x55, b""),
    )
    assert [(k, i, d, f) for k, i, d, _, f in got] == [
        (DATA, EXTENDED | 0x123456, b"12345678", 0),
        (DATA, 0x7FF, b"", 0),
        (DATA, 0x321, data, FD),
        (DATA, 0x321, data[:12], FD | BRS),
        (DATA, EXTENDED | 5, data[:3], FD | ESI),
        (OTHER, 0x55, b"", 1),
    ]
    assert udp.port.counters()["remote_frames"] == 1


@pytest.mark.parametrize(
    "packet", [b"", b"x" * 15, b"x" * 17, b"x" * 71, b"x" * 73, b"x" * 2000, classic(1, b"", 9), fd(1, b"", 4, 65)]
)
def test_what_is_no_frame_is_counted_and_changes_nothing_else(udp: Wire, packet: bytes) -> None:
    got = udp.take(packet, classic(7, b"ok"))
    assert [(k, i, d) for k, i, d, _, _ in got if k == DATA] == [(DATA, 7, b"ok")]
    counters = udp.port.counters()
    assert counters["malformed"] == 1 and counters["rx_taken"] == 1 and counters["error_frames"] == 0


def test_bytes_beyond_the_length_are_zero_in_the_frame(udp: Wire) -> None:
    assert udp.take(struct.pack("=IB3x8s", 1, 2, b"abXXXXXX"))[0][2] == b"ab"


def test_a_foreign_frame_with_an_identifier_of_ours_is_stolen(udp: Wire) -> None:
    assert udp.port.foreign_id is None
    got = udp.take(classic(0x110, b"x"), classic(0x111, b"y"), classic(EXTENDED | 0x1ABCDE))
    assert [k for k, *_ in got] == [STOLEN, DATA, STOLEN]
    assert udp.port.foreign_id == 0x110 and udp.port.counters()["foreign_frames"] == 2


def test_the_kernels_overflow_count_is_taken_over_and_what_it_kept_is_read() -> None:
    wire = Wire(*udp_pair())
    sent = 2000
    wire.put(*(classic(k % 2048) for k in range(sent)))
    read = 0
    while frames := wire.port.receive(64):
        read += len(frames)
    assert 0 < read < sent, "the buffer was to overflow"
    # the count comes with the next frame that is read
    assert wire.port.counters()["rx_dropped"] == 0
    wire.take(classic(1))
    assert wire.port.counters()["rx_dropped"] == sent - read
    # since arming
    wire.port.arm()
    wire.take(classic(1))
    assert wire.port.counters()["rx_dropped"] == 0


def test_an_error_of_the_socket_is_counted_and_the_frames_behind_it_are_read(udp: Wire) -> None:
    address = udp.peer.getsockname()
    udp.peer.close()
    for _ in range(2):
        udp.port.send(1, b"")  # nobody there: ICMP comes back as ECONNREFUSED
    assert udp.port.receive() == []
    counters = udp.port.counters()
    assert counters["rx_failed"] + counters["tx_failed"] >= 1 and counters["last_errno"] == errno.ECONNREFUSED
    udp.peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.peer.bind(address)
    udp.peer.connect(udp.mine.getsockname())
    udp.port.send(1, b"")
    assert [k for k, *_ in udp.take(classic(2))] == [DATA]


# --- stamps


def test_kernel_stamps_are_on_the_clock_of_the_loop_and_give_the_latency(udp: Wire) -> None:
    before = now_ns()
    frames = udp.take(*(classic(k) for k in range(10)))
    after = now_ns()
    times = [t for _, _, _, t, _ in frames]
    assert times == sorted(times)
    # the wall clock may be slewed by some ppm between two samples of the offset
    assert before - 100_000 <= times[0] <= times[-1] <= after
    counters = udp.port.counters()
    assert counters["timestamps"] == "kernel" and counters["receive_latency_us"]["count"] == 10
    assert 0 <= counters["receive_latency_us"]["min"]


def test_stamps_never_go_back_and_never_lie_in_the_future() -> None:
    stamps = Stamps()
    now, real = now_ns(), now_wall_ns()
    first = stamps.arrival(real - 1000, 0, now)
    assert now - 10_000_000 < first <= now
    # the wall clock is set back by an hour, then forward by two
    assert stamps.arrival(real - 3_600_000_000_000, 0, now + 5) == first
    assert stamps.arrival(real + 7_200_000_000_000, 0, now + 10) == now + 10
    assert stamps.arrival(0, 0, now + 20) == now + 20


def test_hardware_stamps_lose_the_jitter_of_the_software_ones_and_follow_the_drift() -> None:
    stamps = Stamps()
    offset, drift = stamps.real_offset_ns, 100e-6
    worst = 0
    for k in range(1, 4000):
        wire = 10_000_000_000 + k * 1_000_000  # arrival on the wire, CLOCK_MONOTONIC
        jitter = (k * 7919) % 400_000  # software sees it up to 0.4 ms late, now and then at once
        jitter = 0 if k % 10 == 0 else jitter
        hw = round((wire - 3_000_000_000) * (1 + drift))
        t = stamps.arrival(wire + jitter - offset, hw, wire + 2_000_000)
        if k > 300:
            worst = max(worst, abs(t - wire))
    # two windows of 0.1 s at 100 ppm, and the way to the next frame without jitter
    assert worst < 25_000


# --- error frames and the state of the bus

CRTL, BUSOFF, RESTARTED, CNT = 0x4, 0x40, 0x100, 0x200


def controller(kind: int, tx: int = 0, rx: int = 0) -> bytes:
    return error(CRTL | CNT, bytes([0, kind, 0, 0, 0, 0, tx, rx]))


def test_the_state_follows_the_controllers_error_frames(udp: Wire) -> None:
    steps = [
        (controller(0x08, 96, 0), "warning"),
        (controller(0x20, 128, 3), "passive"),
        (controller(0x40, 127, 3), "active"),
        (controller(0x04, 0, 96), "warning"),
        (controller(0x10, 0, 128), "passive"),
        (error(BUSOFF), "bus off"),
        # a frame of somebody, or a bus error, is no restart
        (classic(5), "bus off"),
        (error(0x80), "bus off"),
        (error(RESTARTED), "active"),
    ]
    for packet, state in steps:
        udp.take(packet)
        assert BUS_STATES[udp.port.state] == state, packet
    counters = udp.port.counters()
    assert counters["bus_state_worst"] == "bus off" and counters["error_frames"] == 8
    assert (counters["bus_tx_errors"], counters["bus_rx_errors"]) == (0, 128)
    for name, n in {"tx_warning": 1, "rx_warning": 1, "tx_passive": 1, "rx_passive": 1, "controller": 5}.items():
        assert counters["errors"][name] == n, name
    assert counters["errors"]["bus_off"] == counters["errors"]["restarted"] == counters["errors"]["bus_error"] == 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 0x3FF), st.binary(min_size=8, max_size=8)), min_size=1, max_size=20))
def test_every_class_of_errors_is_counted(frames: list[tuple[int, bytes]]) -> None:
    wire = Wire(*udp_pair())
    got = wire.take(*(error(c, d) for c, d in frames))
    wire.mine.close()
    wire.peer.close()
    assert [k for k, *_ in got] == [ERROR] * len(frames)
    expected = dict.fromkeys(ERROR_NAMES, 0)
    for classes, data in frames:
        for k in range(9):
            expected[ERROR_NAMES[k]] += classes >> k & 1
        if classes & CRTL:
            for k in range(6):
                expected[ERROR_NAMES[9 + k]] += data[1] >> k & 1
    assert wire.port.counters()["errors"] == expected


def test_the_word_of_the_port_says_since_when_the_bus_is_away(udp: Wire) -> None:
    assert udp.port.word(1000)["down_since_ns"] == 0
    udp.take(error(BUSOFF))
    assert [udp.port.word(t)["down_since_ns"] for t in (2000, 3000)] == [2000, 2000]
    udp.take(error(RESTARTED))
    assert udp.port.word(4000)["down_since_ns"] == 0
    udp.take(error(BUSOFF))
    assert udp.port.word(5000)["down_since_ns"] == 5000 and udp.port.word(6000)["error_frames"] == 3


# --- sending


def test_frames_go_out_as_the_kernel_expects_them(udp: Wire) -> None:
    data = bytes(range(64))
    assert udp.port.send(0x123, b"\x01\x02") and udp.port.send(EXTENDED | 0x1ABCDEF, data[:8])
    assert udp.port.send(0x321, data, FD | BRS) and udp.port.send(0x321, data[:12], FD)
    got = [udp.peer.recv(100) for _ in range(4)]
    assert got == [
        classic(0x123, b"\x01\x02"), classic(EXTENDED | 0x1ABCDEF, data[:8]),
        fd(0x321, data, 4 | 1), fd(0x321, data[:12], 4)
    ]  # fmt: skip
    with pytest.raises(ValueError, match="9 data bytes"):
        udp.port.send(1, bytes(9))


def test_a_full_send_buffer_loses_frames_counted_and_never_blocks(unix: Wire) -> None:
    results = [unix.port.send(0x110, bytes([k % 256])) for k in range(1000)]
    taken = sum(results)
    counters = unix.port.counters()
    assert 0 < taken < 1000 and not any(results[taken:])
    assert counters["tx_taken"] == taken and counters["tx_again"] == counters["tx_lost"] == 1000 - taken
    assert unix.port.word(1)["tx_lost_in_row"] == 1000 - taken
    # room again: the next frame goes, the row is over; what was lost stays lost
    waiting = [unix.peer.recv(100) for _ in range(taken)]
    assert waiting[-1] == classic(0x110, bytes([(taken - 1) % 256]))
    assert unix.port.send(0x110, b"new") and unix.peer.recv(100) == classic(0x110, b"new")
    assert unix.port.word(2)["tx_lost_in_row"] == 0


def test_frames_that_never_come_back_are_given_up_one_by_one(udp: Wire) -> None:
    for k in range(100):
        assert udp.port.send(0x110, bytes([k]))
    counters = udp.port.counters()
    assert counters["unconfirmed"] == 64 and counters["unconfirmed_forgotten"] == 36
    assert counters["send_latency_us"]["count"] == 0 and counters["unconfirmed_age_us"] > 0


def test_a_closed_port_says_so() -> None:
    port = NativePort()
    assert not port.is_open
    with pytest.raises(ValueError, match="not open"):
        port.receive()


# --- opening


def test_filters_let_exactly_our_data_frames_through() -> None:
    def passes(filters: bytes, can_id: int) -> bool:
        pairs = struct.iter_unpack("=II", filters)
        return any(can_id & mask == wanted & mask for wanted, mask in pairs)

    filters = can_filters([0x210, EXTENDED | 0x210], [0x110])
    assert all(passes(filters, i) for i in (0x210, 0x110, EXTENDED | 0x210))
    for other in (0x211, 0x010, EXTENDED | 0x110, 0x40000000 | 0x210, EXTENDED | 0x1000210):
        assert not passes(filters, other), hex(other)
    assert passes(can_filters(range(600)), 0x7FF)


def test_a_missing_interface_says_what_to_do() -> None:
    with pytest.raises(CanBusError, match="modprobe vcan"):
        open_raw("can77", [1])
    with pytest.raises(CanBusError, match="is no CAN interface"):
        interface_info("lo")
    for bad in ("../lo", "", "a/b"):
        with pytest.raises(CanBusError):
            interface_info(bad)


def test_buffers_are_what_was_asked_for_or_it_is_said() -> None:
    raw = RawSocket(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), False)
    prepare(raw, 1 << 20, 1 << 14)
    assert raw.info["receive_buffer_bytes"] >= 2 << 20 or any("receive buffer" in text for text in raw.degraded)
    assert raw.info["send_buffer_bytes"] >= 2 << 14
    raw.close()


class KernelSocket:
    """A raw CAN socket as the kernel answers it: options by level and number of <linux/can/raw.h>."""

    def __init__(self, *kind: int) -> None:
        assert kind == (socket.AF_CAN, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.CAN_RAW)
        self.options: dict[tuple[int, int], object] = {}
        self.bound: tuple[str, ...] = ()

    def setsockopt(self, level: int, name: int, value: object) -> None:
        if level not in (socket.SOL_SOCKET, socket.SOL_CAN_RAW):
            raise OSError(errno.ENOPROTOOPT, "Protocol not available")
        self.options[level, name] = value

    def getsockopt(self, level: int, name: int) -> int:
        # SO_RCVBUFFORCE and SO_SNDBUFFORCE are 33 and 32; the kernel doubles both
        asked = self.options[level, {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}[name]]
        assert isinstance(asked, int)
        return 2 * asked

    def bind(self, address: tuple[str, ...]) -> None:
        self.bound = address


@pytest.mark.parametrize("mtu", [16, 72])
def test_a_raw_socket_asks_for_own_frames_errors_filters_buffers_and_stamps(
    mtu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "torqueloop.hil.can.raw_socket.interface_info", lambda channel: {"channel": channel, "mtu": mtu}
    )
    monkeypatch.setattr("torqueloop.hil.can.raw_socket.socket.socket", KernelSocket)
    raw = open_raw("can7", {0x100, EXTENDED | 0x200}, {0x300}, receive_buffer_bytes=1 << 20, send_buffer_bytes=1 << 14)
    kernel = raw.sock
    assert isinstance(kernel, KernelSocket) and kernel.bound == ("can7",) and raw.degraded == []
    of_can = {name: value for (level, name), value in kernel.options.items() if level == socket.SOL_CAN_RAW}
    fd_frames = {socket.CAN_RAW_FD_FRAMES: 1} if mtu == 72 else {}
    # standard and extended identifiers are told apart, remote frames are left out
    filters = [(0x100, 0xC00007FF), (0x300, 0xC00007FF), (EXTENDED | 0x200, 0xDFFFFFFF)]
    assert of_can == {
        # CAN_RAW_ERR_FILTER, which Python does not name
        2: struct.pack("=I", 0x1FFFFFFF),
        socket.CAN_RAW_RECV_OWN_MSGS: 1,
        socket.CAN_RAW_FILTER: b"".join(struct.pack("=II", *row) for row in filters),
        **fd_frames,
    }
    # SO_TIMESTAMPING: received by hardware and by software, both told
    assert kernel.options[socket.SOL_SOCKET, 37] == 4 | 8 | 16 | 64 and kernel.options[socket.SOL_SOCKET, 40] == 1
    told = raw.interface
    assert (told.receive_buffer_bytes, told.send_buffer_bytes, told.filters) == (2 << 20, 2 << 14, 3)
    assert (told.channel, told.mtu, told.fd_frames) == ("can7", mtu, mtu == 72)


# --- answers at once (the probe of rt_tests/vm/vm_inside.py) ---


def test_answers_carry_what_was_asked_and_the_socket_is_left_as_it_was(udp: Wire) -> None:
    asked = MessageSpec("Asked", 0x100, False, 8, True, (SignalSpec("a", 0, 16, False, False, slot=0),))
    answer = MessageSpec("Answer", 0x110, False, 8, False, (SignalSpec("b", 16, 16, False, False, slot=1),))
    tables = CodecTables([asked, answer], 2)
    table = np.zeros(2)
    # two that are none: another identifier, and too short
    udp.put(classic(0x100, struct.pack("<H6x", 7)), classic(0x7FF, bytes(8)), classic(0x100, bytes(4)))
    udp.put(classic(0x100, struct.pack("<H6x", 8)))
    sent = answer_frames(udp.port, RxState(tables), TxState(tables), table, 1, 0, 1, 2, 1000)
    assert sent == 2 and table.tolist() == [8.0, 8.0]
    udp.peer.settimeout(1.0)
    assert [udp.peer.recv(100) for _ in range(2)] == [classic(0x110, struct.pack("<2xH4x", n)) for n in (7, 8)]
    with pytest.raises(BlockingIOError):
        udp.mine.recv(100)


def test_answers_end_when_nothing_comes(udp: Wire) -> None:
    tables = CodecTables(
        [MessageSpec("Asked", 0x100, False, 8, True, (SignalSpec("a", 0, 8, False, False, slot=0),))], 1
    )
    began = time.monotonic()
    assert answer_frames(udp.port, RxState(tables), TxState(tables), np.zeros(1), 0, 0, 0, 5, 50) == 0
    assert 0.04 < time.monotonic() - began < 5.0
