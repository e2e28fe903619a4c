"""Frames of a log and of a bus, one by one: what is passed over, what comes out, when waiting ends."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

import can
import pytest

from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can import multicast
from torqueloop.hil.can.bus import CanBusConfig, PythonCanPort
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import BRS_FLAG, ERROR_FLAG, EXTENDED, FD_FLAG, REMOTE_FLAG, Frame
from torqueloop.hil.can.recorded import Protector, RecordedBus

DBC = installed("can")["tcu_4hp22"]


def written(path: Path) -> Path:
    """Five data frames on two channels, an error frame and two remote frames."""
    rows = [
        (7.000, 0x100, 1, {}), (7.010, 0x100, 2, {"is_extended_id": True}),
        (7.020, 0, 1, {"is_error_frame": True}), (7.030, 0x200, 1, {"is_remote_frame": True}),
        (7.035, 0x200, 1, {"is_remote_frame": True}), (7.040, 0x300, 1, {}), (7.050, 0x300, 2, {}),
        (7.060, 0x100, 1, {"is_fd": True, "bitrate_switch": True}),
    ]  # fmt: skip
    with can.Logger(path) as writer:
        for t, can_id, channel, more in rows:
            data = b"" if "is_remote_frame" in more or "is_error_frame" in more else bytes([channel, can_id & 0xFF])
            options = {"is_extended_id": False, **more}
            writer(can.Message(timestamp=t, arbitration_id=can_id, channel=channel, data=data, **options))
    return path


def test_wanted_frames_come_with_their_times_flags_and_bus_and_the_others_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "bus.blf")
    everything = RecordedBus(path, bus=3)
    found = list(everything)
    assert [round(t, 4) for t, _ in found] == [0.0, 0.01, 0.04, 0.05, 0.06]
    assert [frame.can_id for _, frame in found] == [0x100, 0x100 | EXTENDED, 0x300, 0x300, 0x100]
    assert [(frame.flags, frame.bus) for _, frame in found] == [(0, 3)] * 4 + [(FD_FLAG | BRS_FLAG, 3)]
    assert everything.others == 3 and len(everything.channels) == 2
    # as often as wanted, counted anew each time
    assert list(everything) == found and everything.others == 3
    one = RecordedBus(path, only=lambda can_id: can_id == 0x100 | EXTENDED)
    assert [frame.data for _, frame in one] == [b"\2\0"] and one.others == 7
    channel = sorted(everything.channels)[0]
    assert [frame.can_id for _, frame in RecordedBus(path, channel)] == [0x100, 0x300, 0x100]
    nothing = RecordedBus(path, only=lambda can_id: False)
    with pytest.raises(ConfigError, match=f"8 others, channels {', '.join(sorted(everything.channels))}"):
        nothing.check()


def test_a_frame_is_protected_anew_and_one_that_cannot_be_is_counted() -> None:
    sender, receiver = CanDatabase.load(DBC, "HIL").codec(), CanDatabase.load(DBC, "TCU").codec()
    protect = Protector(DBC, "HIL")
    assert protect.ids == {0x110, 0x111, 0x112}
    speeds = {"n_engine": 200.0, "n_turbine": 150.0, "n_output": 40.0}
    once = sender.encode("HIL_Speeds", speeds)
    made = [protect(Frame(0x110, once, 0, bus=2)) for _ in range(3)]
    assert [(f.can_id, f.flags, f.bus) for f in made] == [(0x110, 0, 2)] * 3
    # the same frame three times would be a repetition
    told = [receiver.decode(f.can_id, f.data) for f in made]
    assert [status for status, _ in told] == ["ok"] * 3
    assert all(told[2][1][name] == pytest.approx(x, abs=0.02) for name, x in speeds.items())
    strange, short = Frame(0x7FF, b"x", 0, 1), Frame(0x110, once[:-1], 0, 1)
    assert protect(strange) is strange and protect(short) is short
    assert (protect.done, protect.left) == (3, 2)


class Clock:
    """Time that goes on while somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Adapter:
    """In the place of a bus of python-can: these messages come, one each 30 ms."""

    def __init__(self, clock: Clock, *messages: can.Message) -> None:
        self.clock, self.messages, self.sent = clock, list(messages), []

    def recv(self, timeout_s: float) -> can.Message | None:
        assert timeout_s >= 0.0
        self.clock.now += min(0.03, timeout_s) if self.messages else timeout_s
        return self.messages.pop(0) if self.messages and timeout_s >= 0.03 else None

    def send(self, message: can.Message) -> None:
        self.sent.append(message)


def port(monkeypatch: pytest.MonkeyPatch, interface: str, *messages: can.Message) -> tuple[PythonCanPort, Clock]:
    clock = Clock()
    monkeypatch.setattr("torqueloop.hil.can.bus.time", clock)
    monkeypatch.setattr(can, "Bus", lambda **_: Adapter(clock, *messages))
    return PythonCanPort(CanBusConfig(interface, "here")), clock


def heard(can_id: int, data: bytes = b"\1", **more: bool) -> can.Message:
    return can.Message(arbitration_id=can_id, data=data, is_extended_id=False, **more)


