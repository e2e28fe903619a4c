"""Breakpoints of tables over a speed at order 4: each is located, so the order is 4 across it.

Solutions are those of the equations with the tables as they are (DOP853 at 1e-12, steps of 0.2 ms at most).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the independent solver needs SciPy (extra `dev`)")

from hard_drivelines import full_throttle
from kernel_models import CONFIGS
from scipy.integrate import solve_ivp

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Brake,
    Clutch,
    Engine,
    Fixed,
    Inertia,
    LockUpTC,
    LossyGear,
    SignTorque,
    SpringDamper,
    Torque,
)
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine, Table
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model import derive

Array = np.ndarray
T = 0.4
STEPS = (4e-3, 2e-3, 1e-3)


def at(table: list[list[float]], x: float) -> float:
    return float(np.interp(x, [row[0] for row in table], [row[1] for row in table]))


def sine(amplitude: float, f: float) -> Callable[[float], float]:
    return lambda t: amplitude * float(np.sin(2.0 * np.pi * f * t))


@dataclass(frozen=True)
class Case:
    """A driveline with tables, its equations y' = rates(t, y), outputs that are y, and breakpoints passed at least."""

    driveline: Callable[[], Driveline]
    rates: Callable[[float, Array], list[float]]
    start: list[float]
    outputs: tuple[str, ...]
    passed: int
    inputs: dict[str, Any]


def joined(groups: str, /, **parts: Any) -> Driveline:
    d = Driveline("tables", order=4)
    for name, part in parts.items():
        d.add(name, part)
    for group in groups.split("|"):
        d.connect(*group.split())
    return d


MUE = [[0.0, 0.10], [8.0, 0.08], [20.0, 0.13], [35.0, 0.09], [100.0, 0.09]]


def brake() -> Case:
    """Friction over the slip, both ways through zero."""

    def rates(t: float, y: Array) -> list[float]:
        return [(sine(-260.0, 0.9)(t) - 1000.0 * at(MUE, abs(y[0])) * np.sign(y[0])) / 0.8]

    return Case(
        lambda: joined("t.flange a.flange_a|a.flange_b b.flange_a", t=Torque(), a=Inertia(J=0.8, w0=60.0),
                       b=Brake(fn_max=1000.0, mue_pos=MUE)),
        rates, [60.0], ("a.w",), 3, {"b.f_normalized": 1.0, "t.tau": Sine(-260.0, 0.9)},
    )  # fmt: skip


def clutch() -> Case:
    """The slip of a clutch backward, between two shafts, one on a spring."""

    def rates(t: float, y: Array) -> list[float]:
        slip = y[0] - y[1]
        tau = 900.0 * at(MUE, abs(slip)) * np.sign(slip)
        return [(-tau + sine(-60.0, 1.0)(t)) / 0.9, (tau - 200.0 * y[2] - 0.5 * y[1]) / 1.4, y[1]]

    return Case(
        lambda: joined(
            "t.flange a.flange_a|a.flange_b c.flange_b|c.flange_a b.flange_a|b.flange_b s.flange_a|s.flange_b w.flange",
            t=Torque(), a=Inertia(J=0.9, w0=70.0), c=Clutch(fn_max=900.0, mue_pos=MUE),
            b=Inertia(J=1.4, w0=-5.0), s=SpringDamper(c=200.0, d=0.5), w=Fixed(),
        ),
        rates, [70.0, -5.0, 0.0], ("a.w", "b.w", "b.phi"), 2, {"c.f_normalized": 1.0, "t.tau": Sine(-60.0, 1.0)},
    )  # fmt: skip


WOT = [[0.0, 80.0], [100.0, 120.0], [160.0, 190.0], [300.0, 150.0]]
DRAG = [[0.0, -10.0], [130.0, -16.0], [300.0, -40.0]]


