"""What a control unit or a vehicle saves is what it loads: of every number in the saved state another value is loaded,
each of them a different one, and all of them are saved again, each in its own place."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import load_interface
from torqueloop.hil.ecu.shift import Measured
from torqueloop.hil.ecu.soft_tcu import SoftTcu, load_tcu_database
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.link.messages import StepMessage
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
#: the codec has a state of its own, with tests of its own
LEFT = ("codec",)


def other(value: Any, numbers: Iterator[int], truths: Iterator[bool]) -> Any:
    """The same form with other numbers: no two of them are equal; of truth values every second one is true."""
    if isinstance(value, dict):
        return {key: x if key in LEFT else other(x, numbers, truths) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [other(x, numbers, truths) for x in value]
    if isinstance(value, bool):
        return next(truths)
    if isinstance(value, int | float):
        return type(value)(7 * next(numbers) + 1)
    return value


def plain(value: Any) -> Any:
    """Tuples as lists: what comes back from a file has no others."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    return [plain(x) for x in value] if isinstance(value, list | tuple) else value


def soft_tcu(moved: bool) -> SoftTcu:
    """With a maker's bus; moved: in a shift up, and with an entry in every list."""
    config = load_tcu_config(CONFIGS / "tcu/soft_4hp22.toml")
    interface = load_interface(CONFIGS / "interfaces/tcu_j1939.toml")
    maker = MakerBus(interface, interface_database(interface, CONFIGS / "can/j1939_transmission.dbc", "TCU"), 5e-3, 1)
    unit = SoftTcu(config, load_tcu_database(CONFIGS / "can/tcu_4hp22.dbc"), maker)
    if not moved:
        return unit
    maker.values, maker.refused, maker._last_good = {"pedal": 0.25, "lever": "D"}, {"crc": 3}, {"ETC1": 1.5}
    unit.refused, unit._last_good, unit._good_since = {"crc": 1, "not valid": 2}, {"HIL_Speeds": 0.5}, 0.25
    unit.mode, unit.fault, unit._limp_gear = "limp_home", "speeds lost", "3"
    unit._go("limp_home", 1.0)
    drives = unit.transmission
    drives.gear = "1"
    # the turbine leaves the old ratio: the shift goes on to the phase that regulates
    for k in range(200):
        turbine = 200.0 * config.gears["1"].ratio - max(0.0, 0.5 * (k - 60))
        unit.commands = drives.step(Measured(turbine + 20.0, turbine, 200.0, 0.9, 0.04, "D"))
        if drives.runner is not None and drives.runner.save()["integral"]:
            break
    assert drives.runner is not None and drives.runner.save()["integral"]
    drives.shift_log.append((7, "N-1", 0.5, 0))
    drives.learnt.fill_s, drives.learnt.kiss_bar = {"C6": 0.01}, {"C6": -0.02}
    return unit


def hill_car(moved: bool) -> VehicleModel:
    """A car with a body on its springs."""
    model = VehicleModel(load_vehicle_config(CONFIGS / "vehicles/bmw_528i_body.toml"))
    for k in range(3 * moved):
        carrier = {name: [10.0, 20.0, 30.0, 1.0, 2.0, 3.0] for name in model.config.carrier}
        model.step(StepMessage(k, 0.01 * k, 900.0, 9.0 * k, 5.0, 1.0, 0.1, carrier))
    return model


def tree(moved: bool) -> Any:
    from torqueloop.hil.ecu.control_unit import EcuInputs
    from torqueloop.hil.multibody.build import load_tree
    from torqueloop.hil.multibody.unit import TreeUnit

    built = load_tree(CONFIGS / "trees/joint_drive.toml", ("wheel.tau",))
    unit = TreeUnit(built, 1e-3, ("wheel.tau",), ("arm.phi",))
    for k in range(2 * moved):
        unit.step(EcuInputs(1e-3 * k, sensors=(2.0 + k,)))
    return unit


UNITS: list[Any] = [
    soft_tcu,
    hill_car,
    pytest.param(tree, marks=pytest.mark.skipif(not importlib.util.find_spec("pinocchio"), reason="needs Pinocchio")),
]


@pytest.mark.parametrize("make", UNITS)
@pytest.mark.parametrize("first", [True, False])
def test_every_number_of_a_saved_state_comes_back_in_its_place(make: Callable[[bool], Any], first: bool) -> None:
    saved = make(True).save()
    wanted = other(saved, count(), cycle([first, not first]))
    unit = make(False)
    unit.load(wanted)
    assert plain(unit.save()) == plain(wanted) != plain(saved)
