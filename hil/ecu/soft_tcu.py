"""The soft TCU on CAN: receives the rig's frames, decides, answers with pressure frames. Kind "soft_tcu".

    frames in -> E2E checks -> Measured -> Transmission (strategy, shift) -> frames out, every period (5 ms)

Modes: "waiting" until speeds and driver have arrived once (frames with Mode off and no pressure), "normal",
"limp_home" when one of them stays away longer than rx_timeout_s. Limp-home is latched: speeds lost and lever forward
-> one fixed forward gear; otherwise everything off. It ends when both have been good for recover_s with the lever in
P or N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.frame import BRS_FLAG, FD_FLAG, Frame
from torqueloop.hil.ecu.config import TcuConfig, load_tcu_config
from torqueloop.hil.ecu.kinds import EcuInputs, EcuOutputs, EcuSetup
from torqueloop.hil.ecu.shift import Measured
from torqueloop.hil.ecu.strategy import LEVER_MAX_GEAR, Commands, Transmission
from torqueloop.hil.results.links import PeerStats

#: [Pa per bar]
BAR = 1e5
SPEEDS, DRIVER, STATUS = "HIL_Speeds", "HIL_Driver", "TCU_Status"
#: pressure message -> (mode signal, its pressure signals and what they carry)
PRESSURES = {
    "TCU_Pressure_1": ("Mode_1", {"p_C4": "C4", "p_C5": "C5", "p_C6": "C6", "p_C7": "C7"}),
    "TCU_Pressure_2": ("Mode_2", {"p_C8": "C8", "p_C11": "C11", "p_C12": "C12", "p_LU": "LU"}),
}
NEEDED = (
    *(f"{SPEEDS}.{name}" for name in ("speeds_valid", "n_engine", "n_turbine", "n_output")),
    *(f"{DRIVER}.{name}" for name in ("pedal", "brake", "lever")),
    *(f"{message}.{name}" for message, (mode, signals) in PRESSURES.items() for name in (mode, *signals)),
    *(
        f"{STATUS}.{name}"
        for name in ("Mode_3", "gear_actual", "gear_target", "lever_echo", "shift_active", "shift_phase")
    ),
    *(f"{STATUS}.{name}" for name in ("lockup_state", "slip_lockup", "fault_code")),
)
#: word of the Mode signals
MODE_WORD = {"waiting": "off", "normal": "normal", "limp_home": "limp home"}
LOCKUP_WORD = {"open": "open", "filling": "open", "slipping": "slipping", "locked": "closed", "releasing": "slipping"}
LOST = {SPEEDS: "speeds lost", DRIVER: "driver lost"}
FAULTS = {"none": 0, "speeds lost": 1, "driver lost": 2, "speeds and driver lost": 3}
#: bits of speeds_valid that must be set: engine, turbine, output
ALL_SPEEDS = 7


def load_tcu_database(path: str | Path, node: str = "TCU") -> CanDatabase:
    """A CAN database as the TCU's node sees it, with every signal the soft TCU needs."""
    return CanDatabase.load(path, node, needed=NEEDED, timeouts_s={"*": 0.0})


def soft_tcu(file: str | Path, database: str | Path, node: str = "TCU") -> SoftTcu:
    """A soft TCU of its file on a bus with this CAN database."""
    return SoftTcu(load_tcu_config(file), load_tcu_database(database, node))