def engine() -> Case:
    """Two curves of an engine; up and down again."""

    def rates(t: float, y: Array) -> list[float]:
        tau = at(DRAG, y[0]) + 0.7 * (at(WOT, y[0]) - at(DRAG, y[0]))
        return [(tau + sine(-300.0, 2.5)(t) - 100.0) / 0.4]

    return Case(
        lambda: joined("e.flange t.flange", e=Engine(J=0.4, wot=WOT, drag=DRAG, w0=170.0), t=Torque()),
        rates, [170.0], ("e.w",), 4, {"e.pedal": 0.7, "t.tau": Sine(-300.0, 2.5, offset=-100.0)},
    )  # fmt: skip


KT = [[0.0, 2.4e-3], [0.45, 2.0e-3], [0.8, 1.4e-3], [1.0, 0.0]]
RATIO = [[0.0, 2.1], [0.6, 1.3], [0.85, 1.0], [1.0, 1.0]]
COAST = [[0.0, 1.0e-3], [0.9, 8e-4], [1.0, 0.0]]


def converter() -> Case:
    """From a start through the breakpoints of all curves into the overrun."""

    def rates(t: float, y: Array) -> list[float]:
        p, u = y
        if u <= p:
            tp = at(KT, u / p) * p * p
            tt = at(RATIO, u / p) * tp
        else:
            tt = -at(COAST, p / u) * u * u
            tp = 0.8 * tt
        return [(120.0 - 900.0 * t - tp) / 0.3, (tt - 12.0) / 0.6]

    return Case(
        lambda: joined("q.flange a.flange_a|a.flange_b c.pump|c.turbine b.flange_a|b.flange_b r.flange",
                       q=Torque(), a=Inertia(J=0.3, w0=180.0), b=Inertia(J=0.6, w0=30.0), r=Torque(),
                       c=LockUpTC(mp=KT, mu=RATIO, coast=COAST, coast_ratio=0.8)),
        rates, [180.0, 30.0], ("a.w", "b.w"), 5, {"q.tau": Table([[0.0, 120.0], [1.0, -780.0]]), "r.tau": -12.0},
    )  # fmt: skip


def curve() -> Case:
    """A torque that is limited, through zero."""

    def rates(t: float, y: Array) -> list[float]:
        return [(-30.0 * min(1.0, max(-1.0, y[0] / 6.0)) + sine(-90.0, 1.3)(t)) / 0.5]

    return Case(
        lambda: joined("s.flange a.flange_a|a.flange_b t.flange",
                       s=SignTorque(tau_nominal=-30.0, reg="Linear", w0=6.0), a=Inertia(J=0.5, w0=25.0), t=Torque()),
        rates, [25.0], ("a.w",), 2, {"t.tau": Sine(-90.0, 1.3)},
    )  # fmt: skip


LOSS = [[0.0, 0.9, 0.85, 0.5, 0.4], [15.0, 0.96, 0.93, 1.0, 0.9], [40.0, 0.8, 0.75, 3.0, 2.5]]
LOSS.append([200.0, *LOSS[-1][1:]])


def lossy() -> Case:
    """Losses of a gear over its speed; the load drives it at the end."""

    def rates(t: float, y: Array) -> list[float]:
        w, i, Ja, Jb = y[0], 2.0, 0.5, 1.2
        eta1, eta2, f1, f2 = (at([[r[0], r[k]] for r in LOSS], abs(w)) for k in (1, 2, 3, 4))
        drive, load = sine(-150.0, 0.8)(t), 8.0

        def a(eta: float, f: float) -> float:
            # tau_b = -i (eta ta - f) on the gear; ta = drive - Ja w'
            return (i * (eta * drive - f) - load) / (Jb / i + i * eta * Ja)

        # of both laws the one that takes more power
        return [min(a(eta1, f1), a(1.0 / eta2, f2))]

    return Case(
        lambda: joined("t.flange a.flange_a|a.flange_b g.flange_a|g.flange_b b.flange_a|b.flange_b l.flange",
                       t=Torque(), a=Inertia(J=0.5, w0=60.0), g=LossyGear(ratio=2, lossTable=LOSS), b=Inertia(J=1.2),
                       l=Torque()),
        rates, [60.0], ("a.w",), 2, {"t.tau": Sine(-150.0, 0.8), "l.tau": -8.0},
    )  # fmt: skip


