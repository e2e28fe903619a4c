"""Variants of cases that the published ones leave out, against closed formulas or the independent solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("yaml", reason="reading case.yaml needs PyYAML (extra `dev`)")
pytest.importorskip("scipy", reason="the independent solutions need SciPy (extra `dev`)")

import yaml
from case_parts import a_case, part
from independent import Contact, Element, Friction, System, simulate
from models import phi, phi_rel, sine, w, w_rel

from torqueloop.core.reference import Case, Column, import_case, read_case
from torqueloop.core.reference.case_run import CaseResult, run_case

Array = np.ndarray
Values = Callable[[float, bool], list[float]]


def rot(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return part(name, "rotational", kind, **parameters)


def block(name: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return part(name, "signal", kind, **parameters)


def compared(case: Case, columns: list[str], values: Values, events: tuple[float, ...] = (), n: int = 1) -> CaseResult:
    """The case with the reference `values(time, right)`, at `n` steps per 1 ms."""
    grid = [t for t in np.linspace(0.0, case.t_stop, 201) if all(abs(t - e) > 1e-9 for e in events)]
    rows = sorted([(t, True) for t in grid] + [(e, side) for e in events for side in (False, True)])
    made = []
    for name in columns:
        component, _, quantity = name.rpartition(".")
        made.append(Column(name, component, quantity, "1", 0.0))
    reference = replace(
        case, columns=tuple(made), time=np.array([t for t, _ in rows]), values=np.array([values(*r) for r in rows]),
        event_times=events,
    )  # fmt: skip
    result = run_case(reference, substeps=n, order=4)
    assert not result.unsupported and not result.failure, (result.unsupported, result.failure)
    return result


def against(case: Case, system: System, n: int = 1) -> CaseResult:
    """The case against the independent solution of the system."""
    solution = simulate(system, case.t_stop)
    switched = tuple(sorted(set(solution.switchings)))
    return compared(case, [*system.results, *system.mode_results], solution.values, switched, n)


def backlash_case(kind: str, c: float, d: float, b: float, phi_rel0: float) -> Case:
    return a_case(
        rot("a", "Inertia", J=0.3), rot("b", "Inertia", J=0.5), rot("torque", "Torque"),
        rot("backlash", kind, c=c, d=d, b=b, phi_rel0=phi_rel0), block("sine", "Sine", amplitude=8.0, f=2.7),
        flange=[["torque.flange", "a.flange_a"], ["a.flange_b", "backlash.flange_a"],
                ["backlash.flange_b", "b.flange_a"]],
        signal=[["sine.y", "torque.tau"]],
        start={"a.phi": 0.0, "a.w": 0.0, "backlash.phi_rel": phi_rel0, "backlash.w_rel": 0.5},
    )  # fmt: skip


def test_a_clearance_of_1e_10_is_none() -> None:
    """At b = 1e-10 the damper also pulls: linear, no contact that lets go."""
    drive = sine(8.0, 2.7)

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        tau = 3e3 * (q[1] - q[0] - 0.05) + 4.0 * (u[1] - u[0])
        return np.array([drive(t) + tau, -tau])

    system = System(np.diag([0.3, 0.5]), force, [0.0, 0.05], [0.0, 0.5], results={
        "a.w": w(0), "backlash.phi_rel": phi_rel(0, 1),
        "backlash.tau": lambda at: 3e3 * (at.q[1] - at.q[0] - 0.05) + 4.0 * (at.u[1] - at.u[0]),
    })  # fmt: skip
    for kind in ("ElastoBacklash", "ElastoBacklash2"):
        result = against(backlash_case(kind, 3e3, 4.0, 1e-10, 0.05), system)
        assert result.largest("shifted") < 1e-5, result.as_dict()


def test_a_torque_that_falls_fast_after_its_jump_is_compared_at_our_own_event() -> None:
    """60 Nms/rad on 0.19 kgm2: the torque loses 0.3 % in 10 us after contact, our event is some 1e-8 s off."""
    drive = sine(8.0, 2.7)
    elements: list[Element] = [Contact([-1, 1], 3e3, 60.0, 0.09, 0.11, kind=1)]
    system = System(
        np.diag([0.3, 0.5]), lambda t, q, u, x: np.array([drive(t), 0.0]), [0.0, 0.1], [0.0, 0.5], elements,
        results={"a.w": w(0), "b.w": w(1), "backlash.tau": lambda at: -float(at.F[0])},
    )  # fmt: skip
    result = against(backlash_case("ElastoBacklash2", 3e3, 60.0, 0.02, 0.1), system)
    assert result.largest("shifted") < 3e-5, result.as_dict()


def test_housing_that_moves_takes_the_reaction_of_gear_brake_and_torque() -> None:
    """Gear -2, brake and drive on one sprung housing; independent coordinates: housing h, output b."""
    drive = sine(20.0, 2.3, 0.0, 1.0)
    J, c, d = {"h": 0.8, "a": 0.1, "b": 0.5}, 900.0, 3.0
    # a = h - 2*(b - h) = 3h - 2b
    M = np.diag([J["h"], J["b"]]) + J["a"] * np.outer([3.0, -2.0], [3.0, -2.0])

    def force(t: float, q: Array, u: Array, x: Array) -> Array:
        mount = c * q[0] + d * u[0]
        # the drive turns a against the housing: a - h = 2h - 2b
        return np.array([-mount + 2.0 * drive(t), -2.0 * drive(t)])

    def pressed(t: float) -> float:
        return 6.0 if 0.1 <= t < 0.3 else 0.0

    friction = Friction([-1, 1], lambda t, v: pressed(t) * (0.5 - 0.01 * v), lambda t: 1.2 * 0.5 * pressed(t))
    system = System(
        M, force, [0.0, 0.0], [0.0, 5.0], [friction], breaks=[0.1, 0.3],
        results={"h.w": w(0), "b.w": w(1), "brake.w": w_rel(0, 1), "brake.phi": phi_rel(0, 1),
                 "a.w": lambda at: float(3.0 * at.u[0] - 2.0 * at.u[1])},
        mode_results={"brake.mode": 0},
    )  # fmt: skip
    case = a_case(
        rot("fixed", "Fixed"), rot("mount", "SpringDamper", c=c, d=d),
        *(rot(name, "Inertia", J=value) for name, value in J.items()),
        rot("gear", "IdealGear", ratio=-2.0, useSupport=True), rot("torque", "Torque", useSupport=True),
        rot("brake", "Brake", useSupport=True, fn_max=6.0, peak=1.2, mu_pos=[[0.0, 0.5], [10.0, 0.4]]),
        block("sine", "Sine", amplitude=20.0, f=2.3, offset=1.0),
        block("pulse", "Pulse", startTime=0.1, width=20.0, period=1.0),
        flange=[["fixed.flange", "mount.flange_a"], ["mount.flange_b", "h.flange_a"], ["torque.flange", "a.flange_a"],
                ["a.flange_b", "gear.flange_a"], ["gear.flange_b", "b.flange_a"], ["brake.flange_b", "b.flange_b"],
                *([f"{name}.support", "h.flange_b"] for name in ("gear", "torque", "brake"))],
        signal=[["sine.y", "torque.tau"], ["pulse.y", "brake.f_normalized"]],
        start={"h.phi": 0.0, "h.w": 0.0, "b.phi": 0.0, "b.w": 5.0},
    )  # fmt: skip
    result = against(case, system)
    assert result.largest("shifted") < 1e-4 and result.modes == {"brake.mode": 1.0}, result.as_dict()


def brake_case(*signals: dict[str, Any], stop: float = 0.5) -> Case:
    """1 kgm2 from 10 rad/s; brake of 4 Nm at f_normalized = 1, fed by pulse.y."""
    return a_case(
        rot("a", "Inertia", J=1.0), rot("brake", "Brake", fn_max=8.0), *signals,
        flange=[["a.flange_b", "brake.flange_a"]], signal=[["pulse.y", "brake.f_normalized"]],
        start={"a.phi": 0.0, "a.w": 10.0}, stop=stop,
    )  # fmt: skip


@pytest.mark.parametrize(("nperiod", "until"), [(-1, 0.5), (3, 0.35), (0, 0.05)])
def test_a_pulse_of_full_width_is_on_in_all_its_periods(nperiod: int, until: float) -> None:
    case = brake_case(block("pulse", "Pulse", width=100.0, period=0.1, startTime=0.05, nperiod=nperiod))

    def speed(t: float, right: bool) -> list[float]:
        return [10.0 - 4.0 * max(0.0, min(t, until) - 0.05)]

    assert compared(case, ["a.w"], speed).largest("raw") < 1e-12


def test_three_rows_at_an_event_count_as_its_two_sides() -> None:
    """Mode and torque of a row between the sides belong to no instant."""
    case = brake_case(block("pulse", "Step", startTime=0.2))
    time = np.array([0.0, 0.1, 0.2, 0.2, 0.2, 0.3])
    power = np.array([0.0, 0.0, 0.0, 1e3, 40.0, 4.0 * 9.6])
    column = Column("brake.lossPower", "brake", "lossPower", "W", 0.0)
    result = run_case(replace(case, columns=(column,), time=time, values=power[:, None], event_times=(0.2,)), order=4)
    assert result.largest("shifted") < 1e-7, result.as_dict()


def test_rounding_in_a_constant_column_is_no_range() -> None:
    """The column is constant but for rounding: errors are absolute then."""
    case = brake_case(block("pulse", "Constant", k=0.0))
    result = compared(case, ["a.w"], lambda t, right: [10.0 + (1e-15 if t > 0.25 else 0.0)])
    assert result.largest("raw") < 1e-12
    result = compared(case, ["a.w"], lambda t, right: [10.0 + (1e-6 if t > 0.25 else 0.0)])
    assert result.largest("raw") == pytest.approx(1.0), "a change of 1e-6 is a range"


def test_what_hangs_on_an_open_chain_carries_nothing() -> None:
    """Spring, gear, planetary and clutch in a chain whose end is joined to nothing: all go, the shaft turns freely."""
    case = a_case(
        rot("a", "Inertia", J=2.0), rot("torque", "TorqueStep", stepTorque=3.0, startTime=0.1),
        rot("spring", "Spring", c=50.0), rot("gear", "IdealGear", ratio=2.0),
        rot("planet", "IdealPlanetary", ratio=2.0), rot("clutch", "Clutch", fn_max=5.0),
        block("one", "Constant", k=1.0),
        flange=[["torque.flange", "a.flange_a"], ["a.flange_b", "spring.flange_a"],
                ["spring.flange_b", "gear.flange_a"], ["gear.flange_b", "planet.sun"],
                ["planet.ring", "clutch.flange_a"]],
        signal=[["one.y", "clutch.f_normalized"]], start={"a.phi": 0.0, "a.w": 1.0},
    )  # fmt: skip
    result = compared(case, ["a.w"], lambda t, right: [1.0 + 1.5 * max(0.0, t - 0.1)])
    assert result.largest("raw") < 1e-12
    assert set(import_case(case).driveline.components) == {"a", "torque"}


def test_an_open_lossy_gear_still_drags() -> None:
    """No torque at flange_b: at flange_a tauLoss = ta = tbf1/eta1."""
    case = a_case(
        rot("a", "Inertia", J=2.0), rot("gear", "LossyGear", ratio=3.0, lossTable=[[0.0, 0.9, 0.9, 0.5, 0.5]]),
        flange=[["a.flange_b", "gear.flange_a"]], start={"a.phi": 0.0, "a.w": 1.0},
    )  # fmt: skip
    assert compared(case, ["a.w"], lambda t, right: [1.0 - 0.5 / 0.9 / 2.0 * t]).largest("raw") < 1e-9


def test_assumed_start_values_are_taken(tmp_path: Any) -> None:
    """phi_rel = 0.3 is prescribed, the first shaft is assumed to start at 0 (not the smallest pair -0.15, 0.15)."""
    parts = [rot("a", "Inertia", J=0.2), rot("b", "Inertia", J=0.4), rot("spring", "Spring", c=100.0)]
    document = {
        "schema": "case/1", "case": "Assumed", "experiment": {"start_time": 0.0, "stop_time": 0.2}, "components": parts,
        "connections": {"flange": [["a.flange_b", "spring.flange_a"], ["spring.flange_b", "b.flange_a"]]},
        "initial_conditions": {
            "prescribed": [{"quantity": "spring.phi_rel", "value": 0.3, "unit": "rad"},
                           {"quantity": "spring.w_rel", "value": 0.0, "unit": "rad/s"}],
            "assumed": [{"quantity": "a.phi", "value": 0.0, "unit": "rad"},
                        {"quantity": "a.w", "value": 0.0, "unit": "rad/s"},
                        {"quantity": "a.other", "value": 0.0}],
        },
        "reference": {"file": "reference.csv", "columns": [
            {"name": "time", "quantity": "time"}, {"name": "b.phi", "component": "b", "quantity": "phi"}]},
    }  # fmt: skip
    omega = math.sqrt(100.0 / 0.2 + 100.0 / 0.4)
    # the centre of mass rests at 0.2
    rows = [f"{t!r},{0.2 + 0.1 * math.cos(omega * t)!r}" for t in np.linspace(0.0, 0.2, 21).tolist()]
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "reference.csv").write_text("\n".join(["time,b.phi", *rows]) + "\n", encoding="utf-8")
    case = read_case(tmp_path)
    assert case.assumed == {"a.phi", "a.w", "a.other"}
    result = run_case(case, order=4)
    assert not result.unsupported and result.largest("raw") < 1e-6, result.as_dict()


def test_one_way_clutch_alternately_pressed() -> None:
    """Negative normal forces press nothing; the free wheel holds whatever drives it backwards."""
    drive = sine(10.0, 2.1)

    def pressed(t: float) -> float:
        return 4.0 if any(start <= t < start + 0.15 for start in (0.1117, 0.4817)) else 0.0

    def hold(t: float) -> float:
        return 1.5 * 0.5 * pressed(t) or 1e-4 * 0.5 * 4.0

    clutch = Friction([-1, 1], lambda t, v: pressed(t) * 0.5, hold, one_way=True)
    system = System(
        np.diag([1.0, 0.7]), lambda t, q, u, x: np.array([drive(t), -0.6 * u[1]]), [0.0, 0.0], [1.0, 3.0], [clutch],
        breaks=[0.1117, 0.2617, 0.4817, 0.6317],
        results={"a.w": w(0), "b.w": w(1), "b.phi": phi(1), "clutch.w_rel": w_rel(0, 1)},
    )  # fmt: skip
    case = a_case(
        rot("a", "Inertia", J=1.0), rot("b", "Inertia", J=0.7), rot("clutch", "OneWayClutch", fn_max=4.0, peak=1.5),
        rot("torque", "Torque"), rot("damper", "Damper", d=0.6), rot("fixed", "Fixed"),
        block("sine", "Sine", amplitude=10.0, f=2.1),
        block("pulse", "Pulse", amplitude=1.5, offset=-0.5, startTime=0.1117, period=0.37, width=100 * 0.15 / 0.37),
        flange=[["torque.flange", "a.flange_a"], ["a.flange_b", "clutch.flange_a"], ["clutch.flange_b", "b.flange_a"],
                ["b.flange_b", "damper.flange_a"], ["damper.flange_b", "fixed.flange"]],
        signal=[["sine.y", "torque.tau"], ["pulse.y", "clutch.f_normalized"]],
        start={"a.phi": 0.0, "a.w": 1.0, "clutch.phi_rel": 0.0, "clutch.w_rel": 2.0}, stop=0.8,
    )  # fmt: skip
    result = against(case, system)
    assert result.largest("shifted") < 1e-5, result.as_dict()


def test_a_shaft_alone_turns_on() -> None:
    case = a_case(
        rot("a", "Inertia", J=2.0), part("m", "translational", "Mass", m=1.0, L=0.2), rot("spring", "Spring", c=5.0),
        flange=[["a.flange_b", "spring.flange_a"]], start={"a.phi": 0.5, "a.w": 3.0, "m.s": 1.0, "m.v": -2.0},
    )  # fmt: skip
    result = compared(case, ["a.phi", "m.s"], lambda t, right: [0.5 + 3.0 * t, 1.0 - 2.0 * t])
    assert result.largest("raw") < 1e-12


def test_motion_of_a_torque_is_relative_to_its_support() -> None:
    """1 Nm between a housing of 2 kgm2 and a shaft of 0.5 kgm2; a second torque on the shaft stands on the ground."""
    case = a_case(
        rot("h", "Inertia", J=2.0), rot("a", "Inertia", J=0.5),
        rot("inner", "TorqueStep", useSupport=True, stepTorque=1.0, startTime=-1.0),
        rot("outer", "TorqueStep", stepTorque=0.5, startTime=-1.0),
        flange=[["inner.flange", "a.flange_a"], ["inner.support", "h.flange_a"], ["outer.flange", "a.flange_b"]],
        start={"h.phi": 0.1, "h.w": 1.0, "a.phi": 0.3, "a.w": 0.0},
    )  # fmt: skip

    def motion(t: float, right: bool) -> list[float]:
        relative = [0.2 - t + 0.5 * (3.0 + 0.5) * t * t, -1.0 + 3.5 * t]
        return [*relative, 0.3 + 0.5 * 3.0 * t * t, 3.0 * t]

    result = compared(case, ["inner.phi", "inner.w", "outer.phi", "outer.w"], motion)
    assert result.largest("raw") < 1e-12, result.as_dict()
