"""A vehicle that steps every 10 ms beside a rig of 1 ms ticks: it is told the mean of the wheel force since the message
before, so it gets the momentum the driveline gave. Compared with SciPy.

The driveline is a constant torque on a small inertia behind a spring that rings at 100 Hz, which ten milliseconds
sample at the same phase each time: samples of the force give a fifth too little momentum in the first second.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from rig_help import CONFIGS, own_endpoint
from scipy.integrate import solve_ivp
from waiting import PATIENCE_MS, PATIENCE_S

import torqueloop as tl
from torqueloop.core.describe.errors import RangeError
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.link.messages import RIG_SLOT, VEHICLE_SLOT, StateMessage, StepMessage
from torqueloop.hil.rig.resolve.plan import load_plan

TORQUE, J, M, R, DRAG = 300.0, 0.05, 1000.0, 0.3, 40.0
#: 100 Hz against the car, whose inertia at the wheel is M R^2
C = (2.0 * math.pi * 100.0) ** 2 / (1.0 / J + 1.0 / (M * R * R))
D, PERIOD, SECONDS = 0.5, 0.01, 1.0

PLANT = f"""
name = "ringing"
connections = [["torque.flange", "rotor.flange_a"], ["rotor.flange_b", "shaft.flange_a"],
               ["shaft.flange_b", "wheel.flangeR"], ["wheel.flangeT", "car.flange_a"], ["car.flange_b", "road.flange"]]
[components.torque]
kind = "ConstantTorque"
tau_constant_Nm = {TORQUE}
[components.rotor]
kind = "Inertia"
J_kgm2 = {J}
[components.shaft]
kind = "SpringDamper"
c_Nm_per_rad = {C!r}
d_Nms_per_rad = {D}
[components.wheel]
kind = "IdealRollingWheel"
radius_m = {R}
[components.car]
kind = "Mass"
m_kg = {M}
[components.road]
kind = "RoadLoad"
"""
RIG = """
[rig]
name = "slow"
duration_s = 1.0
[plant]
powertrain = "ringing.toml"
[clock]
substeps = 4
[vehicle]
period_s = {period}
{more}
[inputs]
"road.F" = "vehicle.F"
"road.F_hold" = "vehicle.F_hold"
[driver]
brake = 0.0
"""


def rig(folder: Path, period: float = PERIOD, more: str = "") -> Path:
    (folder / "ringing.toml").write_text(PLANT)
    path = folder / "slow.toml"
    path.write_text(RIG.format(period=period, more=more))
    return path


class SlowCar:
    """Integrates the wheel force it is told, and says the drag at its own speed until the next message."""

    def __init__(self) -> None:
        self.t, self.v, self.force, self.told = 0.0, 0.0, 0.0, []

    def __call__(self, message: StepMessage) -> StateMessage:
        dt = message.t - self.t
        self.v += dt * (message.F_wheel + self.force) / M
        self.t, self.force = message.t, -DRAG * self.v
        self.told.append((message.t, self.v, message.speed))
        return StateMessage(message.step, len(self.told) - 1, message.t, self.v, 0.0, self.force, 0.0, 0.0)


def exact() -> tuple[np.ndarray, np.ndarray]:
    """Speed of the car at each exchange; drag as it was at the exchange before."""
    state, found = np.zeros(4), [0.0]
    for _ in range(round(SECONDS / PERIOD)):
        force = -DRAG * state[3]

        def rates(t: float, y: np.ndarray, force: float = force) -> list[float]:
            phi, w, s, v = y
            tau = C * (phi - s / R) + D * (w - v / R)
            return [w, (TORQUE - tau) / J, v, (tau / R + force) / M]

        state = solve_ivp(rates, (0.0, PERIOD), state, rtol=1e-10, atol=1e-12).y[:, -1]
        found.append(state[3])
    return PERIOD * np.arange(len(found)), np.array(found)


def compared(car: SlowCar) -> None:
    t, v = exact()
    told = np.array(car.told)
    assert len(told) >= round(SECONDS / PERIOD) and np.allclose(np.diff(told[:, 0]), PERIOD, atol=1e-9)
    np.testing.assert_allclose(told[:, 1], np.interp(told[:, 0], t, v), atol=2e-4 * v[-1])
    # nothing of the momentum is lost: the model's own integration is the rig's
    np.testing.assert_allclose(told[:, 1], told[:, 2], atol=1e-3 * v[-1])


def test_in_the_rig_s_process(tmp_path: Path) -> None:
    car = SlowCar()
    tl.run(rig(tmp_path), clock="virtual", out=tmp_path / "run", vehicle=car, html=False)
    compared(car)


def test_samples_would_be_wrong_by_a_fifth(tmp_path: Path) -> None:
    """The planted error: the force of the last tick instead of the mean; the comparison sees it."""

    class Sampled(SlowCar):
        last = 0.0

        def __call__(self, message: StepMessage) -> StateMessage:
            # told every tick: the force of the tick before each tenth
            if round(message.t / 1e-3) % 10:
                self.last = message.F_wheel
                return StateMessage(message.step, message.step, message.t, self.v, 0.0, self.force, 0.0, 0.0)
            return super().__call__(message)

    car = Sampled()
    tl.run(rig(tmp_path, period=0.0), clock="virtual", out=tmp_path / "run", vehicle=car, html=False)
    _, v = exact()
    assert abs(car.told[-1][1] / v[-1] - 1.0) > 0.1
    with pytest.raises(AssertionError):
        compared(car)


def over_zeromq(endpoint: str, kind: int, car: SlowCar) -> None:
    """A peer as docs/vehicle_link.md has it."""
    socket = zmq.Context.instance().socket(kind)
    socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
    socket.connect(endpoint)
    try:
        while (m := msgpack.unpackb(socket.recv()))["kind"] == "step":
            message = StepMessage(**{k: m[k] for k in ("step", "t", "F_wheel", "I_wheel", "speed", "s", "brake")})
            socket.send(msgpack.packb({"v": 1, "kind": "state", **{k: v for k, v in vars(car(message)).items()
                                                                   if k != "carrier"}}))  # fmt: skip
    finally:
        socket.close(0)


def test_over_zeromq_in_lockstep(tmp_path: Path) -> None:
    car, endpoint = SlowCar(), own_endpoint()
    path = rig(tmp_path, more=f'endpoint = "{endpoint}"')
    peer = threading.Thread(target=over_zeromq, args=(endpoint, zmq.REP, car), daemon=True)
    peer.start()
    tl.run(path, clock="virtual", out=tmp_path / "run", html=False)
    peer.join(PATIENCE_S)
    compared(car)


def test_over_shared_memory_the_states_are_those_in_process(tmp_path: Path) -> None:
    """Our road model in a process of its own and in the rig's: equal hashes, one exchange in ten ticks."""
    desk = CONFIGS / "rigs" / "desk_4hp22.toml"
    hashes, exchanges = set(), set()
    for in_process in (True, False):
        run = tl.run(desk, clock="virtual", duration=1.0, out=tmp_path / str(in_process), html=False,
                     overrides={"vehicle.period_s": PERIOD, "vehicle.in_process": in_process})  # fmt: skip
        hashes.add(run.stats.hash)
        exchanges.add(run.stats.vehicles["vehicle"].link.exchanges)
    assert len(hashes) == 1 and exchanges == {100}


