"""examples/mujoco_vehicle.py: loads and pitch against closed forms; the same bits here and over ZeroMQ."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

import torqueloop as tl
from torqueloop.hil.link.messages import StateMessage, StepMessage

FILE = Path(__file__).resolve().parents[2] / "examples" / "mujoco_vehicle.py"
if not FILE.is_file():
    pytest.skip("the examples are in the repository only", allow_module_level=True)
pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install mujoco)")
MASS, G = 1500.0, 9.81


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("mujoco_vehicle", FILE)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def driven(car: Any, force: float, seconds: float, brake: float = 0.0, speed: float = 20.0) -> StateMessage:
    """The last answer of a car that is pulled by a constant force, its speed as its own integration has it."""
    answer, v, s, h = None, speed, 0.0, 1e-3
    for k in range(round(seconds / h) + 1):
        answer = car.step(StepMessage(step=k, t=k * h, F_wheel=force, I_wheel=force * k * h, speed=v, s=s, brake=brake))
        v = answer.speed
    assert answer is not None
    return answer


def test_loads_at_rest_are_the_weight(example: Any) -> None:
    car = example.MujocoCar()
    answer = driven(car, 0.0, 2.0, speed=0.0)
    assert answer.speed == 0.0
    assert answer.carrier["loads"] == pytest.approx(list(car.rest), rel=1e-9)
    assert sum(answer.carrier["loads"]) == pytest.approx(MASS * G, rel=1e-9)
    assert answer.carrier["chassis"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


def test_a_steady_pull_shifts_load_and_pitch_as_the_closed_form_says(example: Any) -> None:
    """dN = (F_road h + m_s g |pitch| (h_s - r))/L an axle: the force at the road about the mass centre, and the body's
    weight over wheels that have swung forward with it. Each axle gives by dN/2 over spring and tyre in series, less
    what the driving force takes of the rear springs along their leaning axes. What is left, 2e-3, is of the second
    order in the pitch."""
    car = example.MujocoCar()
    answer = driven(car, 3000.0, 6.0)
    c = car.chassis
    heave, pitch, roll = answer.carrier["chassis"]
    loads = answer.carrier["loads"]
    ground = MASS * answer.a - car.active_force(answer.speed, 0.0)
    sprung = MASS - 4 * c.wheel_mass
    above = (MASS * c.height - 4 * c.wheel_mass * c.wheel_radius) / sprung - c.wheel_radius
    shift = (ground * c.height + sprung * G * abs(pitch) * above) / c.wheelbase
    front, rear = loads[0] + loads[1], loads[2] + loads[3]
    assert rear - 2 * car.rest[2] == pytest.approx(shift, rel=4e-3)
    assert front + rear == pytest.approx(MASS * G, rel=1e-4)
    leaning = (0.0, 0.5 * 3000.0 * abs(pitch))
    give = [(0.5 * shift - f) / k + 0.5 * shift / c.tyre_spring for k, f in zip(c.spring, leaning, strict=True)]
    assert pitch == pytest.approx(-(give[0] + give[1]) / c.wheelbase, rel=4e-3) and pitch < 0.0
    assert heave == pytest.approx(give[0] - (give[0] + give[1]) * c.behind_front / c.wheelbase, abs=2e-4)
    assert roll == pytest.approx(0.0, abs=1e-12)


def test_brakes_hold_no_more_than_tyres_do(example: Any) -> None:
    """14.7 kN are asked for, 9 kN at the front and 5.6 kN at the rear: the rear axle is too light for its share."""
    car = example.MujocoCar()
    answer = driven(car, 0.0, 1.0, brake=1.0, speed=40.0)
    loads = answer.carrier["loads"]
    rear = car.chassis.friction * (loads[2] + loads[3])
    assert rear < 0.38 * 14700.0
    expected = 0.62 * 14700.0 + rear + 0.012 * sum(loads)
    assert answer.F_hold == pytest.approx(expected, rel=1e-9)
    assert answer.carrier["chassis"][1] > 0.03, "it dives"


@pytest.mark.proof
def test_the_same_bits_in_this_process_and_over_zeromq(example: Any, tmp_path: Path) -> None:
    first = tl.run("desk_4hp22", duration=2.2, out=tmp_path / "a", vehicle=example.MujocoCar().step)
    endpoint = "tcp://127.0.0.1:43192"
    rig = tmp_path / "rig.toml"
    rig.write_text(
        f'extends = "desk_4hp22"\nwithout = ["vehicle.start"]\n[vehicle]\nendpoint = "{endpoint}"\n', encoding="utf-8"
    )
    car = subprocess.Popen([sys.executable, str(FILE), "serve", endpoint], stdout=subprocess.DEVNULL)
    try:
        second = tl.run(rig, duration=2.2, out=tmp_path / "b")
    finally:
        car.terminate()
        car.wait(PATIENCE_S)
    assert first.stats.hash == second.stats.hash is not None
    assert 0.0 < second.metrics["vehicle_coupling_max_mps"] < 1e-2
