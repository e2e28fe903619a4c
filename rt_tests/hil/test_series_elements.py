"""A sketch with a brake in series with a free wheel: its gearbox, and what it does when it is stepped."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import torqueloop as tl
from torqueloop.core.analyse.gearbox_report import gearbox_report
from torqueloop.core.components import Inertia, Torque
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.new.gearbox_file import gearbox_text
from torqueloop.hil.new.sketch import load_sketch

#: a Simpson box of three speeds; its second gear is held by B2 through F2, which overruns
SKETCH = """
name = "simpson"
torque_Nm = 300.0
[sets]
P1 = { sun = "S", carrier = "out", ring = "R1", z_sun = 35, z_ring = 73 }
P2 = { sun = "S", carrier = "CC", ring = "out", z_sun = 35, z_ring = 73 }
[clutches]
C1 = ["in", "R1"]
C2 = ["in", "S"]
[brakes]
B1 = "S"
B2 = "X"
B3 = "CC"
[free_wheels]
F1 = ["housing", "CC"]
F2 = ["X", "S"]
[gears]
1 = { engaged = ["C1", "F1"], ratio = 2.479 }
2 = { engaged = ["C1", "B2", "F2"], ratio = 1.479 }
3 = { engaged = ["C1", "C2"], ratio = 1.0 }
R = { engaged = ["C2", "B3"], ratio = -2.086 }
"""
BAR = 1e5


@pytest.fixture
def gearbox(tmp_path: Path) -> Path:
    (tmp_path / "sketch.toml").write_text(SKETCH)
    (tmp_path / "simpson.toml").write_text(gearbox_text(load_sketch(tmp_path / "sketch.toml")))
    return tmp_path / "simpson.toml"


def test_torques_and_slips_of_the_shaft_between(gearbox: Path) -> None:
    gears = gearbox_report(gearbox).gears
    # by hand: ratio 1 + z_s/z_r, so the sun takes 35/73 of the input's torque, through F2 and B2 alike
    assert gears["2"].ratio == 1 + Fraction(35, 73)
    assert (gears["2"].torques["B2"], gears["2"].torques["F2"]) == (Fraction(35, 73), -Fraction(35, 73))
    # between two open elements a shaft has no speed of its own, and blocks nothing
    for gear in ("1", "3", "R"):
        assert not gears[gear].remarks
        assert not {"B2", "F2"} & gears[gear].slips.keys()


def test_the_free_wheel_overruns_when_the_next_gear_comes(gearbox: Path) -> None:
    """B2 stays closed from 2nd to 3rd: nothing works against the other, as with a brake alone it would."""
    driveline = tl.load(gearbox)
    driveline.add("T", Torque())
    driveline.add("L", Inertia(J=5.0))
    driveline.connect("T.flange", "in.flange_a")
    driveline.connect("out.flange_b", "L.flange_a")
    closed = {"C1.p": 10 * BAR, "B2.p": 10 * BAR}
    second = tl.Simulation(driveline, h=1e-3).run(2.0, inputs={"T.tau": 60.0, **closed})
    assert second["in.w"][-1] / second["L.w"][-1] == pytest.approx(108 / 73, rel=1e-6)
    third = tl.Simulation(driveline, h=1e-3).run(2.0, inputs={"T.tau": 60.0, **closed, "C2.p": 10 * BAR})
    assert third["in.w"][-1] / third["L.w"][-1] == pytest.approx(1.0, rel=1e-6)
    assert third["F2.w_rel"][-1] > 1.0 and third["B2.w_rel"][-1] == pytest.approx(0.0, abs=1e-9)


def test_a_shaft_that_only_one_element_names_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "sketch.toml").write_text(SKETCH.replace('B2 = "X"', 'B2 = "Y"'))
    with pytest.raises(ConfigError, match="B2: no set has the shaft 'Y', and no other element"):
        load_sketch(tmp_path / "sketch.toml")
