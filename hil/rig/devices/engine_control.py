"""[engine_control] of a rig file: what makes of the driver's pedal and of torque requests what the engine is given.

Equations: cython_kernels/tick/engine_control.pyx.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.tick import engine_control as kernel
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile
from torqueloop.hil.ecu.tcu_tables import read_columns
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.devices.signals import DUMMY
from torqueloop.hil.rig.schema.links import AnySignal, SignalLink
from torqueloop.hil.rig.schema.participants import relative

TABLE = "engine_control"


class EngineControlTable(ConfigTable):
    """[engine_control]: how the driver's pedal and torque requests become the inputs of the engine."""

    #: Table of the engine with the columns speed_radps, wot_Nm, closed_throttle_Nm.
    engine_csv: Annotated[str, InFile("engines")]
    #: Signal with the driver's demand, 0 to 1.
    pedal: str = "driver.pedal"
    #: Signal with the speed of the engine.
    speed: str = "engine.w"
    #: Torque to which a control unit limits the engine [Nm]: a signal, or { signal = ..., gain = ..., offset = ... }.
    limit: AnySignal | None = None
    #: Signal that says whether the request is valid. By default it is always valid.
    active: str | None = None
    #: Value of the signal `active` that means that the request is valid, in SI. By default every value except 0 means
    #: this.
    active_value: Annotated[float, Field(ge=0)] | None = None
    #: Torque request for the slow path, which is the charge. By default the charge follows the driver alone.
    slow: AnySignal | None = None
    #: A request is void when its message has not arrived for longer than this [s].
    timeout_s: Annotated[float, Field(gt=0, le=10)] = 0.1
    #: Time constant of the charge [s].
    air_s: Annotated[float, Field(ge=0, le=5)] = 0.1
    #: Share of full load beyond which the charge comes from a turbocharger. 1: there is no turbocharger.
    boost_from: Annotated[float, Field(gt=0, le=1)] = 1.0
    #: Time constant of the pressure of the turbocharger [s].
    boost_s: Annotated[float, Field(ge=0, le=10)] = 0.0
    #: Smallest efficiency of the spark angle: the share of the torque of the charge that remains.
    spark_least: Annotated[float, Field(ge=0, le=1)] = 0.3
    #: A request for less torque than this counts as a request for this torque.
    least_Nm: float = 0.0

    @model_validator(mode="after")
    def _together(self) -> EngineControlTable:
        for key in ("active", "slow"):
            if getattr(self, key) is not None and self.limit is None:
                raise BadValue("{key} belongs to a request: limit is missing", key=key)
        if self.active_value is not None and self.active is None:
            raise BadValue("{key} is the value of a signal: active is missing", key="active_value")
        return self


class EngineControlTables(ConfigTable):
    """What the rig file has of it."""

    #: How the driver's pedal and torque requests of control units become the inputs of the engine, see
    #: docs/car_side.md.
    engine_control: EngineControlTable | None = None


class EngineControl(Device[EngineControlTables]):
    """Signals engine_control.pedal ..."""

    TABLES = EngineControlTables
    GROUPS = (TABLE,)

    def signals(self) -> None:
        if self.given.engine_control is not None:
            self.first_slot = self.table.add_all((f"{TABLE}.{name}", unit) for name, unit in kernel.ENGINE_SIGNALS)

    def plan(self) -> None:
        engine = self.given.engine_control
        if engine is None:
            return
        try:
            file = relative(self.rig.path, engine.engine_csv, "engines")
        except ConfigError as error:
            raise error.located(file=self.file, table=TABLE, key="engine_csv") from None
        #: speed, full torque, torque at closed throttle
        self.torque = [(w, full, closed) for w, full, closed in
                       read_columns(file, ("speed_radps", "wot_Nm", "closed_throttle_Nm"))]  # fmt: skip
        #: arguments of the kernel's set_paths and set_request
        self.paths: dict[str, Any] = {
            "pedal": self.read_slot(engine.pedal, TABLE, "pedal"),
            "speed": self.read_slot(engine.speed, TABLE, "speed", "rad/s"),
            "air_s": engine.air_s,
            "boost_from": engine.boost_from,
            "boost_s": engine.boost_s,
            "spark_least": engine.spark_least,
            "least": engine.least_Nm,
        }
        if engine.limit is not None:
            #: (slot, gain, offset) of the requested torque
            self.limit = self._torque(engine.limit, "limit")
            self.request: dict[str, Any] = {
                "limit": self.limit,
                "active": DUMMY if engine.active is None else self.read_slot(engine.active, TABLE, "active"),
                "always": engine.active is None,
                "active_value": -1.0 if engine.active_value is None else engine.active_value,
                "slow": None if engine.slow is None else self._torque(engine.slow, "slow"),
            }

    def _torque(self, link: SignalLink, key: str) -> tuple[int, float, float]:
        """(slot, gain, offset); without a gain of its own the signal is in Nm."""
        own = link.gain != 1.0 or link.offset != 0.0
        return self.read_slot(link.signal, TABLE, key, None if own else "Nm"), link.gain, link.offset

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        engine = self.given.engine_control
        if engine is None:
            return
        made = kernel.EngineControl(len(self.table), self.first_slot, self.tick_s)
        made.set_torque(self.torque)
        made.set_paths(**self.paths)
        if engine.limit is not None:
            made.set_request(**self.request)
            message = self.rig.received(self.limit[0])
            if message is not None:
                bus, index = message
                made.watch(received[bus], index, round(engine.timeout_s * 1e9))
        tick.set_engine_control(made)
