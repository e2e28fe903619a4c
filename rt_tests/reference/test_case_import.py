"""Import of cases: every kind, connector, quantity and block of the schema, and clear reasons for what is not there."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("yaml", reason="reading case.yaml needs PyYAML (extra `dev`)")

from case_parts import a_case, part

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import KINDS as COMPONENTS
from torqueloop.core.components.files import load
from torqueloop.core.components.friction import Clutch
from torqueloop.core.components.shafts import Inertia
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.reference import Case, Column, import_case, read_case
from torqueloop.core.reference.assembly import Parameters
from torqueloop.core.reference.blocks import OPERATORS, SOURCES
from torqueloop.core.reference.bodies import body_of
from torqueloop.core.reference.case_run import ColumnError, run_case
from torqueloop.core.reference.kinds import KINDS
from torqueloop.core.reference.reading import UNITS
from torqueloop.cython_kernels.model.structure import structure_signature

MSL = Path(__file__).parent / "msl"


def final(case: Case, component: str, quantity: str) -> float:
    """A quantity at the end."""
    column = Column("x", component, quantity, "1", 0.0)
    result = run_case(replace(case, columns=(column,), values=np.zeros((2, 1))), order=4)
    assert not result.unsupported and not result.failure, (result.unsupported, result.failure)
    assert result.samples is not None
    return float(result.samples[-1, 0])


@pytest.mark.parametrize("domain", KINDS)
def test_every_row_names_a_component_that_exists(domain: str) -> None:
    for kind, row in KINDS[domain].items():
        assert row.component in COMPONENTS, kind
        assert set(row.renamed) <= set(COMPONENTS[row.component].__dataclass_fields__), kind


def test_parameters_a_case_leaves_out_take_the_default_of_modelica() -> None:
    case = a_case(
        part("fixed", "rotational", "Fixed"), part("J", "rotational", "Inertia", J=1.0),
        part("brake", "rotational", "Brake", fn_max=2.0), part("bearing", "rotational", "BearingFriction"),
        part("gear", "rotational", "LossyGear", ratio=2.0), part("position", "rotational", "Position"),
        flange=[["J.flange_a", "brake.flange_a"], ["J.flange_a", "bearing.flange_a"], ["J.flange_b", "gear.flange_a"],
                ["position.flange", "gear.flange_b"]],
    )  # fmt: skip
    components = import_case(case).driveline.components
    assert (
        components["brake"].mue_pos(0.0) == 0.5 and components["brake"].peak == 1.0 and components["brake"].cgeo == 1.0
    )
    assert components["bearing"].tau_pos(3.0) == 1.0
    assert components["gear"].lossTable.data == ((0.0,), (1.0,), (1.0,), (0.0,), (0.0,))
    assert components["position"].exact is False and components["position"].f_crit == 50.0


def test_tables_are_continued_along_their_last_line() -> None:
    table = {"value": [[0.0, 0.5], [10.0, 0.3]], "unit": ["rad/s", "1"]}
    case = a_case(
        part("c", "rotational", "Clutch", fn_max=1.0, mu_pos=table), part("a", "rotational", "Inertia", J=1.0),
        part("b", "rotational", "Inertia", J=1.0), flange=[["a.flange_b", "c.flange_a"], ["c.flange_b", "b.flange_a"]],
    )  # fmt: skip
    curve = import_case(case).driveline.components["c"].mue_pos
    assert curve(20.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (part("x", "rotational", "LossyGear"), "rotational/LossyGear x: .*ratio is missing"),
        (part("x", "rotational", "Inertia", J=1.0, mass=2.0), "rotational/Inertia x: parameter mass is not known"),
        (part("x", "rotational", "Turbine"), "rotational/Turbine x: there is no such component"),
        (part("x", "rotational", "Inertia", J=-1.0), "rotational/Inertia x: J = -1.0 is out of range"),
        (part("x", "translational", "ElastoGap", c=1.0, d=1.0, n=0.5), "translational/ElastoGap x: n = 0.5"),
        (part("x", "rotational", "EddyCurrentTorque", tau_nominal=1.0, w_nominal=1.0, useTau_nominalInput=True),
         "useTau_nominalInput = True .only False is mapped."),
        (part("x", "multibody", "Prismatic"), "multibody/Prismatic x: only turning about axes at rest"),
    ],
)  # fmt: skip
def test_what_cannot_be_mapped_is_listed_with_its_reason(entry: dict[str, Any], reason: str) -> None:
    result = run_case(a_case(entry))
    assert len(result.unsupported) == 1 and re.search(reason, result.unsupported[0]), result.unsupported
    assert result.columns == [] and result.as_dict()["max_error"] is None


def test_names_with_dots_and_brackets_are_mapped() -> None:
    case = read_case(MSL / "CoupledClutches")
    # the longest matching component name counts, as in arrays of components
    renamed = json.loads(json.dumps([case.components, case.connections]).replace("clutch1", "arm.clutch[1]"))
    start = {k.replace("clutch1", "arm.clutch[1]"): v for k, v in case.start.items()}
    columns = tuple(replace(c, component=c.component.replace("clutch1", "arm.clutch[1]")) for c in case.columns)
    imported = import_case(replace(case, components=renamed[0], connections=renamed[1], start=start, columns=columns))
    assert isinstance(imported.driveline.components["arm_clutch_1"], Clutch)
    assert set(imported.inputs) == {
        "torque.tau", "arm_clutch_1.f_normalized", "clutch2.f_normalized", "clutch3.f_normalized",
    }  # fmt: skip


def test_two_names_that_become_one_word_stay_apart() -> None:
    case = a_case(part("a.b", "rotational", "Inertia", J=1.0), part("a_b", "rotational", "Inertia", J=2.0))
    imported = import_case(case)
    assert sum(isinstance(c, Inertia) for c in imported.driveline.components.values()) == 2
    assert imported.names["a.b"] != imported.names["a_b"]


# --- signals ----------------------------------------------------------------------------------------------------------
def test_signal_graph_is_followed_through_operators() -> None:
    imported = import_case(read_case(MSL / "Friction"))
    torque = imported.inputs["torque.tau"]
    assert torque.before(0.5) == pytest.approx(200.0 * np.sin(50.0))
    assert torque.after(0.5) == 0.0
    assert torque.event_times(0.0, 1.0) == [0.5]
    gear = import_case(read_case(MSL / "SimpleGearShift"))
    assert gear.inputs["brake.f_normalized"].value(2.025) == pytest.approx(0.75)


NEEDS = {
    "TimeTable": {"table": [[0.0, 0.0], [1.0, 1.0]]}, "CombiTimeTable": {"table": [[0.0, 0.0], [1.0, 1.0]]},
    "Sum": {"nin": 2}, "MultiSum": {"nu": 2}, "MultiProduct": {"nu": 2},
}  # fmt: skip


@pytest.mark.parametrize("kind", [*SOURCES, *OPERATORS])
def test_every_block_drives_an_input(kind: str) -> None:
    feeds = [["one.y", f"x.{port}"] for port in ("u", "u1", "u2", "u3", "u[1]", "u[2]")] if kind in OPERATORS else []
    port = {"KinematicPTP": "y[1]", "KinematicPTP2": "qd[1]", "CombiTimeTable": "y[1]"}.get(kind, "y")
    case = a_case(
        part("x", "signal", kind, **NEEDS.get(kind, {})), part("one", "signal", "Constant", k=0.75),
        part("torque", "rotational", "Torque"), part("J", "rotational", "Inertia", J=1.0),
        flange=[["torque.flange", "J.flange_a"]], signal=[*feeds, [f"x.{port}", "torque.tau"]],
    )  # fmt: skip
    imported = import_case(case)
    assert imported.unsupported == []
    assert np.isfinite(imported.inputs["torque.tau"].value(0.3))


def test_blocks_compute_what_they_say() -> None:
    def value(kind: str, feeds: dict[str, float], t: float = 0.5, port: str = "y", **parameters: Any) -> float:
        blocks = [part(f"c{k}", "signal", "Constant", k=v) for k, v in enumerate(feeds.values())]
        wires = [[f"c{k}.y", f"x.{name}"] for k, name in enumerate(feeds)]
        case = a_case(part("x", "signal", kind, **parameters), *blocks, part("torque", "rotational", "Torque"),
                      part("J", "rotational", "Inertia", J=1.0), flange=[["torque.flange", "J.flange_a"]],
                      signal=[*wires, [f"x.{port}", "torque.tau"]])  # fmt: skip
        return import_case(case).inputs["torque.tau"].value(t)

    two = {"u1": 3.0, "u2": 2.0}
    assert [value(k, two) for k in ("Product", "Division", "Feedback", "Add", "Max", "Min")] == [6, 1.5, 1, 5, 3, 2]
    assert value("Add", two, k2=-2.0) == -1.0 and value("Add3", {**two, "u3": 1.0}, k1=2.0) == 9.0
    assert value("Sum", {"u[1]": 3.0, "u[2]": 2.0}, k=[1.0, -1.0]) == 1.0
    assert value("Gain", {"u": 3.0}, k=-2.0) == -6.0 and value("Abs", {"u": -3.0}) == 3.0
    assert value("Limiter", {"u": 3.0}, uMax=2.0) == 2.0 and value("Limiter", {"u": -3.0}, uMax=2.0, uMin=-1.0) == -1.0
    assert value("DeadZone", {"u": 3.0}, uMax=2.0) == 1.0 and value("Sign", {"u": -3.0}) == -1.0
    assert value("Integrator", {"u": 3.0}, k=2.0, y_start=1.0) == pytest.approx(4.0, abs=1e-13)
    assert value("From_deg", {"u": 180.0}) == pytest.approx(np.pi) and value("Sqrt", {"u": 9.0}) == 3.0
    assert value("Ramp", {}, height=2.0, duration=0.0, startTime=0.4) == 2.0
    assert value("From_kmh", {"u": 36.0}) == pytest.approx(10.0)
    # at rest where each of two moves of equal duration ends; the begin is that of both
    ends = {"q_begin": 3.0, "q_end": [1.0, 7.0], "qd_max": 2.0, "qdd_max": 4.0}
    assert [value("KinematicPTP2", {}, 99.0, f"q[{k}]", **ends) for k in (1, 2)] == pytest.approx([1.0, 7.0])
    assert value("KinematicPTP2", {}, 0.0, "q[2]", **ends) == 3.0


def test_the_errors_of_a_column_have_their_names() -> None:
    """What a shifted time leaves beyond the error of the reference itself: 0.3 - 0.1."""
    shown = ColumnError("J.w", raw=0.5, shifted=0.3, deviation=0.1, worst_time=2.0).as_dict()
    assert shown == {"raw": 0.5, "shifted": 0.3, "deviation": 0.1, "beyond": pytest.approx(0.2)}


def test_a_jump_between_two_samples_counts_from_its_own_time() -> None:
    """w = tau (t - t0)/J; the jump is inside a step, and the next sample is 400 steps later."""
    case = a_case(part("jump", "signal", "Step", height=2.0, startTime=0.1003), part("torque", "rotational", "Torque"),
                  part("J", "rotational", "Inertia", J=1.0), flange=[["torque.flange", "J.flange_a"]],
                  signal=[["jump.y", "torque.tau"]])  # fmt: skip
    assert final(case, "J", "w") == pytest.approx(2.0 * (0.5 - 0.1003), rel=1e-12)


@pytest.mark.parametrize(
    ("parts", "signal", "reason"),
    [
        ([part("s", "rotational", "SpeedSensor")], [["s.w", "torque.tau"]], "it depends on the state"),
        ([part("a", "signal", "Gain"), part("b", "signal", "Gain")],
         [["a.y", "b.u"], ["b.y", "a.u"], ["a.y", "torque.tau"]], "form a loop: a > b > a"),
        ([part("a", "signal", "Gain")], [["a.y", "torque.tau"]], "signal/Gain a: input u is open"),
        ([part("a", "signal", "Hysteresis")], [["a.y", "torque.tau"]], "signal/Hysteresis a: no such block"),
        ([part("a", "signal", "Constant", gain=1.0)], [["a.y", "torque.tau"]], "parameter gain is not known"),
        ([part("a", "signal", "Constant")], [["a.z", "torque.tau"]], "signal/Constant a has no output z"),
    ],
)  # fmt: skip
def test_signals_that_are_none_over_time_are_refused(parts: Any, signal: Any, reason: str) -> None:
    case = a_case(*parts, part("torque", "rotational", "Torque"), part("J", "rotational", "Inertia", J=1.0),
                  flange=[["torque.flange", "J.flange_a"]], signal=signal)  # fmt: skip
    (text,) = import_case(case).unsupported
    assert reason in text


def test_a_block_nobody_listens_to_does_not_matter() -> None:
    case = a_case(part("J", "rotational", "Inertia", J=1.0), part("s", "rotational", "SpeedSensor"),
                  part("unknown", "signal", "Magic"), flange=[["J.flange_a", "s.flange"]],
                  signal=[["s.w", "unknown.u"]])  # fmt: skip
    assert import_case(case).unsupported == []


# --- start values -----------------------------------------------------------------------------------------------------
def test_start_values_may_be_relative_and_driven_flanges_start_where_their_input_is() -> None:
    case = a_case(
        part("speed", "rotational", "Speed", f_crit=5.0), part("five", "signal", "Constant", k=5.0),
        part("spring", "rotational", "SpringDamper", c=10.0, d=1.0), part("J", "rotational", "Inertia", J=1.0),
        flange=[["speed.flange", "spring.flange_a"], ["spring.flange_b", "J.flange_a"]],
        signal=[["five.y", "speed.w_ref"]], start={"spring.w_rel": -2.0, "spring.phi_rel": 0.1, "speed.phi": 0.5},
    )  # fmt: skip
    model = import_case(case).driveline.start
    assert model == {"spring.w_rel": -2.0, "spring.phi_rel": 0.1, "speed.phi": 0.5, "speed.w": 5.0}


def test_initialize_flange_takes_its_values_from_its_inputs() -> None:
    case = a_case(
        part("J", "rotational", "Inertia", J=1.0), part("set", "rotational", "InitializeFlange", use_a_start=False),
        part("three", "signal", "Constant", k=3.0), flange=[["set.flange", "J.flange_a"]],
        signal=[["three.y", "set.w_start"]],
    )  # fmt: skip
    assert final(case, "J", "phi") == pytest.approx(1.5)


def test_other_start_values_are_refused() -> None:
    case = a_case(part("J", "rotational", "Inertia", J=1.0), start={"J.a": 0.0})
    (text,) = import_case(case).unsupported
    assert "J.a: only angles, speeds, positions and temperatures" in text


def test_other_units_are_converted_to_si() -> None:
    """A turn, one turn each second, the melting point of ice, thousands and thousandths."""
    a_second, small, large = (60.0, 2.0 * math.pi), (1.0, 1e-3), (1.0, 1e3)
    known = {"deg": (360.0, 2.0 * math.pi), "degC": (0.0, 273.15), "rev/min": a_second, "rpm": a_second,
             "1/min": a_second, "mm": small, "ms": small, "kN": large, "kW": large}  # fmt: skip
    assert set(known) == set(UNITS)
    for unit, (value, si) in known.items():
        assert UNITS[unit][0] * value + UNITS[unit][1] == pytest.approx(si, rel=1e-12), unit


# --- heat -------------------------------------------------------------------------------------------------------------
def heated(capacity: bool) -> Case:
    store = [part("store", "thermal", "HeatCapacitor", C=2.0)] if capacity else []
    return a_case(
        part("J", "rotational", "Inertia", J=1.0), part("fixed", "rotational", "Fixed"),
        part("damper", "rotational", "Damper", d=3.0, useHeatPort=True), *store,
        part("collector", "thermal", "ThermalCollector", m=2), part("path", "thermal", "ThermalResistor", R=0.1),
        part("air", "thermal", "FixedTemperature", T={"value": 20.0, "unit": "degC"}),
        flange=[["J.flange_a", "damper.flange_b"], ["damper.flange_a", "fixed.flange"]],
        heat=[["damper.heatPort", "collector.port_a[1]"], ["collector.port_b", "path.port_a"],
              ["path.port_b", "air.port"],
              *([["store.port", "collector.port_b"]] if capacity else [])],
        start={"J.w": 10.0, **({"store.T": 293.15} if capacity else {})},
    )  # fmt: skip


def test_losses_warm_what_their_heat_ports_are_joined_to() -> None:
    # w = 10*exp(-3t), P = 300*exp(-6t), 2*T' = P - 10*(T - 293.15)
    t = 0.5
    wanted = 293.15 + 150.0 / (5.0 - 6.0) * (np.exp(-6.0 * t) - np.exp(-5.0 * t))
    assert final(heated(True), "store", "T") == pytest.approx(wanted, abs=2e-5)


def test_heat_without_capacity_leaves_the_motion_alone() -> None:
    imported = import_case(heated(False))
    assert imported.unsupported == [] and set(imported.driveline.components) == {"J", "fixed", "damper"}
    assert final(heated(False), "J", "w") == pytest.approx(10.0 * np.exp(-1.5), rel=1e-8)


# --- sliding parts ----------------------------------------------------------------------------------------------------
def test_mass_with_stop_and_friction_slides_on_its_stribeck_curve_until_its_stop() -> None:
    def case(stop: float) -> Case:
        return a_case(
            part("m", "translational", "MassWithStopAndFriction", m=1.0, L=0.2, F_prop=1.0, F_Coulomb=5.0,
                 F_Stribeck=10.0, fexp=2.0, smax=stop, smin=-25.0),
            part("force", "translational", "ConstantForce", f_constant=25.0), flange=[["force.flange", "m.flange_a"]],
            start={"m.s": 0.0, "m.v": 0.0},
        )  # fmt: skip

    v, h = 0.0, 1e-5
    for _ in range(50_000):
        # midpoint rule
        middle = v + 0.5 * h * (25.0 - v - 5.0 - 10.0 * np.exp(-2.0 * v))
        v += h * (25.0 - middle - 5.0 - 10.0 * np.exp(-2.0 * middle))
    assert final(case(25.0), "m", "v") == pytest.approx(v, abs=2e-5)
    # its right end at the stop: the impact takes the speed, and the force beyond that of friction rests on the stop
    assert final(case(0.5), "m", "s") == pytest.approx(0.4, abs=1e-9)
    assert final(case(0.5), "m", "v") == 0.0


# --- bodies that turn about axes at rest ------------------------------------------------------------------------------
def turning(n: list[float], **body: Any) -> Case:
    return a_case(
        part("world", "multibody", "World", g=0.0), part("hinge", "multibody", "Revolute", n=n),
        part("body", "multibody", "BodyShape", **body), part("torque", "multibody", "WorldTorque"),
        *(part(f"t{k}", "signal", "Constant", k=float(k)) for k in (1, 2, 3)),
        frame=[["world.frame_b", "hinge.frame_a"], ["hinge.frame_b", "body.frame_a"],
               ["torque.frame_b", "body.frame_b"]],
        signal=[[f"t{k}.y", f"torque.torque[{k}]"] for k in (1, 2, 3)], start={"hinge.phi": 0.3, "hinge.w": 0.0},
    )  # fmt: skip


def test_inertia_about_an_oblique_axis_has_all_its_parts() -> None:
    case = turning(
        [1.0, 1.0, 0.0], m=2.0, r=[1.0, 0.0, 0.0], r_CM=[0.5, 0.0, 0.3], I_11=1.0, I_22=2.0, I_33=3.0, I_21=0.25
    )
    e = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    tensor = np.array([[1.0, 0.25, 0.0], [0.25, 2.0, 0.0], [0.0, 0.0, 3.0]])
    r = np.array([0.5, 0.0, 0.3])
    J = e @ tensor @ e + 2.0 * (r @ r - (r @ e) ** 2)
    wanted = e @ np.array([1.0, 2.0, 3.0]) / J * 0.5
    assert final(case, "hinge", "w") == pytest.approx(wanted, rel=1e-12)
    assert final(replace(case), "hinge", "phi") == pytest.approx(0.3 + 0.25 * wanted, rel=1e-12)


def test_a_torque_in_the_axes_of_another_frame() -> None:
    """Axes turned by 30 deg about x: of a torque (1, 2, 3), 2 sin 30 deg + 3 cos 30 deg act about z of the world."""
    case = turning([0.0, 0.0, 1.0], m=0.0, I_33=2.0)
    torque = part("torque", "multibody", "WorldTorque", resolveInFrame="frame_resolve")
    tilted = part("tilted", "multibody", "FixedRotation", n=[1.0, 0.0, 0.0], angle=np.pi / 6.0)
    components = [torque if c["name"] == "torque" else c for c in case.components]
    (reason,) = import_case(replace(case, components=components)).unsupported
    assert "torque: its frame_resolve is joined to nothing" in reason
    tilt = [["world.frame_b", "tilted.frame_a"], ["tilted.frame_b", "torque.frame_resolve"]]
    frames = [*case.connections["frame"], *tilt]
    there = replace(case, components=[*components, tilted], connections={**case.connections, "frame": frames})
    assert final(there, "hinge", "w") == pytest.approx((2.0 * 0.5 + 3.0 * np.sqrt(0.75)) / 2.0 * 0.5, rel=1e-12)


def test_a_reversed_joint_turns_the_other_way() -> None:
    case = turning([0.0, 0.0, 1.0], m=0.0, I_33=2.0)
    swapped = json.loads(
        json.dumps(case.connections["frame"])
        .replace("hinge.frame_a", "hinge.x").replace("hinge.frame_b", "hinge.frame_a")
        .replace("hinge.x", "hinge.frame_b")
    )  # fmt: skip
    one = final(case, "hinge", "w")
    other = final(replace(case, connections={**case.connections, "frame": swapped}), "hinge", "w")
    assert one == pytest.approx(3.0 / 2.0 * 0.5) and other == pytest.approx(-one)


def test_gravity_counts_only_with_a_lever() -> None:
    def reason(n: list[float], centre: list[float]) -> list[str]:
        case = turning(n, m=1.0, r_CM=centre)
        world = part("world", "multibody", "World", g=9.81, n=[0.0, -1.0, 0.0])
        return import_case(replace(case, components=[world, *case.components[1:]])).unsupported

    assert reason([1.0, 0.0, 0.0], [0.5, 0.0, 0.0]) == []
    assert reason([0.0, 1.0, 0.0], [0.5, 0.0, 0.0]) == []
    (text,) = reason([1.0, 0.0, 0.0], [0.0, 0.2, 0.0])
    assert "0.2 m off the axis (a pendulum" in text


def test_bodies_from_their_shape_equal_the_derived_values_of_the_reference() -> None:
    for name in ("GearConstraint", "GyroscopicEffects", "BevelGear1D"):
        for entry in read_case(MSL / name).components:
            if "derived" in entry:
                given = body_of(entry["kind"], Parameters(entry))
                made = body_of(entry["kind"], Parameters({k: v for k, v in entry.items() if k != "derived"}))
                for a, b in zip(given, made, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


# --- files ------------------------------------------------------------------------------------------------------------
def test_bad_files_are_refused_with_the_place(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    with pytest.raises(ConfigError, match="no case.yaml"):
        read_case(tmp_path)
    file.write_text("schema: case/9\n")
    with pytest.raises(ConfigError, match=r"unknown schema.*case/1"):
        read_case(tmp_path)
    file.write_text("schema: [case/1\n")
    with pytest.raises(ConfigError, match="not a YAML file"):
        read_case(tmp_path)
    text = (MSL / "First" / "case.yaml").read_text()
    (tmp_path / "reference.csv").write_text((MSL / "First" / "reference.csv").read_text())
    for old, new, wanted in (
        ("domain: rotational", "domain: hydraulic", "domain = 'hydraulic' is unknown.*rotational"),
        ("name: inertia3\n", "name: inertia2\n", "component 'inertia2' is given twice"),
        ("  frame: []", "  fluid: []", "unknown group of connections 'fluid'"),
        ("reference.csv", "other.csv", "no 'other.csv' beside case.yaml"),
        ("{value: 1.0, unit: s}", "{value: soon}", "stop_time = 'soon' is not a number"),
        ("name: inertia3.w,", "name: inertia3.q,", "has no column 'inertia3.q'"),
    ):
        assert old in text
        file.write_text(text.replace(old, new, 1))
        with pytest.raises(TorqueloopError, match=wanted):
            read_case(tmp_path)


def test_the_step_built_of_the_file_of_an_example_serves_its_case() -> None:
    # what scripts/bench/bench_clutches.py measures
    case = compile_driveline(import_case(read_case(MSL / "CoupledClutches")).driveline)
    file = compile_driveline(load(Path(__file__).parents[2] / "examples" / "coupled_clutches.toml"))
    assert structure_signature(case.arrays) == structure_signature(file.arrays)
    assert case.input_names == file.input_names
    for name in ("cgeo", "peak"):
        assert case.arrays.fr[name].tolist() == file.arrays.fr[name].tolist()


# --- open connectors --------------------------------------------------------------------------------------------------
def test_a_gear_with_an_open_end_turns_without_torque() -> None:
    case = a_case(
        part("J", "rotational", "Inertia", J=2.0), part("gear", "rotational", "IdealGear", ratio=3.0),
        part("tau", "rotational", "ConstantTorque", tau_constant=4.0), part("spare", "rotational", "Spring", c=1.0),
        flange=[["tau.flange", "J.flange_a"], ["J.flange_b", "gear.flange_a"]],
    )  # fmt: skip
    imported = import_case(case)
    assert imported.unsupported == [] and "spare" not in imported.driveline.components
    assert final(case, "J", "w") == pytest.approx(1.0, rel=1e-12)


def test_an_element_with_one_open_end_has_no_effect_and_a_floating_support_is_refused() -> None:
    case = a_case(part("J", "rotational", "Inertia", J=2.0), part("spring", "rotational", "Spring", c=1.0),
                  flange=[["J.flange_b", "spring.flange_a"]])  # fmt: skip
    assert import_case(case).unsupported == [] and final(case, "J", "w") == 0.0
    case = replace(case, start={"spring.phi_rel": 0.1})
    assert "its flange_b is joined to nothing" in import_case(case).unsupported[0]
    case = a_case(part("J", "rotational", "Inertia", J=2.0), part("tau", "rotational", "Torque", useSupport=True),
                  flange=[["J.flange_b", "tau.flange"]])  # fmt: skip
    assert "its support is joined to nothing" in import_case(case).unsupported[0]


def test_temperature_of_a_heat_port_is_that_of_what_it_is_joined_to() -> None:
    assert final(heated(True), "damper", "T") == final(heated(True), "store", "T") > 294.0
