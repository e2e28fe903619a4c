"""Times and counts of the vehicle link against a clock of the test: ages, waits, what is sent and what is assumed."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from waiting import PATIENCE_S

from torqueloop.cython_kernels.link.lockstep import StepPeer
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.link.carriers import MOTION, MOTION_UNITS, POSE_UNITS, Carriers
from torqueloop.hil.link.child import Child
from torqueloop.hil.link.endpoints import CurveKeys, PeerError
from torqueloop.hil.link.front import Binding
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.link.lockstep import LockstepClient, PairServer
from torqueloop.hil.link.messages import (
    RIG_SLOT,
    STATE_FORM,
    VEHICLE_SLOT,
    SchemaError,
    StateMessage,
    StepMessage,
    decode,
    encode,
)
from torqueloop.hil.link.pair import SLICE_S, Pair


class Clock:
    """Time that goes on when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def monotonic(self) -> float:
        return 1e-9 * self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(1e9 * seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("latest_value", "lockstep", "pair"):
        monkeypatch.setattr(f"torqueloop.hil.link.{module}.time", clock)
    return clock


def state(step: int, own: int, **more: Any) -> StateMessage:
    return StateMessage(step, own, **{"t": 0.0, "speed": 0.0, "a": 0.0, "F": 0.0, "F_hold": 0.0, "grade": 0.0, **more})


class Link:
    """The rig's link turn by turn, without its thread, and the vehicle's socket."""

    def __init__(self, name: str, **more: Any) -> None:
        moments = more["carriers"].n_moment if "carriers" in more else 0
        self.context: zmq.Context[Any] = zmq.Context()
        self.rig, self.vehicle = LatestSlot(len(RIG_SLOT) + moments), LatestSlot(len(VEHICLE_SLOT))
        self.link = RigLink(f"inproc://{name}", self.rig, self.vehicle, context=self.context, **more)
        self.peer = self.context.socket(zmq.PAIR)
        self.peer.connect(f"inproc://{name}")

    def tick(self, step: int, t: float, F: float, I: float, *moments: float) -> StepMessage | None:  # noqa: E741
        """What goes out after a tick; None: nothing."""
        self.rig.write([step, t, F, I, 3.0, 40.0, 0.25, *moments])
        self.link._send_newest()
        return decode(self.peer.recv()) if self.peer.poll(0) else None  # type: ignore[return-value]

    def answer(self, message: StateMessage) -> None:
        self.peer.send(encode(message))
        self.link._receive_all()

    def close(self) -> None:
        self.link.stop()
        self.context.destroy(0)


def test_ages_and_counts_of_the_latest_value(clock: Clock) -> None:
    link = Link("ages")
    for step in range(1, 7):
        sent = link.tick(step, 1e-3 * step, 100.0, 0.1 * step)
        assert isinstance(sent, StepMessage) and (sent.step, sent.speed, sent.s, sent.brake) == (step, 3.0, 40.0, 0.25)
        clock.sleep(0.001)
    # step k was sent k - 1 ms after the first, so its answer is 7 - k ms old now
    link.answer(state(3, 0, F=-7.0, speed=2.5))
    clock.sleep(0.020)
    link.answer(state(5, 1, speed=2.0))
    told = link.link.stats()
    assert (told.sent, told.received, told.accepted, told.age_steps_max) == (6, 2, 2, 3)
    assert (told.answer_age.count, told.answer_age.max_ms) == (2, pytest.approx(22.0))
    # the upper edge of its class: four are an octave from 1 microsecond on
    assert told.answer_age.p50_ms == pytest.approx(1e-3 * 2 ** (48 / 4))
    assert (told.coupling.max_mps, told.coupling.samples) == (pytest.approx(1.0), 2)
    values = dict(zip(VEHICLE_SLOT, link.vehicle.read()[2], strict=True))
    assert (values["step"], values["speed"]) == (5.0, 2.0) and link.vehicle.read()[1] == clock.now_ns
    link.answer(state(5, 1))
    link.answer(state(6, 4))
    link.answer(state(99, 5))
    told = link.link.stats()
    assert (told.sent, told.received, told.accepted, told.duplicate, told.gap, told.lost) == (6, 5, 3, 1, 1, 2)
    assert told.rejected["range"] == 1
    link.close()


def test_a_slow_vehicle_is_told_the_mean_force_since_the_message_before(clock: Clock) -> None:
    """The impulse over the time: the mean of the tick for the first message, and 1 000 times its growth in 5 ms."""
    link = Link("slow", every=5)
    impulse, told = 0.0, []
    for step in range(1, 12):
        impulse += 0.3 * step
        if (sent := link.tick(step, 1e-3 * step, 300.0 * step, impulse)) is not None:
            told.append((sent.step, sent.F_wheel))
    assert [step for step, _ in told] == [1, 6, 11]
    assert [force for _, force in told] == pytest.approx([300.0, 300.0 * 4, 300.0 * 9])
    link.close()


@pytest.mark.parametrize(("period_s", "period_ms"), [(1e-3, 1), (0.02, 20), (0.0025, 2), (1e-4, 1)])
def test_the_newest_state_is_looked_for_once_a_period(period_s: float, period_ms: int) -> None:
    link = Link("period", period_s=period_s)
    waits: list[int] = []

    def poll(timeout_ms: int) -> bool:
        waits.append(timeout_ms)
        link.link._stop_asked.set()
        return False

    link.link._socket.raw.poll = poll
    link.link.run()
    assert waits == [period_ms]
    link.context.destroy(0)


def test_a_carrier_that_is_not_heard_coasts_after_the_age_limit(clock: Clock) -> None:
    """Its angular velocity is kept, its accelerations are 0, once and until it is heard again."""
    carriers = Carriers(("platform",))
    slot = LatestSlot(carriers.n_motion)
    link = Link("coasts", carriers=carriers, carrier_slot=slot, age_limit_s=0.05)
    sent = link.tick(1, 0.001, 0.0, 0.0, 1.0, 2.0, 3.0)
    assert sent is not None and sent.carrier == {"platform": [1.0, 2.0, 3.0]}
    link.answer(state(1, 0, carrier={"platform": [0.1, 0.2, 0.3, 4.0, 5.0, 6.0]}))
    heard, coasts = [0.1, 0.2, 0.3, 4.0, 5.0, 6.0], [0.1, 0.2, 0.3, 0.0, 0.0, 0.0]
    for wait_s, motion, coasted in ((0.04, heard, 0), (0.02, coasts, 1), (1.0, coasts, 1)):
        clock.sleep(wait_s)
        link.link._coast_if_silent()
        assert list(slot.read()[2]) == [*motion, 0.0, 0.0, 0.0] and link.link.coasted == coasted
    link.close()


def test_a_socket_that_is_not_heard_after_a_connection_is_opened_anew(clock: Clock) -> None:
    """Half a second after the last state, and only while somebody is connected."""
    link = Link("anew")
    link.tick(1, 0.001, 0.0, 0.0)
    link.answer(state(1, 0))
    clock.sleep(2.0)
    link.link._reopen_if_deaf()
    assert link.link.reopened == 0
    link.tick(2, 0.002, 0.0, 0.0)
    link.answer(state(2, 1))
    link.link._connected = {7}
    for wait_s, reopened in ((0.4, 0), (0.2, 1), (1.0, 1)):
        clock.sleep(wait_s)
        link.link._reopen_if_deaf()
        assert link.link.reopened == reopened
    link.close()


class Events:
    """What ZeroMQ's monitor would report."""

    def __init__(self, *events: tuple[int, int]) -> None:
        self.events = list(events)

    def poll(self, timeout_ms: int) -> int:
        return len(self.events)

    def recv_multipart(self) -> list[bytes]:
        return [struct.pack("<Hi", *self.events.pop(0)), b""]


@pytest.mark.parametrize(("ends", "reopened"), [(False, 1), (True, 0)])
def test_a_connection_that_has_ended_is_no_reason_to_open_the_socket_anew(
    clock: Clock, ends: bool, reopened: int
) -> None:
    link: Any = Link("ended")
    link.tick(1, 0.001, 0.0, 0.0)
    link.answer(state(1, 0))
    link.link._events = Events((zmq.EVENT_ACCEPTED, 7), (zmq.EVENT_DISCONNECTED, 7 if ends else 8))
    clock.sleep(0.6)
    link.link._reopen_if_deaf()
    assert link.link.reopened == reopened
    link.close()


def test_the_slots_hold_the_numbers_of_the_messages() -> None:
    assert list(RIG_SLOT) == [f.name for f in fields(StepMessage) if f.name != "carrier"]
    assert list(VEHICLE_SLOT) == [f.name for f in fields(StateMessage) if f.name != "carrier"]


@pytest.mark.parametrize("key", ["step", "own_step"])
def test_a_step_is_below_two_to_the_fifty_third(key: str) -> None:
    """Larger whole numbers are not all doubles."""
    for number, taken in ((2**53 - 1, True), (2**53, False), (2**53 + 1, False)):
        data = msgpack.packb({**msgpack.unpackb(encode(state(1, 1))), key: number})
        assert (STATE_FORM.unpack(data) is not None) == taken
        if taken:
            assert getattr(decode(data), key) == number
        else:
            with pytest.raises(SchemaError, match=key):
                decode(data)


def test_units_and_lists_of_carriers() -> None:
    assert dict(zip(MOTION, MOTION_UNITS, strict=True)) == {
        "w_x": "rad/s", "w_y": "rad/s", "w_z": "rad/s", "z_x": "rad/s2", "z_y": "rad/s2", "z_z": "rad/s2",
        "a_x": "m/s2", "a_y": "m/s2", "a_z": "m/s2",
    }  # fmt: skip
    assert POSE_UNITS == ("1", "1", "1", "1", "m", "m", "m")
    both = Carriers(("deck", "hull"), frozenset({"hull"}))
    with pytest.raises(SchemaError, match="no hull; unknown sail; allowed: deck, hull"):
        both.motion({"deck": [0.0] * 9, "sail": [0.0] * 9})
    pose = [float(k) for k in range(9)] + [0.0, 0.6, 0.8, 0.0, 7.0, 8.0, 9.0]
    assert both.motion({"deck": [1, 2, 3, 4, 5, 6], "hull": pose}) == [1, 2, 3, 4, 5, 6, 0, 0, 0, *pose]
    told = both.moments(range(9))
    assert told == {"deck": [0.0, 1.0, 2.0], "hull": [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}


@pytest.mark.parametrize("curve", [None, CurveKeys(Path("own.key_secret"), clients=Path("folder"))])
def test_a_process_is_told_what_it_is_to_bind(curve: CurveKeys | None) -> None:
    binding = Binding(zmq.ROUTER, "tcp://127.0.0.1:5555", curve, queue=16, max_bytes=70000)
    assert Binding.from_json(binding.to_json()) == binding


class Carrier:
    """Carries a lockstep: each answer takes so long."""

    endpoint = "by hand"

    def __init__(self, clock: Clock, *waits_s: float) -> None:
        self.clock, self.waits_s = clock, list(waits_s)

    def exchange(self, message: bytes, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
        wait_s = self.waits_s.pop(0)
        self.clock.sleep(min(wait_s, timeout_s))
        asked = decode(message)
        assert isinstance(asked, StepMessage)
        return encode(state(asked.step, asked.step + 1, speed=asked.speed + 0.5)) if wait_s < timeout_s else None

    def close(self) -> None: ...


def step(number: int, speed: float = 10.0, impulse: float = 0.0) -> StepMessage:
    return StepMessage(number, 1e-3 * number, 0.0, impulse, speed, 0.0, 0.0)


def test_waits_and_counts_of_a_lockstep(clock: Clock) -> None:
    client = LockstepClient("", timeout_s=0.5, transport=Carrier(clock, 0.002, 0.035, 0.004, 9.0))
    for number in range(3):
        assert client.exchange(step(number, impulse=20.0 * number)).step == number
    told = client.stats()
    assert (told.wait_max_ms, told.exchanges, told.accepted, told.duplicate) == (pytest.approx(35.0), 3, 3, 0)
    # the vehicle is 0.5 m/s faster: the impulse of 20 Ns does work of -10 J twice
    assert (told.coupling.max_mps, told.coupling.energy_J) == (pytest.approx(0.5), pytest.approx(-20.0))
    assert told.coupling.max_step == 0 and told.coupling.turned_over_J == pytest.approx(400.0)
    begin = clock.monotonic()
    with pytest.raises(PeerError, match=r"has not answered within 0.5 s \(step 3\)"):
        client.exchange(step(3))
    assert clock.monotonic() - begin == pytest.approx(0.5)
    # a number that has been asked before is counted as such
    client.noted(2)
    assert (client.stats().accepted, client.stats().duplicate) == (3, 1)


@pytest.mark.parametrize(("timeout_s", "comes_after_s"), [(0.5, 0.3), (0.5, 9.0), (0.2 * SLICE_S, 9.0)])
def test_what_was_asked_without_python_is_waited_for_like_the_rest(
    clock: Clock, timeout_s: float, comes_after_s: float
) -> None:
    """`peer` has waited for a slice already."""

    class Slow(Pair):
        def wait(self, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
            clock.sleep(min(timeout_s, comes_after_s - SLICE_S))
            return encode(state(4, 5)) if timeout_s >= comes_after_s - SLICE_S else None

    ours, theirs = socket.socketpair()
    client, begin = LockstepClient("", timeout_s, transport=Slow(ours)), clock.monotonic()
    clock.sleep(SLICE_S)
    if comes_after_s < timeout_s:
        assert client.wait(step(4)).own_step == 5
        assert client.stats().wait_max_ms == pytest.approx(1e3 * comes_after_s)
    else:
        with pytest.raises(PeerError, match="has not answered"):
            client.wait(step(4))
        assert clock.monotonic() - begin == pytest.approx(max(timeout_s, SLICE_S))
    client.close()
    theirs.close()


class Box:
    """A box in which nothing lies: looking into it takes time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def take(self, timeout_s: float) -> bytes | None:
        self.clock.sleep(timeout_s)
        return None

    def post(self, message: bytes) -> bool:
        return True


@pytest.mark.parametrize("timeout_s", [0.3 * SLICE_S, SLICE_S, 10.4 * SLICE_S])
def test_a_pair_waits_for_as_long_as_asked_and_a_slice_more_at_most(clock: Clock, timeout_s: float) -> None:
    ours, theirs = socket.socketpair()
    pair = Pair(ours, Box(clock))  # type: ignore[arg-type]
    begin = clock.monotonic()
    assert pair.receive(timeout_s) is None
    waited_s = clock.monotonic() - begin
    assert timeout_s <= waited_s + 1e-9 and waited_s < timeout_s + 0.99 * SLICE_S
    assert timeout_s > SLICE_S or waited_s == pytest.approx(timeout_s)
    pair.close()
    theirs.close()


def test_a_server_over_a_pair_waits_in_milliseconds(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Pair):
        def receive(self, timeout_s: float, dead: Callable[[], str | None] | None = None) -> bytes | None:
            clock.sleep(timeout_s)
            return None

    def served(
        box: object, asks: object, answers: object, peer: object, timeout_s: float, most: int
    ) -> tuple[int, None]:
        clock.sleep(timeout_s)
        return 0, None

    monkeypatch.setattr("torqueloop.hil.link.lockstep.serve", served)
    for box, peer in ((None, None), (Box(clock), StepPeer())):
        ours, theirs = socket.socketpair()
        server, begin = PairServer(Silent(ours, box), peer), clock.monotonic()  # type: ignore[arg-type]
        assert not server.serve_one(lambda message: state(0, 0), 70)
        assert clock.monotonic() - begin == pytest.approx(0.07)
        server.close()
        theirs.close()


ENDS = {
    "import sys; print('first'); print('last words'); print('#stats {}'); sys.exit(3)":
        "has ended with status 3; its last line: last words",
    "import os, signal; print('going', flush=True); os.kill(os.getpid(), signal.SIGKILL)":
        "was ended by SIGKILL; its last line: going",
    "pass": "has ended with status 0; its last line: (it wrote nothing)",
}  # fmt: skip


@pytest.mark.parametrize("code", ENDS)
def test_the_end_of_a_child_is_told_with_its_last_line(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ending_child.py").write_text(code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    child = Child("ending_child", [], tmp_path / "log")
    child.process.wait(PATIENCE_S)
    assert child.ended() == ENDS[code]
    assert child.end() == child.process.returncode
