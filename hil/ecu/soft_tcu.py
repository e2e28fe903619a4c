"""The soft TCU on CAN: receives the rig's frames, decides, answers with pressure frames. Kind "soft_tcu".

    frames in -> E2E checks -> Measured -> Transmission (strategy, shift) -> frames out, every period (5 ms)

Modes: "waiting" until speeds and driver have arrived once (frames with Mode off and no pressure), "normal",
"limp_home" when one of them stays away longer than rx_timeout_s. Limp-home is latched: speeds lost and lever forward
-> one fixed forward gear; otherwise everything off. It ends when both have been good for recover_s with the lever in
P or N.

With the option `interface` it is also on a maker's bus (hil/ecu/interface.py). It sends its status there, and the
signals from there (pedal, lever, engine speed ...) replace those of the rig's own messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.database import CanCodec, CanDatabase, bus_id
from torqueloop.hil.can.frame import BRS_FLAG, FD_FLAG, Frame
from torqueloop.hil.common.config_file import ConfigTable, InFile, read_table
from torqueloop.hil.common.locate import find
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, EcuSetup
from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import load_interface
from torqueloop.hil.ecu.shift import RPM, Measured
from torqueloop.hil.ecu.strategy import Commands, Transmission
from torqueloop.hil.ecu.tcu_tables import TcuConfig, load_tcu_config
from torqueloop.hil.results.links import ParticipantStats

#: [Pa per bar]
BAR = 1e5
SPEEDS, DRIVER, STATUS = "HIL_Speeds", "HIL_Driver", "TCU_Status"
#: what must be in the database besides the pressures
NEEDED = (
    *(f"{SPEEDS}.{name}" for name in ("speeds_valid", "n_engine", "n_turbine", "n_output")),
    *(f"{DRIVER}.{name}" for name in ("pedal", "brake", "lever")),
    *(f"{STATUS}.{name}" for name in ("gear_actual", "gear_target", "lever_echo", "shift_active", "shift_phase")),
    *(f"{STATUS}.{name}" for name in ("lockup_state", "slip_lockup", "fault_code")),
)
#: pressure signals are p_ELEMENT, that of the lock-up clutch p_LU; each message has a signal Mode or Mode_*
PRESSURE, LOCKUP, MODE = "p_", "LU", "Mode"
#: word of the Mode signals
MODE_WORD = {"waiting": "off", "normal": "normal", "limp_home": "limp home"}
LOCKUP_WORD = {"open": "open", "filling": "open", "slipping": "slipping", "locked": "closed", "releasing": "slipping"}
LOST = {SPEEDS: "speeds lost", DRIVER: "driver lost"}
TAU_LIMIT = f"{STATUS}.tau_limit"
FAULTS = {"none": 0, "speeds lost": 1, "driver lost": 2, "speeds and driver lost": 3}
#: bits of speeds_valid that must be set: engine, turbine, output
ALL_SPEEDS = 7


def load_tcu_database(path: str | Path, node: str = "TCU") -> CanDatabase:
    """A CAN database as the TCU's node sees it, with every signal the soft TCU needs."""
    return CanDatabase.load(path, node, needed=NEEDED, timeouts_s={"*": 0.0})


@dataclass(frozen=True)
class Sent:
    """A message of the TCU: identifier, flags, its signal of the mode, its pressure signals and what they carry."""

    name: str
    can_id: int
    flags: int
    mode: str
    pressures: tuple[tuple[str, str], ...] = ()


def sent_messages(database: CanDatabase, elements: Collection[str]) -> list[Sent]:
    """The pressure messages and the status message, found by their signals; ConfigError when an element has none."""
    found, carried = [], set()
    for message in database.tx_messages:
        names = [signal.name for signal in message.signals]
        carries = tuple(
            (name, name.removeprefix(PRESSURE))
            for name in names
            if name.startswith(PRESSURE) and name.removeprefix(PRESSURE) in (*elements, LOCKUP)
        )
        mode = next((name for name in names if name == MODE or name.startswith(f"{MODE}_")), None)
        if not carries and message.name != STATUS:
            continue
        if mode is None:
            raise ConfigError(f"message {message.name} has no signal of the mode", file=str(database.path), key=MODE,
                              allowed=f"{MODE} or {MODE}_...")  # fmt: skip
        flags = FD_FLAG | BRS_FLAG if message.fd else 0
        found.append(Sent(message.name, bus_id(message), flags, mode, carries))
        carried |= {element for _, element in carries}
    for name in (*elements, LOCKUP):
        if name not in carried:
            raise ConfigError(f"node {database.node} sends no pressure of {name}: there is no signal {PRESSURE}{name}",
                              file=str(database.path))  # fmt: skip
    # the status last, as its period is the longer one
    return sorted(found, key=lambda m: m.name == STATUS)


def soft_tcu(file: str | Path, database: str | Path, node: str = "TCU") -> SoftTcu:
    """A soft TCU of its file on a bus with this CAN database."""
    return SoftTcu(load_tcu_config(file), load_tcu_database(database, node))


