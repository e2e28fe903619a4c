"""Laws of controllers, compiled: the bits of the Python they were, closed forms, and the same in a signal table."""

from __future__ import annotations

import copy
import pickle
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import python_controllers as before
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from torqueloop.core import controls as now
from torqueloop.core.controls.base import Compiled
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.controls.laws import Law
from torqueloop.cython_kernels.controls.records import KINDS, MOST_READS
from torqueloop.cython_kernels.tick.controllers import Controllers
from torqueloop.hil.rig.devices.controllers import CLASSES, ControllerTable

#: ranges of what is read, with the places where a law changes its mind in them
READ = {
    "v": (-5.0, 60.0), "v_set": (0.0, 60.0), "w": (0.0, 400.0), "accelerator": (0.0, 1.0), "throttle": (-0.2, 1.2),
    "idle": (0.0, 0.5), "T_coolant": (250.0, 400.0),
}  # fmt: skip
PLAIN = [
    (now.CoolingFan, before.CoolingFan, {"v_ref": (5.0, 40.0), "fan_air": (0.1, 3.0)}),
    (now.Driver2, before.Driver2, {"kp": (0.01, 2.0), "ki": (0.0, 1.0), "T_track": (0.01, 5.0), "press": (0.1, 50.0),
                                  "release": (0.1, 50.0), "t_change": (0.0, 1.0), "v_rest": (0.0, 10.0)}),
    (now.FuelFlowController, before.FuelFlowController, {"t_cut": (0.0, 1.0), "rise": (0.1, 50.0),
                                                         "fall": (0.1, 50.0)}),
    (now.IdleController, before.IdleController, {"kp": (1e-3, 0.1), "ki": (0.0, 0.1), "limit": (0.05, 1.0)}),
    (now.GearboxController, before.GearboxController, {"t_dwell": (0.0, 2.0), "t_shift": (0.01, 1.0),
                                                       "v_lockup": (0.0, 30.0), "lockup_band": (0.0, 5.0)}),
]  # fmt: skip


def bits(values: Mapping[str, float]) -> dict[str, bytes]:
    return {name: struct.pack("d", value) for name, value in values.items()}


def curves_of(kind: str, draw: st.DrawFn) -> dict[str, Any]:
    """Random curves; their points are drawn once for both classes."""
    xs = {"idle": (250.0, 400.0), "gearbox": (0.0, 1.0)}.get(kind)
    if xs is None:
        return {}
    x = sorted(draw(st.lists(st.floats(*xs, allow_subnormal=False), min_size=1, max_size=5, unique=True)))
    y = [draw(st.floats(60.0, 130.0)) for _ in x]
    if kind == "idle":
        return {"w_idle": (x, y)}
    n = draw(st.integers(0, 3))
    ups = [(x, [0.3 * value * (k + 1) for value in y]) for k in range(n)]
    share = draw(st.floats(0.3, 0.95))
    return {"up": ups, "down": [(x, [share * value for value in up]) for x, up in ups],
            "first": draw(st.integers(1, n + 1)), "lockup_gear": draw(st.integers(0, n + 1))}  # fmt: skip


def arguments(drawn: Mapping[str, Any], curve: type[Table1D]) -> dict[str, Any]:
    """What was drawn as arguments of a class, with its kind of curves."""
    made = dict(drawn)
    if "w_idle" in made:
        made["w_idle"] = curve(*map(tuple, made["w_idle"]))
    for name in ("up", "down"):
        if name in made:
            made[name] = tuple(curve(tuple(x), tuple(y)) for x, y in made[name])
    return made


def value_of(name: str, draw: st.DrawFn) -> float:
    """Anything in its range, or one of a few values that are met again."""
    low, high = READ[name]
    return draw(st.one_of(st.floats(low, high), st.sampled_from([low, 0.0, 0.01, 0.5 * (low + high), high])))


