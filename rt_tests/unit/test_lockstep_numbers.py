"""Exchanges of a lockstep without Python objects: the bytes of the long way, the same states; the unusual is left."""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S

from torqueloop.cython_kernels.link.coupling import CouplingSums
from torqueloop.cython_kernels.link.form import Form
from torqueloop.cython_kernels.link.lockstep import (
    AGAIN,
    DONE,
    UNANSWERED,
    UNSENT,
    BoxedPeer,
    SlotExchange,
    StepPeer,
    serve,
)
from torqueloop.cython_kernels.link.mailbox import MAILBOX_BYTES, Mailbox
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.cython_kernels.vehicle.road import GRAVITY, RoadMotion
from torqueloop.hil.link import messages
from torqueloop.hil.link.messages import (
    MAX_STEP,
    STATE_FORM,
    STEP_FORM,
    StateMessage,
    StepMessage,
    decode,
    encode,
)
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig, load_vehicle_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs/vehicles"
HILL = load_vehicle_config(CONFIGS / "bmw_528i_hill.toml")
STEP = StepMessage(7, 0.007, 3000.0, 21.0, 0.5, 0.01, 0.25)
STATE = StateMessage(7, 8, 0.007, 0.5, 1.5, -120.0, 300.0, 0.02)
WHOLES = st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32, MAX_STEP - 1]) | st.integers(0, MAX_STEP - 1)


def drawn(keys: dict[str, tuple[float, float]]) -> dict[str, st.SearchStrategy[float]]:
    return {key: st.sampled_from([low, high, -0.0]) | st.floats(low, high) for key, (low, high) in keys.items()}


STEPS = st.builds(StepMessage, step=WHOLES, **drawn(messages.STEP_KEYS))
STATES = st.builds(StateMessage, step=WHOLES, own_step=WHOLES, **drawn(messages.STATE_KEYS))


def numbers(message: StepMessage | StateMessage) -> list[float]:
    return [value for key, value in vars(message).items() if key != "carrier"]


class Rig:
    """The rig's side: two slots, a box whose other side is in the test's hands."""

    def __init__(self, patience_s: float = 0.0) -> None:
        memory = mmap.mmap(-1, MAILBOX_BYTES)
        self.box, self.theirs = Mailbox(memory, 0), Mailbox(memory, 1)
        self.rig, self.vehicle = LatestSlot(7), LatestSlot(8)
        self.peer = BoxedPeer(self.box, STEP_FORM, STATE_FORM, patience_s)
        self.sums = CouplingSums()
        self.exchange = SlotExchange(self.rig, self.vehicle, self.peer, self.sums)

    def ask(self, step: StepMessage, answer: Callable[[bytes], bytes] | None = None) -> tuple[int, bytes | None]:
        """One exchange; what became of it and the question as it came."""
        self.rig.write(numbers(step))
        asked: list[bytes | None] = []

        def peer() -> None:
            data = self.theirs.take(PATIENCE_S)
            asked.append(data)
            assert data is not None and answer is not None and self.theirs.post(answer(data))

        if answer is None:
            how = self.exchange.run(5)
            return how, self.theirs.take(0.0)
        aside = threading.Thread(target=peer, daemon=True)
        aside.start()
        how = self.exchange.run(5)
        aside.join(PATIENCE_S)
        return how, asked[0]


@settings(max_examples=60)
@given(STEPS, STATES)
def test_an_exchange_has_the_bytes_and_the_values_of_the_long_way(step: StepMessage, state: StateMessage) -> None:
    rig = Rig(PATIENCE_S)
    state = replace(state, step=step.step)
    how, asked = rig.ask(step, lambda _: encode(state))
    assert (how, asked, rig.exchange.step) == (DONE, encode(step), step.step)
    version, stamp, told = rig.vehicle.read()
    assert (version, stamp) == (1, 5)
    assert list(map(float.hex, told)) == [float(x).hex() for x in numbers(state)]
    assert rig.box.take(0.0) is None and rig.peer.wait_max_s > 0.0
    assert (rig.sums.count, rig.sums.max_mps) == (1, abs(step.speed - state.speed))
    # the same step is not asked twice, unless it has been forgotten
    assert rig.ask(step) == (AGAIN, None) and rig.vehicle.version == 1
    rig.exchange.forget()
    assert rig.ask(step, lambda _: encode(state))[0] == DONE


