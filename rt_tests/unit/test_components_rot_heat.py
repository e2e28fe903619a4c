"""Heat: thermal parts against closed formulas; what a driveline loses warms up what its heat ports are joined to."""

from __future__ import annotations

import numpy as np
import pytest
from rot_drive import drive, run

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    BearingFriction,
    Brake,
    Clutch,
    Component,
    Convection,
    Damper,
    EddyCurrentBrake,
    EddyCurrentForce,
    ElastoBacklash,
    ElastoGap,
    Fixed,
    FixedHeatFlow,
    FixedTemperature,
    Gearbox,
    HeatCapacitor,
    Inertia,
    LossyGear,
    Mass,
    OneWayClutch,
    PrescribedHeatFlow,
    PrescribedTemperature,
    SpringDamper,
    SupportFriction,
    TemperatureSensor,
    ThermalConductor,
    Torque,
    TranslationalBrake,
    TranslationalDamper,
    TranslationalFixed,
    TranslationalSpringDamper,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, DomainError, NoCapacityError


def network(*connections: tuple[str, ...], **components: Component) -> Driveline:
    """A heat network beside a shaft that does nothing."""
    return drive(*connections, ("J.flange_b", "idle.flange"), J=Inertia(J=1.0), idle=Torque(), **components)


def test_two_capacities_exchange_their_heat() -> None:
    d = network(("a.port", "g.port_a"), ("g.port_b", "b.port"), a=HeatCapacitor(C=2.0, T0=400.0),
                b=HeatCapacitor(C=6.0, T0=300.0), g=ThermalConductor(G=3.0))  # fmt: skip
    r = run(d, 2.0)
    decay = np.exp(-3.0 * (1 / 2 + 1 / 6) * r.time)
    assert r["a.T"] == pytest.approx(325.0 + 75.0 * decay, abs=1e-4)
    assert 2.0 * r["a.T"] + 6.0 * r["b.T"] == pytest.approx(np.full(len(r.time), 2600.0))


def test_heat_flows_from_inputs_and_parameters() -> None:
    d = network(("f.port", "a.port", "s.port"), ("p.port", "b.port"), f=FixedHeatFlow(Q_flow=-5.0),
                s=TemperatureSensor(), a=HeatCapacitor(C=2.0, T0=300.0), p=PrescribedHeatFlow(),
                b=HeatCapacitor(C=4.0, T0=300.0))  # fmt: skip
    r = run(d, 1.0, p__Q_flow=lambda t: 8.0 * t)
    assert r["a.T"] == pytest.approx(300.0 - 2.5 * r.time, abs=1e-9)
    assert r["b.T"] == pytest.approx(300.0 + r.time**2, abs=1e-5)
    assert r["s.T"] == pytest.approx(r["a.T"])


def test_convection_and_temperatures_that_are_given() -> None:
    d = network(("a.port", "c.solid"), ("c.fluid", "air.port"), ("b.port", "g.port_a"), ("g.port_b", "t.port"),
                a=HeatCapacitor(C=2.0, T0=400.0), c=Convection(), air=FixedTemperature(T=290.0),
                b=HeatCapacitor(C=1.0, T0=300.0), g=ThermalConductor(G=100.0), t=PrescribedTemperature())  # fmt: skip
    r = run(d, 1.0, c__Gc=4.0, t__T=lambda t: 300.0 + 10.0 * t)
    assert r["a.T"] == pytest.approx(290.0 + 110.0 * np.exp(-2.0 * r.time), abs=1e-4)
    # the body follows the ramp C/G*10 K/s behind
    assert r["b.T"][-1] == pytest.approx(310.0 - 0.1, abs=1e-3)
    assert r["air.T"][-1] == 290.0 and r["t.T"][-1] == pytest.approx(310.0)


def test_an_untouched_prescribed_temperature_has_its_start_value() -> None:
    d = network(("g.port_a", "t.port"), ("g.port_b", "a.port"), t=PrescribedTemperature(T_start=350.0),
                g=ThermalConductor(G=50.0), a=HeatCapacitor(C=1.0))  # fmt: skip
    assert run(d, 1.0)["a.T"][-1] == pytest.approx(350.0)


def test_a_heat_port_needs_a_temperature_and_the_right_partner() -> None:
    with pytest.raises(NoCapacityError, match="g.port_a"):
        compile_driveline(
            network(("g.port_a", "s.port"), ("g.port_b", "a.port"), g=ThermalConductor(G=1.0), s=TemperatureSensor(),
                    a=HeatCapacitor(C=1.0))
        )  # fmt: skip
    with pytest.raises(DomainError):
        compile_driveline(drive(("J.flange_a", "a.port"), J=Inertia(J=1), a=HeatCapacitor(C=1)))
    with pytest.raises(CompileError, match="given twice"):
        compile_driveline(network(("a.port", "b.port"), a=FixedTemperature(T=300), b=FixedTemperature(T=310)))


