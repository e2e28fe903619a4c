"""The soft TCU on frames: protection, waiting, limp-home, reverse inhibit, determinism; and its process on a bus."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import can
import pytest
from rig_help import answers
from waiting import PATIENCE_S, wait_for

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.database import CanCodec, CanDatabase
from torqueloop.hil.ecu import process
from torqueloop.hil.ecu.control_unit import Bus, EcuInputs, EcuOutputs, EcuSetup, setup_to_json
from torqueloop.hil.ecu.process import unit_loop
from torqueloop.hil.ecu.shift import RPM
from torqueloop.hil.ecu.soft_tcu import SoftTcu, load_tcu_database
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.results.links import ParticipantStats

ROOT = Path(__file__).resolve().parents[2]
TCU = ROOT / "configs/tcu/soft_4hp22.toml"
DATABASE = ROOT / "configs/can/tcu_4hp22.dbc"
CONFIG = load_tcu_config(TCU)
RIG_DATABASE = CanDatabase.load(DATABASE, node="HIL")
TCU_DATABASE = load_tcu_database(DATABASE)
DT = CONFIG.timing.period_s


class Bench:
    """A rig of constant speeds around a soft TCU."""

    def __init__(self) -> None:
        self.tcu = SoftTcu(CONFIG, TCU_DATABASE)
        self.rig: CanCodec = RIG_DATABASE.codec()
        self.steps = 0
        self.pressures = dict.fromkeys((*CONFIG.elements, "LU"), -1.0)
        self.status: dict[str, float] = {}
        self.sent: list[tuple[int, bytes]] = []
        self.set(n_engine=80.0, n_turbine=75.0, n_output=0.0, lever="N", pedal=0.0)

    def set(self, **values: float | str) -> None:
        self.values = {**getattr(self, "values", {}), **values}

    @property
    def t(self) -> float:
        return self.steps * DT

    def frames(self, speeds: bool = True, driver: bool = True) -> list[tuple[int, bytes]]:
        v, out = self.values, []
        if speeds:
            names = ("n_engine", "n_turbine", "n_output")
            out.append((0x110, self.rig.encode("HIL_Speeds", {"speeds_valid": 7.0, **{n: v[n] for n in names}})))
        if driver:
            out.append((0x111, self.rig.encode("HIL_Driver", {"pedal": v["pedal"], "lever": v["lever"]})))
        return out

    def run(self, seconds: float, speeds: bool = True, driver: bool = True) -> None:
        for _ in range(round(seconds / DT)):
            self.step(self.frames(speeds, driver) if self.steps % 2 == 0 else [])

    def step(self, frames: list[tuple[int, bytes]]) -> None:
        for can_id, data in answers(self.tcu, self.t, frames):
            self.sent.append((can_id, data))
            status, values = self.rig.decode(can_id, data, self.t)
            assert status == "ok"
            for name, value in values.items():
                if name.startswith("p_"):
                    self.pressures[name[2:]] = value / 1e5
            if can_id == 0x212:
                self.status = values
        self.steps += 1

    def pressed(self) -> set[str]:
        return {name for name in CONFIG.elements if self.pressures[name] > 0.0}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_waits_with_mode_off_and_no_pressure_until_both_messages_have_come(bench: Bench) -> None:
    bench.run(0.5, driver=False)
    assert bench.tcu.mode == "waiting"
    assert bench.pressed() == set()
    assert bench.status["Mode_3"] == 0.0
    bench.run(0.05)
    assert bench.tcu.mode == "normal"
    assert bench.pressed() == {"C11"}


def test_every_step_sends_both_pressure_messages_and_every_second_one_the_status(bench: Bench) -> None:
    bench.run(0.1)
    ids = [can_id for can_id, _ in bench.sent]
    assert (ids.count(0x210), ids.count(0x211), ids.count(0x212)) == (20, 20, 10)


def test_drive_is_engaged_and_pressures_arrive_in_pascal(bench: Bench) -> None:
    bench.run(0.1)
    bench.set(lever="D", n_turbine=0.0)
    bench.run(1.5)
    assert bench.pressed() == {"C4", "C11"}
    assert bench.status["gear_actual"] == 1.0
    assert bench.pressures["C4"] == pytest.approx(bench.tcu.commands.line, abs=0.005)
    assert CONFIG.line_pressure.min_bar <= bench.pressures["C4"] <= CONFIG.line_pressure.max_bar


def test_reverse_is_inhibited_above_8_kmh_and_engaged_below(bench: Bench) -> None:
    bench.run(0.1)
    rpm_per_kmh = CONFIG.garage.output_rpm_per_kmh
    bench.set(lever="R", n_output=8.5 * rpm_per_kmh * RPM)
    bench.run(2.0)
    assert bench.pressed() == {"C11"}
    bench.set(n_output=0.0, n_turbine=0.0)
    bench.run(2.0)
    assert bench.pressed() == {"C5", "C8", "C11"}
    assert bench.status["gear_actual"] == 7.0


def test_frame_with_a_wrong_checksum_changes_nothing_but_a_counter(bench: Bench) -> None:
    bench.run(0.1)
    before = bench.tcu.now
    bench.set(n_output=300.0, pedal=0.9, lever="D")
    for can_id, data in bench.frames():
        for bit in range(64):
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << (bit % 8)
            answers(bench.tcu, bench.t, [(can_id, bytes(broken))])
    assert bench.tcu.now == before
    assert sum(bench.tcu.refused.values()) == 128


def test_frame_cut_short_repeated_or_foreign_is_ignored(bench: Bench) -> None:
    bench.run(0.1)
    before = bench.tcu.now
    old = bench.frames()
    bench.step(old)
    bench.set(n_output=300.0)
    (can_id, data), *_ = bench.frames(driver=False)
    bench.step([(can_id, data[:7]), (0x7F0, data), old[0]])
    assert bench.tcu.now == before


def test_lost_speeds_lead_to_the_fixed_gear_and_stay_latched(bench: Bench) -> None:
    bench.run(0.1)
    bench.set(lever="D", n_turbine=0.0)
    bench.run(1.5)
    bench.run(0.09, speeds=False)
    assert bench.tcu.mode == "normal"
    bench.run(0.05, speeds=False)
    assert bench.tcu.mode == "limp_home"
    assert bench.pressed() == set(CONFIG.gears["3"].elements)
    assert {bench.pressures[name] for name in bench.pressed()} == {CONFIG.limp_home.pressure_bar}
    assert bench.status["fault_code"] == 1.0
    assert bench.status["Mode_3"] == 2.0
    bench.run(3.0)
    assert bench.tcu.mode == "limp_home", "good messages alone do not end it"
    bench.set(lever="N")
    bench.run(0.05)
    assert bench.tcu.mode == "normal"


@pytest.mark.parametrize(("speeds", "fault"), [(True, 2.0), (False, 3.0)])
def test_lost_driver_message_opens_everything(bench: Bench, speeds: bool, fault: float) -> None:
    bench.run(0.1)
    bench.set(lever="D", n_turbine=0.0)
    bench.run(1.5)
    bench.run(0.2, speeds=speeds, driver=False)
    assert bench.tcu.mode == "limp_home"
    assert bench.pressed() == set()
    assert bench.pressures["LU"] == 0.0
    # both were last received in the same step: both are found lost in the same step too
    assert bench.status["fault_code"] == fault


def test_lost_speeds_in_reverse_open_everything(bench: Bench) -> None:
    bench.run(0.1)
    bench.set(lever="R", n_turbine=0.0)
    bench.run(2.0)
    assert "C8" in bench.pressed()
    bench.run(0.2, speeds=False)
    assert bench.pressed() == set()


def test_speeds_marked_not_valid_are_lost_speeds(bench: Bench) -> None:
    bench.run(0.1)
    for _ in range(40):
        frames = bench.frames(speeds=False)
        frames.append((0x110, bench.rig.encode("HIL_Speeds", {"speeds_valid": 5.0})))
        bench.step(frames)
    assert bench.tcu.mode == "limp_home"


def test_equal_frames_give_equal_answers() -> None:
    a, b = Bench(), Bench()
    for bench in (a, b):
        bench.run(0.1)
        bench.set(lever="D", pedal=0.7, n_engine=300.0, n_turbine=280.0, n_output=150.0)
        bench.run(2.0)
    assert a.sent == b.sent


def test_database_without_a_needed_signal_is_refused_by_name(tmp_path: Path) -> None:
    text = (ROOT / "configs/can/tcu_4hp22.dbc").read_text().replace("SG_ n_turbine ", "SG_ n_turb ")
    text = text.replace("272 n_turbine", "272 n_turb")
    (tmp_path / "other.dbc").write_text(text)
    with pytest.raises(ConfigError, match="n_turbine"):
        load_tcu_database(tmp_path / "other.dbc")


def test_a_file_that_still_has_a_bus_of_its_own_is_told_where_it_stands_now(tmp_path: Path) -> None:
    (tmp_path / "tcu.toml").write_text(f'extends = "{TCU}"\n[can]\nchannel = "vcan0"\n')
    with pytest.raises(ConfigError, match=r"that of the rig file .*allowed: \[bus.NAME\] there"):
        load_tcu_config(tmp_path / "tcu.toml")


# --- the process
# -----------------------------------------------------------------------------------------------------------------
def on_virtual(channel: str, file: Path = TCU) -> EcuSetup:
    return EcuSetup("tcu", 1e-3, file, (Bus("powertrain", DATABASE, "TCU", CanBusConfig("virtual", channel)),))


def test_loop_on_a_bus_answers_the_rig_and_stops_when_asked(tmp_path: Path) -> None:
    # a machine that runs neither end for a while loses no message
    (tmp_path / "tcu.toml").write_text(f'extends = "{TCU}"\n[timing]\nrx_timeout_s = 5.0\n')
    stop, result = threading.Event(), {}
    rig_bus = can.Bus(interface="virtual", channel="tcu-loop")
    setup = on_virtual("tcu-loop", tmp_path / "tcu.toml")
    thread = threading.Thread(
        target=lambda: result.update(unit_loop("soft_tcu", setup, stop=stop, log=lambda text: None))
    )
    thread.start()
    rig, seen = RIG_DATABASE.codec(), {}
    told = {"HIL_Speeds": (0x110, {"speeds_valid": 7.0, "n_engine": 80.0}), "HIL_Driver": (0x111, {"lever": "N"})}

    def answered() -> bool:
        for name, (can_id, values) in told.items():
            rig_bus.send(can.Message(arbitration_id=can_id, data=rig.encode(name, values), is_extended_id=False))
        while (message := rig_bus.recv(timeout=0)) is not None:
            status, values = rig.decode(message.arbitration_id, bytes(message.data))
            if status == "ok" and "p_C11" in values:
                seen["C11"] = values["p_C11"]
        return seen.get("C11", 0.0) > 0.0

    wait_for(answered, thread.is_alive, pause_s=0.01)
    stop.set()
    thread.join(PATIENCE_S)
    rig_bus.shutdown()
    assert not thread.is_alive()
    assert seen["C11"] >= CONFIG.line_pressure.min_bar * 1e5 * 0.99
    assert result["mode"] == "normal"
    assert result["steps"] > 0
    assert result["lateness"]["count"] == result["steps"]


class Slow:
    """A control unit of 10 ms whose third step takes 35 ms of a clock that the test owns."""

    period_s = 0.010

    def __init__(self) -> None:
        self.now_ns, self.begun = 5_000_000, []

    def start(self) -> None: ...
    def step(self, inputs: EcuInputs) -> EcuOutputs:
        self.begun.append((round(1e3 * inputs.t_s), self.now_ns // 1_000_000 - 5))
        self.now_ns += 35_000_000 if len(self.begun) == 3 else 1_000_000
        return EcuOutputs()

    def stop(self) -> ParticipantStats:
        return ParticipantStats("process")


def test_grid_points_that_pass_during_a_slow_step_are_skipped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = Slow()
    monkeypatch.setattr(process.time, "monotonic_ns", lambda: unit.now_ns)
    monkeypatch.setattr(process.time, "sleep", lambda s: setattr(unit, "now_ns", unit.now_ns + round(1e9 * s)))
    counts = process.serve(unit, [], "unit", 0.08)  # type: ignore[arg-type]
    # the points of 30 and 40 ms have passed at 55 ms; the one of 50 ms comes 5 ms late
    assert unit.begun == [(0, 0), (10, 10), (20, 20), (50, 55), (60, 60), (70, 70)]
    assert counts["skipped"] == 2 and (counts["lateness"]["count"], counts["lateness"]["max_ms"]) == (6, 5.0)


def test_process_ends_cleanly_on_sigterm() -> None:
    code = (
        "import json, sys; from torqueloop.hil.ecu.process import unit_loop;"
        "from torqueloop.hil.ecu.control_unit import setup_from_json;"
        "setup = setup_from_json(sys.argv[1]);"
        "s = unit_loop('soft_tcu', setup, log=lambda t: print(t, flush=True)); print(json.dumps(s))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, setup_to_json(on_virtual("tcu-process"))], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first.startswith("control unit tcu (soft_tcu): powertrain (virtual tcu-process, node TCU)")
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0
    assert '"mode": "waiting"' in rest