def breakpoints(mue: list[list[float]], order: int = 4) -> list[float]:
    d = joined("a.flange_b b.flange_a", a=Inertia(J=0.8), b=Brake(fn_max=1000.0, mue_pos=mue))
    d.order = order
    done = derive.complete(compile_driveline(d).arrays, 1e-3)
    return [float(x) for x in done.arrays["lu_x"]]


def test_only_breakpoints_at_which_a_slope_changes_are_followed_and_at_order_4_only() -> None:
    assert breakpoints(MUE) == [8.0, 20.0, 35.0]
    assert breakpoints(MUE, order=2) == []
    assert breakpoints([[0.0, 0.1], [5.0, 0.1], [9.0, 0.1]]) == []
    assert breakpoints([[0.0, 0.1], [5.0, 0.2], [10.0, 0.3], [20.0, 0.3]]) == [10.0]


def test_a_table_of_many_points_stands_for_a_smooth_law() -> None:
    assert breakpoints([[float(w), 0.1 + 1e-5 * w * w] for w in range(26)]) == []
    assert len(breakpoints([[float(w), 0.1 + 1e-5 * w * w] for w in range(25)])) == 24


CASES = (brake, clutch, engine, converter, curve, lossy)


def errors(case: Case, h: float) -> tuple[float, Result]:
    """The largest error of a signal relative to its range while nothing has come to rest, and the run."""
    sim = Simulation(case.driveline(), h=h)
    r = sim.run(T, inputs=case.inputs)
    found = np.array([r[name] for name in case.outputs])
    exact = solve_ivp(case.rates, (0.0, T), case.start, method="DOP853", rtol=1e-12, atol=1e-12, max_step=2e-4,
                      t_eval=r.time).y  # fmt: skip
    slides = np.ones(len(r.time), dtype=bool)
    if "b.f_normalized" in case.inputs:
        slides = exact[0] > 0.5
    if "c.f_normalized" in case.inputs:
        slides = np.minimum.accumulate(exact[0] - exact[1]) > 0.5
    span = np.ptp(exact, axis=1)
    return float((np.abs(found - exact)[:, slides] / span[:, None]).max()), r


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_order_4_is_kept_across_the_breakpoints(case: Callable[[], Case]) -> None:
    found = [errors(case(), h) for h in STEPS]
    e = [error for error, _ in found]
    counters = found[-1][1].counters
    assert counters["fallbacks"] == 0
    assert counters["events"] >= case().passed, counters["events"]
    assert e[2] <= 1e-9 or e[2] <= e[0] / 100.0, e
    assert e[2] <= 2e-8, e


def test_tables_that_are_taken_whole_cost_the_error_that_the_page_says() -> None:
    """docs/theory.md, section 5: a drive of the 4HP22 car, whose engine map and converter have more breakpoints than
    are followed, against 32 times as many steps."""
    compiled = compile_driveline(load(CONFIGS / "powertrains" / "car_4hp22.toml"))
    arrays = replace(compiled.arrays, order=4)
    inputs = full_throttle(compiled, 14.0)

    def speeds(substeps: int) -> Array:
        model = KernelModel(arrays, 1e-3 / substeps, "generic")
        state = KernelState(model)
        found = []
        for one in np.split(inputs, len(inputs)):
            model.run(state, np.repeat(one, substeps, axis=0))
            found.append(np.array(state.u))
        return np.array(found)

    exact = speeds(32)
    errors = [float((np.abs(speeds(n) - exact).max(axis=0) / np.ptp(exact, axis=0)).max()) for n in (1, 2, 4)]
    assert errors[0] <= 5.2e-6 and errors[1] <= 2.3e-6 and errors[2] <= 3.9e-7, errors
