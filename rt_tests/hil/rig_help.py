"""Shared by the rig tests: a changed copy of the desk rig, models in this process."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import torqueloop
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.rig.parts import RigParts, build
from torqueloop.hil.rig.plan import RigPlan, load_plan
from torqueloop.hil.rig.session import RunResult, run_rig
from torqueloop.hil.tcu.config import load_tcu_config
from torqueloop.hil.tcu.saved import load_tcu, save_tcu
from torqueloop.hil.tcu.soft_tcu import SoftTcu
from torqueloop.hil.vehicle.config import load_vehicle_config
from torqueloop.hil.vehicle.model import VehicleModel

CONFIGS = Path(torqueloop.__file__).parent / "configs"
DESK = CONFIGS / "rigs" / "desk_4hp22.toml"


def free_port() -> int:
    """A UDP port nobody uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def children(pid: int) -> list[int]:
    """Process numbers of the living companions of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"--parent\0{pid}\0" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def rig_file(folder: Path, *edits: tuple[str, str], add: str = "", own_bus: bool = False) -> Path:
    """The desk rig with text replaced (each must be there) and text added, as a file in `folder`.

    own_bus: rig and control unit on a port that no other run of this machine uses.
    """
    if own_bus:
        port = str(free_port())
        tcu = (CONFIGS / "tcu" / "soft_4hp22.toml").read_text().replace("43113", port)
        (folder / "tcu.toml").write_text(tcu.replace('"../', f'"{CONFIGS.resolve()}/'))
        edits = (*edits, ("43113", port), ('"../tcu/soft_4hp22.toml"', f'"{folder / "tcu.toml"}"'))
    text = DESK.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text, f"{old!r} is not in {DESK}"
        text = text.replace(old, new)
    # paths relative to the original's place
    text = re.sub(r'"\.\./([\w/.]+)"', lambda m: f'"{(CONFIGS / m.group(1)).resolve()}"', text)
    path = folder / "rig.toml"
    path.write_text(text + add, encoding="utf-8")
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
        self.tcu = SoftTcu(load_tcu_config(CONFIGS / "tcu" / "soft_4hp22.toml"))
        self.fault, self.at_s, self.until_s = fault, at_s, until_s
        self.received: list[tuple[float, int, bytes]] = []

    def step(self, t_s, frames):
        frames = list(frames)
        self.received += [(t_s, can_id, data) for can_id, data in frames]
        out = self.tcu.step(t_s, frames)
        if not self.at_s <= t_s < self.until_s:
            return out
        if self.fault == "silent":
            return []
        if self.fault == "crc":
            return [(can_id, bytes([data[0] ^ 1]) + data[1:]) for can_id, data in out]
        if self.fault == "counter":
            return [(can_id, data) for can_id, data in self._stuck(out)]
        if self.fault == "length":
            return [(can_id, data[:-1]) for can_id, data in out]
        return out

    def save(self):
        return save_tcu(self.tcu)

    def load(self, data):
        load_tcu(self.tcu, data)

    def _stuck(self, frames):
        """The same frames again and again: right checksum, counter that stands still."""
        self._frozen = getattr(self, "_frozen", frames)
        return self._frozen


def run(path: Path, out: Path, seconds: float, car: Car | None = None, unit: Unit | None = None, **more) -> RunResult:
    """A run on the virtual clock with models in this process."""
    return run_rig(
        path, "virtual", seconds, out, progress=False, html=False, vehicle=car or Car(), tcu=unit or Unit(), **more
    )


#: time limits that a loaded test machine does not reach by itself, for runs on the real clock
UNHURRIED = (
    ("_Pressure_1 = 0.3", "_Pressure_1 = 5.0"),
    ("_Pressure_2 = 0.3", "_Pressure_2 = 5.0"),
    ("age_limit_s = 0.1", "age_limit_s = 5.0"),
    ("overrun_limit = 50", "overrun_limit = 0"),
    ("watchdog_s = 0.5", "watchdog_s = 5.0"),
    ("stop_after_s = 1.0", "stop_after_s = 0.2"),
)
#: nobody has to answer: timeouts that no test reaches
PATIENT = (
    ("TCU_Pressure_1 = 0.3", "TCU_Pressure_1 = 1000.0"),
    ("TCU_Pressure_2 = 0.3", "TCU_Pressure_2 = 1000.0"),
    ("age_limit_s = 0.1", "age_limit_s = 1000.0"),
)


def alone(folder: Path, *edits: tuple[str, str], add: str = "") -> tuple[RigPlan, RigParts]:
    """Plan and parts of the desk rig, not armed yet, that waits for nobody."""
    plan = load_plan(rig_file(folder, *PATIENT, *edits, add=add))
    return plan, build(plan, 60.0)
