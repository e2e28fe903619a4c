"""Bodies that carry drivelines, message by message: what the rig is told of them against SciPy, with a yaw rate that is
given and without one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from torqueloop.hil.link.messages import StepMessage
from torqueloop.hil.vehicle.carrier import TurningBodies
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import CarrierBody, load_vehicle_config

INERTIA, C, D = np.array([3.0, 5.0, 7.0]), np.array([200.0, 300.0, 50.0]), np.array([2.0, 1.0, 0.5])
AT = [1.0, -2.0, 0.5]
#: times of messages: one of them late, two close together; moments in them
TIMES = [0.0, 0.02, 0.1, 0.104, 0.31, 0.5]
MOMENTS = np.array(
    [[4.0, -3.0, 2.0], [1.0, 5.0, 0.0], [-6.0, 2.0, 8.0], [0.0, 0.0, -4.0], [3.0, 9.0, 1.0], [2.0, 2.0, 2.0]]
)
YAW = np.array([[0.05, 0.4], [0.25, 1.2], [0.4, 0.7]])


def body(yaw: bool) -> CarrierBody:
    given: dict[str, Any] = {"yaw_radps": YAW.tolist()} if yaw else {}
    return CarrierBody(I_kgm2=INERTIA.tolist(), c_Nm_per_rad=C.tolist(), d_Nms_per_rad=D.tolist(), at_m=AT, **given)


def yaw_at(t: float) -> tuple[float, float]:
    """Given rate and its slope just behind t."""
    slopes = np.diff(YAW[:, 1]) / np.diff(YAW[:, 0])
    k = int(np.searchsorted(YAW[:, 0], t, "right")) - 1
    return float(np.interp(t, *YAW.T)), float(slopes[k]) if 0 <= k < len(slopes) else 0.0


@cache
def wanted(yaw: bool) -> list[np.ndarray]:
    """Angles, speeds, accelerations, attitude (9 numbers of the matrix) at each message."""

    def slope(t: float, y: np.ndarray, k: int) -> np.ndarray:
        w, R = y[3:6], y[6:].reshape(3, 3)
        share = (t - TIMES[k]) / (TIMES[k + 1] - TIMES[k])
        return np.r_[w, spun(t, y, MOMENTS[k] + share * (MOMENTS[k + 1] - MOMENTS[k])), np.cross(R, w).ravel()]

    def spun(t: float, y: np.ndarray, moment: np.ndarray) -> np.ndarray:
        z = (moment - np.cross(y[3:6], INERTIA * y[3:6]) - C * y[:3] - D * y[3:6]) / INERTIA
        return np.r_[z[:2], yaw_at(t)[1]] if yaw else z

    y = np.r_[0, 0, 0, 0, 0, yaw_at(0.0)[0] if yaw else 0.0, np.eye(3).ravel()]
    found = [np.r_[y[:6], spun(0.0, y, MOMENTS[0]), y[6:]]]
    for k, (t0, t1) in enumerate(zip(TIMES, TIMES[1:], strict=False)):
        inside = [t for t in YAW[:, 0] if yaw and t0 < t < t1]
        for a, b in zip([t0, *inside], [*inside, t1], strict=True):
            y = solve_ivp(slope, (a, b), y, "DOP853", rtol=1e-10, atol=1e-11, args=(k,)).y[:, -1]
        found.append(np.r_[y[:6], spun(t1, y, MOMENTS[k + 1]), y[6:]])
    return found


def message(k: int, posed: bool) -> StepMessage:
    told = [*MOMENTS[k], *([7.0, 8.0, 9.0] if posed else [])]
    return StepMessage(k, TIMES[k], 0.0, 0.0, 0.0, 0.0, 0.0, {"body": told})


@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("yaw", [False, True])
def test_the_motion_of_a_body_follows_from_the_moments_in_the_messages(yaw: bool, posed: bool) -> None:
    """Steps of 1 ms, the moment linear from one message to the next. A step over a corner of the given yaw rate is of
    second order, so the bound is wider there."""
    bodies, last = TurningBodies({"body": body(yaw)}, 1e-3), None
    for k, exact in enumerate(wanted(yaw)):
        told = np.array(bodies.step(last, message(k, posed))["body"])
        assert len(told) == (16 if posed else 6)
        assert told[:6] == pytest.approx(exact[3:9], abs=2e-6 if yaw else 1e-7), TIMES[k]
        if posed:
            assert told[6:9].tolist() == [0.0, 0.0, 0.0] and told[13:].tolist() == AT
            assert Rotation.from_quat(np.roll(told[9:13], -1)).as_matrix().ravel() == pytest.approx(exact[9:], abs=2e-7)
        last = message(k, posed)
    assert bodies.save()["body"][:3] == pytest.approx(exact[:3], abs=2e-7)


def test_a_rig_that_begins_again_finds_the_body_at_rest() -> None:
    config = load_vehicle_config(Path(__file__).resolve().parents[2] / "configs/vehicles/bmw_528i_hill.toml")
    model = VehicleModel(config.model_copy(update={"carrier": {"body": body(True)}}))
    first = [model.step(message(k, False)).carrier["body"] for k in range(3)]
    assert first[2] != first[0]
    again = [model.step(message(k, False)).carrier["body"] for k in range(3)]
    assert again == first and model.restarts == 1
