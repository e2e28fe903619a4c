"""Numbers of configurations against physics: each check sees the error it is for; figures by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.analyse.physics import Finding, findings, largest_turbine_torque
from torqueloop.core.components.converter import LockUpTC
from torqueloop.core.components.engine import Engine
from torqueloop.core.components.gears import IdealPlanetary
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, UnknownKeyError
from torqueloop.core.describe.provenance import Known, statements
from torqueloop.core.describe.published import Published
from torqueloop.core.describe.tables import Table1D
from torqueloop.hil.cli.facts import physics
from torqueloop.hil.common.locate import installed

RPM = math.pi / 30.0


def engine_and_converter(torque: float = 240.0, **published: float) -> Driveline:
    """A 2.8 l engine with the same torque at all speeds, and a converter with mp(0) = 0.005, mu(0) = 2."""
    made = Driveline("engine")
    wot = Table1D((0.0, 700.0), (torque, torque))
    drag = Table1D((0.0, 700.0), (-43.0, -43.0))
    made.add("engine", Engine(J=0.2, wot=wot, drag=drag))
    made.add("converter", LockUpTC(mp=Table1D((0.0, 1.0), (0.005, 0.0)), mu=Table1D((0.0, 1.0), (2.0, 1.0))))
    made.published = Published().with_figures({"displacement_l": 2.788, **published})
    return made


def found(driveline: Driveline, words: str) -> Finding:
    """The one finding with these words."""
    (one,) = [f for f in findings(driveline) if words in f"{f.place}: {f.quantity}"]
    return one


def test_stall_is_where_the_engine_gives_what_the_pump_takes() -> None:
    """wot = mp(0)*w^2: w = sqrt(240/0.005) = 219.09 rad/s, 2092 rpm; the turbine has mu(0) = 2 times 240 Nm."""
    line = engine_and_converter()
    assert found(line, "stall speed").value == pytest.approx(math.sqrt(240.0 / 0.005) / RPM, rel=1e-9)
    assert largest_turbine_torque(line) == pytest.approx(480.0, rel=1e-9)


def test_pressures_of_the_engine_are_those_of_a_four_stroke() -> None:
    """p = 4 pi T/V: 240 Nm of 2.788 l are 10.82 bar, 43 Nm of closed throttle 1.938 bar."""
    line = engine_and_converter()
    assert found(line, "mean effective").value == pytest.approx(10.82, abs=0.01)
    drag = found(line, "friction and pumping")
    assert drag.value == pytest.approx(1.938, abs=0.001) and drag.ok
    line.components["engine"] = Engine(J=0.2, wot=Table1D((0.0, 700.0), (240.0, 240.0)),
                                       drag=Table1D((0.0, 700.0), (-7.7, -7.7)))  # fmt: skip
    assert not found(line, "friction and pumping").ok


@pytest.mark.parametrize(
    ("published", "words", "value"),
    [
        ({"torque_Nm": 260.0, "torque_rpm": 4200.0}, "at the published speed in Nm", 240.0),
        ({"power_kW": 135.0, "power_rpm": 5800.0}, "at the published speed in kW", 240.0 * 5800.0 * RPM / 1e3),
        ({"stall_rpm": 2500.0}, "converter: stall speed", math.sqrt(48000.0) / RPM),
    ],
)
def test_a_model_that_misses_a_published_figure_is_told(published: dict[str, float], words: str, value: float) -> None:
    line = engine_and_converter(**published)
    wrong = [f for f in findings(line) if words in f"{f.place}: {f.quantity}" and not f.ok]
    assert wrong and wrong[0].value == pytest.approx(value, rel=1e-9)


def test_a_car_of_the_package_with_an_error_planted_is_told() -> None:
    """Sun teeth, piston, lining, final drive: each wrong by a mistake that somebody makes, and nothing else changes."""
    car = tl.load("car_4hp22")
    before = {str(f) for f in findings(car) if not f.ok}
    p2 = car.components["P2"]
    assert isinstance(p2, IdealPlanetary)
    planted: list[tuple[str, dict[str, Any], str]] = [
        ("P2", {"z_sun": 36}, "P2: part of a tooth"),
        ("C4", {"area": 80e-5}, "C4: capacity over the torque of gear"),
        ("C4", {"area": 80e-3}, "C4: piston area"),
        ("final_drive", {"ratio": 1}, "car: engine speed at 100 km/h"),
        ("wheel", {"radius": 1}, "car: engine speed at 100 km/h"),
    ]
    for name, change, words in planted:
        broken = car.copy()
        broken.replace(name, **change)
        wrong = [str(f) for f in findings(broken) if not f.ok and str(f) not in before]
        assert any(words in text for text in wrong), (name, change, wrong)


def test_the_top_speed_is_where_engine_and_resistance_are_in_balance() -> None:
    """In one gear the full-load torque at the wheels is the resistance at that speed, in km/h; in no gear is there more
    torque than resistance at a higher speed."""
    car = tl.load("car_4hp22")
    car.published = car.published.with_figures({"v_max_kmh": 209.0})
    top = found(car, "top speed by power").value / 3.6
    road, final, wheel = (car.components[name] for name in ("resistance", "final_drive", "wheel"))
    wot = car.tables["engine_wot"]
    assert isinstance(wot, Table1D)

    def left(v: float, ratio: float) -> float:
        k = ratio * float(final.ratio) / wheel.radius
        return float(k * np.interp(k * v, wot.x, wot.y) - road.f0 - road.f1 * v - road.f2 * v * v)

    # of a ZF 4HP22
    ratios = (2.4795, 1.4795, 1.0, 0.7280)
    assert min(abs(left(top, ratio)) for ratio in ratios) < 0.02 * road.f2 * top * top
    assert all(left(top + ahead, ratio) < 0.0 for ratio in ratios for ahead in (1.0, 5.0, 20.0))


def test_published_figures_have_ranges_and_names() -> None:
    with pytest.raises(RangeError, match=r"power_kW = -1 .*published"):
        Published().with_figures({"power_kW": -1})
    with pytest.raises(UnknownKeyError, match="power_kw.*power_kW"):
        Published().with_figures({"power_kw": 100})


def test_published_figures_are_read_and_a_file_that_includes_another_adds_to_them(tmp_path: Path) -> None:
    (tmp_path / "part.toml").write_text('[published]\nv_max_kmh = 209\npower_kW = 135\nsource = "manual"\n'
                                        '[components.a]\nkind = "Inertia"\nJ_kgm2 = 1\n')  # fmt: skip
    (tmp_path / "car.toml").write_text('include = ["part.toml"]\n[published]\npower_kW = 130\n')
    assert tl.load(tmp_path / "car.toml").published == Published(v_max_kmh=209.0, power_kW=130.0)


@pytest.mark.parametrize("path", installed("powertrains").values(), ids=lambda path: path.stem)
def test_every_car_of_the_package_is_plausible(path: Path) -> None:
    """What `torqueloop check --physics` prints in continuous integration: no warning, for the file and all it uses."""
    made, wrong, unlike = physics(path)
    assert made > 10 and not wrong and not unlike, [str(f) for f in wrong] + [f"{s.key}: {s.problem}" for s in unlike]


@pytest.mark.parametrize("folder", ["gearboxes", "drives", "powertrains", "vehicles", "hydraulics", "tcu"])
def test_every_assumed_number_of_a_car_has_a_range(folder: str) -> None:
    """It is checked by `torqueloop check --physics`; examples that only show a component are left out."""
    said = [s for path in installed(folder).values() for s in statements(path) if s.known is Known.ASSUMED]
    assert not [f"{Path(s.file).name} {s.table}.{s.key}" for s in said if s.low is None]
