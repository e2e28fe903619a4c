"""[engine_control] and [sensors.NAME]: names become slots, files tables; and the tick's tables of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import engine_control, sensors
from torqueloop.hil.ecu.config import read_columns
from torqueloop.hil.rig.describe.devices import EngineControlTable, Scaled, Sensor
from torqueloop.hil.rig.describe.peer_tables import relative
from torqueloop.hil.rig.describe.signals import DUMMY, SignalTable

#: place of a received message: number of the bus, index in its codec
Message = tuple[int, int]


@dataclass(frozen=True)
class PlannedDevices:
    """Both with slots for names."""

    engine_slot: int
    engine: EngineControlTable | None
    #: speed, full torque, torque at closed throttle
    torque: list[tuple[float, float, float]]
    #: arguments of EngineControl.set_paths and set_request
    paths: Mapping[str, Any]
    request: Mapping[str, Any] | None
    message: Message | None
    #: setter of Sensors and its arguments
    sensors: list[tuple[str, Mapping[str, Any]]]
    tick_s: float


def add_signals(table: SignalTable, engine: EngineControlTable | None, given: Mapping[str, Sensor]) -> int:
    """Signals engine_control.pedal ..., sensor.NAME ...; the first slot of the engine control."""
    first = 0
    if engine is not None:
        first = table.add_all((f"engine_control.{name}", unit) for name, unit in engine_control.ENGINE_SIGNALS)
    for name, sensor in given.items():
        if sensor.kind == "curve":
            table.add(f"sensor.{name}", sensor.unit)
        else:
            own = sensors.MOVES_SIGNALS if sensor.kind == "moves" else sensors.TEETH_SIGNALS
            table.add_all((f"sensor.{name}.{n}".rstrip("."), unit) for n, unit in own)
    return first


def plan_devices(
    table: SignalTable,
    engine: EngineControlTable | None,
    given: Mapping[str, Sensor],
    first: int,
    tick_s: float,
    path: Path,
    message_of: Callable[[int], Message | None],
) -> PlannedDevices:
    """Resolve both tables; ConfigError with its key. message_of: slot -> the received message it comes in."""
    plan = _Plan(table, str(path))
    made = [plan.sensor(name, sensor) for name, sensor in given.items()]
    if engine is None:
        return PlannedDevices(0, None, [], {}, None, None, made, tick_s)
    try:
        file = relative(path, engine.engine_csv, "engines")
    except ConfigError as error:
        raise error.located(file=str(path), table="engine_control", key="engine_csv") from None
    rows = read_columns(file, ("speed_radps", "wot_Nm", "closed_throttle_Nm"))
    paths = {
        "pedal": plan.slot(engine.pedal, "engine_control", "pedal"),
        "speed": plan.slot(engine.speed, "engine_control", "speed", "rad/s"),
        "air_s": engine.air_s,
        "boost_from": engine.boost_from,
        "boost_s": engine.boost_s,
        "spark_least": engine.spark_least,
        "least": engine.least_Nm,
    }
    request, message = None, None
    if engine.limit is not None:
        limit = plan.scaled(engine.limit, "limit", "Nm")
        message = message_of(limit[0])
        request = {
            "limit": limit,
            "active": DUMMY if engine.active is None else plan.slot(engine.active, "engine_control", "active"),
            "always": engine.active is None,
            "active_value": -1.0 if engine.active_value is None else engine.active_value,
            "slow": None if engine.slow is None else plan.scaled(engine.slow, "slow", "Nm"),
        }
    torque = [(w, full, closed) for w, full, closed in rows]
    return PlannedDevices(first, engine, torque, paths, request, message, made, tick_s)


class _Plan:
    def __init__(self, table: SignalTable, file: str) -> None:
        self.table, self.file = table, file

    def slot(self, name: str, table: str, key: str, unit: str | None = None) -> int:
        """Slot of a signal that is read."""
        return self.table.read_slot(name, unit, self.file, table, key)

    def scaled(self, link: Scaled, key: str, unit: str) -> tuple[int, float, float]:
        """(slot, gain, offset); without a gain of its own the signal has the unit."""
        own = link.gain != 1.0 or link.offset != 0.0
        return self.slot(link.signal, "engine_control", key, None if own else unit), link.gain, link.offset

    def sensor(self, name: str, s: Sensor) -> tuple[str, Mapping[str, Any]]:
        """Setter and arguments of one sensor."""
        table = f"sensors.{name}"
        out = self.table.slot(f"sensor.{name}")
        if s.kind == "curve":
            return "set_curve", {"source": self.slot(s.signal, table, "signal"), "out": out, "points": s.curve()}
        if s.kind == "moves":
            source = self.slot(s.signal, table, "signal")
            return "set_moves", {"source": source, "out": out, "rest": s.rest, "hold_s": s.hold_s, "codes": s.codes()}
        return "set_teeth", {
            "source": self.slot(s.signal, table, "signal", "rad/s"),
            "out": out,
            "teeth": s.teeth,
            "standstill_s": s.standstill_s,
            "jitter": s.jitter,
            "dropout": s.dropout,
            "signed_speed": s.direction,
            "seed": s.seed,
        }


def make_engine_control(
    planned: PlannedDevices, n_sig: int, rx_of: Callable[[int], RxState]
) -> engine_control.EngineControl | None:
    """The tick's table of the engine control; rx_of: number of a bus -> what it has received."""
    if planned.engine is None:
        return None
    made = engine_control.EngineControl(n_sig, planned.engine_slot, planned.tick_s)
    made.set_torque(planned.torque)
    made.set_paths(**planned.paths)
    if planned.request is not None:
        made.set_request(**planned.request)
    if planned.message is not None:
        bus, index = planned.message
        made.watch(rx_of(bus), index, round(planned.engine.timeout_s * 1e9))
    return made


def make_sensors(planned: PlannedDevices, n_sig: int) -> sensors.Sensors | None:
    """The tick's table of the sensors."""
    if not planned.sensors:
        return None
    made = sensors.Sensors(n_sig, len(planned.sensors), planned.tick_s)
    for k, (setter, arguments) in enumerate(planned.sensors):
        getattr(made, setter)(k, **arguments)
    return made