TABLE = [[0, 0.8, 0.7, 0.5, 0.9]]
LOSSY = {
    "Damper": (Damper(d=0.7), {}),
    "SpringDamper": (SpringDamper(c=90.0, d=0.7), {}),
    "ElastoBacklash": (ElastoBacklash(c=900.0, d=5.0, b=0.1), {}),
    "Clutch": (Clutch(fn_max=4.0, mue_pos=0.5), {"x__f_normalized": 1.0}),
    "OneWayClutch": (OneWayClutch(fn_max=4.0, mue_pos=0.5), {"x__f_normalized": 1.0}),
    "LossyGear": (LossyGear(ratio=2, lossTable=TABLE), {}),
    "Gearbox": (Gearbox(ratio=2, lossTable=TABLE, c=900.0, d=5.0, b=0.1), {}),
}
BRAKES = {
    "Brake": (Brake(fn_max=4.0, mue_pos=0.5), {"x__f_normalized": 1.0}, "flange_a"),
    "BearingFriction": (BearingFriction(tau_pos=[[0, 2.0], [10, 4.0]]), {}, "flange_a"),
    "EddyCurrentBrake": (EddyCurrentBrake(tau_nominal=5.0, w_nominal=3.0, alpha20=0.004), {}, "flange"),
}
SLIDING = {
    "TranslationalBrake": (TranslationalBrake(fn_max=4.0, mue_pos=0.5), {"x__f_normalized": 1.0}, "flange_a"),
    "SupportFriction": (SupportFriction(f_pos=2.0), {}, "flange_a"),
    "EddyCurrentForce": (EddyCurrentForce(f_nominal=5.0, v_nominal=3.0, alpha20=0.004), {}, "flange"),
}
BETWEEN = {
    "TranslationalDamper": TranslationalDamper(d=0.7),
    "TranslationalSpringDamper": TranslationalSpringDamper(c=90.0, d=0.7),
    "ElastoGap": ElastoGap(c=900.0, d=5.0, s_rel0=0.0),
}


def hold_the_books(d: Driveline, inputs: dict[str, float]) -> None:
    """Mechanical energy that is lost warms up a capacity of 0.5 J/K; the loss power is its derivative."""
    d.add("h", HeatCapacitor(C=0.5, T0=300.0))
    d.connect("x.heatPort", "h.port")
    r = run(d, 0.5, substeps=2, **inputs)
    energy = r["energy.kinetic"] + r["energy.potential"]
    heat = 0.5 * (r["h.T"] - 300.0)
    powers = [n for n in r.names if n.startswith("x.lossPower")]
    books = [n for n in r.names if n in ("x.heat", "x.loss", "x.loss_elastic")]
    assert heat[-1] > 0.05 and all(r[n][-1] > 0.0 for n in books)
    assert heat == pytest.approx(energy[0] - energy, abs=2e-4 * energy[0])
    assert heat == pytest.approx(sum(r[n] for n in books), abs=1e-9 + 1e-6 * heat[-1])
    total = sum(r[n] for n in powers)
    assert np.all(total >= -1e-9)
    assert np.sum(total[1:] + total[:-1]) / 2 * 1e-3 == pytest.approx(heat[-1], rel=0.03)


@pytest.mark.parametrize("name", LOSSY)
def test_losses_between_two_shafts_become_heat(name: str) -> None:
    component, inputs = LOSSY[name]
    d = drive(("a.flange_b", "x.flange_a"), ("x.flange_b", "b.flange_a"), b=Inertia(J=1.0, w0=6.0), x=component,
              a=Inertia(J=2.0, w0={"LossyGear": 12.0, "Gearbox": 20.0}.get(name, 1.0)))  # fmt: skip
    hold_the_books(d, inputs)


@pytest.mark.parametrize("name", BRAKES)
def test_losses_of_brakes_become_heat(name: str) -> None:
    component, inputs, flange = BRAKES[name]
    hold_the_books(drive(("a.flange_b", f"x.{flange}"), a=Inertia(J=2.0, w0=3.0), x=component), inputs)


@pytest.mark.parametrize("name", SLIDING)
def test_losses_of_sliding_brakes_become_heat(name: str) -> None:
    component, inputs, flange = SLIDING[name]
    hold_the_books(drive(("a.flange_b", f"x.{flange}"), a=Mass(m=2.0, v0=3.0), x=component), inputs)


@pytest.mark.parametrize("name", BETWEEN)
def test_losses_between_sliding_parts_become_heat(name: str) -> None:
    d = drive(("wall.flange", "x.flange_a"), ("x.flange_b", "m.flange_a"), wall=TranslationalFixed(), x=BETWEEN[name],
              m=Mass(m=2.0, s0=0.1, v0=-3.0))  # fmt: skip
    hold_the_books(d, {})


def test_a_warm_eddy_current_brake_brakes_as_its_temperature_says() -> None:
    d = drive(("a.flange_b", "x.flange"), ("x.heatPort", "h.port"), a=Inertia(J=1.0, w0=20.0), h=HeatCapacitor(C=1.0),
              x=EddyCurrentBrake(tau_nominal=100.0, w_nominal=10.0, alpha20=0.00392))  # fmt: skip
    r = run(d, 1.0)
    x = r["a.w"] / (10.0 * (1.0 + 0.00392 * (r["h.T"] - 293.15)))
    assert r["x.tau"] == pytest.approx(200.0 * x / (1 + x**2), rel=1e-4)
    assert r["h.T"][-1] - 293.15 == pytest.approx(200.0 - r["a.w"][-1] ** 2 / 2, rel=1e-6)


def test_heat_of_several_parts_adds_up_in_one_capacity() -> None:
    d = drive(("wall.flange", "k.flange_a"), ("k.flange_b", "a.flange_a"), ("a.flange_b", "f.flange_a"), wall=Fixed(),
              a=Inertia(J=2.0, w0=3.0), k=Damper(d=1.0), f=BearingFriction(tau_pos=1.0),
              h=HeatCapacitor(C=2.0))  # fmt: skip
    d.connect("k.heatPort", "f.heatPort", "h.port")
    r = run(d, 3.0)
    assert r["a.w"][-1] == 0.0
    assert 2.0 * (r["h.T"][-1] - 293.15) == pytest.approx(9.0, rel=1e-6)
    assert r["k.loss"][-1] + r["f.heat"][-1] == pytest.approx(9.0, rel=1e-6)
