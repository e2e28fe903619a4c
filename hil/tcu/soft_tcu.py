"""The soft TCU on CAN: receives the rig's frames, decides, answers with pressure frames; and its process.

    frames in -> E2E checks -> Measured -> Transmission (strategy, shift) -> frames out, every period (5 ms)

Modes: "waiting" until speeds and driver have arrived once (frames with Mode off and no pressure), "normal",
"limp_home" when one of them stays away longer than rx_timeout_s. Limp-home is latched: speeds lost and lever forward
-> one fixed forward gear; otherwise everything off. It ends when both have been good for recover_s with the lever in
P or N.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any

from torqueloop.core.errors import TorqueloopError
from torqueloop.hil.can.bus import CanPort, open_bus
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.link.stats import AgeStatistics
from torqueloop.hil.stop_flag import Stop, StopFlag
from torqueloop.hil.tcu.config import TcuConfig
from torqueloop.hil.tcu.shift import Measured
from torqueloop.hil.tcu.strategy import LEVER_MAX_GEAR, Commands, Transmission

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
#: frames in a row the bus refuses before the process gives up
SEND_FAILURES_MAX = 200


def load_tcu_database(config: TcuConfig) -> CanDatabase:
    """The database as the TCU's node sees it, with every signal the soft TCU needs."""
    return CanDatabase.load(
        config.path(config.can.database), node=config.can.node, needed=NEEDED, timeouts_s={"*": 0.0}
    )


class SoftTcu:
    """Pure and deterministic: equal frames at equal times give equal answers. real-time: no (Python)."""

    def __init__(self, config: TcuConfig, database: CanDatabase | None = None) -> None:
        self.config = config
        self.database = database or load_tcu_database(config)
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
        self._ids = {name: self.codec.can_id(name) for name in (*PRESSURES, STATUS)}
        self._levers = self.database.signal(f"{DRIVER}.lever")
        self._last_good: dict[str, float] = {}
        self._good_since: float | None = None
        self._steps = 0

    def step(self, t_s: float, frames: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """One control period: take the frames received since the last one, return those to send. t_s rises."""
        for can_id, data in frames:
            self._receive(t_s, can_id, data)
        self._judge(t_s)
        if self.mode == "normal":
            self.commands = self.transmission.step(self.now)
        elif self.mode == "limp_home":
            self.commands = self.transmission.limp(self._limp_gear)
        self._steps += 1
        return self._frames()

    # --- in
    def _receive(self, t_s: float, can_id: int, data: bytes) -> None:
        status, values = self.codec.decode(can_id, data, t_s)
        if status != "ok":
            self.refused[status] = self.refused.get(status, 0) + 1
            return
        name = self.codec.message_of(can_id)
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
    def _frames(self) -> list[tuple[int, bytes]]:
        commands = self.commands
        out = []
        for message, (mode, signals) in PRESSURES.items():
            values: dict[str, float | str] = {mode: MODE_WORD[self.mode]}
            for name, element in signals.items():
                values[name] = BAR * (commands.lockup if element == "LU" else commands.pressures[element])
            out.append((self._ids[message], self.codec.encode(message, values)))
        if (self._steps - 1) % self.config.timing.status_every == 0:
            out.append((self._ids[STATUS], self.codec.encode(STATUS, self._status(commands))))
        return out

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


def open_tcu_bus(config: TcuConfig) -> CanPort:
    """The bus of the configuration; CanBusError with the cause if it does not open."""
    return open_bus(config.can.bus())


def main_loop(
    config: TcuConfig,
    duration_s: float | None = None,
    stop: Stop | None = None,
    bus: CanPort | None = None,
    log: Callable[[str], None] = print,
) -> dict[str, Any]:
    """The TCU process: a control step per period on an absolute grid until SIGTERM, SIGINT, `stop` or duration_s.

    A step that comes too late is done once; the grid points passed meanwhile are skipped and counted, never caught up
    in a burst.
    """
    stop = StopFlag(stop)
    tcu = SoftTcu(config)
    own_bus = bus is None
    bus = bus or open_tcu_bus(config)
    log(
        f"TCU {config.name}: {config.can.interface} {config.can.channel}, node {config.can.node}, "
        f"every {1e3 * config.timing.period_s:g} ms"
    )
    period_ns = round(config.timing.period_s * 1e9)
    lateness, skipped, send_errors, failures = AgeStatistics(), 0, 0, 0
    # a full collection in mid-loop costs milliseconds; the loop makes no cycles
    gc.collect()
    gc.freeze()
    start, index = time.monotonic_ns(), 0
    try:
        while not stop.is_set() and (duration_s is None or index * config.timing.period_s < duration_s):
            due = start + index * period_ns
            ahead = due - time.monotonic_ns()
            if ahead > 0:
                time.sleep(1e-9 * ahead)
            late_ns = time.monotonic_ns() - due
            lateness.add(1e-9 * late_ns)
            frames = []
            while (frame := bus.recv(0.0)) is not None:
                can_id, data, flags = frame
                if not flags:  # no error frame, no remote frame
                    frames.append((can_id, data))
            for can_id, data in tcu.step(1e-9 * index * period_ns, frames):
                try:
                    bus.send(can_id, data)
                    failures = 0
                except (OSError, TorqueloopError) as error:
                    send_errors += 1
                    failures += 1
                    if failures == SEND_FAILURES_MAX:
                        raise TorqueloopError(f"TCU {config.name}: bus {bus.name} takes no frames: {error}") from None
            behind = max(0, time.monotonic_ns() - start) // period_ns - index
            skipped += max(0, behind - 1) if behind > 1 else 0
            index += max(1, behind)
    finally:
        if own_bus:
            bus.close()
    return {**tcu.stats(), "lateness": lateness.report(), "skipped": skipped, "send_errors": send_errors}
