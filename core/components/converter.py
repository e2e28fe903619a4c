"""Hydrodynamic torque converter with lock-up clutch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.laminar import Laminar
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.flange import HEAT_PORT, SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_PORT, OUT_CONVERTER_LOSS, OUT_PUMP, OUT_SPEED, OUT_TURBINE
from torqueloop.core.describe.params import curve, param
from torqueloop.core.describe.tables import Table1D

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class LockUpTC(Laminar):
    """Torque converter from tables, with a lock-up plate clutch (present when `area` is given).

    Drive (w_t <= w_p): nu = w_t/w_p, T_p = mp(nu)*w_p^2, T_t = mu(nu)*T_p.
    Coast (w_t > w_p): x = w_p/w_t, T_t = -coast(x)*w_t^2, T_p = coast_ratio*T_t. Both curves end at 0 at 1, so that
    the torques are continuous at synchronous speed. T_p loads the engine, T_t drives the turbine. The loss (in
    the oil) and the slip of the lock-up pack go to heatPort. Valid for w_p, w_t >= 0; one of them backward counts as
    nu = 0. Both backward: a fluid coupling with the capacity mp(0) at the slower one, T_p = T_t = +-mp(0)*w^2*(1 - nu)
    against the slip, which only takes energy out; an offline run warns of it, for no measured curve says what is there.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "pump": Flange(),
        "turbine": Flange(),
        "support": SUPPORT,
        "heatPort": HEAT_PORT,
    }

    mp: Any = curve("capacity T_p/w_p^2 over speed ratio w_t/w_p", "1", "torque_per_speed_squared", low=0.0)
    mu: Any = curve("torque ratio T_t/T_p over speed ratio w_t/w_p", "1", "1", low=0.0)
    coast: Any = curve("capacity |T_t|/w_t^2 in coast over w_p/w_t", "1", "torque_per_speed_squared", 0.0, low=0.0)
    coast_ratio: float = param("T_p/T_t in coast", default=1.0, low=0.0)
    J_pump: float = param("inertia of pump, cover and oil", "inertia", 0.0, low=0.0)
    J_turbine: float = param("inertia of the turbine and its oil", "inertia", 0.0, low=0.0)

    def _absent(self) -> bool:
        return self.area is None

    def contribute(self, b: Builder) -> None:
        pump, turbine, support = b.w("pump"), b.w("turbine"), b.w("support")
        tables = {name: b.table1(name) for name in ("mp", "mu", "coast")}
        for name in ("mp", "coast"):
            _ends_at_zero(b, name, tables[name])
        index = b.converter(
            pump=pump - support,
            turbine=turbine - support,
            mp=tables["mp"],
            mu=tables["mu"],
            coast=tables["coast"],
            coast_ratio=self.coast_ratio,
        )
        for flange, J in (("pump", self.J_pump), ("turbine", self.J_turbine)):
            if J > 0.0:
                b.inertia(flange, J)
        b.output("w_pump", "angular_velocity", OUT_SPEED, form=pump)
        b.output("w_turbine", "angular_velocity", OUT_SPEED, form=turbine)
        b.output("tau_pump", "torque", OUT_PUMP, index=index)
        b.output("tau_turbine", "torque", OUT_TURBINE, index=index)
        b.output("loss", "energy", OUT_CONVERTER_LOSS, index=index)
        for group in ("pump", "turbine"):  # minus the power of both on the driveline: what stays in the oil
            b.heat("heatPort", HEAT_OF_PORT, (group, index))
        if not self._absent():
            self.plates(b, turbine - pump)


def _ends_at_zero(b: Builder, name: str, table: Table1D) -> None:
    """A capacity that does not vanish at synchronous speed would make the torque jump there."""
    largest = max(table.y)
    if abs(table(1.0)) > 1e-9 * largest:
        raise TableError(
            f"{name} must be 0 at speed ratio 1 (it is {table(1.0):g}): "
            "otherwise the torque jumps between drive and coast",
            table=f"components.{b.name}", key=name,
        )  # fmt: skip
