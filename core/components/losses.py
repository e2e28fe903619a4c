"""Gears with losses that depend on the load: LossyGear and Gearbox (LossyGear + elasticity + clearance).

ta, tb: torques the drive exerts on the gear at flange_a and flange_b, + in the sense of the axis; w_a = i*w_b relative
to the support, i = ratio. All losses are referred to flange_a:

    tb = -i*(ta - tauLoss)                           P_loss = tauLoss*w_a >= 0

    w_a > 0:  tauLoss = max(A, B)     A = (1 - eta1)*ta + tbf1        flange_a drives
    w_a < 0:  tauLoss = min(A', B')   B = (1 - 1/eta2)*ta + tbf2      flange_b drives;   A', B': tbf with the other sign
    w_a = 0:  whatever keeps w_a = 0 between min(A', B') and max(A, B), both taken at w_a = 0; beyond, rolling starts

eta1, eta2, |tbf1|, |tbf2| over |w_a| are the columns of lossTable: mesh efficiencies and bearing torques, linear
between rows. Beyond the last row bearing torques continue with its slope, and efficiencies keep their last value, so
that none exceeds 1 (in Modelica they continue with their slope, too: add a row to get this). These are the
driving-side tests of Modelica's LossyGear (Pelchen, Schweiger, Otter, Modelica 2002), written without the case
distinction: A > B exactly when flange_a drives.

Self-locking gears. A gear that the load cannot drive back has eta2 <= 0 (screws and worms: eta2 = tan(lambda -
rho)/tan(lambda), negative for a lead angle lambda below the friction angle rho): the drive must help the load along.
ta then no longer decides which side drives, but the load torque t = ta - tauLoss does. With eta2 <= 0 in any row the
losses are a function of t (exact at the rows; between rows 1/eta1, tbf1/eta1 and |eta2|*tbf2 are linear):

    A = (1/eta1 - 1)*t + tbf1/eta1          B = (eta2 - 1)*t + |eta2|*tbf2

It rests under any load. While it turns, the law has one solution as long as the load's share of the inertia, Jb/i^2
over Ja + Jb/i^2, is below 1/(1 - eta2); a heavier load jams the gear while it still turns: then it is stopped at once.
Range: 0 < eta1 <= 1, eta2 <= 1; for eta2 > 0 exactly Modelica's law.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.components.backlash import backlash
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import TableError
from torqueloop.core.describe.flange import HEAT_PORT, OPEN, SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    ELASTO_BACKLASH,
    HEAT_OF_FRICTION,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_FRICTION_POWER,
    OUT_LOSS_BRANCH,
    OUT_MODE,
    OUT_REACTION,
    OUT_SPEED,
)
from torqueloop.core.describe.params import columns, param, require
from torqueloop.core.describe.tables import Columns, Table1D
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

LOSS_COLUMNS = ("angular_velocity", "1", "1", "torque", "torque")
#: no losses at all
LOSSLESS = Columns(((0.0,), (1.0,), (1.0,), (0.0,), (0.0,)), LOSS_COLUMNS)
GEAR_FLANGES = {"flange_a": Flange(), "flange_b": Flange(), "support": SUPPORT, "heatPort": HEAT_PORT}


def loss_table() -> Any:
    """The parameter lossTable."""
    return columns("rows of |w_a|, eta1, eta2, |tbf1|, |tbf2|", LOSS_COLUMNS, LOSSLESS)


def check_losses(table: Columns, name: str) -> None:
    """Ranges of the five columns; TableError names the row. `name`: what to call the table."""
    for k, (w, eta1, eta2, tbf1, tbf2) in enumerate(zip(*table.data, strict=True)):
        row = f"row {k + 1} of {name}"
        if w < 0.0:
            raise TableError(f"{row}: |w_a| = {w:g} is out of range", allowed=">= 0 rad/s", key="lossTable")
        if not 0.0 < eta1 <= 1.0:
            raise TableError(f"{row}: eta1 = {eta1:g} is out of range", allowed="> 0 and <= 1", key="lossTable")
        if not eta2 <= 1.0:
            raise TableError(
                f"{row}: eta2 = {eta2:g} is out of range", allowed="<= 1 (<= 0: self-locking)", key="lossTable"
            )
        if eta1 == eta2 == 1.0 and abs(tbf1) != abs(tbf2):
            raise TableError(
                f"{row}: tbf1 = {tbf1:g} and tbf2 = {tbf2:g} differ, but with eta1 = eta2 = 1 no side drives",
                allowed="tbf1 = tbf2", key="lossTable",
            )  # fmt: skip


def self_locking(table: Columns) -> bool:
    """Can the load not drive the gear, at any speed of the table?"""
    return min(table.data[2]) <= 0.0


def lossless(table: Columns) -> bool:
    """A table that takes no power."""
    _, eta1, eta2, tbf1, tbf2 = table.data
    return {*eta1, *eta2} == {1.0} and {*tbf1, *tbf2} == {0.0}


def over_load(table: Columns) -> tuple[Table1D, ...]:
    """kA, kB, cA, cB of a self-locking gear: loss = max(kA*t + cA, kB*t + cB) over the load torque t."""
    w, eta1, eta2, tbf1, tbf2 = table.data
    values = (
        [1.0 / e - 1.0 for e in eta1],
        [e - 1.0 for e in eta2],
        [abs(t) / e for t, e in zip(tbf1, eta1, strict=True)],
        [abs(t * e) for t, e in zip(tbf2, eta2, strict=True)],
    )
    beyond = ("hold", "hold", "linear", "linear")
    return tuple(Table1D(w, tuple(y), extrapolation=e) for y, e in zip(values, beyond, strict=True))


def lossy_gear(b: Builder, w_a: Form, w_b: Form, ratio: Fraction, table: Columns) -> None:
    """The constraint w_a = ratio*w_b with its losses, and outputs w_a, tau_a, tau_b (, tauLoss, mode, heat ...)."""
    gear = b.constraint(w_a - ratio * w_b)
    b.output("w_a", "angular_velocity", OUT_SPEED, form=w_a)
    # lambda, the force along w_a - i*w_b, acts as +lambda on shaft a and as -i*lambda on shaft b
    b.output("tau_b", "torque", OUT_REACTION, index=b.reaction(gear, gain=float(ratio)))
    if lossless(table):
        b.output("tau_a", "torque", OUT_REACTION, index=b.reaction(gear, gain=-1.0))
        return
    if self_locking(table):
        kA, kB, cA, cB = over_load(table)
        friction = b.loss(w_a, constraint=gear, gain=-1.0, own_gain=0.0, kA=kA, kB=kB, cA=cA, cB=cB)
        drive = b.reaction(gear, gain=-1.0, own=friction, own_gain=-1.0)
    else:
        eta1, eta2 = (table.curve(k, "hold") for k in (1, 2))
        tbf1, tbf2 = (table.curve(k) for k in (3, 4))
        friction = b.loss(
            w_a, constraint=gear, gain=-1.0, own_gain=-1.0, eta1=eta1, eta2=eta2, tbf1=tbf1, tbf2=tbf2
        )  # fmt: skip
        drive = b.loss_of(friction)[1]
    b.output("tau_a", "torque", OUT_REACTION, index=drive)
    b.output("tauLoss", "torque", OUT_FRICTION, index=friction, gain=-1.0)
    b.output("mode", "1", OUT_MODE, index=friction)
    b.output("branch", "1", OUT_LOSS_BRANCH, index=b.loss_of(friction)[0])
    b.output("heat", "energy", OUT_FRICTION_HEAT, index=friction)
    b.output("lossPower", "power", OUT_FRICTION_POWER, index=friction)
    b.heat("heatPort", HEAT_OF_FRICTION, friction)


@dataclass(frozen=True, kw_only=True)
class _Lossy(Component):
    """Ratio and losses."""

    ratio: Fraction = param("transmission ratio phi_a/phi_b", form="exact", quantity="ratio")
    lossTable: Any = loss_table()

    def check(self) -> None:
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")
        if isinstance(self.lossTable, Columns):
            check_losses(self.lossTable, "lossTable")

    def losses(self, b: Builder) -> Columns:
        """The table; one that was given by its name is checked now that it is known."""
        table = b.columns("lossTable")
        if isinstance(self.lossTable, str):
            try:
                check_losses(table, f"table {self.lossTable!r}")
            except TableError as error:
                raise error.located(table=f"components.{b.name}") from None
        return table


@dataclass(frozen=True, kw_only=True)
class LossyGear(_Lossy):
    """Gear with mesh efficiency and bearing friction: phi_a = ratio*phi_b, tb = -ratio*(ta - tauLoss).

    tauLoss = max((1 - eta1)*ta + tbf1, (1 - 1/eta2)*ta + tbf2) for w_a > 0, the mirror image for w_a < 0; for w_a = 0
    what keeps it at rest, between the two. Lossless by default. eta2 <= 0: self-locking (see the module).
    """

    flanges: ClassVar[Mapping[str, Flange]] = GEAR_FLANGES

    def contribute(self, b: Builder) -> None:
        support = b.w("support")
        lossy_gear(b, b.w("flange_a") - support, b.w("flange_b") - support, self.ratio, self.losses(b))


@dataclass(frozen=True, kw_only=True)
class Gearbox(_Lossy):
    """LossyGear from flange_a to an inner shaft without inertia, ElastoBacklash(c, d, b) from there to flange_b.

    phi_inner = phi_a/ratio (relative to the support) is eliminated exactly: the inner shaft needs no inertia. Outputs
    phi_rel = phi_b - phi_inner, w_rel, tau, loss_elastic, lossPower_elastic belong to the clearance, the others to the
    gear. The inner shaft may be joined to more.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**GEAR_FLANGES, "inner": OPEN}

    c: float = param("stiffness, at flange_b", "rotational_stiffness", low=0.0, above=True)
    d: float = param("damping, at flange_b", "rotational_damping", low=0.0)
    b: float = param("total clearance, at flange_b", "angle", 0.0, low=0.0)

    def contribute(self, b: Builder) -> None:
        support, inner = b.w("support"), b.w("inner")
        lossy_gear(b, b.w("flange_a") - support, inner - support, self.ratio, self.losses(b))
        relative = b.w("flange_b") - inner
        b.relative_outputs(relative)
        backlash(b, relative, self.c, self.d, self.b, 0.0, ELASTO_BACKLASH, "_elastic")
