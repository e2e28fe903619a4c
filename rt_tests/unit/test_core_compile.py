"""The compiler: arrays as the kernel wants them, structural mistakes named, start values consistent."""

from __future__ import annotations

import numpy as np
import pytest
from core_examples import two_shafts, zf_4hp22

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    BearingFriction,
    Brake,
    CarResistance,
    Clutch,
    ConstantTorque,
    Damper,
    Differential,
    Engine,
    FinalDrive,
    Fixed,
    IdealGear,
    IdealPlanetary,
    IdealRollingWheel,
    Inertia,
    LockUpTC,
    Mass,
    OneWayClutch,
    QuadraticSpeedDependentTorque,
    RoadLoad,
    Spring,
    SpringDamper,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    DomainError,
    FloatingFlangeError,
    InitialValueError,
    NoInertiaError,
    OverconstrainedError,
    TableError,
    UnknownNameError,
)
from torqueloop.core.describe.vocabulary import Form
from torqueloop.cython_kernels.model.records import KINDS, PORTS

CONVERTER = {"mp": [[0.0, 0.01], [0.9, 0.006], [1.0, 0.0]], "mu": [[0.0, 2.0], [0.9, 1.0], [1.0, 1.0]]}


def drive(*connections: tuple[str, ...], **components) -> Driveline:
    d = Driveline("test")
    for name, component in components.items():
        d.add(name, component)
    for group in connections:
        d.connect(*group)
    return d


def car() -> Driveline:
    """Engine, converter, gear, differential with two wheels and a road."""
    return drive(
        ("engine.flange", "tc.pump"), ("tc.turbine", "shaft.flange_a"), ("shaft.flange_b", "axle.flange_in"),
        ("axle.flange_left", "left.flange_a", "hub.flange_a"), ("axle.flange_right", "right.flange_a"),
        ("left.flange_b", "wheel.flangeR"), ("right.flange_b", "other.flange_a"),
        ("wheel.flangeT", "car.flange_a"), ("car.flange_b", "road.flange", "resistance.flange"),
        engine=Engine(J=0.2, wot=100.0, drag=-20.0, w0=80.0), tc=LockUpTC(**CONVERTER), shaft=Inertia(J=0.05),
        axle=Differential(ratio=3), hub=Inertia(J=0.01),
        left=SpringDamper(c=9000.0, d=20.0), right=SpringDamper(c=9000.0, d=20.0),
        wheel=IdealRollingWheel(radius=0.3), other=Inertia(J=100.0), car=Mass(m=1400.0), road=RoadLoad(),
        resistance=CarResistance(f0=180.0, f2=0.4, m=1400.0),
    )  # fmt: skip


def test_arrays_have_the_agreed_types_and_lengths() -> None:
    for model in (compile_driveline(zf_4hp22()), compile_driveline(car())):
        for name, value in model.arrays.items():
            if isinstance(value, int):
                assert name in ("nin", "n_hot", "order")
                continue
            if name in KINDS:
                assert value.dtype == KINDS[name].given and value.flags.c_contiguous, name
                continue
            assert value.dtype in (np.int32, np.float64), name
            assert value.flags.c_contiguous, name
        a = model.arrays
        assert a.M.shape == (a.n, a.n) and len(a.u0) == len(a.z0) == a.n == len(model.coordinates)
        assert a.nin == len(model.input_names) == len(model.input_units)
        assert len(a.out["kind"]) == len(a.out["idx"]) == len(model.output_names) == len(model.output_units)
        assert len(a.fr["row"]) == len(model.friction_names)
        assert len(set(model.output_names)) == len(model.output_names)
        used = [a.elements[kind][row] for kind, row in (("fr", "row"), ("lin", "row"), *PORTS)]
        assert max(int(rows.max()) for rows in used if len(rows)) < a.n_hot <= len(a.row_ptr) - 1
        assert a.row_ptr[-1] == len(a.row_idx) == len(a.row_val)
        assert np.all(a.row_val != 0.0)