@pytest.mark.parametrize(("compiled", "python", "ranges"), PLAIN, ids=[c.kind for c, _, _ in PLAIN])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_each_law_gives_the_bits_of_the_python_it_was(
    compiled: type[Compiled], python: type[Any], ranges: Mapping[str, tuple[float, float]], data: st.DataObject
) -> None:
    draw = data.draw
    drawn = {name: draw(st.floats(*span)) for name, span in ranges.items()} | curves_of(compiled.kind, draw)
    ours, theirs = compiled(**arguments(drawn, Table1D)), python(**arguments(drawn, before.KernelCurve))
    t = draw(st.floats(-10.0, 10.0))
    for _ in range(draw(st.integers(1, 40))):
        measured = {name: value_of(name, draw) for name in compiled.reads}
        assert bits(ours.step(t, measured)) == bits(theirs.step(t, measured)), (drawn, t, measured)
        t += draw(st.sampled_from([0.0, 1e-3, 0.01, 0.3, 2.0]))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_curve_differs_from_that_of_the_tables_by_rounding(data: st.DataObject) -> None:
    x = sorted(data.draw(st.lists(st.floats(-10.0, 10.0, allow_subnormal=False), min_size=1, max_size=6, unique=True)))
    x = [x[0], *(b for a, b in zip(x, x[1:], strict=False) if b - a > 1e-3)]
    x = [x[0], *(b for a, b in zip(x, x[1:], strict=False) if b - a > 1e-3)]
    y = [data.draw(st.floats(-5.0, 5.0)) for _ in x]
    at = data.draw(st.floats(-12.0, 12.0))
    found, wanted = before.KernelCurve(tuple(x), tuple(y))(at), Table1D(tuple(x), tuple(y))(at)
    # two roundings of a product and a quotient each, of numbers up to 10
    assert abs(found - wanted) <= 8 * np.finfo(float).eps * 10.0


@pytest.mark.parametrize(("compiled", "python", "ranges"), PLAIN, ids=[c.kind for c, _, _ in PLAIN])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_controller_in_a_signal_table_is_the_same_law(
    compiled: type[Compiled], python: type[Any], ranges: Mapping[str, tuple[float, float]], data: st.DataObject
) -> None:
    draw = data.draw
    drawn = arguments(curves_of(compiled.kind, draw), Table1D)
    every, tick_s = draw(st.integers(1, 4)), draw(st.sampled_from([1e-3, 5e-3]))
    one, record = compiled(**drawn).law(), KINDS[compiled.kind]
    first, n_own = 2 + len(record.reads), len(record.own)
    sig = np.zeros(first + n_own + 1)
    sig[first : first + n_own], sig[-1] = one.own, 7.0
    gains = [draw(st.sampled_from([1.0, -0.5])) for _ in record.reads]
    table = Controllers(len(sig), 1, tick_s)
    table.add(compiled(**drawn).law(), first, every, [(2 + k, gain, 0.25) for k, gain in enumerate(gains)])
    for tick in range(draw(st.integers(1, 30))):
        values = [value_of(field.name, draw) for field in record.reads]
        sig[2:first] = values
        table.tick(sig, tick)
        if tick % every == 0:
            read = {f.name: g * x + 0.25 for f, g, x in zip(record.reads, gains, values, strict=True)}
            one.step(every * tick_s if tick else 0.0, read)
        # between its calls all it has is held, and nothing else is written
        assert sig[first:].tobytes() == np.array([*one.own, 7.0]).tobytes()


