"""Control units and buses of the virtual clock: who hears which frame, when a unit steps, what it is after a save."""

from __future__ import annotations

from typing import Any

import pytest

from torqueloop.core.describe.errors import RangeError
from torqueloop.cython_kernels.rings.ring import FrameRing
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, Frame, ParticipantStats
from torqueloop.hil.rig.assemble.virtual_links import VirtualBus, VirtualUnit, VirtualUnits

FD, EXTENDED = 4, 1 << 31


class Speaker:
    """Sends given frames once and notes what it hears."""

    def __init__(self, *frames: Frame, period_s: float = 1e-3) -> None:
        self.period_s, self.frames = period_s, frames
        self.heard: list[tuple[float, Frame]] = []

    def start(self) -> None: ...

    def stop(self) -> ParticipantStats | None:
        return None

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        self.heard += [(inputs.t_s, frame) for frame in inputs.frames]
        frames, self.frames = self.frames, ()
        return EcuOutputs(frames)

    def save(self) -> dict[str, Any]:
        return {"heard": len(self.heard)}

    def load(self, data: dict[str, Any]) -> None: ...


def bus(name: str) -> VirtualBus:
    return VirtualBus(name, FrameRing(16), FrameRing(16))


def joined(tick_s: float, *units: VirtualUnit) -> VirtualUnits:
    """Units on the buses left and right of a rig without a model."""
    return VirtualUnits(Rig(2, tick_s), tick_s, [bus("left"), bus("right")], units)


def test_a_frame_reaches_all_on_its_bus_but_its_sender_each_with_its_own_number_of_the_bus() -> None:
    said = (Frame(0x123, b"\x01\x02", FD, 0), Frame(0x18FF0001 | EXTENDED, b"\x03", 0, 1))
    # its bus 0 is right, its bus 1 left
    a, b, c = Speaker(*said), Speaker(), Speaker()
    units = joined(1e-3, VirtualUnit("a", a, 1e-3, ("right", "left")), VirtualUnit("b", b, 1e-3, ("left",)),
                   VirtualUnit("c", c, 1e-3, ("left", "right")))  # fmt: skip
    left, right = units.buses
    left.sent.push(0x55, b"\x09", 7, 0)
    units.before_tick(0, 40)
    units.before_tick(1, 1_000_040)
    rig = Frame(0x55, b"\x09", 0, 0)
    first, second = said
    assert a.heard == [(0.0, Frame(0x55, b"\x09", 0, 1))], "left is its second bus"
    assert b.heard == [(0.0, rig), (1e-3, Frame(second.can_id, second.data, 0, 0))]
    assert c.heard == [(0.0, rig), (1e-3, Frame(first.can_id, first.data, FD, 1)),
                       (1e-3, Frame(second.can_id, second.data, 0, 0))]  # fmt: skip
    assert [tuple(f) for f in right.received.pop_all()] == [(first.can_id, first.data, 40, FD)]
    assert [tuple(f) for f in left.received.pop_all()] == [(second.can_id, second.data, 40, 0)]


@pytest.mark.parametrize(("tick_s", "period_s", "ticks"), [(1e-3, 5e-3, 5), (2e-4, 6e-4, 3), (1e-4, 7e-4, 7)])
def test_a_unit_steps_each_time_its_period_begins(tick_s: float, period_s: float, ticks: int) -> None:
    speaker = Speaker(period_s=period_s)
    unit = VirtualUnit("a", speaker, tick_s, ("left",))
    units = joined(tick_s, unit)
    for tick in range(3 * ticks):
        units.buses[0].sent.push(tick, b"", 0, 0)
        units.before_tick(tick, 0)
    steps = [round(t / tick_s) for t, _ in speaker.heard]
    assert unit.period_ticks == ticks and steps == sorted([0, *[ticks] * ticks, *[2 * ticks] * ticks])
    assert [f.can_id for _, f in speaker.heard] == list(range(2 * ticks + 1))


@pytest.mark.parametrize("period_s", [2.5e-3, 0.4e-3, 1.001e-3])
def test_a_period_that_is_no_whole_number_of_ticks_is_refused(period_s: float) -> None:
    with pytest.raises(RangeError, match="a whole number of ticks of 0.001 s"):
        VirtualUnit("a", Speaker(period_s=period_s), 1e-3, ("left",))


def test_frames_on_their_way_to_a_unit_are_there_after_a_save() -> None:
    unit, other = (VirtualUnit(n, Speaker(period_s=2e-3), 1e-3, ("left", "right")) for n in "ab")
    waiting = [Frame(0x18FF0001 | EXTENDED, b"\x01\x02\x03", FD, 1), Frame(0x10, b"", 2, 0)]
    unit.inbox += waiting
    other.inbox.append(Frame(0x99, b"old", 0, 0))
    assert other.load(unit.save()) and other.inbox == waiting
