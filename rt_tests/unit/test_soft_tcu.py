"""What the soft TCU says on its own bus and on a maker's, in every step of a drive: each field is computed again from
what the unit was told, from its calibration file and from the curves it names; frames are read by cantools."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import FD_FLAG, Frame
from torqueloop.hil.ecu.control_unit import EcuInputs
from torqueloop.hil.ecu.interface_tables import NUMBERS, WORDS
from torqueloop.hil.ecu.soft_tcu import SoftTcu, load_tcu_database
from torqueloop.hil.ecu.tcu_tables import load_tcu_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
DBC = CONFIGS / "can/tcu_mb_7226.dbc"
#: a slow oil pressure and a short drive leave room for every state
CONFIG = load_tcu_config(CONFIGS / "tcu/soft_mb_7226.toml", {"torque_reduction.reduction": 0.3})
DT = CONFIG.timing.period_s
RPM = math.pi / 30.0
MESSAGES = cantools.database.load_file(DBC)


@dataclass
class Listener:
    """A maker's bus that keeps what it is to send."""

    bus: int = 1
    values: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    heard: list[tuple[int, dict[str, float], dict[str, str]]] = field(default_factory=list)
    received: list[tuple[float, Frame]] = field(default_factory=list)

    def receive(self, t_s: float, frame: Frame) -> None:
        self.received.append((t_s, frame))

    def lost(self, t_s: float) -> set[str]:
        return set()

    def frames(self, step: int, numbers: Mapping[str, float], words: Mapping[str, str]) -> list[Frame]:
        self.heard.append((step, dict(numbers), dict(words)))
        return []


@dataclass(frozen=True)
class Step:
    """What the unit was told before a step, in the units of the bus, and what it said in it."""

    told: dict[str, Any]
    #: state of the lock-up clutch before the step
    lockup: str
    ids: list[int]
    said: dict[str, Any]
    numbers: dict[str, float]
    words: dict[str, str]


class Drive:
    """A unit between a rig that tells it what a test says, and a maker's bus."""

    def __init__(self) -> None:
        self.maker = Listener()
        self.unit = SoftTcu(CONFIG, load_tcu_database(DBC), self.maker)  # type: ignore[arg-type]
        self.rig = CanDatabase.load(DBC, node="HIL").codec()
        self.told: dict[str, Any] = {"n_engine": 800.0, "n_turbine": 750.0, "n_output": 0.0, "pedal": 0.0, "brake": 0.0,
                                     "lever": "N", "tip": 0.0, "T_oil": 80.0}  # fmt: skip
        self.steps: list[Step] = []

    def frames(self, silent: str = "") -> list[Frame]:
        t = self.told
        speeds = {name: t[name] * RPM for name in ("n_engine", "n_turbine", "n_output")}
        driver = {"pedal": t["pedal"] / 100.0, "brake": t["brake"] / 100.0, "lever": t["lever"], "tip": t["tip"]}
        made = []
        if silent != "speeds":
            made.append(Frame(0x110, self.rig.encode("HIL_Speeds", {"speeds_valid": 7.0, **speeds})))
        if silent != "driver":
            made.append(Frame(0x111, self.rig.encode("HIL_Driver", {**driver, "T_oil": t["T_oil"] + 273.15})))
        return made

    def step(self, silent: str = "", **told: Any) -> Step:
        """One control period; every message of the rig comes in each."""
        # what is not sent stays what it was
        self.told |= {name: x for name, x in told.items() if not (silent == "speeds" and name.startswith("n_"))}
        lockup = self.unit.transmission.lockup.state
        answer = self.unit.step(EcuInputs(len(self.steps) * DT, tuple(self.frames(silent))))
        said: dict[str, Any] = {}
        for frame in answer.frames:
            said |= MESSAGES.decode_message(frame.can_id, frame.data)
        _, numbers, words = self.maker.heard[-1]
        self.steps.append(Step(dict(self.told), lockup, [f.can_id for f in answer.frames], said, numbers, words))
        return self.steps[-1]

    def go_on(self, seconds: float, silent: str = "", slip: float = 60.0, **told: Any) -> None:
        """So long, the turbine a little behind the gear that is being engaged, the engine ahead of it by the slip."""
        for _ in range(round(seconds / DT)):
            gear = self.unit.commands.gear_target
            ratio = CONFIG.gears[gear].ratio or 0.0
            n_output = told.get("n_output", self.told["n_output"])
            wanted = ratio * n_output if ratio else 700.0
            now = self.told["n_turbine"]
            turbine = round(4.0 * (now + max(-25.0, min(25.0, wanted - now)))) / 4.0
            engine = told.get("n_engine", max(800.0, turbine + slip))
            self.step(silent, **{**told, "n_turbine": max(turbine, 0.0), "n_engine": engine})