def test_own_frames_take_their_time_from_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [heard(0x100, is_rx=False) for _ in range(20)]
    bus, clock = port(monkeypatch, "virtual", *own)
    assert bus.recv(0.1) is None and clock.now == pytest.approx(100.1) and bus.own_echoes == 3
    bus, clock = port(monkeypatch, "virtual", *own[:2], heard(0x200))
    assert bus.recv(0.1) == (0x200, b"\1", 0) and clock.now == pytest.approx(100.09)


def test_an_echo_is_waited_for_a_second_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back later is a frame of somebody else."""
    frame = heard(0x100)
    bus, clock = port(monkeypatch, "udp_multicast", frame, frame, frame, frame)
    bus.send(0x100, b"\1")
    bus.send(0x100, b"\1")
    assert bus.recv(0.03) is None and bus.own_echoes == 1
    clock.now += 1.5
    bus.send(0x300, b"\1")
    assert bus.recv(0.03) == (0x100, b"\1", 0) and bus.own_echoes == 1
    bus.send(0x100, b"\1")
    clock.now += 0.5
    bus.send(0x300, b"\1")
    assert bus.recv(0.03) is None and bus.own_echoes == 2


def test_kinds_of_frames_of_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (heard(0x40, is_error_frame=True), (0x40, b"\1", ERROR_FLAG)),
        (heard(5, b"", is_remote_frame=True), (5, b"", REMOTE_FLAG)),
        (heard(6, is_fd=True, bitrate_switch=True), (6, b"\1", FD_FLAG | BRS_FLAG)),
        (can.Message(arbitration_id=6, data=b"\1", is_extended_id=True), (6 | EXTENDED, b"\1", 0)),
    ]
    bus, _ = port(monkeypatch, "virtual", *(message for message, _ in rows))
    assert [bus.recv(0.03) for _ in rows] == [wanted for _, wanted in rows]
    assert bus.bus_off
    bus.send(7 | EXTENDED, b"\2", FD_FLAG | BRS_FLAG)
    (sent,) = bus._bus.sent
    assert (sent.arbitration_id, sent.is_extended_id, sent.is_fd, sent.bitrate_switch) == (7, True, True, True)
    assert not bus.bus_off


class Datagrams:
    """In the place of the receiving socket: a packet every 30 ms, each with its source."""

    def __init__(self, clock: Clock, *packets: tuple[bytes, str]) -> None:
        self.clock, self.packets, self.timeout_s = clock, list(packets), 0.0

    def settimeout(self, timeout_s: float) -> None:
        assert timeout_s >= 0.0
        self.timeout_s = timeout_s

    def recvmsg(self, room: int, ancillary: int) -> tuple[bytes, list[Any], int, str]:
        self.clock.now += min(0.03, self.timeout_s) if self.packets else self.timeout_s
        if not self.packets or self.timeout_s < 0.03:
            raise TimeoutError
        packet, source = self.packets.pop(0)
        dropped = (socket.SOL_SOCKET, multicast._SO_RXQ_OVFL, struct.pack("=I", 40 + len(self.packets)))
        return packet, [dropped], 0, source


def test_own_and_broken_packets_take_their_time_from_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(multicast, "time", clock)

    def port(*packets: tuple[bytes, str]) -> multicast.MulticastPort:
        made = multicast.MulticastPort.__new__(multicast.MulticastPort)
        made._receiver, made._own = Datagrams(clock, *packets), "me"  # type: ignore[assignment]
        made.own_echoes = made.malformed = made.kernel_drops = 0
        return made

    mine, broken = (multicast.pack_frame(0x100, b"\1"), "me"), (b"no frame", "you")
    bus = port(*[mine, broken] * 10)
    assert bus.recv(0.1) is None and clock.now == pytest.approx(100.1)
    assert (bus.own_echoes, bus.malformed, bus.kernel_drops) == (2, 1, 57)
    flags = FD_FLAG | BRS_FLAG
    bus = port(mine, (multicast.pack_frame(7 | EXTENDED, b"\2\3", flags), "you"))
    assert bus.recv(0.1) == (7 | EXTENDED, b"\2\3", flags) and clock.now == pytest.approx(100.16)


def test_a_group_is_tried_for_as_long_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose packets take 0.3 s works within 0.5 s, and not within 0.2 s."""
    clock = Clock()

    class Slow:
        def __init__(self, *_: Any) -> None: ...

        def send(self, can_id: int, data: bytes) -> None:
            self.sent = can_id, data

        def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
            before, clock.now = clock.now, clock.now + min(timeout_s, 0.1)
            return (1, b"probe", 0) if before < 100.3 <= clock.now + 1e-9 else None

        def close(self) -> None: ...

    monkeypatch.setattr(multicast, "time", clock)
    monkeypatch.setattr(multicast, "MulticastPort", Slow)
    assert multicast.multicast_works(timeout_s=0.5)[0] and clock.now == pytest.approx(100.3)
    clock.now = 100.0
    works, reason = multicast.multicast_works(timeout_s=0.2)
    assert not works and "not delivered within 0.2 s" in reason and clock.now == pytest.approx(100.2)
