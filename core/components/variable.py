"""Gears whose ratio changes in operation: given as an input, by the gear number, or by the speed.

    w_a = i*w_b,   torques of the gear on its shafts -T : i*T (power is conserved; a change of i alone does no work)

Both sides need inertia of their own, because a change of the ratio moves them against each other. A step of the ratio
is an
impact: the speeds jump, momentum along the gear's own torque is exchanged, and the energy of a plastic impact is lost
(output `loss` [J], which stays 0, but for the error of the step, as long as the ratio does not jump).

With `order = "auto"`, a driveline with such a gear is integrated with order 4, because order 2 loses energy here. The
ratio and its rate are then those of every point of the step, and the breakpoints of `ratios` and `radius` are located,
so the order holds across them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.flange import SUPPORT, TRANSLATIONAL, Flange
from torqueloop.core.describe.kernel_numbers import (
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_INPUT,
    OUT_RATIO,
    RATIO_CURVE,
    RATIO_INPUT,
    RATIO_SPEED,
)
from torqueloop.core.describe.params import curve, param
from torqueloop.core.describe.tables import Table1D

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class VariableGear(Component):
    """w_a = ratio*w_b relative to the support; the ratio is an input, continuous or in steps.

    Without `ratios` the input `ratio` is the ratio itself. With `ratios` (a curve of the ratio over the gear number)
    the input is `gear`; between whole gears the ratio follows the curve, so that a ramp of `gear` is a smooth shift.
    The ratio must not be 0 and must not change its sign in operation. Output tau: the torque that the drive exerts on
    flange_a (the gear exerts -tau on shaft a and ratio*tau on shaft b).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange(), "support": SUPPORT}

    ratios: Any = curve("ratio w_a/w_b over the gear number", "1", "1", None)

    def contribute(self, b: Builder) -> None:
        support = b.w("support")
        forms = b.w("flange_a") - support, b.w("flange_b") - support
        if self.ratios is None:
            given = b.input("ratio", "1")
            index = b.variable_gear(*forms, RATIO_INPUT, input=given)
        else:
            table = b.table1("ratios")
            _one_sign(b, "ratios", table, "gear")
            given = b.input("gear", "1")
            index = b.variable_gear(*forms, RATIO_CURVE, input=given, curve=table)
            b.output("gear", "1", OUT_INPUT, index=given)
        b.output("ratio", "1", OUT_RATIO, index=index)
        b.output("tau", "torque", OUT_FRICTION, index=b.gear_friction(index), gain=-1.0)
        b.output("loss", "energy", OUT_FRICTION_HEAT, index=b.gear_friction(index))


def _one_sign(b: Builder, name: str, table: Table1D, what: str, low: float = -math.inf) -> None:
    """A ratio that passes through 0 would block one side. `what`: name of x; low: smallest x there is."""
    place = {"table": f"components.{b.name}", "key": name}
    if min(table.y) <= 0.0 <= max(table.y):
        raise TableError(f"the ratio must not be 0 or change its sign: {min(table.y):g} to {max(table.y):g}", **place)
    if table.extrapolation != "linear" or len(table.x) < 2:
        return
    points = list(zip(table.x, table.y, strict=True))
    for (inner, y_inner), (x, y) in ((points[1], points[0]), (points[-2], points[-1])):
        # the line beyond the end point (x, y) comes nearer to 0, and is there at x0
        if abs(y) < abs(y_inner):
            x0 = x + (x - inner) * y / (y_inner - y)
            if x0 >= low:
                raise TableError(
                    f"the ratio must not be 0 or change its sign: continued beyond {what} = {x:g} it is 0 at {x0:g}",
                    allowed='extrapolation = "hold", or end points whose lines do not reach 0', **place,
                )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wheel2(Component):
    """Rolling wheel whose radius depends on the speed (the tyre grows): v = radius(|v|)*w, with inertia J.

    Otter, Dempsey, Schlegel 2000. `radius` in m over |v| in m/s; between force and torque: tau = radius*f. v and w are
    relative to the supports. The wheel does not slip. s is not radius*phi any more: the angle is the integral of w.
    At order 4, which `order = "auto"` takes, the breakpoints of `radius` are located.
    Output f: the tractive force on what is joined to flangeT, + forward.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "flangeR": Flange(), "flangeT": Flange(domain=TRANSLATIONAL),
        "supportR": SUPPORT, "supportT": Flange(domain=TRANSLATIONAL, required=False, support=True),
    }  # fmt: skip

    radius: Any = curve("rolling radius over |v|", "velocity", "length", low=0.0, above=True)
    J: float = param("moment of inertia of the wheels", "inertia", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        turning = b.w("flangeR") - b.w("supportR")
        sliding = b.w("flangeT") - b.w("supportT")
        radius = b.table1("radius")
        _one_sign(b, "radius", radius, "|v|", low=0.0)
        index = b.variable_gear(sliding, turning, RATIO_SPEED, curve=radius)
        b.inertia("flangeR", self.J)
        b.motion_outputs(b.w("flangeR"))
        b.output("radius", "length", OUT_RATIO, index=index)
        b.output("f", "force", OUT_FRICTION, index=b.gear_friction(index))
        b.output("loss", "energy", OUT_FRICTION_HEAT, index=b.gear_friction(index))