UNUSUAL: dict[str, bytes] = {
    "another step": encode(replace(STATE, step=6)),
    "before the first step": encode(replace(STATE, step=-1)),
    "other order": msgpack.packb(dict(reversed(msgpack.unpackb(encode(STATE)).items()))),
    "with a body": encode(replace(STATE, carrier={"body": [1.0]})),
    "not finite": encode(replace(STATE, F=math.nan)),
    "out of range": encode(replace(STATE, a=1001.0)),
    "a step": encode(STEP),
    "more": encode(STATE) + b"\0",
    "cut": encode(STATE)[:-1],
    "in the socket": b"",
    "long": b"x" * 5000,
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_an_unusual_answer_stays_in_the_box_for_the_long_way(what: str) -> None:
    rig = Rig(PATIENCE_S)
    assert rig.ask(STEP, lambda _: UNUSUAL[what]) == (UNANSWERED, encode(STEP))
    assert rig.box.take(0.0) == UNUSUAL[what] and rig.vehicle.version == 0 and rig.sums.count == 0


def test_what_cannot_be_asked_is_not_sent() -> None:
    rig = Rig()
    assert rig.exchange.run(5) == UNSENT, "nobody has written the rig's slot"
    for step in (-2.0, 0.5, math.nan, float(MAX_STEP)):
        rig.rig.write([step, *numbers(STEP)[1:]])
        assert rig.exchange.run(5) == UNSENT and rig.theirs.take(0.0) is None, step
    # no answer: the question lies there, and the next one finds no room
    rig.rig.write(numbers(STEP))
    assert rig.exchange.run(5) == UNANSWERED
    rig.rig.write(numbers(replace(STEP, step=8)))
    assert rig.exchange.run(5) == UNSENT
    # an answer that nobody has taken is to another question
    assert rig.theirs.take(0.0) == encode(STEP) and rig.theirs.post(encode(STATE))
    rig.rig.write(numbers(replace(STEP, step=9)))
    assert rig.exchange.run(5) == UNSENT and rig.theirs.take(0.0) is None and rig.box.take(0.0) == encode(STATE)


def test_sizes_and_whole_numbers_that_do_not_fit_are_refused() -> None:
    rig, small = Rig(), Form(StepMessage, b"", 0, [("x", 0.0, 1.0)])
    with pytest.raises(ValueError, match="forms of 1 and 8 numbers, allowed: 7 and 8"):
        BoxedPeer(rig.box, small, STATE_FORM, 1.0)
    with pytest.raises(ValueError, match="forms of 7 and 7 numbers"):
        serve(rig.theirs, STEP_FORM, STEP_FORM, rig.peer, 0.0, 1)
    with pytest.raises(ValueError, match="slots of 8 and 8 numbers"):
        SlotExchange(rig.vehicle, rig.vehicle, rig.peer, rig.sums)
    with pytest.raises(ValueError, match=r"allowed: to 2\^53"):
        Form(StepMessage, b"", 0, [("step", None, 2**53 + 1)])


class Peer:
    """The other side: a model that answers what the test posts."""

    def __init__(self, model: VehicleModel | None = None) -> None:
        memory = mmap.mmap(-1, MAILBOX_BYTES)
        self.rig, self.box = Mailbox(memory, 0), Mailbox(memory, 1)
        self.model = model or VehicleModel(HILL)

    def serve(self, most: int = 1) -> tuple[int, bytes | None]:
        return serve(self.box, STEP_FORM, STATE_FORM, self.model, 0.0, most)

    def ask(self, message: StepMessage) -> bytes | None:
        assert self.rig.post(encode(message)) and self.serve() == (1, None)
        return self.rig.take(0.0)


ROAD_STEPS = st.lists(
    st.builds(
        StepMessage, step=st.integers(0, 10**6), t=st.integers(0, 50).map(lambda k: 1e-3 * k),
        F_wheel=st.floats(-1e4, 1e4), I_wheel=st.floats(-1e3, 1e3), speed=st.sampled_from([0.0, 3.0, -2.0, 40.0]),
        s=st.floats(0.0, 2000.0), brake=st.sampled_from([0.0, 0.3, 1.0]),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@given(ROAD_STEPS)
def test_a_served_model_answers_the_bytes_of_its_step(steps: list[StepMessage]) -> None:
    """Forward, standing and back in time, to the bit; and the state it leaves is the same."""
    peer, other = Peer(), VehicleModel(HILL)
    for step in steps:
        assert peer.ask(step) == encode(other.step(step))
    assert peer.model.save() == other.save()


def test_what_is_served_ends_where_it_is_unusual() -> None:
    peer = Peer()
    assert peer.serve() == (0, None), "nothing there"
    for data in (encode(replace(STEP, carrier={"body": [1.0]})), encode(STATE), b"", encode(STEP) + b"\0", b"x" * 5000):
        assert peer.rig.post(data) and peer.serve(3) == (0, None)
        assert peer.box.take(0.0) == data and peer.model.own_step == 0
    # no room for the answer: it is handed over
    assert peer.box.post(b"an answer that nobody has taken") and peer.rig.post(encode(STEP))
    n, unsent = peer.serve(3)
    assert n == 1 and unsent == encode(VehicleModel(HILL).step(STEP))


def test_one_that_cannot_answer_by_itself_is_refused() -> None:
    peer = Peer()
    assert peer.rig.post(encode(STEP)) and not StepPeer().asked_by_numbers()
    with pytest.raises(ValueError, match="must answer by itself"):
        serve(peer.box, STEP_FORM, STATE_FORM, StepPeer(), 0.0, 1)


def test_a_subclass_is_asked_in_its_own_way() -> None:
    class Heavy(VehicleModel):
        def _holds(self, slope: float, brake: float) -> float:
            return 12345.0

    class Counting(VehicleModel):
        def step(self, message: StepMessage) -> StateMessage:
            return super().step(message)

    class Broken(VehicleModel):
        def _active(self, speed: float, slope: float) -> float:
            raise ValueError("no air")

    body = load_vehicle_config(CONFIGS / "bmw_528i_body.toml")
    ways = {VehicleModel(HILL): True, Heavy(HILL): True, Counting(HILL): False, VehicleModel(body): False}
    assert [model.asked_by_numbers() for model in ways] == list(ways.values())
    answer = decode(Peer(Heavy(HILL)).ask(STEP) or b"")
    assert isinstance(answer, StateMessage) and answer.F_hold == 12345.0
    broken = Peer(Broken(HILL))
    assert broken.rig.post(encode(STEP))
    with pytest.raises(ValueError, match="no air"):
        broken.serve()


@pytest.fixture(params=[[(0.0, 0.0)], [(0.0, 5.0), (100.0, -3.0), (300.0, 12.0)]], ids=["flat", "hills"])
def config(request: pytest.FixtureRequest) -> Iterator[VehicleConfig]:
    road = HILL.road.model_copy(update={"grade_percent": request.param, "head_wind_mps": 2.5})
    yield HILL.model_copy(update={"road": road})


def test_a_sub_step_is_the_midpoint_rule_in_the_arithmetic_of_python(config: VehicleConfig) -> None:
    """The law as the text at the top of the model has it, to the bit: recorded runs replay to their hashes."""
    body, points = config.body, config.road.grade_percent
    m = body.mass_kg

    def angle(s: float) -> float:
        if s <= points[0][0] or s >= points[-1][0]:
            return math.atan(0.01 * points[0 if s <= points[0][0] else -1][1])
        (s0, g0), (s1, g1) = next((a, b) for a, b in zip(points, points[1:], strict=False) if s <= b[0])
        return math.atan(0.01 * (g0 + (g1 - g0) * (s - s0) / (s1 - s0)))

    def force(v: float, s: float) -> float:
        air = v + 2.5
        return -(0.5 * body.air_density_kgpm3 * body.cdA_m2) * air * abs(air) - m * GRAVITY * math.sin(angle(s))

    def hold(s: float) -> float:
        return body.rolling * m * GRAVITY * math.cos(angle(s)) + 0.1 * config.brakes.force_max_N

    model = VehicleModel(config)
    v, s, impulse = 20.0, 0.0, 0.0
    model.step(StepMessage(0, 0.0, 0.0, 0.0, v, s, 0.1))
    for k in range(1, 4000):
        before, impulse = impulse, impulse + 1.7 + math.sin(k)
        h = k * 1e-3 - (k - 1) * 1e-3
        tractive = (impulse - before) / h
        v_mid = v + (tractive + force(v, s) - hold(s)) / m * 0.5 * h
        s_mid = s + 0.5 * (v + v_mid) * 0.5 * h
        a = (tractive + force(v_mid, s_mid) - hold(s_mid)) / m
        v, s = v + a * h, s + 0.5 * (v + (v + a * h)) * h
        state = model.step(StepMessage(k, k * 1e-3, 0.0, impulse, 0.0, 0.0, 0.1))
        assert (state.speed, model.distance, state.F, state.F_hold) == (v, s, force(v, s), hold(s))
        assert v > 0.0


def test_a_road_without_points_and_a_state_of_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        RoadMotion(1.0, 0.0, 0.0, 0.0, 0.0, 1e-3, [])
    model = VehicleModel(HILL)
    model.step(STEP)
    saved: dict[str, Any] = model.save()
    with pytest.raises(ValueError, match="own_step"):
        model.load({**saved, "own_step": 2**70})
    other = VehicleModel(HILL)
    other.load(saved)
    later = replace(STEP, step=8, t=0.008, I_wheel=25.0)
    assert other.step(later) == model.step(later) and saved["last"] == vars(STEP)


@given(st.lists(st.tuples(*[st.floats(-100.0, 100.0)] * 3), max_size=20))
def test_the_books_of_the_coupling_are_the_sums_of_their_definition(rows: list[tuple[float, float, float]]) -> None:
    sums = CouplingSums()
    for k, row in enumerate(rows):
        assert sums.add(k, *row) == row[0] - row[2]
    dv = [speed - other for speed, _, other in rows]
    work = [(b[1] - a[1]) * (b[0] - b[2]) for a, b in zip(rows, rows[1:], strict=False)]
    assert sums.count == len(rows) and sums.max_mps == max(map(abs, dv), default=0.0)
    assert sums.max_step == (-1 if not any(dv) else [abs(x) for x in dv].index(sums.max_mps))
    assert math.isclose(sums.energy_J, math.fsum(work), abs_tol=1e-9)
    assert math.isclose(sums.sum_sq, math.fsum(x * x for x in dv), abs_tol=1e-9)
    turned = math.fsum(abs((b[1] - a[1]) * b[0]) for a, b in zip(rows, rows[1:], strict=False))
    assert math.isclose(sums.turned_over_J, turned, abs_tol=1e-9)