@pytest.fixture(scope="module")
def drive() -> Drive:
    """R rolling back, D up to 4th, the lock-up clutch closed, 2 with engine braking, speeds lost, and back."""
    made = Drive()
    made.go_on(0.05, T_oil=95.0)
    made.go_on(0.6, lever="R", n_output=-20.0, brake=12.5)
    made.go_on(0.3, lever="N", n_output=-20.0)
    made.go_on(0.6, lever="D", n_output=0.0, brake=0.0, pedal=20.0)
    for n_output in np.arange(500.0, 2000.0, 4.0):
        made.go_on(DT, n_output=float(n_output), pedal=45.0)
    made.go_on(2.1, n_output=2000.0, slip=40.0)
    made.go_on(0.3, slip=12.5)
    made.go_on(0.2, pedal=0.0, slip=-12.5)
    made.go_on(2.2, pedal=0.0, lever="2", n_output=900.0)
    made.go_on(0.2, silent="speeds")
    made.go_on(0.1)
    made.go_on(1.1, lever="N", n_output=0.0)
    return made


def test_the_drive_meets_every_state(drive: Drive) -> None:
    """A test of the drive below: what it does not meet, the others do not look at."""
    words = [step.words for step in drive.steps]
    assert {w["gear_actual"] for w in words} >= {"N", "R", "1", "2", "3", "4"}
    assert {w["lockup"] for w in words} == {"open", "slipping", "closed"}
    assert {w["mode"] for w in words} == {"normal", "limp home"}
    assert any(step.numbers["torque_limit_active"] for step in drive.steps)
    assert drive.unit.mode == "normal" and drive.unit.transmission.gear == "N"


def test_pressures_come_in_every_step_and_the_status_in_every_second_one(drive: Drive) -> None:
    assert [step.ids for step in drive.steps[:4]] == [[528, 529, 530], [528, 529], [528, 529, 530], [528, 529]]
    assert all(step.ids == [528, 529, 530][: 3 - k % 2] for k, step in enumerate(drive.steps))
    assert [step for step, _, _ in drive.maker.heard] == list(range(len(drive.steps)))


def test_every_field_of_the_status_follows_from_what_was_told_and_from_the_pressures(drive: Drive) -> None:
    codes = {"waiting": "off", "normal": "normal", "limp home": "limp home"}
    for step in drive.steps[::2]:
        said, told, words = step.said, step.told, step.words
        gear, target = str(said["gear_actual"]), str(said["gear_target"])
        assert (gear, target) == (words["gear_actual"], words["gear_target"])
        assert str(said["lever_echo"]) == told["lever"] == words["lever"]
        assert abs(said["slip_lockup"] - (told["n_engine"] - told["n_turbine"])) <= 12.5
        assert {str(said[m]) for m in ("Mode_P1", "Mode_P2", "Mode_3")} == {codes[words["mode"]]}
        assert said["fault_code"] == (1 if words["mode"] == "limp home" else 0)
        assert (gear != target) == (said["shift_active"] == 1) or "2" == gear == target, "2 and 2E are one outside"
        assert (str(said["shift_phase"]) == "none") == (said["shift_active"] == 0)
        assert str(said["lockup_state"]) == words["lockup"]
        assert (words["lockup"] == "closed") == (step.numbers["lockup_closed"] == 1.0)
        assert (said["tau_limit_active"], said["shift_active"]) == (
            step.numbers["torque_limit_active"], step.numbers["shifting"]
        )  # fmt: skip
        if said["tau_limit_active"]:
            assert said["tau_limit"] == pytest.approx(step.numbers["torque_limit"], abs=0.25)


