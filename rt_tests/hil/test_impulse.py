"""The impulse handed to the vehicle model, from what was recorded."""

from __future__ import annotations

import math

import numpy as np
from rig_help import DESK, Car, run

from torqueloop.hil.link.messages import StateMessage
from torqueloop.hil.record.run_data import read_signals


class Gusts(Car):
    """The vehicle model with a force that changes from tick to tick."""

    def __call__(self, message):
        state = super().__call__(message)
        assert state is not None
        return StateMessage(**{**vars(state), "F": 5000.0 * math.sin(60.0 * message.t)})


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
