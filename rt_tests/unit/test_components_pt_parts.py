"""PowerTrain components: what they hand to the compiler, by hand-computed numbers, and TOML == Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pt_arrays import curve_of, map_of, row_of

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    CarCoastDown,
    CarResistance,
    Component,
    Differential,
    Engine3,
    GearEfficiency2,
    Inertia,
    LaminarClutch,
    LockUpTC,
    Mass,
    OneWayLaminarClutch,
    TorqueLoss,
    VariableGear,
    WarmUpModel,
    Wheel2,
)
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, FloatingFlangeError, NoInertiaError, RangeError, TableError
from torqueloop.core.describe.tables import Table1D, Table2D

G = 9.80665
PACK: dict[str, Any] = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.008}


def between(component: Component, J_a: float = 1.0, J_b: float = 2.0) -> Driveline:
    """The component between two inertias a and b."""
    d = Driveline("between")
    d.add("x", component)
    d.add("a", Inertia(J=J_a))
    d.add("b", Inertia(J=J_b))
    d.connect("a.flange_b", "x.flange_a")
    d.connect("x.flange_b", "b.flange_a")
    return d


# --- gears of changing ratio ----------------------------------------------------------------------------------------
def test_variable_gear_given_by_its_ratio() -> None:
    model = compile_driveline(between(VariableGear()))
    a = model.arrays
    assert model.input_names == ("x.ratio",)
    assert a.vg["kind"].tolist() == [0] and a.vg["input"].tolist() == [0] and a.vg["tab"].tolist() == [-1]
    assert a.fr["src"][a.vg["fr"][0]] == 5
    assert a.order == 4
    position = {name: k for k, name in enumerate(model.coordinates)}
    for side, rows in (("a", "row_a"), ("b", "row_b")):
        expected = np.zeros(2)
        expected[position[side]] = 1.0
        assert row_of(a, a.vg[rows][0]).tolist() == expected.tolist()


def test_variable_gear_given_by_the_gear_number() -> None:
    model = compile_driveline(between(VariableGear(ratios=[[1, 3.0], [2, 1.5], [3, 1.0]])))
    a = model.arrays
    assert model.input_names == ("x.gear",)
    assert a.vg["kind"].tolist() == [1]
    assert curve_of(a, a.vg["tab"][0]) == [(1.0, 3.0), (2.0, 1.5), (3.0, 1.0)]


def test_a_ratio_through_zero_is_refused() -> None:
    with pytest.raises(TableError, match="must not be 0 or change its sign") as caught:
        compile_driveline(between(VariableGear(ratios=[[-1, -3.0], [1, 3.0]])))
    assert caught.value.key == "ratios"


def test_both_sides_of_a_variable_gear_need_inertia() -> None:
    with pytest.raises(NoInertiaError, match="both sides of a gear of changing ratio"):
        compile_driveline(between(VariableGear(), J_a=0.0))


def test_wheel2_relates_speed_to_turning_by_its_radius() -> None:
    """v = radius(|v|)*w: side a is the speed v, side b the turning w."""
    d = Driveline("wheel")
    d.add("wheel", Wheel2(radius=[[0, 0.30], [40, 0.31]], J=1.5))
    d.add("car", CarCoastDown(m=1000.0))
    d.add("axle", Inertia(J=0.1))
    d.connect("axle.flange_a", "wheel.flangeR")
    d.connect("wheel.flangeT", "car.flange")
    model = compile_driveline(d)
    a = model.arrays
    assert a.vg["kind"].tolist() == [2] and a.vg["input"].tolist() == [-1]
    assert curve_of(a, a.vg["tab"][0]) == [(0.0, 0.30), (40.0, 0.31)]
    car = model.coordinates.index("car.flange")
    assert row_of(a, a.vg["row_a"][0])[car] == 1.0 and row_of(a, a.vg["row_b"][0])[1 - car] == 1.0
    assert a.M[car, car] == 1000.0 and a.M[1 - car, 1 - car] == pytest.approx(1.6)


# --- losses ---------------------------------------------------------------------------------------------------------
def test_gear_efficiency2_is_a_loss_over_the_gear_number() -> None:
    model = compile_driveline(between(GearEfficiency2(eta=[[1, 0.9], [2, 0.95]], eta_b=[[1, 0.8], [2, 0.85]])))
    a = model.arrays
    assert a.ls["form"].tolist() == [0] and a.ls["input"].tolist() == [model.input_index("x.gear")]
    eta1, eta2, tbf1, tbf2 = (curve_of(a, k) for k in a.ls["tab"][0])
    assert eta1 == [(1.0, 0.9), (2.0, 0.95)] and eta2 == [(1.0, 0.8), (2.0, 0.85)]
    assert {y for _, y in (*tbf1, *tbf2)} == {0.0}
    assert a.M.tolist() == [[3.0]], "both shafts turn together"


def test_load_of_gear_efficiency2_is_the_torque_that_enters() -> None:
    """a: J=1 with torque 12 Nm, b: J=2, no loss: 4 rad/s2, 8 Nm pass; with tau = -2 Nm of loss: 10/3 rad/s2."""
    from torqueloop.core.components import Torque

    d = between(GearEfficiency2(eta=0.9))
    d.add("drive", Torque())
    d.connect("drive.flange", "a.flange_a")
    a = compile_driveline(d).arrays
    for tau, acceleration in ((0.0, 4.0), (-2.0, 10.0 / 3.0)):
        value = a.re_A @ [acceleration] + a.re_port @ [12.0] + a.re_fr @ [tau]
        assert value == pytest.approx([12.0 - 1.0 * acceleration])


@pytest.mark.parametrize("eta", [0.0, 1.2, -0.1])
def test_an_efficiency_outside_0_to_1_is_refused(eta: float) -> None:
    with pytest.raises(TableError) as caught:
        GearEfficiency2(eta=eta)
    assert caught.value.key == "eta"


def test_torque_loss_takes_its_magnitude_from_an_input() -> None:
    model = compile_driveline(between(TorqueLoss(peak=1.2)))
    a = model.arrays
    assert a.fr["src"].tolist() == [3] and model.input_names == ("x.tau_loss",)
    assert a.fr["peak"].tolist() == [1.2]
    assert a.M.tolist() == [[3.0]], "one shaft"


# --- clutches ---------------------------------------------------------------------------------------------------------
def test_one_way_laminar_clutch_is_the_laminar_clutch_that_only_drives_one_way() -> None:
    own = compile_driveline(between(OneWayLaminarClutch(**PACK)))
    flag = compile_driveline(between(LaminarClutch(one_way=True, **PACK)))
    assert own.digest() == flag.digest()
    assert own.arrays.fr["fwd"].tolist() == [0] and own.arrays.fr["bwd"].tolist() == [1]
    assert own.arrays.fr["cgeo"].tolist() == pytest.approx([8 * 0.08])


@pytest.mark.parametrize(("given", "missing"), [("r_o", "r_i"), ("r_i", "r_o")])
def test_one_radius_beside_cgeo_needs_the_other_one(given: str, missing: str) -> None:
    with pytest.raises(ConfigError, match=f"r_o and r_i belong together: {missing} is missing"):
        LaminarClutch(cgeo=0.64, mue_pos=0.12, area=0.008, **{given: 0.08})


def test_heat_of_a_converter_is_what_pump_and_turbine_do_not_return() -> None:
    d = Driveline("tc")
    d.add("tc", LockUpTC(mp=[[0, 0.004], [1, 0]], mu=[[0, 2], [1, 1]]))
    d.add("pump", Inertia(J=0.1))
    d.add("turbine", Inertia(J=0.1))
    d.add("warm", WarmUpModel())
    d.connect("tc.pump", "pump.flange_a")
    d.connect("tc.turbine", "turbine.flange_a")
    d.connect("tc.heatPort", "warm.oil")
    a = compile_driveline(d).arrays
    assert a.ths["kind"].tolist() == [0, 0] and a.ths["gain"].tolist() == [1.0, 1.0]
    assert sorted(a.ths["idx"].tolist()) == [0, 1]


def test_differential_shares_torque_equally_and_averages_speeds() -> None:
    """Existing component, row by hand: 2*w_in/ratio = w_left + w_right."""
    d = Driveline("diff")
    d.add("diff", Differential(ratio=3))
    for flange in ("in", "left", "right"):
        d.add(flange, Inertia(J={"in": 0.1, "left": 1.0, "right": 1.0}[flange]))
        d.connect(f"diff.flange_{flange}", f"{flange}.flange_a")
    model = compile_driveline(d)
    assert set(model.coordinates) <= {"in", "left", "right"}
    speeds = {"left": 4.0, "right": 8.0, "in": 18.0}
    u = np.array([speeds[name] for name in model.coordinates])
    energy = 0.5 * u @ model.arrays.M @ u
    assert energy == pytest.approx(0.5 * (0.1 * 18**2 + 4**2 + 8**2))


# --- car --------------------------------------------------------------------------------------------------------------
def car(component: Component, mass: bool) -> Driveline:
    d = Driveline("car")
    d.add("x", component)
    d.add("body", Mass(m=100.0 if mass else 1.0))
    d.connect("x.flange", "body.flange_a")
    return d


def test_coast_down_is_a_mass_with_a_polynomial() -> None:
    model = compile_driveline(car(CarCoastDown(m=1200.0, f0=150.0, f1=-2.0, f2=0.4, grade=0.1), mass=True))
    a = model.arrays
    assert a.M.tolist() == [[1300.0]]
    assert a.fr["gain"].tolist() == [150.0]
    assert (a.poly["k"][:, 1][0], a.poly["k"][:, 3][0]) == (2.0, -0.4)
    assert a.tq["gain"].tolist() == [-1200 * G] and a.tq["constant"].tolist() == [pytest.approx(-120 * G)]


def test_resistance_is_a_polynomial_of_speed() -> None:
    a = compile_driveline(car(CarResistance(f0=150.0, f1=2.0, f2=0.4, m=1000.0, grade=0.1), mass=True)).arrays
    assert a.fr["gain"].tolist() == [150.0]
    assert (a.poly["k"][:, 1][0], a.poly["k"][:, 3][0]) == (-2.0, -0.4)


def test_resistance_from_tables_sticks_with_rolling_and_slows_with_wind() -> None:
    rolling, wind = [[0, 200.0], [30, 230.0]], [[0, 0.0], [30, 400.0]]
    model = compile_driveline(car(CarResistance(rolling=rolling, wind=wind, m=1000.0), mass=True))
    a = model.arrays
    assert curve_of(a, a.fr["mu"][0]) == [(0.0, 200.0), (30.0, 230.0)] and a.fr["gain"].tolist() == [1.0]
    assert curve_of(a, a.cv["tab1"][0]) == [(0.0, 0.0), (30.0, 400.0)]
    assert a.cv["gain"].tolist() == [-1.0] and a.cv["absolute"].tolist() == [1]
    assert len(a.poly["row"]) == 0


@pytest.mark.parametrize(
    ("values", "key"),
    [({"rolling": 100.0, "f0": 1.0}, "rolling"), ({"wind": [[0, 0], [1, 1]], "f2": 0.3}, "wind")],
)
def test_numbers_and_tables_of_a_resistance_exclude_each_other(values: dict[str, Any], key: str) -> None:
    with pytest.raises(RangeError) as caught:
        CarResistance(**values)
    assert caught.value.key == key


def test_wind_at_standstill_is_refused() -> None:
    with pytest.raises(TableError, match="0 at standstill") as caught:
        compile_driveline(car(CarResistance(wind=50.0), mass=True))
    assert caught.value.key == "wind"


# --- engine and warm-up -----------------------------------------------------------------------------------------------
FRICTION = Table2D((0.0, 100.0, 600.0), (293.15, 363.15), ((0.0, 0.0), (30.0, 15.0), (60.0, 40.0)))
ENGINE: dict[str, Any] = {
    "J": 0.2, "friction": FRICTION, "auxiliaries": [[0, 0.0], [50, 2.0], [600, 4.0]], "heat_ratio": 0.9,
}  # fmt: skip


def engine(values: Mapping[str, Any], warm: bool = True) -> Driveline:
    d = Driveline("engine")
    d.add("engine", Engine3(**{**ENGINE, **values}))
    d.add("load", Inertia(J=1.0))
    d.connect("engine.flange", "load.flange_a")
    if warm:
        d.add("warm", WarmUpModel())
        d.connect("engine.heatPort", "warm.heatPort")
        d.connect("engine.oil", "warm.oil")
    return d


def test_indicated_torque_is_the_flange_torque_plus_the_warm_losses() -> None:
    """At 100 rad/s: wot 120 + friction(363 K) 15 + auxiliaries 2 + 2*50/550 = 137.1818; exact at all nodes."""
    a = compile_driveline(engine({"wot": [[50, 100.0], [150, 140.0]]})).arrays
    wot = Table1D(*zip(*curve_of(a, a.eng["wot"][0]), strict=True))
    for w, flange in ((50.0, 100.0), (100.0, 120.0), (150.0, 140.0), (600.0, 140.0)):
        friction = np.interp(w, FRICTION.x, [row[1] for row in FRICTION.z])
        auxiliaries = np.interp(w, [0, 50, 600], [0, 2, 4])
        assert wot(w) == pytest.approx(flange + friction + auxiliaries, rel=1e-14)
    assert curve_of(a, a.eng["drag"][0])[0][1] == 0.0


def test_a_map_of_flange_torque_becomes_one_of_indicated_torque() -> None:
    table = Table2D((100.0, 300.0), (0.0, 1.0), ((-10.0, 100.0), (-20.0, 150.0)))
    a = compile_driveline(engine({"map": table})).arrays
    assert a.eng["wot"].tolist() == [-1]
    grid = map_of(a, a.eng["map"][0])
    at_100 = 15.0 + 2.0 + 2.0 * 50 / 550
    at_300 = 15.0 + 25.0 * 0.4 + 2.0 + 2.0 * 250 / 550
    np.testing.assert_allclose(grid, [[-10 + at_100, 100 + at_100], [-20 + at_300, 150 + at_300]], rtol=1e-14)


def test_friction_grows_with_cold_oil_and_heats_oil_and_block() -> None:
    model = compile_driveline(engine({"wot": 100.0, "friction_to_oil": 0.3}))
    a = model.arrays
    assert a.cv["gain"].tolist() == [-1.0, -1.0] and a.cv["absolute"].tolist() == [1, 1]
    assert a.cv["arg"].tolist() == [2, 0], "friction over the oil temperature, auxiliaries over the speed alone"
    np.testing.assert_array_equal(map_of(a, a.cv["tab2"][0]), FRICTION.z)
    oil, block = a.cv["arg_idx"][0], a.th["C"].tolist().index(50.0e3)
    assert a.th["C"][oil] == 8.0e3
    heat = sorted(zip(a.ths["node"].tolist(), a.ths["gain"].tolist(), a.ths["kind"].tolist(), strict=True))
    assert heat == sorted([(block, -0.9, 0), (oil, 0.3, 0), (block, 0.7, 0)])


def test_an_engine_needs_oil() -> None:
    with pytest.raises(FloatingFlangeError, match="engine.oil"):
        compile_driveline(engine({"wot": 100.0}, warm=False))


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"wot": 100.0, "friction": Table2D((0.0, 9.0), (290.0, 360.0), ((1.0, 1.0), (2.0, 2.0)))}, "friction"),
        ({"wot": 100.0, "friction": Table2D((1.0, 9.0), (290.0, 360.0), ((0.0, 0.0), (2.0, 2.0)))}, "friction"),
        ({"wot": 100.0, "friction": Table2D((0.0, 9.0), (290.0, 360.0), ((0.0, 0.0), (-2.0, 2.0)))}, "friction"),
        ({"wot": 100.0, "auxiliaries": 3.0}, "auxiliaries"),
        ({"map": Table2D((100.0, 300.0), (0.0, 1.0), ((-90.0, 100.0), (-20.0, 150.0)))}, "map"),
    ],
)
def test_tables_of_the_engine_that_cannot_be_are_refused(values: dict[str, Any], key: str) -> None:
    with pytest.raises(TableError) as caught:
        compile_driveline(engine(values))
    assert caught.value.key == key


def test_warm_up_is_a_network_of_five_nodes() -> None:
    d = Driveline("warm")
    d.add("warm", WarmUpModel(T0=280.0, T_ambient=275.0))
    d.add("spinning", Inertia(J=1.0))
    d.add("bearing", TorqueLoss())
    d.connect("bearing.flange_a", "spinning.flange_a")
    d.connect("bearing.heatPort", "warm.oil")
    model = compile_driveline(d)
    a = model.arrays
    assert sorted(a.th["C"].tolist()) == [0.0, 8.0e3, 10.5e3, 14.0e3, 50.0e3]
    assert dict(zip(a.th["C"].tolist(), a.th["T0"].tolist(), strict=True)) == {
        0.0: 275.0, 8.0e3: 280.0, 10.5e3: 280.0, 14.0e3: 280.0, 50.0e3: 280.0,
    }  # fmt: skip
    node = {C: k for k, C in enumerate(a.th["C"].tolist())}
    block, coolant, radiator, oil, ambient = (node[C] for C in (50.0e3, 10.5e3, 14.0e3, 8.0e3, 0.0))
    links = {
        frozenset((int(p), int(q))): (G, int(tab), int(arg), int(given))
        for p, q, G, tab, arg, given in zip(
            a.thg["a"], a.thg["b"], a.thg["G"], a.thg["tab"], a.thg["arg"], a.thg["input"], strict=True
        )
    }
    air = model.input_index("warm.air")
    assert links[frozenset((block, coolant))] == (2000.0, -1, -1, -1)
    assert links[frozenset((block, oil))] == (300.0, -1, -1, -1)
    assert links[frozenset((radiator, ambient))] == (700.0, -1, -1, air)
    G_flow, thermostat, measured, _ = links[frozenset((coolant, radiator))]
    assert (G_flow, measured) == (1500.0, coolant)
    assert curve_of(a, thermostat) == [(364.15, 0.01), (374.15, 1.0)]
    assert len(links) == 6
    assert model.default_inputs["warm.air"].value(0.0) == 1.0
    assert model.default_inputs["warm.T_ambient"].value(0.0) == 275.0


# --- files ------------------------------------------------------------------------------------------------------------
TOML = """
name = "all"
connections = [
  ["engine.flange", "clutch.flange_a"], ["clutch.flange_b", "shaft.flange_a"],
  ["shaft.flange_b", "eff.flange_a"], ["eff.flange_b", "gear.flange_a"], ["gear.flange_b", "loss.flange_a"],
  ["loss.flange_b", "wheel.flangeR"], ["wheel.flangeT", "car.flange", "wind.flange"],
  ["engine.heatPort", "warm.heatPort"], ["engine.oil", "warm.oil", "loss.heatPort"],
]
[components.engine]
kind = "Engine3"
J_gm2 = 200
wot = { columns = ["speed_radps", "torque_Nm"], rows = [[50, 100], [150, 140]] }
friction = "rubbing"
fuel = "burning"
[components.clutch]
kind = "OneWayLaminarClutch"
faces = 8
r_o_mm = 90
r_i_mm = 70
mue_pos = 0.12
area_cm2 = 80
[components.shaft]
kind = "Inertia"
J_kgm2 = 0.05
[components.eff]
kind = "GearEfficiency2"
eta = { columns = ["gear", "eta_percent"], rows = [[1, 90], [2, 95]] }
[components.gear]
kind = "VariableGear"
ratios = { columns = ["gear", "ratio"], rows = [[1, 2.5], [2, 1]] }
[components.loss]
kind = "TorqueLoss"
[components.wheel]
kind = "Wheel2"
radius = { columns = ["speed_kmh", "radius_mm"], rows = [[0, 300], [180, 310]] }
J_kgm2 = 3
[components.car]
kind = "CarCoastDown"
m_kg = 1200
f0_N = 150
f1_Ns_per_m = 1
f2_Ns2_per_m2 = 0.4
v0_kmh = 36
[components.wind]
kind = "CarResistance"
wind = { columns = ["speed_mps", "force_N"], rows = [[0, 0], [10, 30]] }
[components.warm]
kind = "WarmUpModel"
C_block_kJ_per_K = 60
G_flow_W_per_K = 1200
thermostat = { columns = ["temperature_K", "opening"], rows = [[360, 0], [370, 1]] }
[tables.rubbing]
columns = ["speed_radps", "temperature_K", "friction_Nm"]
rows = [[0, 293.15, 0], [0, 363.15, 0], [600, 293.15, 60], [600, 363.15, 40]]
[tables.burning]
columns = ["speed_radps", "torque_Nm", "fuel_kW"]
rows = [[50, 10, 3], [50, 100, 15], [600, 10, 30], [600, 100, 160]]
"""


def in_python() -> Driveline:
    d = Driveline("all")
    d.add("engine", Engine3(J=0.2, wot=[[50, 100], [150, 140]], friction="rubbing", fuel="burning"))
    d.add("clutch", OneWayLaminarClutch(**PACK))
    d.add("shaft", Inertia(J=0.05))
    d.add("eff", GearEfficiency2(eta=[[1, 0.9], [2, 0.95]]))
    d.add("gear", VariableGear(ratios=[[1, 2.5], [2, 1.0]]))
    d.add("loss", TorqueLoss())
    d.add("wheel", Wheel2(radius=Table1D.of(["speed_kmh", "r_mm"], [[0, 300], [180, 310]]), J=3))
    d.add("car", CarCoastDown(m=1200, f0=150, f1=1, f2=0.4, v0=10))
    d.add("wind", CarResistance(wind=[[0, 0], [10, 30]]))
    d.add("warm", WarmUpModel(C_block=60e3, G_flow=1200, thermostat=[[360, 0], [370, 1]]))
    d.add_table("rubbing", Table2D.of(["w_radps", "T_K", "T_Nm"], [
        [0, 293.15, 0], [0, 363.15, 0], [600, 293.15, 60], [600, 363.15, 40]]))  # fmt: skip
    d.add_table("burning", Table2D.of(["w_radps", "T_Nm", "P_W"], [
        [50, 10, 3e3], [50, 100, 15e3], [600, 10, 30e3], [600, 100, 160e3]]))  # fmt: skip
    for group in (
        ("engine.flange", "clutch.flange_a"), ("clutch.flange_b", "shaft.flange_a"),
        ("shaft.flange_b", "eff.flange_a"), ("eff.flange_b", "gear.flange_a"), ("gear.flange_b", "loss.flange_a"),
        ("loss.flange_b", "wheel.flangeR"), ("wheel.flangeT", "car.flange", "wind.flange"),
        ("engine.heatPort", "warm.heatPort"), ("engine.oil", "warm.oil", "loss.heatPort"),
    ):  # fmt: skip
        d.connect(*group)
    return d


def test_toml_and_python_are_the_same_driveline(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    path.write_text(TOML, encoding="utf-8")
    assert load(path) == in_python()
    assert compile_driveline(load(path)).digest() == compile_driveline(in_python()).digest()


def test_a_support_that_turns_is_counted() -> None:
    """On a turning housing the speeds of both sides are relative to it."""
    d = between(VariableGear())
    d.add("housing", Inertia(J=5.0))
    d.connect("x.support", "housing.flange_a")
    a = compile_driveline(d).arrays
    for rows in ("row_a", "row_b"):
        assert sorted(row_of(a, a.vg[rows][0]).tolist()) == [-1.0, 0.0, 1.0]