def test_outside_a_shift_the_elements_of_the_gear_get_the_pressure_of_the_line(drive: Drive) -> None:
    for step in drive.steps:
        pressures = {name: step.said[f"p_{name}"] for name in CONFIG.elements}
        if step.numbers["shifting"] == 0.0 and step.words["mode"] == "normal":
            gear = step.words["gear_actual"]
            sets = [set(CONFIG.gears[g].elements) for g in (gear, f"{gear}E") if g in CONFIG.gears]
            assert {name for name, p in pressures.items() if p > 0.0} in sets
            assert all(p == 0.0 or abs(1e5 * p - step.numbers["pressure"]) <= 300.0 for p in pressures.values())
        elif step.words["mode"] == "limp home":
            pressed = CONFIG.gears[step.words["gear_actual"]].elements
            assert pressures == {name: 10.0 if name in pressed else 0.0 for name in pressures}
        assert step.said["p_LU"] <= step.numbers["pressure"] / 1e5 + 3e-3
        if step.words["lockup"] == "closed" and step.numbers["shifting"] == 0.0:
            assert step.said["p_LU"] > CONFIG.lockup.kiss_bar


def curve(folder: str, name: str, x: str, *columns: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns of a CSV file over x."""
    lines = [s for s in (CONFIGS / folder / f"{name}.csv").read_text().splitlines() if not s.startswith("#")]
    rows = [{k.strip(): v for k, v in row.items()} for row in csv.DictReader(lines)]
    return [(np.array([float(r[x]) for r in rows]), np.array([float(r[c]) for r in rows])) for c in columns]


def test_the_numbers_for_a_makers_bus_follow_from_what_was_told(drive: Drive) -> None:
    model = CONFIG.torque_model
    wot, closed = curve("engines", model.engine_csv, "speed_radps", "wot_Nm", "closed_throttle_Nm")
    columns = ("speed_ratio", "pump_capacity_Nms2_per_rad2", "torque_ratio")
    capacity, multiplied = curve("converters", model.converter_csv, *columns)
    [coast] = curve("converters", model.converter_coast_csv, "speed_ratio_p_over_t", "turbine_capacity_Nms2_per_rad2")
    ratio = {name: gear.ratio for name, gear in CONFIG.gears.items()}
    torque = 0.0
    for k, step in enumerate(drive.steps):
        numbers, words, told = step.numbers, step.words, step.told
        assert set(numbers) == set(NUMBERS) and set(words) == set(WORDS)
        w_engine, w_turbine, w_out = (told[n] * RPM for n in ("n_engine", "n_turbine", "n_output"))
        drag = np.interp(w_engine, *closed)
        driver = drag + told["pedal"] / 100.0 * (np.interp(w_engine, *wot) - drag)
        # low-pass of what the converter carries, or of the engine's torque while the clutch is locked
        nu = w_turbine / w_engine
        carried = np.interp(nu, *multiplied) * np.interp(nu, *capacity) * w_engine**2
        if w_turbine > w_engine:
            carried = -np.interp(1.0 / nu, *coast) * w_turbine**2
        elif step.lockup == "slipping":
            carried = max(carried, driver)
        if words["mode"] == "normal":
            torque += DT / (DT + model.filter_s) * ((driver if step.lockup == "locked" else carried) - torque)
        expected = {
            "w_engine": w_engine, "w_turbine": w_turbine, "w_out": w_out, "slip": w_engine - w_turbine,
            "pedal": told["pedal"] / 100.0, "T_oil": told["T_oil"] + 273.15,
            "ratio": {"N": 0.0, "R": 3.16049}.get(words["gear_actual"], ratio[words["gear_actual"]]),
            "torque_driver": driver, "torque_turbine": torque, "v_vehicle": told["n_output"] / 29.04 / 3.6,
            # where the turbine will be: it does not turn backwards by itself
            "w_synchron": max(0.0, w_out * ratio[words["gear_target"]]) if numbers["shifting"] else 0.0,
            "limp_home": float(words["mode"] == "limp home"),
        }  # fmt: skip
        wrong = {n: (numbers[n], x) for n, x in expected.items() if abs(numbers[n] - x) > 1e-9 * max(1.0, abs(x))}
        assert not wrong, k
        if numbers["torque_limit_active"]:
            inertia = str(step.said.get("shift_phase")) == "inertia"
            assert numbers["torque_limit"] == pytest.approx(0.7 * driver) or not inertia


NEEDED = [
    *(f"HIL_Speeds.{name}" for name in ("speeds_valid", "n_engine", "n_turbine", "n_output")),
    *(f"HIL_Driver.{name}" for name in ("pedal", "brake", "lever")),
    *(f"TCU_Status.{name}" for name in ("gear_actual", "gear_target", "lever_echo", "shift_active", "shift_phase")),
    *(f"TCU_Status.{name}" for name in ("lockup_state", "slip_lockup", "fault_code")),
]  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_a_database_without_a_signal_that_it_needs_is_refused_with_its_name(name: str, tmp_path: Path) -> None:
    text, signal = DBC.read_text(encoding="utf-8"), name.partition(".")[2]
    (tmp_path / "other.dbc").write_text(re.sub(rf"\b{signal}\b", "renamed", text), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"\b{signal}\b"):
        load_tcu_database(tmp_path / "other.dbc")


def test_what_is_told_is_kept_and_what_is_refused_is_counted_by_its_reason() -> None:
    """The driver's message keeps the speeds and the other way round; three frames with a speed that is not valid, two
    with a lever that is none, one of each with a wrong checksum, two of a foreign message, one in another format."""
    drive = Drive()
    drive.step(n_engine=1200.0, n_turbine=1100.0, n_output=250.0)
    drive.step(silent="speeds", pedal=12.5, brake=40.0, lever="4", T_oil=70.0, tip=2.0)
    now = drive.unit.now
    assert (now.w_engine, now.w_turbine, now.w_out) == pytest.approx((1200.0 * RPM, 1100.0 * RPM, 250.0 * RPM))
    assert (now.pedal, now.brake, now.lever, now.tip) == (pytest.approx(0.125), pytest.approx(0.4), "4", -1)
    drive.step(silent="driver", n_engine=1300.0)
    assert drive.unit.now == replace(now, w_engine=pytest.approx(1300.0 * RPM))  # type: ignore[arg-type]
    told, rig = [], drive.rig
    told += [Frame(0x110, rig.encode("HIL_Speeds", {"speeds_valid": float(bits)})) for bits in (3, 5, 6)]
    told += [Frame(0x111, rig.encode("HIL_Driver", {"lever": "invalid"})) for _ in range(2)]
    for can_id, name in ((0x110, "HIL_Speeds"), (0x111, "HIL_Driver")):
        data = bytearray(rig.encode(name, {}))
        data[0] ^= 0xFF
        told.append(Frame(can_id, bytes(data)))
    told += [Frame(0x7F0, bytes(8))] * 2
    # as CAN FD it is not the message of the database
    told.append(Frame(0x110, rig.encode("HIL_Speeds", {"speeds_valid": 7.0}), FD_FLAG))
    before = drive.unit.now
    drive.unit.step(EcuInputs(0.02, tuple(told)))
    assert drive.unit.now == before
    refused = drive.unit.stats()["refused"]
    assert refused.pop("not valid") == 5 and sorted(refused.values()) == [1, 2, 2], refused
    # a frame of the maker's bus is the maker's, whatever its identifier and flags are
    foreign = Frame(0x110, rig.encode("HIL_Speeds", {"speeds_valid": 7.0, "n_engine": 1.0}), 0, 1)
    drive.unit.step(EcuInputs(0.025, (foreign,)))
    assert drive.maker.received == [(0.025, foreign)] and drive.unit.now == before


def test_the_report_lists_shifts_and_modes_with_their_times(drive: Drive) -> None:
    """A shift ends with the first step in which the status shows none; it has lasted as long as the status shows it."""
    told = drive.unit.stats()
    ends = [k for k in range(1, len(drive.steps))
            if drive.steps[k - 1].numbers["shifting"] and not drive.steps[k].numbers["shifting"]
            and drive.steps[k].words["mode"] == "normal"]  # fmt: skip
    starts = [k for k in range(1, len(drive.steps))
              if drive.steps[k].numbers["shifting"] and not drive.steps[k - 1].numbers["shifting"]]  # fmt: skip
    names = [shift["shift"] for shift in told["shifts"]]
    assert names[:6] == ["N-R", "R-N", "N-1", "1-2", "2-3", "3-4"] and len(ends) == len(names)
    lost = told["modes"][1]
    assert [m["mode"] for m in told["modes"]] == ["normal", "limp_home", "normal"]
    assert [m["fault"] for m in told["modes"]] == ["none", "speeds lost", "none"]
    silent = next(k for k, step in enumerate(drive.steps) if step.words["mode"] == "limp home")
    assert lost["t_s"] == pytest.approx(silent * DT)
    for shift, start, end in zip(told["shifts"], starts, ends, strict=True):
        # steps in limp-home are none of the transmission's
        assert shift["end_s"] == pytest.approx((end + 1) * DT) and shift["end_s"] == round(shift["end_s"], 6)
        assert shift["duration_s"] == pytest.approx((end - start) * DT) == round(shift["duration_s"], 4)
    assert (told["steps"], told["mode"], told["fault"]) == (len(drive.steps), "normal", "none")
