"""Plate clutches pressed by oil: commanded pressure -> actuator -> piston force less return spring -> capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.friction import BRAKE_FLANGES, CLUTCH_FLANGES, friction_outputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import (
    ACTUATED,
    CAPPED,
    FILL_TIME,
    FIRST_ORDER,
    HEAT_OF_FRICTION,
    NOTHING,
    OUT_INPUT,
    OUT_PRESSURE,
)
from torqueloop.core.describe.params import curve, param, require, require_given
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

ACTUATORS = {"first_order": FIRST_ORDER, "fill_time": FILL_TIME}


@dataclass(frozen=True, kw_only=True)
class Laminar(Component):
    """Parameters of a pressure actuated plate pack.

    fn = area*max(0, p - p_return); capacity = cgeo*mue(|w_rel|)*fn; cgeo = faces*(r_o + r_i)/2 unless given.
    mue_pos is over |w_rel| in rad/s or over the sliding speed v = (r_o + r_i)/2*|w_rel| in m/s; the columns of the
    table decide which. Actuator "first_order": dp/dt = (p_command - p)/tau, tau_rise or tau_fall. Actuator "fill_time"
    has this law, too, but the piston first travels for t_fill before p rises above p_return (and for t_empty back).
    """

    faces: int | None = param("number of friction faces", default=None, form="integer", low=1)
    r_o: float | None = param("outer radius of the linings", "length", None, low=0.0, above=True)
    r_i: float | None = param("inner radius of the linings", "length", None, low=0.0)
    cgeo: float | None = param("geometry constant instead of faces, r_o, r_i", "length", None, low=0.0, above=True)
    mue_pos: Any = curve(
        "friction coefficient over |w_rel| or sliding speed",
        "angular_velocity", "1", None, low=0.0, x_choices=("velocity",),
    )  # fmt: skip
    peak: float = param("breakaway over sliding coefficient at standstill", default=1.0, low=1.0)
    plate: float = param("thickness of the steel plates between the linings, for their temperature", "length", 3.0e-3,
                         low=0.0, above=True)  # fmt: skip
    area: float | None = param("piston area", "area", None, low=0.0, above=True)
    p_return: float = param("pressure that balances the return spring", "pressure", 0.0, low=0.0)
    p_max: float = param("highest pressure of the actuator", "pressure", 3.0e6, low=0.0, above=True)
    actuator: str = param("pressure dynamics", default="first_order", form="choice", choices=tuple(ACTUATORS))
    tau_rise: float = param("time constant of rising pressure", "time", 0.0, low=0.0)
    tau_fall: float = param("time constant of falling pressure", "time", 0.0, low=0.0)
    t_fill: float = param("time to fill the clutch", "time", 0.0, low=0.0)
    t_empty: float = param("time to empty the clutch", "time", 0.0, low=0.0)

    def check(self) -> None:
        if self._absent():
            return
        for name in ("area", "mue_pos"):
            require_given(getattr(self, name) is not None, "{key} is missing", name)
        geometry = (self.faces, self.r_o, self.r_i)
        if self.cgeo is None:
            for name in ("faces", "r_o", "r_i"):
                require_given(getattr(self, name) is not None, "{key} is missing (or cgeo)", name)
        else:
            require(self.faces is None, "give cgeo or faces, not both", key="faces")
        if self.r_o is not None and self.r_i is not None:
            require(self.r_o > self.r_i, "{key} = {value} is out of range", key="r_o", value=self.r_o,
                    allowed=f"> r_i = {self.r_i:g} m")  # fmt: skip
        elif geometry[1] is not None or geometry[2] is not None:
            require_given(False, "r_o and r_i belong together: {key} is missing", "r_o" if self.r_o is None else "r_i")
        require(self.p_return < self.p_max, "{key} = {value} is out of range", key="p_return", value=self.p_return,
                allowed=f"< p_max = {self.p_max:g} Pa")  # fmt: skip

    def _absent(self) -> bool:
        """True for a component whose plate pack is optional and not there."""
        return False

    def geometry(self) -> float:
        """cgeo in m."""
        if self.cgeo is not None:
            return self.cgeo
        assert self.faces is not None and self.r_o is not None and self.r_i is not None
        return self.faces * (self.r_o + self.r_i) / 2.0

    def mue(self, b: Builder) -> Table1D:
        """Friction coefficient over |w_rel| in rad/s."""
        table = b.table1("mue_pos")
        if table.dimensions is None or table.dimensions[0] != "velocity":
            return table
        require(
            self.r_o is not None and self.r_i is not None,
            "mue_pos is over a sliding speed: r_o and r_i are needed to convert it",
            key="mue_pos", table=f"components.{b.name}",
        )  # fmt: skip
        assert self.r_o is not None and self.r_i is not None
        mean = (self.r_o + self.r_i) / 2.0
        return replace(table, x=tuple(v / mean for v in table.x), dimensions=("angular_velocity", "1"))

    def plates(self, b: Builder, relative: Form, *, one_way: bool = False) -> None:
        """Actuator, friction and outputs of the pack."""
        assert self.area is not None
        pressure = b.input("p", "pressure")
        actuator = b.actuator(
            input=pressure,
            kind=ACTUATORS[self.actuator],
            area=self.area,
            p_return=self.p_return,
            tau_rise=self.tau_rise,
            tau_fall=self.tau_fall,
            t_fill=self.t_fill,
            t_empty=self.t_empty,
            p_max=self.p_max,
        )
        index = b.friction(
            relative,
            source=ACTUATED,
            source_index=actuator,
            cgeo=self.geometry(),
            mu=self.mue(b),
            peak=self.peak,
            forward=NOTHING if one_way else CAPPED,
            backward=CAPPED,
        )
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
        b.output("p", "pressure", OUT_PRESSURE, index=actuator)
        b.output("p_command", "pressure", OUT_INPUT, index=pressure)


@dataclass(frozen=True, kw_only=True)
class LaminarClutch(Laminar):
    """Plate clutch between flange_a and flange_b; `one_way`: in series with a free wheel that blocks w_b < w_a."""

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    one_way: bool = param("in series with a free wheel", default=False, form="flag")
    w_rel0: float | None = param("start slip w_b - w_a", "angular_velocity", None)
    phi_rel0: float | None = param("start angle phi_b - phi_a", "angle", None)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        self.plates(b, relative, one_way=self.one_way)
        b.initial("w", relative, self.w_rel0, "w_rel0")
        b.initial("phi", relative, self.phi_rel0, "phi_rel0")


@dataclass(frozen=True, kw_only=True)
class OneWayLaminarClutch(Laminar):
    """Free wheel and plate clutch in series, as one one-sided friction element (Otter, Dempsey, Schlegel 2000).

    w_b > w_a: tau = 0, the free wheel overruns. w_b < w_a: |tau| = capacity, the clutch slips behind the locked free
    wheel. w_b = w_a: 0 <= -tau <= peak*capacity(0), tau the torque on flange_a's shaft. LaminarClutch with one_way =
    true is the same. (As two elements they would need the shaft between them, which has no inertia of its own.)
    """

    flanges: ClassVar[Mapping[str, Flange]] = CLUTCH_FLANGES

    w_rel0: float | None = param("start slip w_b - w_a", "angular_velocity", None)
    phi_rel0: float | None = param("start angle phi_b - phi_a", "angle", None)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        self.plates(b, relative, one_way=True)
        b.initial("w", relative, self.w_rel0, "w_rel0")
        b.initial("phi", relative, self.phi_rel0, "phi_rel0")


@dataclass(frozen=True, kw_only=True)
class LaminarBrake(Laminar):
    """Plate brake between a shaft (phi_a = phi_b) and the support; `one_way`: holds against w < 0 only."""

    flanges: ClassVar[Mapping[str, Flange]] = BRAKE_FLANGES

    one_way: bool = param("in series with a free wheel", default=False, form="flag")

    def contribute(self, b: Builder) -> None:
        b.join("flange_a", "flange_b")
        self.plates(b, b.w("flange_a") - b.w("support"), one_way=self.one_way)