class SoftTcu:
    """A control unit on one bus, or on two with a maker's bus (hil/ecu/control_unit.py). Pure and deterministic: equal
    frames at equal times give equal answers. real-time: no (Python)."""

    def __init__(self, config: TcuConfig, database: CanDatabase, maker: MakerBus | None = None) -> None:
        self.config: TcuConfig = config
        self.database: CanDatabase = database
        self.maker: MakerBus | None = maker
        self.codec: CanCodec = self.database.codec()
        self.transmission: Transmission = Transmission(config)
        self.mode: str = "waiting"
        self.fault: str = "none"
        self._limp_gear = "N"
        self.commands: Commands = self.transmission.commands
        self.now: Measured = Measured()
        #: mode changes: (time, mode, fault)
        self.mode_log: list[tuple[float, str, str]] = []
        self.refused: dict[str, int] = {}
        #: control period [s]
        self.period_s: float = config.timing.period_s
        self._messages = {bus_id(m): m.name for m in self.database.rx_messages}
        self._sent = sent_messages(database, config.elements)
        self._takes_limit = TAU_LIMIT in {s.full_name for s in database.signals}
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
            if self.maker is not None and frame.bus == self.maker.bus:
                self.maker.receive(t_s, frame)
            else:
                self._receive(t_s, frame)
        if self.maker is not None:
            self.now = replace(self.now, **self.maker.values)  # type: ignore[arg-type]
        self._judge(t_s)
        if self.mode == "normal":
            self.commands = self.transmission.step(self.now)
        elif self.mode == "limp_home":
            self.commands = self.transmission.limp(self._limp_gear)
        self._steps += 1
        frames = self._frames()
        if self.maker is not None:
            frames += tuple(self.maker.frames(self._steps - 1, self._numbers(), self._words()))
        return EcuOutputs(frames)

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
            "maker": None if self.maker is None else self.maker.save(),
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
        if self.maker is not None:
            self.maker.load(data["maker"])

    def stop(self) -> ParticipantStats:
        """Counts for the report."""
        return ParticipantStats.of("in process", self.stats())

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
            # whole: `replace` takes as long as all the rest of it
            speeds = values["n_engine"], values["n_turbine"], values["n_output"]
            self.now = Measured(*speeds, old.pedal, old.brake, old.lever, old.tip, old.T_oil)
        elif name == DRIVER:
            lever = self._levers.word_of(values["lever"])
            if lever is None or lever == "invalid":
                self.refused["not valid"] = self.refused.get("not valid", 0) + 1
                return
            tip = int(values.get("tip", 0.0))
            tip = {0: 0, 1: 1, 2: -1}.get(tip, 0)
            oil = values.get("T_oil", old.T_oil)
            pedal, brake = values["pedal"], values["brake"]
            self.now = Measured(old.w_engine, old.w_turbine, old.w_out, pedal, brake, lever, tip, oil)
        else:
            return
        self._last_good[name] = t_s

    def _judge(self, t_s: float) -> None:
        """Waiting -> normal -> limp-home -> normal."""
        limit = self.config.timing.rx_timeout_s
        # a microsecond of tolerance: times on a grid must not depend on rounding
        silent = set() if self.maker is None else self.maker.lost(t_s)
        lost = [
            n
            for n, what in ((SPEEDS, "speeds"), (DRIVER, "driver"))
            if t_s - self._last_good.get(n, -1e9) > limit + 1e-6 or what in silent
        ]
        if self.mode == "waiting":
            if not lost:
                self._go("normal", t_s)
            return
        if lost:
            self._good_since = None
        elif self._good_since is None:
            self._good_since = t_s
        if self.mode == "normal" and lost:
            forward = lost == [SPEEDS] and self.now.lever in self.transmission.selector.levers
            # reverse or a forward gear by guess is worse than no drive
            self._limp_gear = self.config.limp_home.forward_gear if forward else "N"
            self.fault = "speeds and driver lost" if len(lost) == 2 else LOST[lost[0]]
            self._go("limp_home", t_s)
        elif self.mode == "limp_home":
            if DRIVER in lost or self.now.lever not in self.transmission.selector.levers:
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
        for message in self._sent:
            values: dict[str, float | str] = {message.mode: MODE_WORD[self.mode]}
            if not message.pressures:
                if (self._steps - 1) % self.config.timing.status_every:
                    continue
                values |= self._status(commands)
            for name, element in message.pressures:
                values[name] = BAR * (commands.lockup if element == LOCKUP else commands.pressures[element])
            out.append(Frame(message.can_id, self.codec.encode(message.name, values), message.flags))
        return tuple(out)

    def _status(self, commands: Commands) -> dict[str, float | str]:
        runner = self.transmission.runner
        return {
            # 1st with engine braking is 1st to the outside
            "gear_actual": commands.gear_actual.removesuffix("E"),
            "gear_target": commands.gear_target.removesuffix("E"),
            "lever_echo": self.now.lever,
            "shift_active": float(commands.shifting),
            "shift_phase": runner.stage if runner is not None and not runner.done else "none",
            "lockup_state": LOCKUP_WORD[self.transmission.lockup.state],
            "slip_lockup": self.now.w_engine - self.now.w_turbine,
            "fault_code": float(FAULTS[self.fault]),
            **self._request(),
        }

    def _request(self) -> dict[str, float | str]:
        """The torque request, where the calibration has one and the database a place for it."""
        request = self.transmission.request
        if self.config.torque_reduction is None or not self._takes_limit:
            return {}
        return {"tau_limit": request.limit, "tau_limit_active": float(request.active)} if request.active else {
            "tau_limit_active": 0.0
        }  # fmt: skip

    def _numbers(self) -> dict[str, float]:
        """Numbers for a maker's bus (interface_config.NUMBERS), SI."""
        now, commands, transmission = self.now, self.commands, self.transmission
        return {
            "w_engine": now.w_engine,
            "w_turbine": now.w_turbine,
            "w_out": now.w_out,
            "slip": now.w_engine - now.w_turbine,
            "pedal": now.pedal,
            "T_oil": now.T_oil,
            "ratio": abs(self.config.gears[commands.gear_actual].ratio),
            "w_synchron": max(0.0, now.w_out * self.config.gears[commands.gear_target].ratio) * commands.shifting,
            "torque_limit": transmission.request.limit,
            "torque_limit_active": float(transmission.request.active),
            "torque_driver": transmission.torque.driver(now),
            "torque_turbine": transmission.torque.torque,
            "pressure": BAR * commands.line,
            "shifting": float(commands.shifting),
            "lockup_closed": float(transmission.lockup.state == "locked"),
            "limp_home": float(self.mode == "limp_home"),
            "v_vehicle": now.w_out / RPM / self.config.garage.output_rpm_per_kmh / 3.6,
        }

    def _words(self) -> dict[str, str]:
        """Words for a maker's bus (interface_config.WORDS)."""
        return {
            "gear_actual": self.commands.gear_actual.removesuffix("E"),
            "gear_target": self.commands.gear_target.removesuffix("E"),
            "lever": self.now.lever,
            "lockup": LOCKUP_WORD[self.transmission.lockup.state],
            "mode": MODE_WORD[self.mode],
        }

    def stats(self) -> dict[str, Any]:
        """Counts for the report."""
        period = self.config.timing.period_s
        return {
            "steps": self._steps,
            "mode": self.mode,
            "fault": self.fault,
            "gear": self.commands.gear_actual,
            "refused": self.refused | {f"maker {k}": n for k, n in (self.maker.refused if self.maker else {}).items()},
            "learnt": self.transmission.learnt.save(),
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


class SoftTcuOptions(ConfigTable):
    """[ecu.NAME.options] of kind soft_tcu."""

    #: Values that replace those of its file: dotted key -> value, such as "schedule.hysteresis_min_rpm" = 80.0.
    set: dict[str, Any] = {}
    #: Interface file that describes its second bus, in configs/interfaces.
    interface: Annotated[str, InFile("interfaces")] | None = None


def make(setup: EcuSetup) -> SoftTcu:
    """The soft TCU of a rig file: its own file, one bus, no pins."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
    if setup.file is None:
        raise ConfigError("soft_tcu needs its file", **where, key="start", allowed="a file as in configs/tcu")
    options = read_table(setup.options, SoftTcuOptions, setup.rig_file, f"{setup.table}.options")
    if setup.sensors or setup.actuators:
        key = "sensors" if setup.sensors else "actuators"
        raise ConfigError("soft_tcu has no pins, only a bus", **where, key=key)
    wanted = 1 if options.interface is None else 2
    if len(setup.buses) != wanted:
        names = [bus.name for bus in setup.buses]
        allowed = "one name" if wanted == 1 else "two names: its own bus and the maker's"
        problem = f"soft_tcu is on {'one bus' if wanted == 1 else 'two buses'}"
        raise ConfigError(problem, **where, key="bus", value=names, allowed=allowed)
    config = load_tcu_config(setup.file, options.set)
    try:
        maker = None if options.interface is None else _maker(setup, options.interface, config.timing.period_s)
        own = setup.buses[0]
        return SoftTcu(config, load_tcu_database(own.database, own.node), maker)
    except ConfigError as error:
        raise error.located(**where, key="node") from None


def _maker(setup: EcuSetup, name: str, period_s: float) -> MakerBus:
    """The second bus with its interface."""
    bus = setup.buses[1]
    try:
        file = find(setup.rig_file, name, "interfaces")
    except ConfigError as error:
        table = f"{setup.table}.options" if setup.table else None
        raise error.located(file=setup.rig_file or None, table=table, key="interface") from None
    config = load_interface(file)
    return MakerBus(config, interface_database(config, bus.database, bus.node), period_s, 1)
