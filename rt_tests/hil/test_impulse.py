"""The impulse handed to the vehicle model, from what was recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from control_help import Running, SlowCar
from rig_help import DESK, Car, run

from torqueloop.hil.link.messages import StateMessage
from torqueloop.hil.record.run_data import read_signals


def gusty(state: StateMessage | None, t: float) -> StateMessage:
    """A force that changes from tick to tick."""
    assert state is not None
    return StateMessage(**{**vars(state), "F": 5000.0 * math.sin(60.0 * t)})


class Gusts(Car):
    def __call__(self, message):
        return gusty(super().__call__(message), message.t)


class SlowGusts(SlowCar):
    def __call__(self, message):
        return gusty(super().__call__(message), message.t)


def test_tractive_impulse_is_the_momentum_and_the_trapezoid_of_the_force(tmp_path):
    """m*dv = dI + integral of F: what the driveline gave follows from speed and force as they are recorded."""
    out = tmp_path / "run"
    run(DESK, out, 0.5, car=Gusts())
    s = read_signals(out)
    force = s["road.F"] + s["road.F_friction"]
    m, tick_s = 1500.0, 1e-3
    got = m * np.diff(s["car.v"]) - tick_s * 0.5 * (force[1:] + force[:-1])
    assert np.ptp(force) > 1000.0, "a constant force would prove nothing"
    np.testing.assert_allclose(np.diff(s["link.I_wheel"]), got, rtol=0, atol=1e-9 * m)


@pytest.mark.proof
def test_the_impulse_is_that_of_the_mass_that_was_set(tmp_path):
    """The momentum that a change of mass brings by itself is none that the driveline gave; every later one is that of
    the new mass."""
    going = Running(DESK, tmp_path / "run", 0.6, vehicle=SlowGusts(before=(300,)))
    with going.client() as client:
        changed = client.set({"car.m": 3000.0}, at=300)
    assert changed == 300 and going.join().stats.clock.ticks == 600
    s = read_signals(tmp_path / "run")
    force = s["road.F"] + s["road.F_friction"]
    m = np.where(np.arange(1, len(force)) < changed, 1500.0, 3000.0)
    got = m * np.diff(s["car.v"]) - 0.5e-3 * (force[1:] + force[:-1])
    assert np.abs(np.diff(s["car.v"]))[changed + 5 :].max() > 1e-4, "a car at rest would prove nothing"
    told = np.diff(s["link.I_wheel"])
    np.testing.assert_allclose(told[changed + 5 :], got[changed + 5 :], rtol=0, atol=1e-9 * 3000.0)
    assert np.abs(told[changed - 5 : changed + 5]).max() < 100.0