def test_differential_and_rolling_wheel_couple_the_speeds_they_should() -> None:
    model = compile_driveline(car())
    rows = {name: model.topology.rows[name] for name in model.topology.nodes}
    assert rows["car"][0] == {"car": 1}
    speed = model.topology.over_independent
    wheel = speed(Form({"wheel.flangeR": 10}))[0]
    assert wheel == {"car": pytest.approx(10 / 0.3)}
    both = speed(Form({"axle.flange_in": -2, "axle.flange_left": 3, "axle.flange_right": 3}))
    assert both == ({}, 0)
    assert model.arrays.order == 4


def test_parallel_clutches_on_one_shaft_share_one_row() -> None:
    a = compile_driveline(zf_4hp22()).arrays
    names = compile_driveline(zf_4hp22()).friction_names
    assert a.fr["row"][names.index("C6")] == a.fr["row"][names.index("C7")]


def test_one_way_clutch_has_the_breakaway_torques_of_modelica() -> None:
    d = drive(("a.flange_b", "o.flange_a"), ("o.flange_b", "b.flange_a"), a=Inertia(J=1), b=Inertia(J=1),
              o=OneWayClutch(fn_max=3.0, mue_pos=0.5, cgeo=2.0, peak=1.0))  # fmt: skip
    a = compile_driveline(d).arrays
    assert (a.fr["fwd"][0], a.fr["bwd"][0]) == (1, 2)
    assert a.fr["peak"][0] == 1.0001
    assert a.fr["hold"][0] == pytest.approx(1e-4 * 2.0 * 0.5 * 3.0)


def test_order_is_four_with_springs_unless_told_otherwise() -> None:
    d = drive(("a.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a"), a=Inertia(J=1), b=Inertia(J=1), s=Spring(c=1))
    assert compile_driveline(d).arrays.order == 4
    d.order = 2
    assert compile_driveline(d).arrays.order == 2
    d.order = "auto"
    d.components["s"] = Damper(d=1.0)
    assert compile_driveline(d).arrays.order == 2


def test_two_gears_of_different_ratio_in_parallel_are_named() -> None:
    d = drive(("a.flange_b", "g1.flange_a", "g2.flange_a"), ("g1.flange_b", "g2.flange_b", "b.flange_a"),
              a=Inertia(J=1), b=Inertia(J=1), g1=IdealGear(ratio=2), g2=IdealGear(ratio=3))  # fmt: skip
    with pytest.raises(OverconstrainedError, match=r"can never turn .* components: g1, g2") as caught:
        compile_driveline(d)
    assert caught.value.components == ("g1", "g2")


def test_two_gears_of_equal_ratio_in_parallel_leave_torques_undetermined() -> None:
    d = drive(("a.flange_b", "g1.flange_a", "g2.flange_a"), ("g1.flange_b", "g2.flange_b", "b.flange_a"),
              a=Inertia(J=1), b=Inertia(J=1), g1=IdealGear(ratio=-2), g2=IdealGear(z_a=10, z_b=20))  # fmt: skip
    with pytest.raises(OverconstrainedError, match=r"torques in it are undetermined; components: g1, g2"):
        compile_driveline(d)


def test_only_the_components_of_the_loop_are_named() -> None:
    d = drive(
        ("a.flange_b", "g0.flange_a"), ("g0.flange_b", "g1.flange_a", "g2.flange_a", "m.flange_a"),
        ("g1.flange_b", "g2.flange_b", "b.flange_a"),
        a=Inertia(J=1), b=Inertia(J=1), m=Inertia(J=1),
        g0=IdealGear(ratio=5), g1=IdealGear(ratio=2), g2=IdealGear(ratio=3),
    )  # fmt: skip
    with pytest.raises(OverconstrainedError) as caught:
        compile_driveline(d)
    assert caught.value.components == ("g1", "g2")