def test_the_edges_of_conditions_are_those_of_the_python() -> None:
    """Where a number is exactly the one a law compares it with, which random ones hardly ever are."""
    fuels = now.FuelFlowController(t_cut=0.5), before.FuelFlowController(t_cut=0.5)
    for t, w in ((0.0, 200.0), (0.25, 200.0), (0.5, 200.0), (0.75, 125.7), (1.0, 167.6)):
        measured = {"accelerator": 0.0, "idle": 0.1, "w": w}
        ours, theirs = (fuel.step(t, measured) for fuel in fuels)
        # the first call counts no time: released for 0.5 s at 0.5
        assert ours == theirs and ours["fuel"] == (0.0 if t == 0.5 else 1.0), t
    curve = Table1D.constant(80.0)
    idles = now.IdleController(w_idle=curve), before.IdleController(w_idle=curve)
    for accelerator in (0.01, 0.0100001):
        for t in (0.0, 0.5, 1.0):
            for idle in idles:
                idle.step(t + 2.0 * (accelerator > 0.01), {"w": 70.0, "accelerator": accelerator, "T_coolant": 300.0})
        assert idles[0].integral == idles[1]._x == 0.5 * 0.008 * 10.0 * 2
    fans = now.CoolingFan(), before.CoolingFan()
    for T in (372.15, 372.2, 367.15, 372.15):
        ours, theirs = (fan.step(0.0, {"v": 0.0, "T_coolant": T}) for fan in fans)
        assert ours == theirs and ours["fan"] == (T == 372.2)


# --- closed forms -----------------------------------------------------------------------------------------------------
def test_the_idle_controller_integrates_as_it_says() -> None:
    idle = now.IdleController(w_idle=Table1D.constant(80.0), kp=0.01, ki=0.02, limit=1.0)
    for k in range(101):
        found = idle.step(0.01 * k, {"w": 70.0, "accelerator": 0.0, "T_coolant": 300.0})
    assert idle.integral == pytest.approx(0.02 * 10.0 * 1.0, rel=1e-12)
    assert found == {"demand": pytest.approx(0.1 + 0.02 * 10.0 * 0.99, rel=1e-12), "w_idle": 80.0}


def test_the_air_of_the_fan_is_its_formula() -> None:
    fan = now.CoolingFan()
    for v in np.linspace(-40.0, 40.0, 33):
        assert fan.step(0.0, {"v": v, "T_coolant": 300.0})["air"] == min(2.0, 0.05 + (abs(v) / 20.0) ** 0.8)


def test_rates_and_ramps_are_straight_lines() -> None:
    fuel = now.FuelFlowController(rise=5.0, fall=10.0)
    up = [fuel.step(1e-3 * k, {"accelerator": 1.0, "idle": 0.3, "w": 100.0})["demand"] for k in range(300)]
    np.testing.assert_allclose(up, np.minimum(1.0, 5.0 * 1e-3 * np.arange(300)), atol=1e-13)
    box = now.GearboxController([Table1D.constant(5.0)], [Table1D.constant(3.0)], t_shift=0.4)
    actual = [box.step(1e-3 * k, {"throttle": 0.5, "v": 6.0})["gear_actual"] for k in range(600)]
    np.testing.assert_allclose(actual, np.minimum(2.0, 1.0 + np.arange(600) * 1e-3 / 0.4), atol=1e-12)


def test_the_driver_with_a_car_goes_to_the_solution_of_their_equations() -> None:
    """v' = 4 u - 0.05 v, u = kp e + x, x' = ki e: the error halves with the period."""

    def slopes(t: float, y: Sequence[float]) -> list[float]:
        return [4.0 * (0.6 * (5.0 - y[0]) + y[1]) - 0.05 * y[0], 0.15 * (5.0 - y[0])]

    exact = solve_ivp(slopes, (0.0, 2.0), [4.8, 0.0], rtol=1e-11, atol=1e-13).y[:, -1]

    def error(dt: float) -> float:
        driver, v = now.Driver2(press=1e6, release=1e6), 4.8
        driver.step(-dt, {"v_set": 5.0, "v": v})
        driver._law.own = (0.0,) * 6
        for k in range(round(2.0 / dt)):
            v += dt * (4.0 * driver.step(k * dt, {"v_set": 5.0, "v": v})["accelerator"] - 0.05 * v)
            assert driver.kept("pedals") > 0.0
        return abs(v - exact[0]) + abs(driver.integral - exact[1])

    errors = [error(dt) for dt in (4e-3, 2e-3, 1e-3)]
    assert errors[2] < 1e-4 and all(1.7 < a / b < 2.3 for a, b in zip(errors, errors[1:], strict=False)), errors


