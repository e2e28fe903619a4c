"""Components -> arrays: the laws, put together by hand, are in the arrays the kernel reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rot_drive import drive, on_inertia

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Brake,
    Clutch,
    ConstantSpeed,
    EddyCurrentTorque,
    ElastoBacklash,
    ElastoBacklash2,
    ElastoGap,
    Gearbox,
    HeatCapacitor,
    Inertia,
    InverseSpeedDependentTorque,
    LinearSpeedDependentTorque,
    LossyGear,
    Mass,
    Move,
    Position,
    SignTorque,
    Speed,
    SpringDamper,
    SupportFriction,
    ThermalConductor,
    Torque,
    Torque2,
    TorqueSensor,
    TorqueToAngleAdaptor,
    TranslationalBrake,
)
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.tables import Columns


def between(component: object, **more: object) -> Driveline:
    """Two inertias with a component "x" between them."""
    return drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"),
                 a=Inertia(J=1), b=Inertia(J=2), x=component, **more)  # fmt: skip


def row(arrays: dict, k: int) -> dict[int, float]:
    first, last = arrays.row_ptr[k], arrays.row_ptr[k + 1]
    return dict(zip(arrays.row_idx[first:last].tolist(), arrays.row_val[first:last].tolist(), strict=True))


def table(arrays: dict, k: int) -> tuple[list[float], list[float]]:
    first, last = arrays.tab1_ptr[k], arrays.tab1_ptr[k + 1]
    return arrays.tab1_x[first:last].tolist(), arrays.tab1_y[first:last].tolist()


@pytest.mark.parametrize(("kind", "number"), [(ElastoBacklash, 0), (ElastoBacklash2, 1)])
def test_backlash_is_a_contact_on_both_sides_of_the_gap(kind: type, number: int) -> None:
    a = compile_driveline(between(kind(c=100.0, d=2.0, b=0.5, phi_rel0=1.0))).arrays
    assert (a.con["lo"][0], a.con["hi"][0], a.con["kind"][0]) == (0.75, 1.25, number)
    assert (a.con["c"][0], a.con["d"][0]) == (100.0, 2.0)
    assert row(a, a.con["row"][0]) == {0: -1.0, 1: 1.0}


def test_backlash_without_a_gap_is_a_spring_and_damper() -> None:
    a = compile_driveline(between(ElastoBacklash(c=100.0, d=2.0, b=0.9e-10, phi_rel0=0.3))).arrays
    assert len(a.con["row"]) == 0
    assert (a.lin["c"].tolist(), a.lin["d"].tolist(), a.lin["phi0"].tolist()) == ([100.0], [2.0], [0.3])
    assert len(compile_driveline(between(ElastoBacklash(c=100.0, d=2.0, b=1.1e-10))).arrays.con["row"]) == 1


def test_an_elasto_gap_has_one_side() -> None:
    d = drive(("m.flange_b", "x.flange_a"), ("x.flange_b", "n.flange_a"), m=Mass(m=1), n=Mass(m=1),
              x=ElastoGap(c=5.0, d=1.0, s_rel0=0.2))  # fmt: skip
    a = compile_driveline(d).arrays
    assert a.con["lo"].tolist() == [0.2] and a.con["hi"][0] >= 1e300


def test_a_lossy_gear_knows_its_efficiencies_and_the_torque_at_flange_a() -> None:
    d = between(LossyGear(ratio=4, lossTable=[[0, 0.9, 0.8, 1, 2], [10, 0.95, 0.85, 3, 4]]), t=Torque())
    d.connect("t.flange", "a.flange_a")
    a = compile_driveline(d).arrays
    curves = [table(a, k) for k in a.ls["tab"][0]]
    assert curves == [([0.0, 10.0], y) for y in ([0.9, 0.95], [0.8, 0.85], [1.0, 3.0], [2.0, 4.0])]
    assert a.ls["form"].tolist() == [0] and a.fr["src"].tolist() == [4]
    assert a.tab1_extrap[a.ls["tab"][0]].tolist() == [0, 0, 1, 1], "efficiencies hold, bearing torques go on"
    # torque T and loss L on shaft a: (1 + 2/16)*a_a = T - L, and ta = T - 1*a_a
    T, L, w_a = 10.0, 3.0, next(iter(row(a, a.fr["row"][0]).values()))
    a_a = (T - L) / (1 + 2 / 16)
    k = int(a.ls["re"][0])
    assert a.n == 1
    assert a.re_A[k, 0] * a_a / w_a + a.re_port[k, 0] * T - a.re_fr[k, 0] * L == pytest.approx(T - a_a)


def test_a_lossless_table_is_an_ideal_gear() -> None:
    a = compile_driveline(between(LossyGear(ratio=4))).arrays
    assert len(a.fr["row"]) == len(a.ls["fr"]) == 0 and a.n == 1
    assert LossyGear(ratio=4).lossTable == LossyGear(ratio=4, lossTable=[[0, 1, 1, 0, 0]]).lossTable


def test_a_self_locking_gear_is_measured_by_its_load() -> None:
    a = compile_driveline(between(LossyGear(ratio=10, lossTable=[[0, 0.4, -0.3, 2.0, 1.0]]))).arrays
    assert a.ls["form"].tolist() == [1]
    kA, kB, cA, cB = (table(a, k)[1][0] for k in a.ls["tab"][0])
    assert (kA, kB, cA, cB) == pytest.approx((1.5, -1.3, 5.0, 0.3))
    # both laws are the same where both hold: over ta (eta2 > 0) and over t = ta - loss
    eta1, eta2, tbf1, tbf2 = 0.8, 0.6, 0.7, 0.2
    for t in (-5.0, 5.0):
        A, B = (1 / eta1 - 1) * t + tbf1 / eta1, (eta2 - 1) * t + eta2 * tbf2
        loss = max(A, B)
        ta = t + loss
        assert max((1 - eta1) * ta + tbf1, (1 - 1 / eta2) * ta + tbf2) == pytest.approx(loss)


def test_losses_are_read_from_a_named_table_and_a_csv(tmp_path) -> None:
    (tmp_path / "loss.csv").write_text("speed_rpm,e1,e2,t1_Nm,t2_Nm\n0,0.9,0.8,1,2\n100,0.91,0.81,1,2\n")
    (tmp_path / "d.toml").write_text(
        'connections = [["a.flange_b", "x.flange_a"], ["x.flange_b", "b.flange_a"]]\n'
        '[tables.loss]\ncsv = "loss.csv"\ncolumns = ["speed_rpm", "e1", "e2", "t1_Nm", "t2_Nm"]\n'
        '[components.a]\nkind = "Inertia"\nJ_kgm2 = 1\n[components.b]\nkind = "Inertia"\nJ_kgm2 = 2\n'
        '[components.x]\nkind = "LossyGear"\nratio = 2\nlossTable = "loss"\n'
    )
    a = compile_driveline(load(tmp_path / "d.toml")).arrays
    x, y = table(a, a.ls["tab"][0][1])
    assert x == pytest.approx([0.0, 100 * math.pi / 30]) and y == [0.8, 0.81]


def test_a_wrong_named_loss_table_names_table_and_component() -> None:
    d = between(LossyGear(ratio=2, lossTable="loss"))
    d.add_table("loss", Columns.of(["w_radps", "e1", "e2", "t1_Nm", "t2_Nm"], [[0, 2, 0.9, 0, 0]]))
    with pytest.raises(TableError) as caught:
        compile_driveline(d)
    for word in ("row 1 of table 'loss'", "eta1 = 2", "components.x", "<= 1"):
        assert word in str(caught.value)


def test_the_inner_shaft_of_a_gearbox_needs_no_inertia() -> None:
    a = compile_driveline(between(Gearbox(ratio=3, c=1e3, d=1.0, b=0.2, lossTable=[[0, 0.9, 0.9, 0, 0]]))).arrays
    assert a.n == 2
    assert sorted(row(a, a.con["row"][0]).values()) == pytest.approx([-1 / 3, 1.0])
    assert (a.con["lo"][0], a.con["hi"][0]) == (-0.1, 0.1)


def test_driven_motions_have_their_inputs() -> None:
    for component, kind, inputs in (
        (Move(), 4, ["x.phi", "x.w", "x.a"]),
        (Position(exact=True), 4, ["x.phi_ref", "x.phi_ref'", "x.phi_ref''"]),
        (Speed(exact=True), 3, ["x.w_ref", "x.w_ref'"]),
        (ConstantSpeed(w_fixed=7.0), 3, ["x.w_fixed", "x.w_fixed'"]),
        (Speed(f_crit=10.0), 1, ["x.w_ref"]),
        (Position(f_crit=10.0), 2, ["x.phi_ref"]),
    ):
        model = compile_driveline(on_inertia(1.0, component))
        a = model.arrays
        assert a.drv["kind"].tolist() == [kind]
        assert [model.input_names[k] for k in a.drv["inputs"][0] if k >= 0] == inputs
        if kind in (1, 2):
            assert a.drv["p"][0, 0] == pytest.approx(2 * math.pi * 10.0)
        assert set(model.derived_inputs) == {name for name in inputs if name.endswith("'")}
    assert model.input_units == ("rad",)
    assert compile_driveline(on_inertia(1.0, ConstantSpeed(w_fixed=7.0))).arrays.u0.tolist() == [7.0]


def test_torques_act_on_the_sides_they_should() -> None:
    a = compile_driveline(between(Torque2())).arrays
    assert row(a, a.tq["row"][0]) == {0: -1.0, 1: 1.0}
    a = compile_driveline(on_inertia(1.0, TorqueToAngleAdaptor())).arrays
    assert a.tq["gain"].tolist() == [-1.0] and row(a, a.tq["row"][0]) == {0: 1.0}


def test_eddy_currents_take_the_coefficient_of_their_reference_temperature() -> None:
    d = drive(("J.flange_b", "x.flange"), ("x.heatPort", "h.port"), J=Inertia(J=1), h=HeatCapacitor(C=2.0, T0=300.0),
              x=EddyCurrentTorque(tau_nominal=5.0, w_nominal=3.0, alpha20=0.004, TRef=343.15))  # fmt: skip
    a = compile_driveline(d).arrays
    assert a.ed["alpha"][0] == pytest.approx(0.004 / 1.2) and a.ed["T_ref"].tolist() == [343.15]
    assert a.ed["th"].tolist() == [0] and a.ths["kind"].tolist() == [0] and a.th["T0"].tolist() == [300.0]
    assert compile_driveline(on_inertia(1.0, d.components["x"])).arrays.ed["th"].tolist() == [-1]


def test_speed_dependent_torques_as_curves() -> None:
    def law(component: object, *speeds: float) -> list[float]:
        a = compile_driveline(on_inertia(1.0, component)).arrays
        x, y = table(a, a.cv["tab1"][0])
        assert len(a.cv["row"]) == 1 and a.cv["absolute"][0] == 0
        linear = a.tab1_extrap[a.cv["tab1"][0]]
        if linear:
            left = y[0] + (y[1] - y[0]) / (x[1] - x[0]) * (np.array(speeds) - x[0])
            right = y[-1] + (y[-1] - y[-2]) / (x[-1] - x[-2]) * (np.array(speeds) - x[-1])
            inside = np.interp(speeds, x, y)
            values = np.where(np.array(speeds) < x[0], left, np.where(np.array(speeds) > x[-1], right, inside))
        else:
            values = np.interp(speeds, x, y)
        return (a.cv["gain"][0] * values).tolist()

    tau = LinearSpeedDependentTorque(tau_nominal=-6.0, w_nominal=3.0)
    assert law(tau, -9.0, -1.0, 0.0, 2.0, 30.0) == pytest.approx([-18.0, -2.0, 0.0, -4.0, -60.0])
    w = [-20.0, -0.2, -0.05, 0.0, 0.05, 0.0999, 0.11, 7.3, 4999.0]
    even = InverseSpeedDependentTorque(tau_nominal=2.0, w_nominal=5.0, w0=0.1)
    assert law(even, *w) == pytest.approx([10.0 / max(abs(v), 0.1) for v in w], rel=2e-6)
    odd = InverseSpeedDependentTorque(tau_nominal=2.0, w_nominal=5.0, w0=0.1, TorqueDirection=False)
    assert law(odd, *w) == pytest.approx([10.0 / v if abs(v) >= 0.1 else 20.0 * v for v in w], rel=2e-6)
    signs = {
        "Exp": lambda v: math.tanh(v / 0.004),
        "Sine": lambda v: math.copysign(1, v) if abs(v) >= 0.2 else math.sin(math.pi / 2 * v / 0.2),
        "Linear": lambda v: math.copysign(1, v) if abs(v) >= 0.2 else v / 0.2,
        "CoSine": lambda v: math.copysign(1 if abs(v) >= 0.2 else 1 - math.cos(math.pi / 2 * v / 0.2), v),
    }
    speeds = [-3.0, -0.19, -0.003, 0.0, 1e-4, 0.0017, 0.07, 0.2, 5.0]
    for reg, expected in signs.items():
        values = law(SignTorque(tau_nominal=-4.0, reg=reg, w0=0.2), *speeds)
        assert values == pytest.approx([-4.0 * expected(v) for v in speeds], abs=4.1e-6), reg


def test_heat_goes_where_it_is_dissipated() -> None:
    d = between(Clutch(fn_max=1, mue_pos=1), sd=SpringDamper(c=1, d=1), brake=Brake(fn_max=1, mue_pos=1),
                h=HeatCapacitor(C=1), k=HeatCapacitor(C=2), g=ThermalConductor(G=3))  # fmt: skip
    d.connect("sd.flange_a", "a.flange_a")
    d.connect("sd.flange_b", "b.flange_b")
    d.connect("brake.flange_a", "a.flange_a")
    d.connect("x.heatPort", "sd.heatPort", "h.port", "g.port_a")
    d.connect("k.port", "g.port_b")
    model = compile_driveline(d)
    a = model.arrays
    sources = sorted(zip(a.ths["kind"].tolist(), a.ths["idx"].tolist(), strict=True))
    assert sources == [(1, model.friction_names.index("x")), (2, 0)], "the brake's port is open"
    assert len(set(a.ths["node"].tolist())) == 1 and a.thg["G"].tolist() == [3.0]


def test_translational_friction_acts_along_the_rod() -> None:
    d = drive(("m.flange_b", "b.flange_a", "f.flange_a"), m=Mass(m=1),
              b=TranslationalBrake(fn_max=10.0, cgeo=2.0, mue_pos=0.3, peak=1.5),
              f=SupportFriction(f_pos=[[0, 4.0], [1, 5.0]], peak=1.25))  # fmt: skip
    model = compile_driveline(d)
    a, (b, f) = model.arrays, (model.friction_names.index("b"), model.friction_names.index("f"))
    assert (a.fr["gain"][b], a.fr["cgeo"][b], a.fr["peak"][b], a.fr["src"][b]) == (10.0, 2.0, 1.5, 1)
    assert (a.fr["src"][f], a.fr["peak"][f]) == (0, 1.25)
    assert table(a, a.fr["mu"][f]) == ([0.0, 1.0], [4.0, 5.0])
    assert {"b.s_rel", "b.v_rel", "b.f"} <= set(model.output_names)


def test_a_torque_sensor_reads_the_torque_from_a_to_b() -> None:
    for at, through in (("a", 2 / 3), ("b", -1 / 3)):  # shafts of 1 and 2 kg.m2, torque of 1 Nm on one of them
        d = between(TorqueSensor(), t=Torque())
        d.connect("t.flange", f"{at}.flange_a")
        a = compile_driveline(d).arrays
        assert a.n == 1 and a.M.tolist() == [[3.0]]
        assert a.re_A[0, 0] / 3.0 + a.re_port[0, 0] == pytest.approx(through)
