"""Offline simulation: closed forms, events of inputs inside a step, energy, hashes, support torques."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from core_examples import two_shafts, zf_4hp22

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.analyse.analysis import flange_torques
from torqueloop.core.components import (
    Brake,
    CarResistance,
    Clutch,
    Fixed,
    FreeWheel,
    IdealGear,
    IdealRollingWheel,
    Inertia,
    Mass,
    SpringDamper,
    Torque,
    TorqueStep,
)
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, UnknownNameError
from torqueloop.core.signals import Ramp, Sine, Step
from torqueloop.core.simulate.offline import Simulation


def one_shaft(J: float = 2.0) -> Driveline:
    d = Driveline("one shaft")
    d.add("J", Inertia(J=J))
    d.add("torque", Torque())
    d.connect("torque.flange", "J.flange_a")
    return d


def test_constant_torque_gives_a_parabola() -> None:
    result = Simulation(one_shaft()).run(1.0, {"torque.tau": 3.0})
    np.testing.assert_allclose(result["J.w"], 1.5 * result.time, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(result["J.phi"], 0.75 * result.time**2, rtol=1e-12, atol=1e-15)
    assert result.units["J.w"] == "rad/s"


@pytest.mark.parametrize("start", [0.4, 0.4003, 0.40099])
@pytest.mark.parametrize("substeps", [1, 3])
def test_a_jump_inside_a_step_acts_from_its_own_time_on(start: float, substeps: int) -> None:
    result = Simulation(one_shaft(), substeps=substeps).run(1.0, {"torque.tau": Step(height=3.0, startTime=start)})
    after = np.clip(result.time - start, 0.0, None)
    np.testing.assert_allclose(result["J.w"], 1.5 * after, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(result["J.phi"], 0.75 * after**2, rtol=1e-9, atol=1e-12)


def test_a_kink_inside_a_step_is_integrated_exactly() -> None:
    result = Simulation(one_shaft()).run(1.0, {"torque.tau": Ramp(height=4.0, duration=0.5005, startTime=0.2502)})
    x = np.clip((result.time - 0.2502) / 0.5005, 0.0, 1.0)
    rest = np.clip(result.time - 0.7507, 0.0, None)
    expected = (0.5 * 4.0 * 0.5005 * x**2 + 4.0 * rest) / 2.0
    np.testing.assert_allclose(result["J.w"], expected, rtol=1e-10, atol=1e-12)


def test_torque_step_brings_its_own_input() -> None:
    d = Driveline("step")
    d.add("J", Inertia(J=1.0))
    d.add("t", TorqueStep(stepTorque=10.0, offsetTorque=-2.0, startTime=0.1))
    d.connect("t.flange", "J.flange_a")
    result = Simulation(d).run(0.3)
    assert result["J.w"][-1] == pytest.approx(-2.0 * 0.3 + 10.0 * 0.2)


def test_slipping_clutch_ends_at_the_common_speed_of_conserved_momentum() -> None:
    result = Simulation(two_shafts()).run(2.0, {"clutch.f_normalized": 1.0})
    assert result["J1.w"][-1] == pytest.approx(10.0 / 3.0, rel=1e-12)
    assert result["J2.w"][-1] == pytest.approx(10.0 / 3.0, rel=1e-12)
    # slip 10 rad/s decays with tau*(1/J1 + 1/J2) = 10*1.5
    lock = next(change for change in result.modes if change.mode == 0)
    assert (lock.element, lock.time_s) == ("clutch", pytest.approx(10.0 / 15.0, abs=1e-9))
    assert result["clutch.heat"][-1] == pytest.approx(0.5 * (1.0 * 2.0 / 3.0) * 10.0**2, rel=1e-9)


def test_sign_of_tau_is_the_torque_on_the_first_shaft() -> None:
    result = Simulation(two_shafts()).run(0.1, {"clutch.f_normalized": 1.0})
    assert result["clutch.w_rel"][1] < 0.0
    np.testing.assert_allclose(result["clutch.tau"][1:], -10.0, rtol=1e-12)
    np.testing.assert_allclose(result["J1.a"][1:], -10.0, rtol=1e-9)


def test_energy_closes_over_slip_spring_and_source() -> None:
    d = two_shafts()
    d.add("shaft", SpringDamper(c=500.0, d=1.0))
    d.add("J3", Inertia(J=0.5))
    d.connect("J2.flange_b", "shaft.flange_a")
    d.connect("shaft.flange_b", "J3.flange_a")
    result = Simulation(d, substeps=4).run(
        2.0, {"clutch.f_normalized": Ramp(duration=0.3, startTime=0.2), "torque.tau": Sine(amplitude=8.0, f=2.0)}
    )
    balance = result.energy()
    assert balance.heat["clutch.heat"] > 1.0 and balance.heat["shaft.loss"] > 0.0
    assert balance.relative_residual < 1e-6
    assert balance.work["torque.work"] == pytest.approx(
        sum(balance.heat.values()) + sum(balance.stored.values()) + balance.residual
    )


def test_equal_runs_have_equal_hashes_and_a_restored_state_repeats_its_future() -> None:
    inputs = {"clutch.f_normalized": Sine(amplitude=1.0, f=3.0), "torque.tau": Step(height=5.0, startTime=0.3001)}
    first, second = Simulation(two_shafts()), Simulation(two_shafts())
    first.run(0.5, inputs)
    second.run(0.5, inputs)
    assert first.hash() == second.hash()
    kept = first.state.copy()
    first.run(0.5)
    future = first.hash()
    assert future != second.hash()
    first.restore(kept)
    assert first.time == pytest.approx(0.5)
    assert first.hash() == second.hash()
    first.run(0.5)
    assert first.hash() == future


def test_steps_and_runs_are_the_same_thing() -> None:
    a, b = Simulation(two_shafts()), Simulation(two_shafts())
    a.run(0.25, {"clutch.f_normalized": 1.0})
    b.set_input("clutch.f_normalized", 1.0)
    for _ in range(250):
        b.step()
    assert a.hash() == b.hash()
    assert b.output("J1.w") == pytest.approx(10.0 - 2.5)


def test_free_wheel_overruns_one_way_and_drives_the_other() -> None:
    d = Driveline("free wheel")
    d.add("housing", Fixed())
    d.add("J", Inertia(J=1.0))
    d.add("f", FreeWheel())
    d.add("t", Torque())
    d.connect("housing.flange", "f.flange_a")
    d.connect("f.flange_b", "J.flange_a", "t.flange")
    result = Simulation(d).run(1.0, {"t.tau": Step(height=4.0, offset=-2.0, startTime=0.5)})
    assert np.all(result["J.w"][:500] == 0.0)
    assert result["J.w"][-1] == pytest.approx(1.0, rel=1e-9)
    assert result["f.tau"][100] == pytest.approx(-2.0)


def test_car_stands_on_a_slope_its_rolling_resistance_holds() -> None:
    d = Driveline("car")
    d.add("wheel", IdealRollingWheel(radius=0.3))
    d.add("hub", Inertia(J=1.0))
    d.add("car", Mass(m=1000.0))
    d.add("road", CarResistance(f0=200.0, m=1000.0))
    d.connect("hub.flange_a", "wheel.flangeR")
    d.connect("wheel.flangeT", "car.flange_a")
    d.connect("car.flange_b", "road.flange")
    held = Simulation(d).run(1.0, {"road.grade": 0.02})
    assert np.all(held["car.v"] == 0.0)
    rolls = Simulation(d).run(1.0, {"road.grade": 0.04})
    pull = 1000.0 * 9.80665 * 0.04 - 200.0
    assert rolls["car.v"][-1] == pytest.approx(-pull / (1000.0 + 1.0 / 0.09), rel=1e-9)


def test_support_of_a_gear_carries_the_difference_of_the_torques() -> None:
    d = Driveline("gear")
    d.add("t", Torque())
    d.add("a", Inertia(J=0.1))
    d.add("g", IdealGear(ratio=4))
    d.add("b", Inertia(J=2.0))
    d.connect("t.flange", "a.flange_a")
    d.connect("a.flange_b", "g.flange_a")
    d.connect("g.flange_b", "b.flange_a")
    result = Simulation(d).run(0.1, {"t.tau": 6.0})
    torques = flange_torques(result, "g")
    a_in = 6.0 / (0.1 + 2.0 / 16.0)
    # the first sample is the start: no step has been made, so there are no forces yet
    np.testing.assert_allclose(torques["flange_a"][1:], 0.1 * a_in - 6.0, rtol=1e-9)
    np.testing.assert_allclose(torques["flange_b"][1:], 2.0 * a_in / 4.0, rtol=1e-9)
    np.testing.assert_allclose(torques["flange_a"] + torques["flange_b"] + torques["support"], 0.0, atol=1e-9)
    with pytest.raises(UnknownNameError, match="'gg'"):
        flange_torques(result, "gg")


def test_brake_on_a_moving_support_acts_on_the_relative_speed() -> None:
    d = Driveline("box")
    d.add("J", Inertia(J=1.0, w0=10.0))
    d.add("box", Inertia(J=3.0, w0=2.0))
    d.add("brake", Brake(fn_max=10.0, mue_pos=0.5))
    d.connect("J.flange_a", "brake.flange_a")
    d.connect("box.flange_a", "brake.support")
    result = Simulation(d).run(4.0, {"brake.f_normalized": 1.0})
    assert result["J.w"][-1] == pytest.approx(4.0) and result["box.w"][-1] == pytest.approx(4.0)
    assert result["brake.tau"][10] == pytest.approx(5.0)


def test_locked_gear_of_the_4hp22_turns_at_its_exact_ratio() -> None:
    d = zf_4hp22()
    d.add("t", Torque())
    d.connect("t.flange", "in.flange_a")
    result = Simulation(d).run(1.0, {"t.tau": 5.0, "C4.p": 1e6, "C6.p": 1e6, "C11.p": 1e6})
    assert result["in.w"][-1] / result["out.w"][-1] == pytest.approx((73 + 35) / 73, rel=1e-12)
    assert result["C5.w_rel"][-1] == pytest.approx(-result["in.w"][-1], rel=1e-12)


def test_result_names_the_nearest_output_and_writes_csv(tmp_path: Path) -> None:
    result = Simulation(one_shaft()).run(0.01, {"torque.tau": 1.0})
    with pytest.raises(UnknownNameError, match=r"no output 'J\.ww'; did you mean"):
        result["J.ww"]
    result.write_csv(tmp_path / "out.csv", ["J.w"])
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[:2] == ["time,J.w", "s,rad/s"] and len(lines) == 13
    assert float(lines[-1].split(",")[1]) == result["J.w"][-1]


def test_impossible_steps_and_durations_are_refused() -> None:
    with pytest.raises(RangeError, match="h = 0"):
        Simulation(one_shaft(), h=0)
    with pytest.raises(RangeError, match="substeps = 0"):
        Simulation(one_shaft(), substeps=0)
    with pytest.raises(RangeError, match="whole number"):
        Simulation(one_shaft()).run(0.0005)
    with pytest.raises(UnknownNameError, match=r"no input 'torque\.tua'"):
        Simulation(one_shaft()).run(0.1, {"torque.tua": 1.0})


def test_progress_ends_at_one() -> None:
    seen: list[float] = []
    Simulation(one_shaft()).run(2.0, progress=seen.append)
    assert seen[-1] == 1.0 and seen == sorted(seen) and len(seen) > 1


def test_spring_oscillates_at_its_natural_frequency() -> None:
    d = Driveline("oscillator")
    d.add("housing", Fixed())
    d.add("s", SpringDamper(c=400.0, d=0.0))
    d.add("J", Inertia(J=1.0, phi0=0.1))
    d.connect("housing.flange", "s.flange_a")
    d.connect("s.flange_b", "J.flange_a")
    result = Simulation(d).run(1.0)
    np.testing.assert_allclose(result["J.phi"], 0.1 * np.cos(20.0 * result.time), atol=1e-7)
    assert result["energy.potential"][0] == pytest.approx(2.0)
    assert math.isclose(result["s.phi_rel"][0], 0.1)


def test_clutch_between_two_moving_shafts_keeps_momentum_under_all_inputs() -> None:
    d = two_shafts()
    d.components["clutch"] = Clutch(fn_max=200.0, mue_pos=[[0.0, 0.5], [20.0, 0.3]], peak=1.2)
    result = Simulation(d).run(1.0, {"clutch.f_normalized": Sine(amplitude=1.0, f=2.0)})
    momentum = 1.0 * result["J1.w"] + 2.0 * result["J2.w"]
    np.testing.assert_allclose(momentum, 10.0, rtol=1e-12)


def test_a_result_becomes_a_data_frame_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    result = Simulation(load("car_4hp22"), h=1e-2).run(0.2, inputs={"engine.pedal": 0.5})
    frame = result.to_dataframe(["engine.w", "car.v", "turbine.w"])
    assert list(frame.columns) == ["engine.w", "car.v", "turbine.w"] and frame.index.name == "t"
    assert np.array_equal(frame["car.v"], result["car.v"]) and np.array_equal(frame.index, result.time)
    assert list(result.to_dataframe().columns) == list(result.names)
    figure = result.plot(["engine.w", "car.v", "turbine.w"], from_s=0.1)
    assert [len(ax.lines) for ax in figure.axes] == [2, 1], "one picture for each unit"
    assert figure.axes[0].lines[0].get_xdata()[0] == pytest.approx(0.1)
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "time [s]"], "below the lowest"
    figure.savefig(tmp_path / "drive.png")
    assert (tmp_path / "drive.png").stat().st_size > 1000
    with pytest.raises(UnknownNameError, match="no output 'car.w'"):
        result.plot(["car.w"])
    with pytest.raises(RangeError, match="names is empty"):
        result.plot([])


def test_controllers_change_inputs_without_changing_what_a_step_computes() -> None:
    """Stretches between changes are a run between changes: the same states, whoever counts the ticks."""
    by_runs, by_stretches = (Simulation(load("car_4hp22"), h=1e-3) for _ in range(2))
    pedals = [0.2, 0.2, Sine(amplitude=0.1, f=3.0, offset=0.5), 0.4, 0.4]
    for pedal in pedals:
        one = by_runs.run(0.01, inputs={"engine.pedal": pedal, "C4.p": 5e5})
        by_stretches.set_input("engine.pedal", pedal)
        by_stretches.set_input("C4.p", 5e5)
        values, modes = by_stretches.stretch(10)
        assert np.array_equal(one.values, values) and one.modes == modes
    assert by_runs.hash() == by_stretches.hash()


def test_steps_that_rounding_has_left_apart_begin_on_the_same_tick() -> None:
    # 0.052 s and 52 steps of 1 ms are not the same number; a step of one must not act in the tick the other ends
    assert 52 * 1e-3 > 0.052
    for order in (2, 4):
        d = Driveline("two", order=order)
        for name in "ab":
            d.add(name, Inertia(J=1.0))
            d.add(f"T{name}", Torque())
            d.connect(f"T{name}.flange", f"{name}.flange_a")
        steps = {"Ta.tau": Step(height=6.0, startTime=0.052), "Tb.tau": Step(height=6.0, startTime=52 * 1e-3)}
        r = Simulation(d).run(0.06, inputs=steps)
        for name in "ab":
            np.testing.assert_allclose(r[f"{name}.w"], 6.0 * np.maximum(r.time - 0.052, 0.0), rtol=0.0, atol=1e-13)
