"""What is refused, with its name and place: wrong keywords, start values that are no numbers, ratios through 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import KINDS, Inertia, Mass, VariableGear, Wheel2
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, RangeError, TableError, UnknownKeyError
from torqueloop.core.describe.params import params_of
from torqueloop.core.describe.tables import Columns, Table1D
from torqueloop.core.signals import Ramp, Step
from torqueloop.core.simulate.offline import Simulation


def geared(gear: Component) -> Driveline:
    d = Driveline("geared")
    d.add("A", Inertia(J=1.0))
    d.add("B", Inertia(J=2.0, w0=3.0))
    d.add("gear", gear)
    d.connect("A.flange_b", "gear.flange_a")
    d.connect("B.flange_a", "gear.flange_b")
    return d


def rolling(radius: Any) -> Driveline:
    d = Driveline("rolling")
    d.add("m", Mass(m=10.0, v0=1.0))
    d.add("wheel", Wheel2(J=0.1, radius=radius))
    d.add("axle", Inertia(J=0.1))
    d.connect("m.flange_a", "wheel.flangeT")
    d.connect("axle.flange_a", "wheel.flangeR")
    return d


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_unknown_keyword_of_a_component_names_kind_keyword_and_choices(kind: str) -> None:
    with pytest.raises(UnknownKeyError) as caught:
        KINDS[kind](nonsense=1.0)
    text = str(caught.value)
    assert isinstance(caught.value, ConfigError)
    assert "nonsense" in text and f"[{kind}]" in text
    for name in params_of(KINDS[kind]):
        assert name in text


def test_a_misspelled_keyword_is_answered_with_the_close_one() -> None:
    with pytest.raises(UnknownKeyError, match=r"unknown parameter j in \[Inertia\]; allowed: J, .*did you mean 'J'\?"):
        Inertia(j=1.0)  # type: ignore[call-arg]
    with pytest.raises(UnknownKeyError, match=r"1.0 is given without the name of its parameter in \[Inertia\]"):
        Inertia(1.0)  # type: ignore[misc]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("nan")])
def test_a_start_value_that_is_not_finite_names_component_and_quantity(value: float) -> None:
    d = Driveline("d")
    d.add("J1", Inertia(J=1.0))
    with pytest.raises(RangeError, match=r"J1\.w = (nan|inf) is not finite in \[initial\]") as caught:
        d.set_start("J1.w", value)
    assert "None" not in str(caught.value)
    with pytest.raises(RangeError, match=r"start value J1\.w = 'fast' is not a number in \[initial\]"):
        d.set_start("J1.w", "fast")  # type: ignore[arg-type]


def test_rows_of_a_table_are_counted_from_one() -> None:
    with pytest.raises(TableError, match=r"row 2: 'x' is not a number"):
        Columns.of_rows([[1.0], ["x"], [3.0]], 1)
    with pytest.raises(TableError, match=r"row 2 does not have 2 values: \[2\]"):
        VariableGear(ratios=[[1, 3.0], [2], [3, 1.0]])


def test_ratio_curves_through_zero_are_refused_with_name_and_place() -> None:
    with pytest.raises(TableError, match=r"change its sign: -2 to 3 in \[components.gear\]") as caught:
        compile_driveline(geared(VariableGear(ratios=[[1, 3.0], [2, -2.0]])))
    assert (caught.value.table, caught.value.key) == ("components.gear", "ratios")
    # the line through the last two gears is 0 at gear 3
    falling = Table1D((1.0, 2.0), (3.0, 1.5), extrapolation="linear")
    with pytest.raises(TableError, match=r"beyond gear = 2 it is 0 at 3 in \[components.gear\]"):
        compile_driveline(geared(VariableGear(ratios=falling)))
    rising = Table1D((1.0, 2.0), (-1.5, -3.0), extrapolation="linear")
    with pytest.raises(TableError, match=r"beyond gear = 1 it is 0 at 0 in"):
        compile_driveline(geared(VariableGear(ratios=rising)))
    shrinking = Table1D((0.0, 10.0), (0.3, 0.2), extrapolation="linear")
    with pytest.raises(TableError, match=r"beyond \|v\| = 10 it is 0 at 30 in \[components.wheel\]"):
        compile_driveline(rolling(shrinking))
    # a tyre that grows has no zero at speeds there are, and a curve that holds its ends never gets there
    compile_driveline(rolling(Table1D((0.0, 10.0), (0.3, 0.31), extrapolation="linear")))
    compile_driveline(geared(VariableGear(ratios=[[1, 3.0], [2, 1.5]])))


@pytest.mark.parametrize(
    ("signal", "time"),
    [
        (Ramp(height=-4.0, duration=1.0, offset=2.0), "0.5"),
        (Step(height=-3.0, offset=2.0, startTime=0.4), "0.4"),
        (0.0, "0"),
    ],
)
def test_a_ratio_input_that_reaches_zero_stops_the_run_with_name_and_time(signal: Any, time: str) -> None:
    with pytest.raises(RangeError, match=rf"the ratio of 'gear' .* input gear.ratio = .* at t = {time} s"):
        Simulation(geared(VariableGear())).run(1.0, inputs={"gear.ratio": signal})


def test_a_negative_ratio_is_legal() -> None:
    run = Simulation(geared(VariableGear())).run(0.1, inputs={"gear.ratio": -2.0})
    np.testing.assert_allclose(run["A.w"], -6.0, rtol=1e-12)