def test_a_gear_between_rigidly_joined_shafts_is_named() -> None:
    d = drive(("a.flange_b", "g.flange_a", "g.flange_b"), a=Inertia(J=1), g=IdealGear(ratio=2))
    with pytest.raises(OverconstrainedError, match="g") as caught:
        compile_driveline(d)
    assert caught.value.components == ("g",)


def test_two_rigid_shafts_in_parallel_are_one_shaft() -> None:
    d = drive(("a.flange_a", "b.flange_a"), ("a.flange_b", "b.flange_b"), a=Inertia(J=1), b=Inertia(J=2))
    assert compile_driveline(d).arrays.M.tolist() == [[3.0]]


def test_housing_at_two_angles_is_a_contradiction() -> None:
    d = drive(("f.flange", "g.flange", "s.flange_a"), ("s.flange_b", "a.flange_a"),
              f=Fixed(), g=Fixed(phi0=0.5), s=Spring(c=1.0), a=Inertia(J=1))  # fmt: skip
    with pytest.raises(OverconstrainedError, match=r"contradict each other by .*0\.5.*f, g"):
        compile_driveline(d)


def test_a_shaft_held_in_the_housing_through_gears_is_allowed() -> None:
    d = drive(("h.flange", "P.sun"), ("a.flange_a", "P.carrier"), ("b.flange_a", "P.ring"),
              h=Fixed(), P=IdealPlanetary(ratio=2), a=Inertia(J=1), b=Inertia(J=1))  # fmt: skip
    model = compile_driveline(d)
    assert model.n == 1
    assert model.arrays.M[0, 0] == pytest.approx(1 + (3 / 2) ** 2) or model.arrays.M[0, 0] == pytest.approx(
        1 + (2 / 3) ** 2
    )


@pytest.mark.parametrize(
    ("kind", "flange"),
    [(Clutch(fn_max=1.0, mue_pos=0.5), "flange_b"), (Spring(c=1.0), "flange_b"), (IdealGear(ratio=2), "flange_b")],
)
def test_an_open_flange_that_must_be_joined_is_named(kind, flange: str) -> None:
    d = drive(("a.flange_b", "x.flange_a"), a=Inertia(J=1), x=kind)
    with pytest.raises(FloatingFlangeError, match=rf"x\.{flange} of {kind.kind} 'x' is joined to nothing") as caught:
        compile_driveline(d)
    assert caught.value.components == ("x",)


def test_a_shaft_joined_to_nothing_is_named() -> None:
    d = two_shafts()
    d.add("lost", Inertia(J=1.0))
    with pytest.raises(FloatingFlangeError, match="Inertia 'lost' is joined to nothing"):
        compile_driveline(d)


def test_a_free_shaft_without_inertia_is_named() -> None:
    d = drive(("a.flange_b", "c.flange_a"), ("c.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a"),
              a=Inertia(J=1), b=Inertia(J=1), c=Clutch(fn_max=1, mue_pos=[[0, 2], [1, 1]]), s=Spring(c=1))  # fmt: skip
    with pytest.raises(NoInertiaError, match=r"c\.flange_b = s\.flange_a") as caught:
        compile_driveline(d)
    assert caught.value.components == ("c", "s")


def test_inertia_reached_through_a_gear_is_enough() -> None:
    d = drive(("a.flange_b", "g.flange_a"), ("g.flange_b", "s.flange_a"), ("s.flange_b", "b.flange_a"),
              a=Inertia(J=1), b=Inertia(J=1), g=IdealGear(ratio=2), s=Spring(c=1.0))  # fmt: skip
    assert compile_driveline(d).n == 2


def test_a_clutch_between_rigidly_joined_sides_is_named() -> None:
    d = drive(("a.flange_a", "c.flange_a", "c.flange_b"), a=Inertia(J=1), c=Clutch(fn_max=1.0, mue_pos=0.5))
    with pytest.raises(OverconstrainedError, match="both sides of 'c' always turn together"):
        compile_driveline(d)


