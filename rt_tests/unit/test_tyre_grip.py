"""TyreGrip: a driven axle rolls below the limit of its tyres and slips at it, with the load the acceleration gives."""

from __future__ import annotations

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.components import ConstantTorque, IdealRollingWheel, Inertia, Mass, TyreGrip
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError

M, J, R, G = 1780.0, 4.0, 0.316, 9.80665
SHARE, H, L = 0.5, 0.53, 2.89


def driven(torque: float, mue: float, transfer: float) -> tl.Result:
    """Half a second of a constant torque on the wheels of a standing car."""
    d = Driveline("axle")
    d.add("torque", ConstantTorque(tau_constant=torque))
    d.add("wheels", Inertia(J=J))
    d.add("grip", TyreGrip(radius=R, mue=mue, load=SHARE * M * G, transfer=transfer))
    d.add("wheel", IdealRollingWheel(radius=R))
    d.add("car", Mass(m=M))
    for a, b in (("torque.flange", "wheels.flange_a"), ("wheels.flange_b", "grip.flange_a"),
                 ("grip.flange_b", "wheel.flangeR"), ("wheel.flangeT", "car.flange_a")):  # fmt: skip
        d.connect(a, b)
    return tl.Simulation(d, h=1e-3).run(0.5)


@pytest.mark.parametrize("mue", [0.3, 0.8, 1.04])
@pytest.mark.parametrize("side", [1.0, 0.0, -1.0])
def test_at_the_limit_the_force_is_that_of_the_load_under_acceleration(mue: float, side: float) -> None:
    result = driven(6000.0, mue, side * H / L)
    t = 0.5
    a = float(result["car.v"][-1]) / t
    # the load of the axle from the acceleration that was found, by the moments about the other axle
    load = SHARE * M * G + side * M * a * H / L
    assert M * a == pytest.approx(mue * load, rel=1e-9)
    # the wheels get what is left, and the slip's work is its heat
    w = float(result["wheels.w"][-1])
    assert J * w / t == pytest.approx(6000.0 - M * a * R, rel=1e-9)
    assert float(result["grip.heat"][-1]) == pytest.approx(0.5 * t * M * a * (R * w - a * t), rel=1e-9)


def test_below_the_limit_the_axle_rolls() -> None:
    result = driven(2000.0, 0.9, H / L)
    np.testing.assert_allclose(result["car.v"], 2000.0 / R / (M + J / R**2) * result.time, atol=1e-9)
    np.testing.assert_allclose(result["car.v"], R * result["wheels.w"], atol=1e-9)
    assert float(result["grip.heat"][-1]) == 0.0


def test_a_car_that_would_tip_over_is_refused() -> None:
    with pytest.raises(RangeError, match=r"mue\*transfer < 1"):
        TyreGrip(radius=0.3, mue=1.5, load=1e4, transfer=0.7)
