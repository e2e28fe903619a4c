"""Recorded frames are sent at their times, by `replay_bus` on a clock that a test owns and by a unit of kind recording:
when each frame goes, how late it is and what is counted follow from the times of the log, worked out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import EXTENDED, Frame
from torqueloop.hil.ecu import recording, replay_bus
from torqueloop.hil.ecu.control_unit import Bus, EcuInputs, EcuSetup

DBC = Path(__file__).resolve().parents[2] / "configs/can/tcu_4hp22.dbc"


class Clock:
    """Time [ns] that goes on by sleeping and by what a port takes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_s: float = 0.0) -> None:
        self.now, self.begun, self.cost_ns = 7_000_000_000, 7_000_000_000, round(1e9 * cost_s)
        self.slept: list[float] = []
        self.sent: list[tuple[float, int, bytes, int]] = []
        self.fails: Callable[[int], bool] = lambda number: False
        self.tries = 0
        clock = SimpleNamespace(monotonic_ns=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(replay_bus, "time", clock)

    name = "test"

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(1e9 * seconds)

    def send(self, can_id: int, data: bytes, flags: int = 0) -> None:
        self.tries += 1
        begun, self.now = self.now, self.now + self.cost_ns
        if self.fails(self.tries):
            raise OSError("no buffer space")
        self.sent.append((1e-9 * (begun - self.begun), can_id, data, flags))


#: one is of 29 bits, one is CAN FD; each is of another bus
LOG = [(0.0, Frame(1, b"a", 0, 3)), (0.25, Frame(2 | EXTENDED, b"b", 0, 2)), (0.25, Frame(3, b"c", 4, 1)),
       (0.4, Frame(4, b"d", 0, 3)), (1.0, Frame(5, b"", 0, 0))]  # fmt: skip


def test_every_frame_goes_at_its_time_and_one_that_is_late_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame takes 0.1 s: the third begins when the second has gone, and the fourth is late for the third."""
    clock = Clock(monkeypatch, 0.1)
    done = replay_bus.replay_bus(LOG, clock)  # type: ignore[arg-type]
    begun = [0.0, 0.25, 0.35, 0.45, 1.0]
    assert [t for t, *_ in clock.sent] == pytest.approx(begun)
    assert [(i, data, flags) for _, i, data, flags in clock.sent] == [(f.can_id, f.data, f.flags) for _, f in LOG]
    assert 0.0 < min(clock.slept) and max(clock.slept) <= 0.1, "a signal is seen within 0.1 s"
    assert (done.frames, done.refused, done.others, done.protected, done.left) == (5, 0, 0, 0, 0)
    assert done.seconds == 1.0 and done.lateness.count == 5
    assert done.lateness.max_ms == pytest.approx(100.0, rel=0.05)


def test_a_bus_that_takes_nothing_is_given_up_and_one_that_stumbles_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.fails = lambda number: number % 200 != 0
    many = [(0.0, Frame(1, b""))] * 1000
    done = replay_bus.replay_bus(many, clock)  # type: ignore[arg-type]
    assert (done.frames, done.refused) == (5, 995)
    clock.fails = lambda number: True
    clock.tries = 0
    with pytest.raises(TorqueloopError, match="bus test takes no frames: no buffer space"):
        replay_bus.replay_bus(many, clock)  # type: ignore[arg-type]
    assert clock.tries == 200


def test_frames_with_new_checksums_are_counted_apart_from_those_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Protector:
        done, left, others = 0, 0, 77

        def __call__(self, frame: Frame) -> Frame:
            odd = frame.can_id % 2 == 1
            self.done, self.left = self.done + odd, self.left + (not odd)
            return replace(frame, data=b"new") if odd else frame

    clock = Clock(monkeypatch)
    done = replay_bus.replay_bus(LOG, clock, Protector())  # type: ignore[arg-type]
    assert (done.protected, done.left) == (3, 2)
    assert [data for _, _, data, _ in clock.sent] == [b"new", b"b", b"new", b"d", b"new"]


def test_the_rest_of_a_bus_is_what_the_node_does_not_send(tmp_path: Path) -> None:
    """Of 29 bits: ETC1 of the transmission stays away, EEC1 of the engine is sent. An identifier of 11 bits is another
    one, although it has the lower bits of ETC1."""
    ids = [0x0CF00203, 0x0CF00400, 0x203]
    forms = ["08X", "08X", "03X"]
    lines = [
        f"({k}.000000) can0 {i:{form}}#0000000000000000" for k, (i, form) in enumerate(zip(ids, forms, strict=True))
    ]
    (tmp_path / "drive.log").write_text("\n".join([*lines, ""]))
    database = DBC.with_name("j1939_transmission.dbc")
    frames, protector = replay_bus.rest_of_bus(tmp_path / "drive.log", database, "TCU")
    assert [(t, f.can_id) for t, f in frames] == [(1.0, ids[1] | EXTENDED), (2.0, ids[2])] and protector is None


# --- the unit
class Log:
    def __init__(self, frames: list[tuple[float, Frame]]) -> None:
        self.frames = frames

    def __iter__(self) -> Iterator[tuple[float, Frame]]:
        return iter(self.frames)


@pytest.mark.parametrize("begin_s", [0.0, 0.0125, -0.25])
def test_a_frame_goes_with_the_first_step_at_or_behind_its_time(begin_s: float) -> None:
    """Steps of 5 ms; begin_s is the simulated time of the log's first frame. What lies before the first step goes with
    it. The page's bound for the resolution of a log is 2 us."""
    times = [0.0, 0.001, 0.005, 0.005002, 0.0124, 0.25, 0.2501]
    unit = recording.RecordedUnit(Log([(t, Frame(k, b"")) for k, t in enumerate(times)]), 5e-3, begin_s)  # type: ignore[arg-type]
    unit.start()
    found: list[tuple[int, int]] = []
    for k in range(70):
        found += [(k, frame.can_id) for frame in unit.step(EcuInputs(5e-3 * k)).frames]
    steps = [next(k for k in range(70) if 5e-3 * k + 2e-6 >= t + begin_s) for t in times]
    assert found == list(zip(steps, range(len(times)), strict=True))
    told = unit.stop().reported
    moved = max(max(0.0, 5e-3 * k - t - begin_s) for k, t in zip(steps, times, strict=True))
    assert told["moved_us_max"] == pytest.approx(1e6 * moved) and (told["frames"], told["log_ended"]) == (7, True)


def candump(folder: Path) -> Path:
    """Two messages of the TCU and one of the rig; the second one of the TCU has a wrong length."""
    codec, rig = CanDatabase.load(DBC, "TCU").codec(), CanDatabase.load(DBC, "HIL").codec()
    rows = [(0.0, 0x210, codec.encode("TCU_Pressure_1", {"p_C4": 5e5})), (0.001, 0x110, rig.encode("HIL_Speeds", {})),
            (0.002, 0x212, bytes(3)), (0.004, 0x210, codec.encode("TCU_Pressure_1", {"p_C4": 6e5}))]  # fmt: skip
    lines = [f"({1000.0 + t:.6f}) can0 {i:03X}#{data.hex().upper()}" for t, i, data in rows]
    (folder / "drive.log").write_text("\n".join([*lines, ""]))
    return folder / "drive.log"


def made(folder: Path, own_clock: bool, **options: Any) -> recording.RecordedUnit:
    bus = Bus("powertrain", DBC, "TCU", CanBusConfig("virtual", "x"), "HIL")
    return recording.make(EcuSetup("tcu", 2e-3, candump(folder), (bus,), options=options, own_clock=own_clock))


@pytest.mark.parametrize("protect", [False, True])
def test_the_unit_of_a_rig_file_sends_the_frames_of_its_node(tmp_path: Path, protect: bool) -> None:
    """From 6 ms on, as begin_s says, in ticks of 2 ms."""
    unit = made(tmp_path, False, begin_s=6e-3, protect=protect)
    unit.start()
    sent = [(k, frame.can_id) for k in range(8) for frame in unit.step(EcuInputs(2e-3 * k)).frames]
    assert sent == [(3, 0x210), (4, 0x212), (5, 0x210)] and unit.period_s == 2e-3
    told = unit.stop().reported
    assert [told.get(n) for n in ("frames", "protected", "left_as_recorded")] == [
        3,
        *((2, 1) if protect else (None, None)),
    ]
    assert (unit.save() is None) == protect


def test_the_messages_that_are_sent_may_be_named(tmp_path: Path) -> None:
    unit = made(tmp_path, False, messages=["TCU_Status"])
    unit.start()
    assert [f.can_id for k in range(8) for f in unit.step(EcuInputs(2e-3 * k)).frames] == [0x212]


def test_with_a_clock_of_its_own_the_log_begins_when_the_rig_is_heard(tmp_path: Path) -> None:
    """Until a frame of the rig's node comes, the first frame is sent four times a second."""
    unit = made(tmp_path, True)
    for _ in range(2):
        unit.start()
        calls = [t for t in range(600) if unit.step(EcuInputs(1e-3 * t, (Frame(0x210, b""),))).frames]
        assert calls == [0, 250, 500]
        heard = [
            [f.can_id for f in unit.step(EcuInputs(0.6 + 2e-3 * k, (Frame(0x111, b""),))).frames] for k in range(3)
        ]
        assert heard == [[0x210], [0x212], [0x210]]
