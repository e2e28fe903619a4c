"""Flange and support torques, and the energy balance, with the elements that came after clutches and springs.

Most results are made by hand: one sample with chosen forces, whose consequences the analysis has to find.
"""

from __future__ import annotations

import numpy as np
import pytest
from core_probe import Probe, drive, gear, moved

from torqueloop.core.analyse.analysis import flange_torques
from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components import (
    EddyCurrentTorque,
    ElastoBacklash,
    Inertia,
    LossyGear,
    Torque,
    TorqueSensor,
    VariableGear,
)
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.errors import UnknownNameError
from torqueloop.core.describe.kernel_numbers import (
    OUT_CONTACT,
    OUT_CONTACT_LOSS,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_PORT,
    OUT_PORT_WORK,
    OUT_RATIO,
    RATIO_INPUT,
)
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result


def result(model: CompiledModel, **values: float) -> Result:
    """Two samples, the first 0; keys are output names with _ for the dot."""
    table = np.zeros((2, len(model.output_names)))
    for name, value in values.items():
        table[1, model.output_index(name.replace("_", ".", 1))] = value
    return Result(model, np.array([0.0, 1.0]), table, [], {})


def test_contact_pulls_its_two_sides_together_and_nothing_else() -> None:
    def law(b: Builder) -> None:
        index = b.contact(b.w("b") - b.w("a"), 10.0, 1.0, -0.1, 0.1)
        b.output("tau", "torque", OUT_CONTACT, index=index, gain=-1.0)

    two = {"x": Inertia(J=1), "y": Inertia(J=1), "p": Probe(law)}
    model = compile_driveline(drive(("x.flange_a", "p.a"), ("y.flange_a", "p.b"), **two))
    torques = flange_torques(result(model, p_tau=3.0), "p")
    assert (torques["a"][1], torques["b"][1]) == (3.0, -3.0)


def test_port_torque_is_found_under_its_number_and_reaches_the_support() -> None:
    def law(b: Builder) -> None:
        index = b.curve_force(b.w("a") - b.w("support"), tab1=Table1D.constant(1.0))
        b.output("tau", "torque", OUT_PORT, port=("curve", index), gain=-1.0)

    model = compile_driveline(drive(
        ("t.flange", "x.flange_a", "p.a"), ("y.flange_a", "p.support"),
        t=Torque(), x=Inertia(J=1), y=Inertia(J=1), p=Probe(law),
    ))  # fmt: skip
    torques = flange_torques(result(model, t_tau=8.0, p_tau=5.0), "p")
    assert (torques["a"][1], torques["support"][1]) == (-5.0, 5.0)


def test_gear_beside_a_variable_gear_gets_the_torque_left_over() -> None:
    # x -gear 2- y -variable i- z: f on side a (y), -i*f on z
    def law(b: Builder) -> None:
        index = b.variable_gear(
            b.w("a") - b.w("support"), b.w("b") - b.w("support"), RATIO_INPUT, input=b.input("ratio", "1")
        )
        b.output("tau", "torque", OUT_FRICTION, index=b.gear_friction(index))
        b.output("i", "1", OUT_RATIO, index=index)

    model = compile_driveline(drive(
        ("x.flange_a", "g.a"), ("g.b", "y.flange_a", "p.a"), ("p.b", "z.flange_a"),
        x=Inertia(J=1), y=Inertia(J=4), z=Inertia(J=1), g=gear(2), p=Probe(law),
    ))  # fmt: skip
    found = result(model, p_tau=6.0, p_i=1.5)
    torques = flange_torques(found, "p")
    assert [float(torques[k][1]) for k in ("a", "b", "support")] == [6.0, -9.0, 3.0]
    # (4 + 1*2^2)*ay = 6; the gear puts ax = 2*ay on x and -2 times that on y
    torques = flange_torques(found, "g")
    assert [float(torques[k][1]) for k in ("a", "b", "support")] == pytest.approx([1.5, -3.0, 1.5])


