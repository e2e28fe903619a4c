"""Relative start values, shafts without inertia, precompiled steps."""

from __future__ import annotations

import numpy as np
import pytest
from core_probe import (
    Probe,
    drive,
    moved,
    relative,
)

from torqueloop.core.analyse.analysis import ratio
from torqueloop.core.analyse.gearbox_report import train_of
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Clutch,
    Component,
    Fixed,
    IdealGear,
    Inertia,
    LossyGear,
    Mass,
    Spring,
    SpringDamper,
    Torque,
    VariableGear,
    Wheel2,
)
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    InitialValueError,
    NoInertiaError,
    UnknownNameError,
)
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.simulate.offline import Simulation

# --- start values, massless shafts, precompiled steps


def changing_ratio(kind: Component, **bodies: Inertia) -> Driveline:
    """a - gear - b."""
    parts = {"a": Inertia(J=1.0), "b": Inertia(J=2.0), **bodies}
    return drive(("a.flange_b", "gear.flange_a"), ("gear.flange_b", "b.flange_a"), gear=kind, **parts)


def start(d: Driveline, **inputs: float) -> dict[str, float]:
    model = compile_driveline(d)
    values = model.start_speeds({name.replace("__", "."): value for name, value in inputs.items()})
    return dict(zip(model.coordinates, values, strict=True))


def test_the_open_side_of_a_changing_ratio_starts_with_the_other() -> None:
    by_ratio, by_gear = VariableGear(), VariableGear(ratios=[[1, 4.0], [2, 2.0], [3, 1.0]])
    left, right = Inertia(J=1.0, w0=10.0), Inertia(J=2.0, w0=3.0)
    assert start(changing_ratio(by_ratio, a=left), gear__ratio=2.0) == {"a": 10.0, "b": 5.0}
    assert start(changing_ratio(by_ratio, b=right), gear__ratio=-2.0) == {"a": -6.0, "b": 3.0}
    assert start(changing_ratio(by_gear, a=left), gear__gear=1.5) == {"a": 10.0, "b": pytest.approx(10.0 / 3.0)}
    assert start(changing_ratio(by_ratio), gear__ratio=2.0) == {"a": 0.0, "b": 0.0}
    model = compile_driveline(changing_ratio(by_gear, a=left))
    assert model.ratio_inputs == ("gear.gear",)
    assert list(model.arrays.u0) == [10.0, 0.0], "the gear is not known when compiling"
    with pytest.raises(UnknownNameError, match=r"no input 'gear\.gea'.*gear\.gear"):
        model.start_speeds({"gear.gea": 1.0})


def test_a_ratio_that_never_changes_is_known_when_compiling() -> None:
    model = compile_driveline(changing_ratio(VariableGear(ratios=[[1, 2.5], [2, 2.5]]), a=Inertia(J=1.0, w0=10.0)))
    assert model.ratio_inputs == () and list(model.arrays.u0) == [10.0, 4.0]


def test_start_speeds_that_contradict_the_ratio_are_named() -> None:
    d = changing_ratio(VariableGear(), a=Inertia(J=1.0, w0=10.0), b=Inertia(J=2.0, w0=3.0))
    compile_driveline(d)  # nothing is wrong yet
    with pytest.raises(InitialValueError, match=r"b\.w0 = 3, but a\.w0 and gear\.ratio require 5") as caught:
        start(d, gear__ratio=2.0)
    assert caught.value.components == ("a", "b", "gear")
    assert start(d, gear__ratio=10.0 / 3.0) == {"a": 10.0, "b": 3.0}


@pytest.mark.parametrize("given", ["v", "w"])
def test_a_growing_wheel_starts_with_the_radius_of_its_speed(given: str) -> None:
    """radius = 0.3 + 0.001*|v|: v = 20 m/s has 0.32 m and so 62.5 rad/s; the other way round it has to be found."""
    d = drive(("in.flange_b", "wheel.flangeR"), ("wheel.flangeT", "car.flange_a"),
              wheel=Wheel2(radius=[[0, 0.3], [100, 0.4]], J=1.0),
              car=Mass(m=100.0, v0=-20.0 if given == "v" else None),
              **{"in": Inertia(J=1.0, w0=-62.5 if given == "w" else None)})  # fmt: skip
    model = compile_driveline(d)
    speeds = dict(zip(model.coordinates, model.arrays.u0, strict=True))
    assert model.ratio_inputs == ()
    assert speeds["car"] == pytest.approx(-20.0, rel=1e-13) and speeds["in"] == pytest.approx(-62.5, rel=1e-13)


def test_a_radius_that_no_speed_fits_is_refused() -> None:
    """radius = 0.3 + 0.01*|v| at 200 rad/s: v = 60 + 2*v has no solution with v > 0."""
    d = drive(("in.flange_b", "wheel.flangeR"), ("wheel.flangeT", "car.flange_a"), car=Mass(m=100.0),
              wheel=Wheel2(radius=Table1D((0.0, 100.0), (0.3, 1.3), extrapolation="linear"), J=1.0),
              **{"in": Inertia(J=1.0, w0=200.0)})  # fmt: skip
    with pytest.raises(InitialValueError, match="no start speed fits the ratio of wheel"):
        compile_driveline(d)


