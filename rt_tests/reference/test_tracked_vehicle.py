"""The tracked vehicle of Maegi, Jacobson, Resev 1998 against SciPy on the paper's equations, written down anew.

Train: J*dw/dt + C_mod^T*F = T, C*w = 0 (equations 4, 14), one big linear system per evaluation; no code of ours in it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from torqueloop.core.controls.tracked_chassis import TrackedChassis, TrackedVehicle, Tyre
from torqueloop.core.describe.errors import RangeError

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "figures"))

from tracked_vehicle import BRAKE_AT, CASES, PERIOD, Case, drive

Array = NDArray[np.float64]
# places of the shafts in w
PC, H, AL, AR, CL, CR, FL, FR, DL, DR = range(10)
#: wheel at `in`, wheel at `out`, radii [m], on the carrier?, mirrored?
TEETH = (
    (H, PC, 0.03, 0.12, False, True),
    (AL, FL, 0.05, 0.05, False, True),
    (AR, FR, 0.05, 0.05, False, True),
    (DL, FL, 0.032, 0.052, True, False),
    (DR, FR, 0.032, 0.052, True, False),
    (CL, DL, 0.024, 0.06, True, False),
    (CR, DR, 0.024, 0.06, True, False),
    (DL, DR, 0.032, 0.032, True, False),
)
C_SHAFT, D_SHAFT, BRAKE_NM = 5000.0, 20.0, 400.0


def train_matrices(offsets: Array) -> Array:
    """Rows of the meshes with radii R_in + f, R_out - f."""
    C = np.zeros((8, 10))
    for k, (i, j, r_in, r_out, on_carrier, mirrored) in enumerate(TEETH):
        a, b = r_in + offsets[k], r_out - offsets[k]
        b = -b if mirrored else b
        C[k, i] += a
        C[k, j] += b
        if on_carrier:
            C[k, PC] -= a + b
    return C


#: rows of train_matrices for each metre of offset
DISPLACED = train_matrices(np.ones(8)) - train_matrices(np.zeros(8))


def relative_speeds() -> Array:
    """Rows that give the relative speeds of the wheels in mesh, seen from the carrier they are on."""
    rows = np.zeros((8, 10))
    for row, (i, j, _, _, on_carrier, mirrored) in zip(rows, TEETH, strict=True):
        other = 1.0 if mirrored else -1.0
        row[i] += 1.0
        row[j] += other
        row[PC] -= (1.0 + other) * on_carrier
    return rows


RELATIVE = relative_speeds()


def losses_1_percent() -> Array:
    """deltaR for 1 % loss in a mesh: (R_out - f)/R_out * R_in/(R_in + f) = 0.99."""
    listed = [0.241935, 0.251256, 0.251256, 0.199329, 0.199329, 0.172662, 0.172662, 0.160804]
    for f, (_, _, r_in, r_out, *_rest) in zip(listed, TEETH, strict=True):
        f *= 1e-3
        assert (r_out - f) / r_out * r_in / (r_in + f) == pytest.approx(0.99, abs=2e-5)
    return 1e-3 * np.array(listed)


class Paper:
    """Tables 1 to 3 and equations 4, 14 with shafts to the wheels."""

    def __init__(self, case: Case, k_tyre: float) -> None:
        self.case, self.k = case, k_tyre
        self.J = np.full(10, max(0.1 * case.train, 1e-4))
        self.J[H] += 0.001
        self.C = train_matrices(np.zeros(8))
        self.dR = losses_1_percent() * case.train
        self.locked = False

    def engine(self, w: float) -> float:
        """Table 1 at full pedal, straight between every 10 rad/s as the file has it."""
        grid = np.arange(0.0, 610.0, 10.0)
        return float(np.interp(w, grid, 200.0 - 200.0 / 300.0**2 * (grid - 250.0) ** 2))

    def accelerations(self, w: Array, torque: Array) -> Array:
        n = 18 + self.locked
        system = np.zeros((n, n))
        system[:10, :10] = np.diag(self.J)
        system[10:18, :10] = self.C
        system[:10, 10:18] = self.C.T
        if self.locked:
            system[18, CR] = system[CR, 18] = 1.0
        sign_w = np.tanh(RELATIVE @ w / 1e-3)
        offsets, right = np.zeros(8), np.concatenate([torque, np.zeros(n - 10)])
        for _ in range(3):
            # the meshes as they are displaced; radii enter in proportion
            system[:10, 10:18] = (self.C + offsets[:, None] * DISPLACED).T
            solved = np.linalg.solve(system, right)
            # the power f*F*relative is lost: f has the sign of -(multiplier)*relative
            after = self.dR * np.sign(solved[10:18]) * sign_w
            if np.array_equal(after, offsets):
                break
            offsets = after
        return np.asarray(solved[:10])

    def slopes(self, t: float, y: Array) -> Array:
        w, twist = y[:10], y[10:12]
        wl, wr, vx, vy, r, heading = y[12:18]
        shaft = C_SHAFT * twist + D_SHAFT * (w[[AL, AR]] - y[12:14])
        torque = np.zeros(10)
        torque[H] = self.engine(w[H])
        torque[[AL, AR]] -= shaft
        if not self.locked and t > BRAKE_AT:
            torque[CR] -= BRAKE_NM * min((t - BRAKE_AT) / self.case.rise_s, 1.0)
        a = self.accelerations(w, torque)
        load = 0.75 * 1000.0 * 9.81 / 2.0
        force = []
        for speed, side in ((wl, 1.0), (wr, -1.0)):
            ux, uy = vx + side * r, vy - 1.5 * r
            sx, sy = (0.3 * speed - ux) / abs(ux), -uy / abs(ux)
            s = math.hypot(sx, sy) or 1e-15
            size = load * 2.0 / math.pi * math.atan(self.k * s)
            force.append((size * sx / s, size * sy / s))
        (fxl, fyl), (fxr, fyr) = force
        front = 2000.0 * math.atan((-1.5 * r - vy) / vx)
        return np.concatenate([a, w[[AL, AR]] - [wl, wr], [
            (shaft[0] - 0.3 * fxl) / 0.5, (shaft[1] - 0.3 * fxr) / 0.5,
            (fxl + fxr - 0.02 * 9810.0 - 0.5 * vx * abs(vx)) / 1000.0 + vy * r,
            (front + fyl + fyr) / 1000.0 - vx * r,
            (1.5 * front - 1.5 * (fyl + fyr) + fxl - fxr) / 1000.0,
            r, vx * math.cos(heading) - vy * math.sin(heading), vx * math.sin(heading) + vy * math.cos(heading),
        ]])  # fmt: skip

    def run(self, T: float) -> tuple[Callable[[float], Array], float]:
        """State over time, and when the brake locks."""
        y = np.zeros(20)
        y[12:14], y[14] = 0.01 / 0.3, 0.01

        # the train stands at the start; so do its shafts
        def stops(t: float, y: Array) -> float:
            return float(y[CR])

        # the brake's torque keeps its sign until the rotor stands
        stops.terminal, stops.direction = True, -1  # type: ignore[attr-defined]
        options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-10, "dense_output": True}
        first = solve_ivp(self.slopes, (0.0, BRAKE_AT), y, **options)
        second = solve_ivp(self.slopes, (BRAKE_AT, T), first.y[:, -1], events=stops, **options)
        assert second.t_events[0].size == 1
        at = float(second.t_events[0][0])
        self.locked = True
        start = second.y[:, -1].copy()
        start[CR] = 0.0
        third = solve_ivp(self.slopes, (at, T), start, **options)
        pieces = [(BRAKE_AT, first.sol), (at, second.sol), (math.inf, third.sol)]
        return (lambda t: np.asarray(next(sol for end, sol in pieces if t <= end)(t))), at


@cache
def of_the_paper(case: Case) -> tuple[Callable[[float], Array], float]:
    """6.5 s of a case with the tyre as printed."""
    return Paper(case, math.tan(0.45 * math.pi) * 0.1).run(6.5)


@pytest.mark.proof
@pytest.mark.parametrize("period", [1e-3, PERIOD])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_train_and_chassis_follow_the_equations_of_the_paper(case: Case, period: float) -> None:
    """All cases of table 4, at one exchange a tick and at the script's own period, whose error is up to twice
    as large."""
    T, most = 6.5, 2e-4 * min((period / 1e-3) ** 2, 2.0)
    tyre = Tyre(form="printed")
    run = drive(case, tyre, T, period=period)
    reference, lock = of_the_paper(case)
    r = run.result
    ours = r.time[np.flatnonzero((r["brake_R.mode"] == 0) & (r.time > BRAKE_AT + 0.01))[0]]
    assert abs(ours - lock) <= 1.5e-3, "seen at the end of its tick"
    places = {"w_L": 12, "w_R": 13, "vx": 14, "vy": 15, "yaw_rate": 16, "heading": 17, "x": 18, "y": 19}
    times = np.array([1.0, 3.0, 5.0, 5.2, 5.5, 6.0, 6.5])
    expected = np.array([reference(t) for t in times])
    rows = np.rint(times / period).astype(int) - 1
    for name, place in places.items():
        scale = np.abs(expected[:, place]).max()
        np.testing.assert_allclose(
            run.commands[f"car.{name}"][rows], expected[:, place], rtol=0, atol=most * scale, err_msg=name
        )
    ticks = np.rint(times / 1e-3).astype(int)
    for name, shaft in (("engine", H), ("A_L", AL), ("A_R", AR), ("C_L", CL)):
        scale = np.abs(expected[:, shaft]).max()
        np.testing.assert_allclose(r[f"{name}.w"][ticks], expected[:, shaft], rtol=0, atol=5e-4 * scale, err_msg=name)
    assert r["A_L.w"][-1] / r["A_R.w"][-1] == pytest.approx(81 / 49, rel=1e-9)


def test_energy_of_the_chassis_closes() -> None:
    """Work of the shafts = kinetic energy + lost in the tyres + resistance; straight ahead."""
    vehicle = TrackedVehicle(vx_start=5.0)
    chassis = TrackedChassis(vehicle, 1e-3)
    before, work, resisted = chassis.kinetic_energy(), 0.0, 0.0
    for k in range(2000):
        w, v = chassis.state[0], chassis.state[2]
        chassis.step(1e-3 * k, {"torque_L": 150.0, "torque_R": 150.0})
        after_w, after_v = chassis.state[0], chassis.state[2]
        work += 300.0 * 0.5 * (w + after_w) * 1e-3
        mean = 0.5 * (v + after_v)
        resisted += (0.02 * 9810.0 + 0.5 * mean * mean) * mean * 1e-3
    assert chassis.kinetic_energy() - before + chassis.state[8] + resisted == pytest.approx(work, rel=1e-6)
    # LAPACK's rounding differs from processor to processor: 0 or 2e-22 m/s to the side
    assert chassis.state[8] > 0.0 and abs(chassis.state[3]) < 1e-18


@pytest.mark.parametrize(("make", "words"), [
    (lambda: TrackedVehicle(m=0.0), "m = 0"),
    (lambda: TrackedVehicle(track=-1.0), "track = -1"),
    (lambda: Tyre(form="hard"), "form = 'hard'"),  # type: ignore[arg-type]
    (lambda: Tyre(slip_90=0.0), "slip_90 = 0"),
    (lambda: TrackedChassis(TrackedVehicle(), 0.0), "period = 0"),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(RangeError, match=words):
        make()
