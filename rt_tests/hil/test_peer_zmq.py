"""Rig and vehicle model over real sockets: lockstep, latest value, and everything that can be wrong with a message."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
import zmq.auth
from waiting import PATIENCE_MS, PATIENCE_S, wait_for

from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.link.endpoints import CurveKeys, PeerError, check_endpoint
from torqueloop.hil.link.latest_value import RigLink, VehicleEnd
from torqueloop.hil.link.lockstep import LockstepClient, LockstepServer
from torqueloop.hil.link.messages import (
    MAX_BYTES,
    RIG_SLOT,
    VEHICLE_SLOT,
    ByeMessage,
    SchemaError,
    StateMessage,
    StepMessage,
    decode,
    encode,
)
from torqueloop.hil.link.stats import CouplingResidual, StampChecker
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

ROOT = Path(__file__).resolve().parents[2]
VEHICLE = ROOT / "configs/vehicles/bmw_528i_e28.toml"
ANY = "tcp://127.0.0.1:0"


def step_message(step: int = 0, **values: float) -> StepMessage:
    return StepMessage(
        **{
            "step": step,
            "t": step * 1e-3,
            "F_wheel": 0.0,
            "I_wheel": 0.0,
            "speed": 0.0,
            "s": 0.0,
            "brake": 0.0,
            **values,
        }
    )


def state_message(step: int = 0, own_step: int = 1, **values: float) -> StateMessage:
    return StateMessage(
        **{
            "step": step,
            "own_step": own_step,
            "t": step * 1e-3,
            "speed": 0.0,
            "a": 0.0,
            "F": -100.0,
            "F_hold": 176.0,
            "grade": 0.0,
            **values,
        }
    )


def body(message: StepMessage | StateMessage) -> dict[str, Any]:
    return msgpack.unpackb(encode(message))


# --- schema ----------------------------------------------------------------------------------------------------------
def test_messages_survive_the_wire_unchanged() -> None:
    step = step_message(7, F_wheel=1234.5, I_wheel=-3.25, brake=1.0)
    state = StateMessage(7, 9, 0.007, 1.0, -0.5, -10.0, 200.0, 0.1, carrier={"w": [0.0, 0.1, 2.0]})
    for message in (step, state, ByeMessage("enough")):
        assert decode(encode(message)) == message


MALFORMED: list[tuple[bytes, str]] = [
    (b"", "malformed"),
    (b"\xc1", "malformed"),
    (b"hello", "malformed"),
    (msgpack.packb([1, 2, 3]), "malformed"),
    (msgpack.packb(msgpack.ExtType(5, b"x")), "malformed"),
    (encode(step_message()) + b"\x00", "malformed"),
    (b"\x81" * 2000, "malformed"),
    (b"\x00" * (MAX_BYTES + 1), "oversized"),
    (msgpack.packb({**body(step_message()), "v": 2}), "version"),
    (msgpack.packb({**body(step_message()), "v": True}), "version"),
    (msgpack.packb({**body(step_message()), "kind": "exec"}), "kind"),
    (msgpack.packb({**body(step_message()), "extra": 1.0}), "keys"),
    (msgpack.packb({k: v for k, v in body(step_message()).items() if k != "brake"}), "keys"),
    (msgpack.packb({**body(step_message()), "step": 1.5}), "type"),
    (msgpack.packb({**body(step_message()), "step": True}), "type"),
    (msgpack.packb({**body(step_message()), "step": -1}), "range"),
    (msgpack.packb({**body(step_message()), "step": 2**53}), "range"),
    (msgpack.packb({**body(step_message()), "brake": "1"}), "type"),
    (msgpack.packb({**body(step_message()), "brake": 1.01}), "range"),
    (msgpack.packb({**body(state_message()), "F_hold": -1.0}), "range"),
    (msgpack.packb({**body(state_message()), "F": math.nan}), "not_finite"),
    (msgpack.packb({**body(state_message()), "speed": math.inf}), "not_finite"),
    (msgpack.packb({**body(state_message()), "carrier": {"w": [math.nan]}}), "not_finite"),
    (msgpack.packb({**body(state_message()), "carrier": [1.0]}), "type"),
]


@pytest.mark.parametrize(("data", "reason"), MALFORMED)
def test_message_against_the_schema_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(SchemaError) as error:
        decode(data)
    assert error.value.reason == reason


def test_stamps_tell_new_duplicate_late_and_gap_apart() -> None:
    stamps = StampChecker(1)
    assert [stamps.check(step) for step in (1, 2, 2, 5, 3, 6)] == [True, True, False, True, False, True]
    assert stamps.counters() == {"accepted": 4, "duplicate": 1, "out_of_order": 1, "gap": 1, "lost": 2}


def test_coupling_residual_is_difference_at_equal_stamps() -> None:
    residual = CouplingResidual()
    for k in range(5):
        residual.sent(step_message(k, speed=10.0 + k, I_wheel=100.0 * k))
        residual.received(state_message(k, speed=10.0 + k - (0.5 if k == 3 else 0.0)))
    report = residual.report()
    assert (report.max_mps, report.max_step) == (0.5, 3)
    assert report.rms_mps == pytest.approx(0.5 / math.sqrt(5))
    assert report.energy_J == pytest.approx(50.0)
    assert residual.received(state_message(99)) is None


# --- endpoints -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "endpoint", ["tcp://127.0.0.1:0", "tcp://localhost:5555", "tcp://[::1]:5555", "ipc:///tmp/x", "inproc://x"]
)
def test_loopback_endpoints_are_allowed(endpoint: str) -> None:
    assert check_endpoint(endpoint) == endpoint.replace("localhost", "127.0.0.1")


@pytest.mark.parametrize(
    "endpoint", ["tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://10.1.2.3:5555", "tcp://localhost.evil.org:1"]
)
def test_other_addresses_need_curve_keys(endpoint: str) -> None:
    with pytest.raises(PeerError, match="not on loopback"):
        check_endpoint(endpoint)
    assert check_endpoint(endpoint, CurveKeys(Path("x"))) == endpoint


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:5555", "udp://127.0.0.1:5", "tcp://127.0.0.1", "tcp://127.0.0.1:70000"]
)
def test_nonsense_endpoints_are_refused(endpoint: str) -> None:
    with pytest.raises(PeerError, match="allowed"):
        check_endpoint(endpoint)


def test_port_in_use_is_named() -> None:
    with LockstepRig() as first, pytest.raises(PeerError, match=f"{first.endpoint}.*cannot bind"):
        LockstepClient(first.endpoint)


# --- lockstep --------------------------------------------------------------------------------------------------------
class LockstepRig(LockstepClient):
    def __init__(self, endpoint: str = ANY, **options: Any) -> None:
        super().__init__(endpoint, **{"timeout_s": 5.0, **options})

    def __enter__(self) -> LockstepRig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def start_vehicle() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(endpoint: str, lockstep: bool) -> subprocess.Popen[str]:
        code = (
            "import json, sys; from torqueloop.hil.vehicle.process import main_loop;"
            "from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config;"
            "s = main_loop(load_vehicle_config(sys.argv[1]), sys.argv[2], sys.argv[3] == 'True'); print(json.dumps(s))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(VEHICLE), endpoint, str(lockstep)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_lockstep_with_a_vehicle_process_equals_the_model_in_this_process(
    start_vehicle: Callable[..., subprocess.Popen[str]],
) -> None:
    model = VehicleModel(load_vehicle_config(VEHICLE))
    speeds = []
    with LockstepRig(timeout_s=PATIENCE_S) as rig:
        process = start_vehicle(rig.endpoint, True)
        for k in range(300):
            message = step_message(k, F_wheel=5000.0, I_wheel=5.0 * k, speed=0.0)
            answer = rig.exchange(message)
            assert answer == model.step(message)
            speeds.append(answer.speed)
        stats = rig.stats()
        assert (stats.exchanges, stats.gap, stats.duplicate) == (300, 0, 0)
        assert (stats.coupling.samples, stats.coupling.max_mps) == (300, pytest.approx(model.speed))
        # 5 N s a step at a difference of -v: the interface loses work
        assert stats.coupling.energy_J == pytest.approx(-5.0 * sum(speeds[1:])) and stats.coupling.energy_J < -1.0
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert '"exchanges": 300' in output


def test_a_vehicle_in_lockstep_leaves_when_the_rig_has_ended(
    start_vehicle: Callable[..., subprocess.Popen[str]],
) -> None:
    """Nobody stops it: the bye that ends a run on the virtual clock does."""
    with LockstepRig(timeout_s=PATIENCE_S) as rig:
        process = start_vehicle(rig.endpoint, True)
        rig.exchange(step_message(0))
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert '"exchanges": 1' in output


def test_vehicle_that_never_answers_is_named_with_endpoint_time_and_step() -> None:
    with LockstepRig(timeout_s=0.1) as rig, pytest.raises(PeerError) as error:
        rig.exchange(step_message(0))
    assert str(error.value) == f"vehicle at {rig.endpoint} has not answered within 0.1 s (step 0): is it started?"


def test_vehicle_that_connects_but_does_not_answer_times_out() -> None:
    with LockstepRig(timeout_s=0.15) as rig:
        mute = zmq.Context.instance().socket(zmq.REP)
        mute.connect(rig.endpoint)
        try:
            with pytest.raises(PeerError, match=r"has not answered within 0.15 s \(step 3\)"):
                rig.exchange(step_message(3))
        finally:
            mute.close(linger=0)


def test_dead_vehicle_process_ends_the_wait_at_once() -> None:
    with LockstepRig(timeout_s=PATIENCE_S, peer_dead=lambda: "has ended with status 2") as rig:
        with pytest.raises(PeerError, match="has ended with status 2"):
            rig.exchange(step_message(0))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (msgpack.packb({**body(state_message()), "F": math.nan}), "key F = nan"),
        (b"\x00" * 5000, "5000 bytes, allowed: at most 4096"),
        (b"\xc1", "not a msgpack map"),
        (encode(state_message(4)), "answered step 4"),
        (encode(step_message(0)), "allowed: the step it was asked"),
        (encode(ByeMessage("out of fuel")), "has left at step 0: out of fuel"),
    ],
)
def test_answer_that_is_not_as_agreed_stops_the_run_with_its_cause(answer: bytes, text: str) -> None:
    with LockstepRig() as rig:
        peer = zmq.Context.instance().socket(zmq.REP)
        peer.connect(rig.endpoint)

        def reply() -> None:
            peer.recv()
            peer.send(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        try:
            with pytest.raises(PeerError, match=text):
                rig.exchange(step_message(0))
        finally:
            thread.join()
            peer.close(linger=0)


def test_request_the_vehicle_refuses_is_answered_with_the_cause() -> None:
    rig = zmq.Context.instance().socket(zmq.REQ)
    port = rig.bind_to_random_port("tcp://127.0.0.1")
    server = LockstepServer(f"tcp://127.0.0.1:{port}")
    try:
        rig.send(msgpack.packb({**body(step_message()), "F_wheel": math.nan}))
        assert server.serve_one(VehicleModel(load_vehicle_config(VEHICLE)).step, PATIENCE_MS)
        assert decode(rig.recv()) == ByeMessage("request refused: key F_wheel = nan, allowed: a finite number")
        assert server.rejected["not_finite"] == 1
    finally:
        server.close()
        rig.close(linger=0)


def test_curve_lets_only_known_vehicles_in(tmp_path: Path) -> None:
    if not zmq.has("curve"):
        pytest.skip("this libzmq is built without CURVE")
    (tmp_path / "known").mkdir()
    keys = {name: zmq.auth.create_certificates(tmp_path, name) for name in ("rig", "vehicle", "stranger")}
    (tmp_path / "known" / "vehicle.key").write_text(Path(keys["vehicle"][0]).read_text())
    context = zmq.Context()
    curve = CurveKeys(Path(keys["rig"][1]), clients=tmp_path / "known")
    rig = LockstepClient(ANY, timeout_s=0.5, curve=curve, context=context)
    model = VehicleModel(load_vehicle_config(VEHICLE))

    def connect(name: str) -> LockstepServer:
        return LockstepServer(rig.endpoint, CurveKeys(Path(keys[name][1]), server_public=Path(keys["rig"][0])))

    stranger = connect("stranger")
    try:
        with pytest.raises(PeerError, match="has not answered"):
            rig.exchange(step_message(0))
        known, stop = connect("vehicle"), threading.Event()

        def serve() -> None:
            while not stop.is_set():
                known.serve_one(model.step)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            rig.timeout_s = PATIENCE_S
            assert rig.exchange(step_message(0)).step == 0
        finally:
            stop.set()
            thread.join()
            known.close()
        assert stranger.exchanges == 0
    finally:
        stranger.close()
        rig.close()
        context.term()


# --- latest value ----------------------------------------------------------------------------------------------------
#: of the first contact
FIRST_STEP = 10


class Link:
    """A RigLink with its slots and a bare socket as the vehicle."""

    def __init__(self) -> None:
        self.rig_slot, self.vehicle_slot = LatestSlot(len(RIG_SLOT)), LatestSlot(len(VEHICLE_SLOT))
        self.link = RigLink(ANY, self.rig_slot, self.vehicle_slot)
        self.link.start()
        self.peer = zmq.Context.instance().socket(zmq.PAIR)
        self.peer.connect(self.link.endpoint)

    def write(self, step: int, **values: float) -> None:
        message = step_message(step, **values)
        self.rig_slot.write([float(getattr(message, key)) for key in RIG_SLOT])

    def receive(self) -> Any:
        """What the rig sends next. A step of the first contact may come once more: the link's thread may see what was
        written last long after it was written."""
        while True:
            assert self.peer.poll(PATIENCE_MS), "nothing came from the rig"
            message = decode(self.peer.recv())
            if not isinstance(message, StepMessage) or message.step != FIRST_STEP:
                return message

    def newest(self) -> dict[str, float]:
        return dict(zip(VEHICLE_SLOT, self.vehicle_slot.read()[2], strict=True))

    def close(self) -> None:
        self.link.stop()
        self.peer.close(linger=0)


@pytest.fixture
def link() -> Iterator[Link]:
    link = Link()
    yield link
    link.close()


def first_contact(link: Link) -> None:
    """Repeat until the connection stands and the rig has sent its first step."""

    def arrived() -> bool:
        link.write(FIRST_STEP)
        return bool(link.peer.poll(5))

    wait_for(arrived)


def test_newest_rig_state_goes_out_and_the_answer_lands_in_the_slot(link: Link) -> None:
    first_contact(link)
    link.write(20, speed=3.0, I_wheel=12.0)
    message = link.receive()
    assert (message.step, message.speed, message.I_wheel) == (20, 3.0, 12.0)
    link.peer.send(encode(state_message(20, 1, speed=2.75, F=-55.0)))
    wait_for(lambda: link.vehicle_slot.version == 1)
    assert (link.newest()["F"], link.newest()["step"]) == (-55.0, 20.0)
    stats = link.link.stats()
    assert stats.coupling.max_mps == pytest.approx(0.25)
    assert stats.answer_age.count == 1


@pytest.mark.parametrize(("data", "reason"), [case for case in MALFORMED if case[1] != "malformed" or case[0]])
def test_bad_state_is_counted_and_never_reaches_the_slot(link: Link, data: bytes, reason: str) -> None:
    first_contact(link)
    link.peer.send(data)
    wait_for(lambda: link.link.stats().rejected[reason] == 1)
    assert link.vehicle_slot.version == 0
    assert link.link.is_alive()


def test_duplicate_gap_late_and_future_answers_are_told_apart(link: Link) -> None:
    first_contact(link)
    for step in (11, 12, 13, 14):
        link.write(step)
        assert link.receive().step == step
    for step, own in ((11, 1), (11, 1), (13, 3), (12, 2), (13, 4), (99, 5), (14, 6)):
        link.peer.send(encode(state_message(step, own, F=-float(own))))
    wait_for(lambda: link.link.received == 7)
    stats = link.link.stats()
    # 11/1 new, again duplicate; own 3: one lost; own 2: late; step 13 again: duplicate; 99: a step the rig has not
    # sent; 14 new
    assert stats.accepted == 3
    assert (stats.duplicate, stats.out_of_order, stats.gap, stats.lost) == (2, 1, 1, 1)
    assert stats.rejected["range"] == 1
    assert link.newest()["F"] == -6.0


def test_age_in_steps_is_that_of_the_newest_step_sent(link: Link) -> None:
    first_contact(link)
    for step in (11, 12, 17):
        link.write(step)
        assert link.receive().step == step
    link.peer.send(encode(state_message(11)))
    wait_for(lambda: link.vehicle_slot.version == 1)
    assert link.link.stats().age_steps_max == 6


def test_bye_of_either_side_is_seen_by_the_other(link: Link) -> None:
    first_contact(link)
    link.peer.send(encode(ByeMessage("going home")))
    wait_for(lambda: link.link.bye == "going home")
    link.link.stop()
    assert link.receive() == ByeMessage("the rig has stopped")


def test_second_vehicle_on_the_same_rig_gets_nothing(link: Link) -> None:
    first_contact(link)
    second = VehicleEnd(link.link.endpoint)
    try:
        link.write(30)
        assert second.receive(150) is None
        assert link.receive().step == 30
    finally:
        second.close()


def test_vehicle_process_follows_the_rig_in_real_time_and_ends_with_it(
    start_vehicle: Callable[..., subprocess.Popen[str]],
) -> None:
    rig_slot, vehicle_slot = LatestSlot(len(RIG_SLOT)), LatestSlot(len(VEHICLE_SLOT))
    link = RigLink(ANY, rig_slot, vehicle_slot)
    process = start_vehicle(link.endpoint, False)
    link.start()
    try:
        rig_slot.write([0.0] * len(RIG_SLOT))
        wait_for(lambda: vehicle_slot.version > 0, lambda: process.poll() is None)
        # 3000 N on 1500 kg for half a second, in steps of 5 ms of which any may be skipped
        for k in range(1, 101):
            rig_slot.write([5.0 * k, 5e-3 * k, 3000.0, 15.0 * k, 0.0, 0.0, 0.0])
            time.sleep(2e-3)
        wait_for(lambda: vehicle_slot.read()[2][0] == 500.0)
        speed = vehicle_slot.read()[2][VEHICLE_SLOT.index("speed")]
        assert speed == pytest.approx((3000.0 - 176.58) / 1500.0 * 0.5, abs=1e-3)
        assert sum(link.stats().rejected.values()) == 0
    finally:
        link.stop()
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert '"answered"' in output