# --- the classes around the laws --------------------------------------------------------------------------------------
def test_classes_and_files_have_the_kinds_and_names_of_the_records() -> None:
    assert set(CLASSES) == set(KINDS) == set(ControllerTable.model_fields["kind"].annotation.__args__)
    for kind, cls in CLASSES.items():
        record = KINDS[kind]
        assert cls.reads == tuple(f.name for f in record.reads) and len(cls.reads) <= MOST_READS
        assert cls.writes == tuple(f.name for f in record.commands)
        wanted = {f.name for f in record.record.fields} | {name for name, _, _ in record.curves}
        assert {f.name for f in fields(cls)} == wanted | ({"first"} if kind == "gearbox" else set())


def test_a_parameter_may_change_between_two_calls_and_a_copy_goes_its_own_way() -> None:
    idle = now.IdleController(w_idle=Table1D.constant(80.0))
    measured = {"w": 70.0, "accelerator": 0.0, "T_coolant": 300.0}
    for k in range(10):
        idle.step(0.01 * k, measured)
    kept = idle.integral
    other, third = copy.deepcopy(idle), pickle.loads(pickle.dumps(idle))
    idle.kp = 0.012
    assert idle.integral == kept > 0.0
    assert idle.step(0.1, measured)["demand"] == 0.012 * 10.0 + kept
    assert other.step(0.1, measured) == third.step(0.1, measured) == {"demand": 0.006 * 10.0 + kept, "w_idle": 80.0}


def test_time_does_not_go_back() -> None:
    driver = now.Driver2()
    driver.step(1.0, {"v_set": 0.0, "v": 0.0})
    with pytest.raises(RangeError, match="time goes back"):
        driver.step(0.9, {"v_set": 0.0, "v": 0.0})
    with pytest.raises(KeyError, match="v_set"):
        driver.step(1.0, {"v": 0.0})


def test_a_gear_that_is_none_is_the_first_one() -> None:
    """Numbers come back from checkpoints, which are files: no gear is a place outside of the curves."""
    curve = ((0.0, 1.0), (5.0, 10.0), False)
    for gear in (1e9, -3.0, float("nan"), 0.5):
        law = Law("gearbox", [1.5, 0.4, 0.0, 15.0, 2.0, 8e5], [curve, curve], (gear, 1.0, 0.0, 0.0, 1.5))
        assert law.step(0.01, {"throttle": 0.5, "v": 0.0})["gear"] == 1.0


def test_laws_and_tables_refuse_what_would_leave_their_memory() -> None:
    with pytest.raises(ValueError, match="allowed cooling_fan, driver"):
        Law("fan", [])
    with pytest.raises(ValueError, match="5 parameters"):
        Law("driver", [1.0] * 5)
    with pytest.raises(ValueError, match="0 curves; allowed: 4, 1"):
        Law("idle", [1.0] * 4)
    with pytest.raises(ValueError, match="rising"):
        Law("idle", [1.0] * 4, [((1.0, 1.0), (0.0, 0.0), False)])
    with pytest.raises(ValueError, match="allowed: 6"):
        Law("driver", [1.0] * 8, (), [0.0])
    law, table = Law("driver", [1.0] * 8), Controllers(10, 1, 1e-3)
    for wrong in ((5, 1, [(0, 1.0, 0.0)] * 2), (2, 1, [(10, 1.0, 0.0)] * 2)):
        with pytest.raises(IndexError, match="10|9"):
            table.add(law, *wrong)
    for wrong in ((2, 0, [(0, 1.0, 0.0)] * 2), (2, 1, [(0, 1.0, 0.0)]), (1, 1, [(0, 1.0, 0.0)] * 2)):
        with pytest.raises(ValueError, match="allowed: 2"):
            table.add(law, *wrong)
    table.add(law, 4, 1, [(0, 1.0, 0.0)] * 2)
    with pytest.raises(IndexError, match="controller 1 of 1"):
        table.add(law, 4, 1, [(0, 1.0, 0.0)] * 2)
