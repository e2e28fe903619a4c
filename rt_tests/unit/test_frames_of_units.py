"""What the rig and a control unit outside of it tell each other: each field of each message of the page, frames that a
database does not have, the process on real buses, the memory of pins. A test plays the other side by the page."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.frame import BRS_FLAG, EXTENDED, FD_FLAG, Frame
from torqueloop.hil.ecu import process
from torqueloop.hil.ecu.control_unit import Bus, EcuInputs, EcuOutputs, EcuSetup, Pin, make_unit
from torqueloop.hil.ecu.declared_frames import FrameCheck
from torqueloop.hil.ecu.external import ExternalUnit, Options, hosted
from torqueloop.hil.ecu.messages import frames_of, pack_frames
from torqueloop.hil.ecu.pins import Pins
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.messages import SchemaError
from torqueloop.hil.results.links import ParticipantStats

CAN = Path(__file__).resolve().parents[2] / "configs/can"
BUSES = (Bus("powertrain", CAN / "tcu_4hp22.dbc", "TCU", CanBusConfig()),
         Bus("cruise", CAN / "cruise_fd.dbc", "SLC", CanBusConfig()))  # fmt: skip
SETUP = EcuSetup("gearbox", 1e-3, None, BUSES, (Pin("n", "rad/s"), Pin("T", "K")), (Pin("p", "Pa"), Pin("q", "1")),
                 {"endpoint": "tcp://127.0.0.1:5999", "period_s": 5e-3, "config": "calibration A"})  # fmt: skip


class Page:
    """The unit of the page: it answers each message by its words, and keeps them."""

    place, process = "outside", None

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.out: tuple[list[Any], list[float]] = [], [0.0, 0.0]

    def open(self) -> None: ...

    def exchange(self, message: bytes, timeout_s: float) -> bytes:
        body = msgpack.unpackb(message)
        self.heard.append(body)
        frames, actuators = self.out
        answer = {
            "init": {"kind": "ready"}, "save": {"kind": "state", "state": {"x": 7}}, "load": {"kind": "ready"},
            "step": {"kind": "out", "step": body.get("step"), "frames": frames, "actuators": actuators},
            "stop": {"kind": "bye", "counts": {"shifts": 4}},
        }[body["kind"]]  # fmt: skip
        return bytes(msgpack.packb({"v": 1, **answer}))

    def close(self) -> int | None:
        return None


def zmq_unit() -> ExternalUnit:
    unit = make_unit("zmq", SETUP)
    assert isinstance(unit, ExternalUnit)
    return unit


def hosted_unit() -> ExternalUnit:
    return hosted("soft_tcu", SETUP, 5e-3, Options(config="calibration A"), FrameCheck(SETUP))


@pytest.mark.parametrize("make", [zmq_unit, hosted_unit])
def test_every_message_has_the_fields_of_the_page(make: Callable[[], ExternalUnit]) -> None:
    unit, page = make(), Page()
    unit._connection = page  # type: ignore[assignment]
    unit.start()
    frames = (Frame(0x110, bytes(range(8)), 0, 0), Frame(5 | EXTENDED, bytes(12), FD_FLAG | BRS_FLAG, 1))
    page.out = [[0, 0x210, 0, bytes(8)], [1, 0x7E8, 4, b"ab"], [1, 0x7E8, 4, b"cd"]], [2.5, -1.5]
    told = unit.step(EcuInputs(0.0, frames, (3.5, 300.0)))
    assert told.actuators == (2.5, -1.5)
    assert told.frames == (Frame(0x210, bytes(8)), Frame(0x7E8, b"ab", 4, 1), Frame(0x7E8, b"cd", 4, 1))
    page.out = [], [0.0, 0.0]
    unit.step(EcuInputs(0.005, (), (1.0, 2.0)))
    assert unit.save() == {"state": {"x": 7}, "steps": 2}
    unit.load({"state": {"y": 1}, "steps": 12})
    unit.step(EcuInputs(0.06, (), (1.0, 2.0)))
    counts = unit.stop().reported
    assert page.heard == [
        {"v": 1, "kind": "init", "name": "gearbox", "tick_s": 1e-3, "period_s": 5e-3, "buses": ["powertrain", "cruise"],
         "sensors": ["n", "T"], "sensor_units": ["rad/s", "K"], "actuators": ["p", "q"], "actuator_units": ["Pa", "1"],
         "config": "calibration A"},
        {"v": 1, "kind": "step", "step": 0, "t": 0.0, "sensors": [3.5, 300.0],
         "frames": [[0, 0x110, 0, bytes(range(8))], [1, 5 | EXTENDED, FD_FLAG | BRS_FLAG, bytes(12)]]},
        {"v": 1, "kind": "step", "step": 1, "t": 0.005, "frames": [], "sensors": [1.0, 2.0]},
        {"v": 1, "kind": "save"}, {"v": 1, "kind": "load", "state": {"y": 1}},
        {"v": 1, "kind": "step", "step": 12, "t": 0.06, "frames": [], "sensors": [1.0, 2.0]},
        {"v": 1, "kind": "stop", "reason": page.heard[-1]["reason"]},
    ]  # fmt: skip
    assert (counts["steps"], counts["shifts"]) == (13, 4)
    assert unit.stop().reported["steps"] == 13 and unit._check is not None
    assert unit._check.undeclared == {"0x7E8 on cruise": 2}


def test_a_frame_comes_back_from_its_place_in_a_message_and_an_identifier_has_29_bits() -> None:
    frames = (Frame(0x7FF, b"abc", 1, 3), Frame(0x1FFFFFFF | EXTENDED, b"", 4, 255))
    placed = [list(entry) for entry in pack_frames(frames)]
    assert placed == [[3, 0x7FF, 1, b"abc"], [255, 0x9FFFFFFF, 4, b""]] and frames_of(placed) == frames
    with pytest.raises(SchemaError, match=r"frames\[0\].*id 0xA0000000"):
        frames_of([[0, 0xA0000000, 0, b""]])


TCU, SLC = "node TCU of tcu_4hp22.dbc", "node SLC of cruise_fd.dbc"


@pytest.mark.parametrize(("frame", "text"), [
    (Frame(0x212, bytes(7), 0, 0), f"sent TCU_Status (0x212) with 7 bytes; {TCU} says 8"),
    (Frame(0x212, bytes(8), FD_FLAG, 0), f"sent TCU_Status (0x212) as a CAN FD frame; {TCU} has it as classic"),
    (Frame(0x310, bytes(12), 0, 1), f"sent SLC_Pedal (0x310) as a classic frame; {SLC} has it as CAN FD"),
    (Frame(0x310, bytes(8), FD_FLAG, 1), f"sent SLC_Pedal (0x310) with 8 bytes; {SLC} says 12"),
    (Frame(0x212, bytes(8), 0, 2), "sent a frame on bus 2; allowed: 0 .. 1 (powertrain, cruise)"),
])  # fmt: skip
def test_a_frame_that_the_database_has_otherwise_is_named(frame: Frame, text: str) -> None:
    check = FrameCheck(SETUP)
    with pytest.raises(PeerError, match=re.escape(text)):
        check.check(EcuOutputs((frame,), (0.0, 0.0)))


def test_frames_that_the_database_does_not_have_are_counted_by_bus() -> None:
    check = FrameCheck(SETUP)
    frames = (Frame(0x212, bytes(8), 0, 0), Frame(0x310, bytes(12), FD_FLAG, 1), Frame(0x212, bytes(8), FD_FLAG, 1),
              Frame(0x7E8 | EXTENDED, b"", 0, 0))  # fmt: skip
    for _ in range(3):
        check.check(EcuOutputs(frames, (0.0, 0.0)))
    assert check.undeclared == {"0x212 on cruise": 3, "0x7E8 on powertrain": 3}


# --- the process
class Port:
    def __init__(self, name: str) -> None:
        self.name, self.sent, self.waiting, self.fails = name, list[tuple[int, bytes, int]](), list[Any](), 0

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("no buffer space")
        self.sent.append((can_id, data, flags))

    def recv(self, timeout: float) -> Any:
        return self.waiting.pop(0) if self.waiting else None


class Echo:
    """Sends a frame on the second bus in each step, and keeps what it is given."""

    period_s = 0.010

    def __init__(self) -> None:
        self.given: list[EcuInputs] = []

    def start(self) -> None: ...
    def step(self, inputs: EcuInputs) -> EcuOutputs:
        self.given.append(inputs)
        return EcuOutputs((Frame(0x123, b"z", FD_FLAG, 1),), (len(self.given) * 1.5,))

    def stop(self) -> ParticipantStats:
        return ParticipantStats("process", reported={"echoed": len(self.given)})


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, late_s: float = 0.0) -> None:
        self.now, self.late_ns = 3_000_000_000, round(1e9 * late_s)
        monkeypatch.setattr(process.time, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(process.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        assert 0.0 < seconds <= 0.010, "it waits for the next point of the grid"
        self.now += round(1e9 * seconds) + self.late_ns


def test_frames_go_to_the_bus_that_they_name_and_come_with_the_bus_that_they_are_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every wait ends 2 ms late; the first three frames are refused."""
    Clock(monkeypatch, 2e-3)
    ports, unit, pins = [Port("a"), Port("b")], Echo(), Pins(1, 1)
    ports[0].waiting, ports[1].waiting = [(0x10, b"a", 0), (0x11, b"", 1 << 3)], [(0x20, b"b", FD_FLAG)]
    ports[1].fails = 3
    assert pins.sensors is not None and pins.actuators is not None
    pins.sensors.write([7.5], 1)
    counts = process.serve(unit, ports, "unit", 0.05, pins=pins)  # type: ignore[arg-type]
    assert [i.t_s for i in unit.given] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    received = unit.given[0].frames
    assert Frame(0x10, b"a", 0, 0) in received and received[-1] == Frame(0x20, b"b", FD_FLAG, 1)
    assert {i.sensors for i in unit.given} == {(7.5,)} and pins.actuators.read()[2] == (7.5,)
    assert ports[0].sent == [] and ports[1].sent == [(0x123, b"z", FD_FLAG)] * 2
    assert (counts["echoed"], counts["skipped"], counts["send_errors"]) == (5, 0, 3)
    assert counts["lateness"]["count"] == 5 and counts["lateness"]["max_ms"] == pytest.approx(2.0, rel=0.05)