def test_a_run_starts_with_the_ratio_of_its_input_and_without_impact() -> None:
    model = compile_driveline(changing_ratio(VariableGear(), a=Inertia(J=1.0, w0=10.0)))
    sim = Simulation(model)
    sim.state.u = model.start_speeds({"gear.ratio": 2.0})
    r = sim.run(0.1, inputs={"gear.ratio": 2.0})
    assert r["a.w"] == pytest.approx(np.full(101, 10.0)) and r["b.w"] == pytest.approx(np.full(101, 5.0))
    assert np.all(r["gear.loss"] == 0.0)


def test_relative_start_values_reach_through_springs_and_gears() -> None:
    d = drive(
        ("x.flange_b", "s.flange_a", "r1.a"), ("s.flange_b", "y.flange_a", "r1.b", "r2.a"),
        ("y.flange_b", "g.flange_a"), ("g.flange_b", "s2.flange_a"), ("s2.flange_b", "z.flange_a", "r2.b"),
        x=Inertia(J=1, w0=1.0, phi0=0.5), y=Inertia(J=1), z=Inertia(J=1), s=SpringDamper(c=1, d=1), s2=Spring(c=1),
        g=IdealGear(ratio=2), r1=relative(2.0), r2=relative(-6.0),
    )  # fmt: skip
    model = compile_driveline(d)
    speeds = dict(zip(model.coordinates, model.arrays.u0, strict=True))
    assert (speeds["x"], speeds["y"], speeds["z"]) == (1.0, 3.0, -3.0)
    angles = dict(zip(model.coordinates, model.arrays.z0, strict=True))
    assert (angles["x"], angles["y"], angles["z"]) == (0.5, 1.5, -1.5)
    # a closed ring of differences that agrees with itself is fine, one that does not is named
    d.add("r3", relative(-4.0))
    d.connect("r3.a", "x.flange_a")
    d.connect("r3.b", "z.flange_b")
    assert compile_driveline(d).digest() == model.digest()
    d.replace("x", w0=1.0)
    d.components["r3"] = relative(-4.5)
    with pytest.raises(
        InitialValueError, match=r"r3\.w_rel0 = -4\.5, but r1\.w_rel0 and r2\.w_rel0 require -4"
    ) as caught:
        compile_driveline(d)
    assert caught.value.components == ("r1", "r2", "r3")


def test_shaft_between_two_clutches_gets_a_small_inertia_and_a_note() -> None:
    d = drive(("x.flange_b", "c1.flange_a"), ("c1.flange_b", "c2.flange_a"), ("c2.flange_b", "y.flange_a"),
              x=Inertia(J=0.5), y=Inertia(J=2), c1=Clutch(fn_max=1, mue_pos=1),
              c2=Clutch(fn_max=1, mue_pos=1))  # fmt: skip
    model = compile_driveline(d)
    assert model.notes == ("c1: shaft without inertia (c1.flange_b = c2.flange_a) got 5e-10 kg.m2",)
    assert sorted(np.diag(model.arrays.M)) == [5e-10, 0.5, 2.0]
    assert compile_driveline(drive(("x.flange_b", "y.flange_a"), x=Inertia(J=1), y=Inertia(J=1))).notes == ()


def test_forced_shaft_before_a_spring_needs_no_inertia() -> None:
    d = drive(("p.a", "s.flange_a"), ("s.flange_b", "y.flange_a"), p=Probe(moved), s=Spring(c=1), y=Inertia(J=3))
    model = compile_driveline(d)
    assert len(model.notes) == 1 and "got 3e-09 kg.m2" in model.notes[0]


def test_shaft_with_a_torque_and_nothing_else_is_refused() -> None:
    d = drive(("t.flange", "c.flange_a"), ("c.flange_b", "y.flange_a"), t=Torque(), y=Inertia(J=1),
              c=Clutch(fn_max=1, mue_pos=1))  # fmt: skip
    with pytest.raises(NoInertiaError, match=r"add an Inertia \(or Mass\) to it \(c\.flange_a = t\.flange\)"):
        compile_driveline(d)


def test_what_cannot_move_has_no_step() -> None:
    plain = drive(("x.flange_b", "f.flange"), x=Inertia(J=1), f=Fixed())
    with pytest.raises(CompileError, match="nothing can move"):
        compile_driveline(plain)


def test_losses_are_no_elements_of_a_gearbox() -> None:
    table = [[0.0, 0.95, 0.9, 0.1, 0.2]]
    d = drive(("in.flange_b", "g.flange_a"), ("g.flange_b", "c.flange_a"), ("c.flange_b", "out.flange_a"),
              **{"in": Inertia(J=1), "out": Inertia(J=1), "c": Clutch(fn_max=1, mue_pos=1),
                 "g": LossyGear(ratio=4, lossTable=table)})  # fmt: skip
    d.set_gearbox("in", "out")
    assert [e.name for e in train_of(d).elements] == ["c"]
    assert ratio(d, ["c"]) == 4
