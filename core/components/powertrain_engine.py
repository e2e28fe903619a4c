"""Engine with warm-up: steady-state torque of the warm engine, friction that grows with cold oil, heat into the block.

Otter, Dempsey, Schlegel 2000 (Engine3): "based on steady-state mapped engine data ... a look-up table which determines
the increased load due to increased friction when the engine is cold", auxiliaries "lumped into one table".

    J*a = tau_indicated - friction(|w|, T_oil)*sign(w) - auxiliaries(|w|)*sign(w) + torque at the flange
    tau_indicated = pedal*(wot(w) + losses(w))  or  map(w, pedal) + losses(w),  plus the idle controller
    losses(w) = friction(w, T_warm) + auxiliaries(w)

so that the torque at the flange is wot(w) or map(w, pedal) when the oil is at T_warm. Heat into the block:
heat_ratio*tau_indicated*w + (1 - friction_to_oil)*friction*w, into the oil: friction_to_oil*friction*w.
Range: w >= 0 (backward turning is braked by friction and auxiliaries only).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.flange import HEAT_PORT, OPEN, SUPPORT, THERMAL, Flange
from torqueloop.core.describe.kernel_numbers import (
    HEAT_OF_PORT,
    OUT_ENGINE,
    OUT_ENGINE_WORK,
    OUT_INPUT,
    OUT_PORT,
    OUT_PORT_WORK,
)
from torqueloop.core.describe.params import REQUIRED, Param, curve, param, require, require_given
from torqueloop.core.describe.tables import Table1D, Table2D

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


def table_map(doc: str, columns: tuple[str, str, str], default: Any = REQUIRED) -> Any:
    """A field that takes a Table2D or the name of one."""
    return field(default=default, metadata={"param": Param(doc, columns[2], default, form="map", columns=columns)})


@dataclass(frozen=True, kw_only=True)
class Engine3(Component):
    """Crankshaft with inertia J, the torque of the warm engine, friction that grows with cold oil, auxiliaries.

    `friction` is the motoring torque (mechanical friction and pumping), >= 0, 0 at w = 0. With `wot` a released pedal
    leaves no combustion: the engine is motored (fuel cut-off). The idle controller adds a torque in [0, tau_idle_max]:
    kp*(w_idle - w) + ki*integral of (w_idle - w).

    Heat: of the fuel, a petrol engine at full power gives 25 to 28 % to the crankshaft, 17 to 26 % to the coolant, 3 to
    10 % to oil and surroundings, 34 to 45 % to the exhaust (Heywood, Internal Combustion Engine Fundamentals, 1988,
    table 12.1). At a mechanical efficiency of 0.8 the coolant and half of what goes to oil and surroundings get, beside
    the friction, 0.55 of the indicated work: heat_ratio is 0.5. The default of friction_to_oil is assumed (the rest:
    pistons and rings). `oil` must be joined to a thermal node: its temperature sets the friction.

    `fuel`: chemical power of the fuel over speed and torque at the flange of the warm engine; not used in the
    simulation, see core/analyse/fuel.py.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flange": OPEN, "support": SUPPORT, "heatPort": HEAT_PORT, "oil": Flange(domain=THERMAL),
    }  # fmt: skip

    J: float = param("inertia of crankshaft and flywheel; that of a model aeroplane has 1e-6", "inertia", low=1e-7)
    wot: Any = curve("flange torque at full pedal, warm", "angular_velocity", "torque", None)
    map: Any = table_map("flange torque, warm, instead of wot", ("angular_velocity", "1", "torque"), None)
    friction: Any = table_map("friction torque over speed and oil temperature, >= 0",
                              ("angular_velocity", "temperature", "torque"))  # fmt: skip
    auxiliaries: Any = curve("torque of the auxiliaries at the crankshaft", "angular_velocity", "torque", 0.0, low=0.0)
    fuel: Any = table_map("fuel power over speed and flange torque, warm", ("angular_velocity", "torque", "power"),
                          None)  # fmt: skip
    T_warm: float = param("oil temperature the torque curves belong to", "temperature", 363.15, low=200.0, high=500.0)
    heat_ratio: float = param("heat to the block per indicated work", default=0.5, low=0.0)
    friction_to_oil: float = param("part of the friction heat that goes to the oil", default=0.3, low=0.0, high=1.0)
    w_idle: float = param("idle speed", "angular_velocity", 0.0, low=0.0)
    kp: float = param("idle controller, proportional", "rotational_damping", 0.0, low=0.0)
    ki: float = param("idle controller, integral", "rotational_stiffness", 0.0, low=0.0)
    tau_idle_max: float = param("largest torque of the idle controller", "torque", 0.0, low=0.0)
    w0: float | None = param("start speed", "angular_velocity", None)
    phi0: float | None = param("start angle", "angle", None)

    def check(self) -> None:
        require_given(self.wot is not None or self.map is not None, "{key} is missing (or map)", "wot")
        require(self.wot is None or self.map is None, "give wot or map, not both", key="map")

    def contribute(self, b: Builder) -> None:
        shaft = b.w("flange")
        speed = shaft - b.w("support")
        b.inertia("flange", self.J)
        friction, losses = self._friction(b), self.warm_losses(b)
        pedal = b.input("pedal", "1", (0.0, 1.0))
        combustion = b.engine(
            form=speed,
            pedal=pedal,
            wot=None if self.wot is None else added(b.table1("wot"), losses),
            drag=Table1D.constant(0.0),
            map=None if self.map is None else self._indicated_map(b, losses),
            w_idle=self.w_idle,
            kp=self.kp,
            ki=self.ki,
            tau_idle_max=self.tau_idle_max,
        )
        rubbing = "curve", b.curve_force(speed, tab2=friction, arg=("temperature", "oil"), gain=-1.0, absolute=True)
        b.motion_outputs(shaft)
        b.output("pedal", "1", OUT_INPUT, index=pedal)
        b.output("tau_indicated", "torque", OUT_ENGINE, index=combustion)
        b.output("work_indicated", "energy", OUT_ENGINE_WORK, index=combustion)
        b.output("tau_friction", "torque", OUT_PORT, port=rubbing)
        b.output("work_friction", "energy", OUT_PORT_WORK, port=rubbing)
        auxiliaries = b.table1("auxiliaries")
        if max(auxiliaries.y) > 0.0:
            _zero_at_rest(b, "auxiliaries", auxiliaries(0.0))
            driven = "curve", b.curve_force(speed, tab1=auxiliaries, gain=-1.0, absolute=True)
            b.output("tau_auxiliaries", "torque", OUT_PORT, port=driven)
            b.output("work_auxiliaries", "energy", OUT_PORT_WORK, port=driven)
        b.temperature_output("T_oil", "oil")
        b.heat("heatPort", HEAT_OF_PORT, ("engine", combustion), -self.heat_ratio)
        b.heat("oil", HEAT_OF_PORT, rubbing, self.friction_to_oil)
        b.heat("heatPort", HEAT_OF_PORT, rubbing, 1.0 - self.friction_to_oil)
        b.initial("w", shaft, self.w0, "w0")
        b.initial("phi", shaft, self.phi0, "phi0")

    def _friction(self, b: Builder) -> Table2D:
        table = b.table2("friction")
        if min(z for row in table.z for z in row) < 0.0:
            raise TableError("friction must not be negative", table=f"components.{b.name}", key="friction")
        if table.x[0] > 0.0:
            raise TableError("friction must begin at speed 0", table=f"components.{b.name}", key="friction")
        for T, z in zip(table.y, (Table1D(table.x, column)(0.0) for column in zip(*table.z, strict=True)), strict=True):
            _zero_at_rest(b, "friction", z, f" at {T:g} K")
        return table

    def warm_losses(self, b: Builder) -> Table1D:
        """friction(w, T_warm) + auxiliaries(w)."""
        table = self._friction(b)
        rows = tuple(Table1D(table.y, row)(self.T_warm) for row in table.z)
        return added(Table1D(table.x, rows), b.table1("auxiliaries"))

    def _indicated_map(self, b: Builder, losses: Table1D) -> Table2D:
        """map(w, pedal) + losses(w), exact on the nodes of both."""
        table = b.table2("map")
        xs = nodes(table.x, losses.x, within=(table.x[0], table.x[-1]))
        columns = [Table1D(table.x, column) for column in zip(*table.z, strict=True)]
        grid = tuple(tuple(column(x) + losses(x) for column in columns) for x in xs)
        lowest = min(z for row in grid for z in row)
        if lowest < -1e-9 * max(z for row in grid for z in row):
            raise TableError(
                f"map and friction do not fit: the torque without friction and auxiliaries would be {lowest:g} Nm",
                table=f"components.{b.name}", key="map", allowed=">= 0 Nm",
            )  # fmt: skip
        return Table2D(xs, table.y, tuple(tuple(max(z, 0.0) for z in row) for row in grid), table.dimensions)


def _zero_at_rest(b: Builder, name: str, value: float, where: str = "") -> None:
    """A torque that does not vanish at w = 0 would jump when the crankshaft turns backward."""
    if value != 0.0:
        raise TableError(f"{name} must be 0 at speed 0 (it is {value:g} Nm{where})",
                         table=f"components.{b.name}", key=name)  # fmt: skip


def nodes(*axes: Iterable[float], within: tuple[float, float]) -> tuple[float, ...]:
    """All nodes of several axes inside a range, sorted."""
    return tuple(sorted({x for axis in axes for x in axis if within[0] <= x <= within[1]}))


def added(first: Table1D, second: Table1D) -> Table1D:
    """first + second, exact: piecewise linear on the nodes of both; outside both hold their ends."""
    every = (*first.x, *second.x)
    xs = nodes(first.x, second.x, within=(min(every), max(every)))
    hold = [Table1D(t.x, t.y) for t in (first, second)]
    return Table1D(xs, tuple(sum(t(x) for t in hold) for x in xs), first.dimensions)
