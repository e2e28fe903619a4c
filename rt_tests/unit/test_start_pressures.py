"""Start pressures of actuators: `[initial] "C.p_bar"`. Closed forms of lags, fill times, inertias that stick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rot_drive import drive

import torqueloop as tl
from torqueloop.core.components import ConstantTorque, Inertia, LaminarClutch
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, UnknownNameError
from torqueloop.core.simulate.offline import Simulation

EXAMPLES = Path(tl.__file__).parent / "configs" / "examples"
BAR = 1e5
PACK = {"cgeo": 0.5, "mue_pos": 0.1, "area": 0.01, "p_max": 20.0 * BAR}


def engaged(order: int, **pack: object) -> Driveline:
    """10 Nm on 0.2 kg m2, a clutch that starts with 10 bar, 0.3 kg m2; both start at 50 rad/s."""
    d = drive(
        ("t.flange", "a.flange_a"), ("a.flange_b", "C.flange_a"), ("C.flange_b", "b.flange_a"), order=order,
        t=ConstantTorque(tau_constant=10.0), a=Inertia(J=0.2, w0=50.0), b=Inertia(J=0.3, w0=50.0),
        C=LaminarClutch(**{**PACK, **pack}),
    )  # fmt: skip
    d.set_start("C.p", 10.0 * BAR)
    return d


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("actuator", ["first_order", "fill_time"])
def test_a_clutch_that_starts_with_pressure_carries_from_the_first_instant(actuator: str, order: int) -> None:
    pack = {"actuator": actuator, "t_fill": 0.1, "t_empty": 0.1, "tau_rise": 0.02, "tau_fall": 0.02, "p_return": BAR}
    r = Simulation(engaged(order, **pack), h=1e-3).run(0.1, inputs={"C.p": 10.0 * BAR})
    assert r["C.p"] == pytest.approx(10.0 * BAR, rel=1e-12)
    assert r["C.mode"].tolist() == [0.0] * 101
    assert r["a.w"] == pytest.approx(50.0 + 10.0 / 0.5 * r.time, abs=1e-10)
    assert r["b.w"] == pytest.approx(r["a.w"], abs=1e-10)
    assert np.abs(r["C.tau"]) == pytest.approx(10.0 * 0.3 / 0.5, abs=1e-9)


@pytest.mark.parametrize("order", [2, 4])
def test_a_start_pressure_falls_to_the_command_by_the_lag(order: int) -> None:
    r = Simulation(engaged(order, tau_fall=0.05, tau_rise=0.01), h=1e-3).run(0.2, inputs={"C.p": 4.0 * BAR})
    assert r["C.p"] == pytest.approx(4.0 * BAR + 6.0 * BAR * np.exp(-r.time / 0.05), rel=1e-10)


def test_without_a_start_pressure_the_clutch_begins_empty() -> None:
    d = engaged(2, tau_rise=0.05, tau_fall=0.05)
    d.start.clear()
    r = Simulation(d, h=1e-3).run(0.01, inputs={"C.p": 10.0 * BAR})
    assert r["C.p"] == pytest.approx(10.0 * BAR * -np.expm1(-r.time / 0.05), abs=1e-4)


FILE = """
connections = [["a.flange_b", "C.flange_a"], ["C.flange_b", "F.flange"]]
[components.a]
kind = "Inertia"
J_kgm2 = 0.2
[components.F]
kind = "Fixed"
[components.C]
kind = "LaminarClutch"
cgeo_m = 0.5
mue_pos = 0.1
area_m2 = 0.01
p_max_bar = 20
[initial]
"""


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        ('"C.p_bar" = 21', RangeError, r"2.1e\+06|2100000.*p_max"),
        ('"C.p_bar" = -1', RangeError, r"0 \.\. 2e\+06 Pa"),
        ('"D.p_bar" = 1', UnknownNameError, "there is no speed, angle or pressure 'D.p'.*did you mean 'C.p'"),
    ],
)
def test_a_start_pressure_that_cannot_be_is_named(line: str, error: type[Exception], said: str, tmp_path: Path) -> None:
    file = tmp_path / "drive.toml"
    file.write_text(FILE + line + "\n")
    with pytest.raises(error, match=said) as caught:
        Simulation(tl.load(file), h=1e-3)
    assert "drive.toml" in str(caught.value)


def test_a_file_gives_it_in_bar(tmp_path: Path) -> None:
    file = tmp_path / "drive.toml"
    file.write_text(FILE + '"C.p_bar" = 3.5\n')
    r = Simulation(tl.load(file), h=1e-3).run(0.001, inputs={"C.p": 3.5 * BAR})
    assert r["C.p"].tolist() == [3.5 * BAR] * 2


def test_the_gearbox_of_the_paper_starts_in_third_gear() -> None:
    """Schweiger, Otter 2003, fig. 17: speeds rise steadily from the first step on. The elements stick, so the kinetic
    energy is the work of 10 Nm at the input, and output over input is a quotient of tooth numbers."""
    driveline = tl.load(EXAMPLES / "yawing_6hp26.toml")
    inputs = {"motor.tau": 10.0, "A.p": 10.0 * BAR, "B.p": 10.0 * BAR}
    r = Simulation(driveline, h=1e-3).run(0.5, inputs=inputs)
    assert r["A.mode"].tolist() == r["B.mode"].tolist() == [0.0] * 501
    # clutches A and B couple both suns to carrier 1, so the second set turns as one: the ratio is that of the first set
    assert r["rotor_out.w"][1:] / r["rotor_in.w"][1:] == pytest.approx(71.0 / (37.0 + 71.0), rel=1e-9)
    assert r["rotor_in.w"] == pytest.approx(r["rotor_in.w"][-1] * r.time / 0.5, abs=1e-9)
    turned = r["rotor_in.w"][-1] * 0.5 / 2.0
    assert r["energy.kinetic"][-1] == pytest.approx(10.0 * turned, rel=1e-9)