def test_an_element_without_a_shown_force_is_named() -> None:
    model = compile_driveline(drive(("p.a", "x.flange_a"), p=Probe(moved), x=Inertia(J=1)))
    with pytest.raises(UnknownNameError, match="'p' has no output that shows its friction"):
        flange_torques(result(model), "p")


def test_energy_counts_every_work_and_every_heat_once() -> None:
    def law(b: Builder) -> None:
        index = b.driven(b.w("a"), 0, (b.input("a_ref", "angular_acceleration"),))
        b.output("work", "energy", OUT_FRICTION_HEAT, index=index, gain=-1.0)
        b.output("again", "energy", OUT_PORT_WORK, port=("torque", 0))
        b.output("lost", "energy", OUT_CONTACT_LOSS, index=b.contact(b.w("a"), 1.0, 0.0, -1.0, 1.0))

    model = compile_driveline(drive(("p.a", "x.flange_a", "t.flange"), p=Probe(law), x=Inertia(J=1), t=Torque()))
    balance = result(model, p_work=7.0, p_again=5.0, t_work=5.0, p_lost=2.0, energy_kinetic=10.0).energy()
    assert sum(balance.work.values()) == 12.0
    assert (balance.heat, balance.stored["energy.kinetic"], balance.residual) == ({"p.lost": 2.0}, 10.0, 0.0)


def test_the_impact_of_a_ratio_step_is_heat() -> None:
    """J = 1 and 2 at 10 and 5 rad/s (i = 2), then i = 1: common speed 20/3, 25/3 of 75 J are lost."""
    d = drive(("a.flange_b", "gear.flange_a"), ("gear.flange_b", "b.flange_a"),
              a=Inertia(J=1, w0=10), b=Inertia(J=2, w0=5), gear=VariableGear())  # fmt: skip
    energy = Simulation(d).run(0.1, inputs={"gear.ratio": Step(offset=2.0, height=-1.0, startTime=0.05)}).energy()
    assert energy.heat == {"gear.loss": pytest.approx(75.0 - 0.5 * 3.0 * (20.0 / 3.0) ** 2)}
    assert energy.turned_over == pytest.approx(75.0) and energy.relative_residual < 1e-9


def test_simulated_train_flange_torques_sum_to_zero_and_agree_with_the_reactions() -> None:
    """Two ways to the same torques: from the forces of all elements afterwards, and as reactions in the step."""
    train = drive(
        ("t.flange", "x.flange_a"), ("x.flange_b", "g.flange_a"), ("g.flange_b", "m.flange_a"),
        ("m.flange_b", "e.flange_a", "y.flange_a"), ("e.flange_b", "z.flange_a", "brake.flange"),
        ("g.support", "brake.support", "box.flange_a"),
        t=Torque(), x=Inertia(J=0.5, w0=3.0), y=Inertia(J=1.0), z=Inertia(J=0.7), box=Inertia(J=4.0),
        g=LossyGear(ratio=3, lossTable=[[0, 0.9, 0.8, 0.1, 0.2]]), m=TorqueSensor(),
        e=ElastoBacklash(c=500.0, d=2.0, b=0.02), brake=EddyCurrentTorque(tau_nominal=3.0, w_nominal=5.0),
    )  # fmt: skip
    found = Simulation(train, h=1e-3).run(1.0, inputs={"t.tau": Sine(amplitude=20.0, f=1.0)})
    for name in ("g", "m", "e", "brake", "t"):
        torques = list(flange_torques(found, name).values())
        assert np.max(np.abs(torques)) > 1.0
        assert np.max(np.abs(sum(torques))) < 1e-12
    # the first sample is before the first step: no forces yet
    through = flange_torques(found, "g")["flange_a"][1:]
    assert found["g.tau_a"][1:] == pytest.approx(-through, abs=1e-5 * np.ptp(through))
    through = flange_torques(found, "m")["flange_a"][1:]
    assert found["m.tau"][1:] == pytest.approx(-through, abs=1e-5 * np.ptp(through))
    assert found.energy().relative_residual < 1e-8