def test_the_process_says_on_which_buses_it_is_and_how_often_it_steps() -> None:
    said: list[str] = []
    file = CAN.parent / "tcu/soft_4hp22.toml"
    bus = Bus("powertrain", CAN / "tcu_4hp22.dbc", "TCU", CanBusConfig("virtual", "says"))
    process.unit_loop("soft_tcu", EcuSetup("tcu", 1e-3, file, (bus,)), 0.01, log=said.append)
    assert said == ["control unit tcu (soft_tcu): powertrain (virtual says, node TCU), every 5 ms"]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memory that can be handed on")
def test_pins_of_two_processes_are_the_same_memory() -> None:
    """As many as a unit may have in each direction: what the rig writes the unit reads, and the other way round."""
    ours = Pins(256, 256)
    assert ours.fd is not None
    theirs = Pins(256, 256, os.dup(ours.fd))
    for writer, reader, sign in ((ours.sensors, theirs.sensors, 1.0), (theirs.actuators, ours.actuators, -1.0)):
        assert writer is not None and reader is not None
        writer.write([sign * k for k in range(256)], 5)
    for reader, sign in ((theirs.sensors, 1.0), (ours.actuators, -1.0)):
        assert reader is not None and reader.read()[2] == tuple(sign * k for k in range(256))