def test_on_the_real_clock_the_forces_of_the_messages_add_up_to_the_impulse() -> None:
    """Whatever ticks the thread meets: each message is ten ticks or more behind the one before and says the mean."""
    end = time.monotonic() + PATIENCE_S
    rig_slot, vehicle_slot = LatestSlot(len(RIG_SLOT)), LatestSlot(len(VEHICLE_SLOT))
    link = RigLink("tcp://127.0.0.1:0", rig_slot, vehicle_slot, 1e-3, every=10)
    link.start()
    peer = zmq.Context.instance().socket(zmq.PAIR)
    peer.connect(link.endpoint)
    heard: list[dict[str, Any]] = []
    impulse = 0.0
    try:
        for step in itertools.count(1):
            # rings at the rate of the messages
            force = 1000.0 + 900.0 * math.cos(2.0 * math.pi * step / 10.0)
            impulse += 1e-3 * force
            rig_slot.write([step, 1e-3 * step, force, impulse, 0.0, 0.0, 0.0])
            time.sleep(1e-3)
            while peer.poll(0):
                heard.append(msgpack.unpackb(peer.recv()))
            if len(heard) > 30 or time.monotonic() > end:
                break
    finally:
        link.stop()
        peer.close(0)
    heard = [m for m in heard if m["kind"] == "step"]
    assert len(heard) > 30
    for before, now in zip(heard, heard[1:], strict=False):
        assert now["step"] - before["step"] >= 10
        mean = (now["I_wheel"] - before["I_wheel"]) / (now["t"] - before["t"])
        assert now["F_wheel"] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize(
    ("more", "named"),
    [("period_s = 0.0015", "whole number of ticks"), ("period_s = 0.01\nage_limit_s = 0.005", "older than this")],
)
def test_a_period_that_cannot_be_is_refused(more: str, named: str, tmp_path: Path) -> None:
    path = rig(tmp_path)
    path.write_text(path.read_text().replace(f"period_s = {PERIOD}", more))
    with pytest.raises(RangeError, match=named):
        load_plan(path)
