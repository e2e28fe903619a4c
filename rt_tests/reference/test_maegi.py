"""The oscillator of Maegi, Jacobson, Resev 1998, section 11 (figures 6 and 7): damped by the losses of one mesh only.

Flywheels FW1, FW2, FW3 on `in`, `out` and the carrier of a mesh with force-pole offset +-3, FW4 behind a linear spring
that is wound up; all speeds start at zero, nothing acts from outside. The paper gives neither inertias nor radii;
ours are below (lengths in mm in its manner, so that the offset is 3 mm). Reference: the paper's equations with all
constraint forces, SciPy between located events (the relative power passes zero through the force or through the speed).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from neutral import Mesh, SpringDamper, Train
from trajectory import Reference, Trajectory

from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

J = [0.02, 0.05, 0.03, 0.04]
R_IN, R_OUT, DELTA_R = Fraction(40, 1000), Fraction(60, 1000), Fraction(3, 1000)
STIFFNESS, WOUND_UP = 20.0, 1.5
T = 4.0
OSCILLATOR = Train(
    J, [Mesh(0, 1, 2, R_IN, R_OUT, DELTA_R), SpringDamper(1, 3, STIFFNESS)], phi0=np.array([0.0, 0.0, 0.0, WOUND_UP])
)


@pytest.fixture(scope="module")
def expected() -> Trajectory:
    return Reference(OSCILLATOR).run(T)


def run(n: int) -> Result:
    return Simulation(OSCILLATOR.driveline(), h=1e-3, substeps=n).run(T)


@pytest.mark.parametrize(("n", "accuracy"), [(1, 1e-5), (8, 1e-7)])
def test_motion_is_that_of_the_equations_with_located_switching(expected: Trajectory, n: int, accuracy: float) -> None:
    result = run(n)
    w, phi = expected(result.time)
    for k in range(4):
        assert np.abs(result[f"s{k}.w"] - w[:, k]).max() <= accuracy * np.ptp(w[:, k])
        assert np.abs(result[f"s{k}.phi"] - phi[:, k]).max() <= accuracy * np.ptp(phi[:, k])


def test_speeds_fulfil_the_row_of_the_mesh() -> None:
    result = run(1)
    w_in, w_out = result["s0.w"] - result["s2.w"], result["s1.w"] - result["s2.w"]
    np.testing.assert_allclose(float(R_IN) * w_in, -float(R_OUT) * w_out, rtol=0.0, atol=1e-13)


def test_energy_falls_by_the_losses_of_the_mesh_and_never_rises() -> None:
    result = run(1)
    w = np.stack([result[f"s{k}.w"] for k in range(4)], axis=1)
    twist = result["s3.phi"] - result["s1.phi"]
    energy = 0.5 * w**2 @ np.array(J) + 0.5 * STIFFNESS * twist**2
    assert energy[0] == pytest.approx(0.5 * STIFFNESS * WOUND_UP**2, rel=1e-14)
    assert np.diff(energy).max() <= 1e-6 * energy[0]
    assert np.diff(run(8)["mesh0.loss"]).min() >= 0.0
    np.testing.assert_allclose(energy[0] - energy, result["mesh0.loss"], rtol=0.0, atol=1e-5 * energy[0])
    assert energy[-1] < 0.8 * energy[0], "the motion is damped"


def test_loss_power_is_zero_exactly_when_the_relative_power_is_zero() -> None:
    result = run(1)
    w_in = result["s0.w"] - result["s2.w"]
    relative = result["mesh0.F"] * float(R_IN) * w_in
    loss = float(DELTA_R) * (1.0 / float(R_IN) + 1.0 / float(R_OUT)) * np.abs(relative)
    np.testing.assert_allclose(result["mesh0.lossPower"], loss, rtol=1e-9, atol=1e-9 * loss.max())
    assert (np.diff(np.sign(relative[1:])) != 0).sum() > 10, "the relative power passes zero again and again"


def test_the_force_pole_offset_toggles_between_plus_and_minus_delta_r(expected: Trajectory) -> None:
    result = run(8)
    w_in, w_out = result["s0.w"] - result["s2.w"], result["s1.w"] - result["s2.w"]
    power = result["mesh0.lossPower"]
    clear = np.abs(power) > 1e-6 * power.max()
    # the power the offset takes is f*F*(W_in - W_out)
    f = power[clear] / np.abs(result["mesh0.F"] * (w_in - w_out))[clear]
    np.testing.assert_allclose(f, float(DELTA_R), rtol=1e-9)
    sign = np.sign(result["mesh0.F"] * (w_in - w_out))[clear]
    toggles = int((np.diff(sign) != 0).sum())
    assert toggles == len(expected.phases) - 1 and set(sign) == {-1.0, 1.0}