def test_rotation_joined_to_translation_is_named() -> None:
    d = drive(("a.flange_a", "m.flange_a"), a=Inertia(J=1), m=Mass(m=1.0))
    with pytest.raises(DomainError, match=r"a\.flange_a and m\.flange_a"):
        compile_driveline(d)


def test_a_driveline_that_cannot_move_or_is_empty_is_refused() -> None:
    with pytest.raises(CompileError, match="no components"):
        compile_driveline(Driveline("empty"))
    with pytest.raises(CompileError, match="nothing can move"):
        compile_driveline(drive(("f.flange", "a.flange_a"), f=Fixed(), a=Inertia(J=1)))


def test_converter_capacity_must_vanish_at_synchronous_speed() -> None:
    d = drive(("a.flange_a", "tc.pump"), ("b.flange_a", "tc.turbine"), a=Inertia(J=1), b=Inertia(J=1),
              tc=LockUpTC(mp=[[0, 0.01], [1, 0.001]], mu=1.0))  # fmt: skip
    with pytest.raises(TableError, match=r"mp must be 0 at speed ratio 1 .* \[components.tc\]"):
        compile_driveline(d)


def test_start_values_that_contradict_through_a_gear_name_both() -> None:
    d = drive(("a.flange_b", "g.flange_a"), ("g.flange_b", "b.flange_a"),
              a=Inertia(J=1, w0=10.0), b=Inertia(J=1, w0=4.0), g=IdealGear(ratio=2))  # fmt: skip
    with pytest.raises(InitialValueError, match=r"b\.w0 = 4, but a\.w0 require 5") as caught:
        compile_driveline(d)
    assert caught.value.components == ("a", "b")
    d.components["b"] = Inertia(J=1, w0=5.0)
    assert sorted(compile_driveline(d).arrays.u0) in ([5.0], [10.0])


def test_start_value_of_a_shaft_in_the_housing_must_be_zero() -> None:
    d = drive(("f.flange", "a.flange_a"), ("b.flange_a", "c.flange_a"), ("c.flange_b", "a.flange_b"),
              f=Fixed(), a=Inertia(J=1, w0=1.0), b=Inertia(J=1), c=Clutch(fn_max=1, mue_pos=1))  # fmt: skip
    with pytest.raises(InitialValueError, match=r"a\.w0 = 1, but the housing requires 0"):
        compile_driveline(d)


def test_relative_start_values_and_gears_determine_the_rest() -> None:
    d = drive(
        ("a.flange_b", "c.flange_a"), ("c.flange_b", "g.flange_a"), ("g.flange_b", "b.flange_a"),
        a=Inertia(J=1), b=Inertia(J=1), c=Clutch(fn_max=1.0, mue_pos=0.5, w_rel0=-3.0), g=IdealGear(ratio=2),
    )  # fmt: skip
    d.set_start("b.w", 1.0)
    d.set_start("b.phi", 0.5)
    model = compile_driveline(d)
    u = dict(zip(model.coordinates, model.arrays.u0, strict=True))
    value = {n: sum(float(c) * u[k] for k, c in row.items()) for n, (row, _) in model.topology.rows.items()}
    assert value["b"] == pytest.approx(1.0)
    assert value["a"] == pytest.approx(5.0)  # w_rel = 2*w_b - w_a = -3


