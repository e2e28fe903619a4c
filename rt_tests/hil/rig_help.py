"""Shared by the rig tests: a changed copy of the desk rig, models in this process."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torqueloop
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, Frame
from torqueloop.hil.ecu.soft_tcu import soft_tcu
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

CONFIGS = Path(torqueloop.__file__).parent / "configs"
DESK = CONFIGS / "rigs" / "desk_4hp22.toml"


def free_port() -> int:
    """A UDP port nobody uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def own_endpoint() -> str:
    """A TCP endpoint that stays free until it is bound: the system hands its port to nobody who asks for any, as other
    tests do in the meantime."""
    for port in random.SystemRandom().sample(range(20000, 32000), 100):
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            return f"tcp://127.0.0.1:{port}"
    raise AssertionError("no free port among a hundred")


def ticks_so_far(out: Path) -> int:
    """Ticks of a run as its run.json tells; 0 while there is none."""
    info = read_run_info(out)
    return info.stats.clock.ticks if info is not None and info.stats is not None else 0


def children(pid: int) -> list[int]:
    """Process numbers of the living participants of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"--parent\0{pid}\0" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


#: an edit of the desk rig: the vehicle in a process of its own on the virtual clock too
PROCESS = "vehicle.in_process = false"


def rig_file(folder: Path, *edits: str, add: str = "", own_bus: bool = False) -> Path:
    """The desk rig with other values, as a file in `folder` that extends it.

    edits: lines 'KEY = VALUE' with dotted keys, or 'without KEY'; add: whole tables. own_bus: rig and control unit on a
    port that no other run of this machine uses.
    """
    lines = [line for edit in edits for line in edit.splitlines()]
    if own_bus:
        lines.append(f"bus.powertrain.port = {free_port()}")
    gone = [line.removeprefix("without ") for line in lines if line.startswith("without ")]
    lines = [line for line in lines if not line.startswith("without ")]
    path = folder / "rig.toml"
    path.write_text("\n".join([f'extends = "{DESK}"', f"without = {gone}", *lines, add]), encoding="utf-8")
    return path


class Car:
    """The vehicle model in this process, with faults from a time on."""

    def __init__(self, fault: str = "", at_s: float = 1e9) -> None:
        self.model = VehicleModel(load_vehicle_config(CONFIGS / "vehicles" / "bmw_528i_e28.toml"))
        self.fault, self.at_s = fault, at_s

    def __call__(self, message: StepMessage) -> StateMessage | None:
        state = self.model.step(message)
        if message.t < self.at_s:
            return state
        if self.fault == "silent":
            return None
        if self.fault == "nan":
            return StateMessage(**{**vars(state), "F": float("nan")})
        return state

    def save(self):
        return self.model.save()

    def load(self, data):
        self.model.load(data)


class Unit:
    """The soft control unit in this process, with faults from a time on."""

    def __init__(self, fault: str = "", at_s: float = 1e9, until_s: float = 1e9) -> None:
        self.tcu = soft_tcu(CONFIGS / "tcu" / "soft_4hp22.toml", CONFIGS / "can" / "tcu_4hp22.dbc")
        self.fault, self.at_s, self.until_s = fault, at_s, until_s
        self.received: list[tuple[float, int, bytes]] = []

    @property
    def period_s(self):
        return self.tcu.period_s

    def start(self):
        self.tcu.start()

    def stop(self):
        return self.tcu.stop()

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        self.received += [(inputs.t_s, f.can_id, f.data) for f in inputs.frames]
        out = self.tcu.step(inputs)
        return EcuOutputs(self._spoiled(out.frames) if self.at_s <= inputs.t_s < self.until_s else out.frames)

    def _spoiled(self, frames):
        if self.fault == "silent":
            return ()
        if self.fault == "crc":
            return tuple(replace(f, data=bytes([f.data[0] ^ 1]) + f.data[1:]) for f in frames)
        if self.fault == "counter":
            return self._stuck(frames)
        if self.fault == "length":
            return tuple(replace(f, data=f.data[:-1]) for f in frames)
        return frames

    def save(self):
        return self.tcu.save()

    def load(self, data):
        self.tcu.load(data)

    def _stuck(self, frames):
        """The same frames again and again: right checksum, counter that stands still."""
        self._frozen = getattr(self, "_frozen", frames)
        return self._frozen


def answers(unit, t_s: float, frames) -> list[tuple[int, bytes]]:
    """One control period: (id, data) in, (id, data) out."""
    given = tuple(Frame(can_id, data) for can_id, data in frames)
    return [(f.can_id, f.data) for f in unit.step(EcuInputs(t_s, given)).frames]


def run(path: Path, out: Path, seconds: float, car: Car | None = None, unit: Unit | None = None, **more) -> RunResult:
    """A run on the virtual clock with models in this process."""
    return run_rig(path, RunSpec("virtual", seconds, out, vehicle=car or Car(), ecus={"tcu": unit or Unit()}, **more))


#: nobody has to answer: timeouts that no test reaches
PATIENT = (
    "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 60.0",
    "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 60.0",
    "vehicle.age_limit_s = 60.0",
)
#: for runs on the real clock: no pause of a machine that withholds its processors ends them
UNHURRIED = (
    *PATIENT,
    "vehicle.start_timeout_s = 300.0",
    "ecu.tcu.start_timeout_s = 300.0",
    "safe_state.overrun_limit = 0",
    "safe_state.watchdog_s = 60.0",
    "safe_state.stop_after_s = 0.2",
)


def alone(folder: Path, *edits: str, add: str = "") -> tuple[RigPlan, RigParts]:
    """Plan and parts of the desk rig, not armed yet, that waits for nobody."""
    plan = load_plan(rig_file(folder, *PATIENT, *edits, add=add))
    return plan, build(plan, 60.0)