class SoftTcu:
    """A control unit on one bus (hil/ecu/kinds.py). Pure and deterministic: equal frames at equal times give equal
    answers. real-time: no (Python)."""

    def __init__(self, config: TcuConfig, database: CanDatabase) -> None:
        self.config, self.database = config, database
        self.codec = self.database.codec()
        self.transmission = Transmission(config)
        self.mode = "waiting"
        self.fault = "none"
        self._limp_gear = "N"
        self.commands = Commands()
        self.now = Measured()
        #: mode changes: (time, mode, fault)
        self.mode_log: list[tuple[float, str, str]] = []
        self.refused: dict[str, int] = {}
        #: control period [s]
        self.period_s = config.timing.period_s
        self._messages = {bus_id(m): m.name for m in self.database.rx_messages}
        self._sent = {
            name: (self.codec.can_id(name), FD_FLAG | BRS_FLAG if self.database.message(name).fd else 0)
            for name in (*PRESSURES, STATUS)
        }
        self._levers = self.database.signal(f"{DRIVER}.lever")
        self._last_good: dict[str, float] = {}
        self._good_since: float | None = None
        self._steps = 0

    def start(self) -> None:
        """Nothing to start: it runs where it is stepped."""

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        """One control period: take the frames received since the last one, return those to send. t_s rises."""
        t_s = inputs.t_s
        for frame in inputs.frames:
            self._receive(t_s, frame)
        self._judge(t_s)
        if self.mode == "normal":
            self.commands = self.transmission.step(self.now)
        elif self.mode == "limp_home":
            self.commands = self.transmission.limp(self._limp_gear)
        self._steps += 1
        return EcuOutputs(self._frames())

    def save(self) -> dict[str, Any]:
        """Everything that changes."""
        return {
            "codec": self.codec.save(),
            "transmission": self.transmission.save(),
            "mode": self.mode,
            "fault": self.fault,
            "limp_gear": self._limp_gear,
            "commands": asdict(self.commands),
            "now": asdict(self.now),
            "modes": [list(entry) for entry in self.mode_log],
            "refused": dict(self.refused),
            "last_good": dict(self._last_good),
            "good_since": self._good_since,
            "steps": self._steps,
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save on a unit of the same configuration; KeyError, TypeError or ValueError when it is none."""
        self.codec.load(data["codec"])
        self.transmission.load(data["transmission"])
        self.mode, self.fault, self._limp_gear = str(data["mode"]), str(data["fault"]), str(data["limp_gear"])
        self.now, self.commands = Measured(**data["now"]), Commands(**data["commands"])
        self.mode_log[:] = [(float(t), str(mode), str(fault)) for t, mode, fault in data["modes"]]
        self.refused, self._last_good = dict(data["refused"]), dict(data["last_good"])
        self._good_since, self._steps = data["good_since"], int(data["steps"])

    def stop(self) -> PeerStats:
        """Counts for the report."""
        return PeerStats.of("in process", self.stats())

    # --- in
    def _receive(self, t_s: float, frame: Frame) -> None:
        status, values = self.codec.decode(frame.can_id, frame.data, t_s, frame.flags)
        if status != "ok":
            self.refused[status] = self.refused.get(status, 0) + 1
            return
        name = self._messages[frame.can_id]
        old = self.now
        if name == SPEEDS:
            if int(values["speeds_valid"]) & ALL_SPEEDS != ALL_SPEEDS:
                self.refused["not valid"] = self.refused.get("not valid", 0) + 1
                return
            self.now = Measured(
                values["n_engine"], values["n_turbine"], values["n_output"], old.pedal, old.brake, old.lever
            )
        elif name == DRIVER:
            lever = self._levers.word_of(values["lever"])
            if lever is None or lever == "invalid":
                self.refused["not valid"] = self.refused.get("not valid", 0) + 1
                return
            self.now = Measured(old.w_engine, old.w_turbine, old.w_out, values["pedal"], values["brake"], lever)
        else:
            return
        self._last_good[name] = t_s

    def _judge(self, t_s: float) -> None:
        """Waiting -> normal -> limp-home -> normal."""
        limit = self.config.timing.rx_timeout_s
        # a microsecond of tolerance: times on a grid must not depend on rounding
        lost = [n for n in (SPEEDS, DRIVER) if t_s - self._last_good.get(n, -1e9) > limit + 1e-6]
        if self.mode == "waiting":
            if not lost:
                self._go("normal", t_s)
            return
        if lost:
            self._good_since = None
        elif self._good_since is None:
            self._good_since = t_s
        if self.mode == "normal" and lost:
            forward = lost == [SPEEDS] and self.now.lever in LEVER_MAX_GEAR
            # reverse or a forward gear by guess is worse than no drive
            self._limp_gear = self.config.limp_home.forward_gear if forward else "N"
            self.fault = "speeds and driver lost" if len(lost) == 2 else LOST[lost[0]]
            self._go("limp_home", t_s)
        elif self.mode == "limp_home":
            if DRIVER in lost or self.now.lever not in LEVER_MAX_GEAR:
                self._limp_gear = "N"
            recovered = self._good_since is not None and t_s - self._good_since >= self.config.limp_home.recover_s
            if recovered and self.now.lever in ("P", "N"):
                self.fault = "none"
                self.transmission.gear = "N"
                self._go("normal", t_s)

    def _go(self, mode: str, t_s: float) -> None:
        self.mode = mode
        self.mode_log.append((t_s, mode, self.fault))

    # --- out
    def _frames(self) -> tuple[Frame, ...]:
        commands = self.commands
        out = []
        for message, (mode, signals) in PRESSURES.items():
            values: dict[str, float | str] = {mode: MODE_WORD[self.mode]}
            for name, element in signals.items():
                values[name] = BAR * (commands.lockup if element == "LU" else commands.pressures[element])
            out.append(self._frame(message, values))
        if (self._steps - 1) % self.config.timing.status_every == 0:
            out.append(self._frame(STATUS, self._status(commands)))
        return tuple(out)

    def _frame(self, message: str, values: Mapping[str, float | str]) -> Frame:
        can_id, flags = self._sent[message]
        return Frame(can_id, self.codec.encode(message, values), flags)

    def _status(self, commands: Commands) -> dict[str, float | str]:
        runner = self.transmission.runner
        return {
            "Mode_3": MODE_WORD[self.mode],
            # 1st with engine braking is 1st to the outside
            "gear_actual": commands.gear_actual.removesuffix("E"),
            "gear_target": commands.gear_target.removesuffix("E"),
            "lever_echo": self.now.lever,
            "shift_active": float(commands.shifting),
            "shift_phase": runner.stage if runner is not None and not runner.done else "none",
            "lockup_state": LOCKUP_WORD[self.transmission.lockup.state],
            "slip_lockup": self.now.w_engine - self.now.w_turbine,
            "fault_code": float(FAULTS[self.fault]),
        }

    def stats(self) -> dict[str, Any]:
        """Counts for the report."""
        period = self.config.timing.period_s
        return {
            "steps": self._steps,
            "mode": self.mode,
            "fault": self.fault,
            "gear": self.commands.gear_actual,
            "refused": dict(self.refused),
            "modes": [{"t_s": t, "mode": mode, "fault": fault} for t, mode, fault in self.mode_log],
            "shifts": [
                {
                    "end_s": round(step * period, 6),
                    "shift": name,
                    "duration_s": round(duration, 4),
                    "timeouts": timeouts,
                }
                for step, name, duration, timeouts in self.transmission.shift_log
            ],
        }


def make(setup: EcuSetup) -> SoftTcu:
    """The soft TCU of a rig file: its own file, one bus, no pins, no options."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
    if setup.file is None:
        raise ConfigError("soft_tcu needs its file", **where, key="start", allowed="a file as in configs/tcu")
    if setup.options:
        raise ConfigError("soft_tcu has no options", **where, key="options", value=sorted(setup.options))
    if setup.sensors or setup.actuators:
        key = "sensors" if setup.sensors else "actuators"
        raise ConfigError("soft_tcu has no pins, only a bus", **where, key=key)
    if len(setup.buses) != 1:
        names = [bus.name for bus in setup.buses]
        raise ConfigError("soft_tcu is on one bus", **where, key="bus", value=names, allowed="one name")
    config, [bus] = load_tcu_config(setup.file), setup.buses
    try:
        return SoftTcu(config, load_tcu_database(bus.database, bus.node))
    except ConfigError as error:
        raise error.located(**where, key="node") from None