def test_angles_of_mass_ends_and_housing_are_offsets_of_rows() -> None:
    d = drive(("f.flange", "s.flange_a"), ("s.flange_b", "a.flange_a"),
              f=Fixed(phi0=0.25), s=Spring(c=10.0, phi_rel0=0.5), a=Inertia(J=1, phi0=1.0))  # fmt: skip
    a = compile_driveline(d).arrays
    assert a.row_off[a.lin["row"][0]] == -0.25
    assert a.z0.tolist() == [1.0]
    m = compile_driveline(drive(("m.flange_b", "wheel.flangeT"), ("wheel.flangeR", "J.flange_a"),
              m=Mass(m=1, L=2, s0=0), wheel=IdealRollingWheel(radius=0.5), J=Inertia(J=1)))  # fmt: skip
    row, offset = m.topology.over_independent(Form({"wheel.flangeT": 1}))
    centre, base = m.topology.over_independent(Form({"m.centre": 1}))
    assert row == centre and float(offset - base) == 1.0


def test_moving_support_makes_speeds_relative() -> None:
    d = drive(
        ("a.flange_b", "g.flange_a"), ("g.flange_b", "b.flange_a"), ("g.support", "box.flange_a", "brake.support"),
        ("b.flange_b", "brake.flange_a"),
        a=Inertia(J=1), b=Inertia(J=1), box=Inertia(J=1), g=IdealGear(ratio=3), brake=Brake(fn_max=1, mue_pos=0.5),
    )  # fmt: skip
    model = compile_driveline(d)
    assert model.n == 2
    a, b, box = (model.topology.over_independent(Form({f"{n}.flange_a": 1}))[0] for n in ("a", "b", "box"))
    for name in model.coordinates:
        assert a.get(name, 0) - box.get(name, 0) == 3 * (b.get(name, 0) - box.get(name, 0))


def test_unknown_start_value_and_unknown_input_name_the_nearest() -> None:
    d = two_shafts()
    with pytest.raises(UnknownNameError, match=r"no input 'torque\.tua'; did you mean 'torque\.tau'\?"):
        compile_driveline(d).input_index("torque.tua")
    d.set_start("J1.ww", 1.0)
    with pytest.raises(UnknownNameError, match=r"'J1\.ww'"):
        compile_driveline(d)


def test_every_kind_of_element_reaches_its_arrays() -> None:
    d = drive(
        ("engine.flange", "tc.pump"), ("tc.turbine", "shaft.flange_a"), ("shaft.flange_b", "final.flange_a"),
        ("final.flange_b", "wheel.flange_a"),
        ("wheel.flange_b", "bearing.flange_a", "load.flange", "pull.flange", "drive.flange"),
        engine=Engine(J=0.2, wot=100.0, w_idle=80.0, kp=1.0, ki=2.0, tau_idle_max=50.0),
        tc=LockUpTC(**CONVERTER, coast=[[0, 0.004], [1, 0.0]], faces=2, r_o=0.11, r_i=0.09, area=0.015, mue_pos=0.12,
                    J_pump=0.1, J_turbine=0.02),
        shaft=Inertia(J=0.05), final=FinalDrive(ratio=3.25), wheel=Inertia(J=50),
        bearing=BearingFriction(tau_pos=[[0, 1], [10, 2]]),
        load=QuadraticSpeedDependentTorque(tau_nominal=-20, w_nominal=10, TorqueDirection=False),
        pull=ConstantTorque(tau_constant=-3), drive=Torque(),
    )  # fmt: skip
    model = compile_driveline(d)
    a = model.arrays
    assert a.poly["k"][:, 3].tolist() == [-0.2] and a.poly["k"][:, 2].tolist() == [0.0]
    assert a.tq["constant"].tolist() == [0.0, -3.0] and a.tq["input"].tolist() == [0, -1]
    assert model.torque_names == ("drive", "pull") and model.input_names == ("drive.tau", "engine.pedal", "tc.p")
    assert model.friction_names == ("bearing", "tc") and a.fr["src"].tolist() == [0, 2]
    assert a.eng["pedal"].tolist() == [1] and a.eng["map"].tolist() == [-1]
    assert len(a.tc["row_p"]) == 1 and a.act["area"].tolist() == [0.015]
    assert float(a.M.sum()) > 0
