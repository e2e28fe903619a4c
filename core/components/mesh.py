"""Planetary trains seen mesh by mesh: gear meshes with a force-pole offset on a rotating carrier, drag between members.

Maegi, Jacobson, Resev 1998 (equations 3..14 and part B). W = w - w_carrier are speeds seen from the carrier,
F the peripheral force of the mesh, T_in the torque that enters at `in`, T_out the torque that leaves at `out`, T_c the
torque that leaves at the carrier. f = +dR or -dR (dR = deltaR) is the offset of the force pole from the pitch point
along the line of centres; tooth friction puts it on the side where the power F*R_in*W_in is lost.

    mesh       compatibility               torques                                     loss power
    external   R_in*W_in + R_out*W_out = 0  T_in = (R_in+f)*F,  T_out = -(R_out-f)*F     f*F*(W_in - W_out)
    internal   R_in*W_in - R_out*W_out = 0  T_in = (R_in+f)*F,  T_out =  (R_out+f)*F     f*F*(W_in - W_out)
    mirrored   R_in*W_in - R_out*W_out = 0  T_in = (R_in+f)*F,  T_out =  (R_out-f)*F     f*F*(W_in + W_out)

External is the paper's module (part B). Internal, derived alike: both axes lie on the same side of the pitch point, so
an offset f along the line of centres changes both lever arms by +f; with W_out = W_in*R_in/R_out the loss power is

    T_in*W_in - T_out*W_out = F*W_in*((R_in + f) - (R_out + f)*R_in/R_out) = f*F*(W_in - W_out).

Hence the well-known small loss of internal meshes: 1/R_in - 1/R_out instead of 1/R_in + 1/R_out. Mirrored is the upper
sign of equation 3: outer teeth, but the positive sense of `out` is counted the other way round (virtual shaft
extension: bevel pairs and the like); W_out of the external row changes its sign.

The carrier's torque T_c = T_in - T_out (mirrored: what closes the power balance) does not change with f. So a mesh is
the ideal row C with multiplier lambda = -F, plus a friction torque -f*F along the speed W_in -+ W_out (free of the
carrier's speed except for mirrored meshes) with

    f*F = dR*|F|*sign(W_in - W_out),      at W_in = W_out: any value between -dR*|F| and +dR*|F|.

The last line answers the question of zero relative power, which the paper leaves open (it uses f = 0 and a
hysteresis): a mesh at rest relative to its carrier holds like any dry friction, until the torques exceed dR*|F|.
Valid for dR smaller than both radii (no self-locking teeth), parallel axes (mirrored: any), constant friction of teeth.
The matrices C and C_mod of a whole train: core/analyse/constraint_matrix.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.friction import friction_outputs
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, SUPPORT, Flange
from torqueloop.core.describe.kernel_numbers import (
    CONSTANT,
    HEAT_OF_FRICTION,
    OUT_FRICTION,
    OUT_FRICTION_HEAT,
    OUT_FRICTION_POWER,
    OUT_MODE,
    OUT_REACTION,
    OUT_SPEED,
)
from torqueloop.core.describe.params import param, require, require_given
from torqueloop.core.describe.tables import Table1D
from torqueloop.core.describe.vocabulary import Form

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

#: mesh -> (sign of R_out*W_out in the row, sign of W_out in the loss form)
MESHES = {"external": (1, -1), "internal": (-1, -1), "mirrored": (-1, 1)}


@dataclass(frozen=True, kw_only=True)
class GearMesh(Component):
    """One gear mesh between two wheels on a carrier that may turn; laws and signs: see the text of this file.

    Radii R_in, R_out, or tooth numbers z_in, z_out with the module: R = z*module/2. The carrier is the housing unless
    joined. Outputs: F [N], w_loss (W_in - W_out: the speed the offset acts on), tauLoss (f*F, the torque against it),
    mode (the sign of f*F, 0 while the mesh holds), loss [J], lossPower [W]. Without deltaR there is F only.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "in": Flange(),
        "out": Flange(),
        "carrier": SUPPORT,
        "heatPort": HEAT_PORT,
    }

    mesh: str = param("kind of mesh", default="external", form="choice", choices=tuple(MESHES))
    R_in: Fraction | None = param("pitch radius at `in`", "length", None, low=0.0, above=True, form="exact")
    R_out: Fraction | None = param("pitch radius at `out`", "length", None, low=0.0, above=True, form="exact")
    z_in: int | None = param("teeth of the wheel at `in`", default=None, form="integer", low=1)
    z_out: int | None = param("teeth of the wheel at `out`", default=None, form="integer", low=1)
    module: Fraction | None = param("module (with teeth)", "length", None, low=0.0, above=True, form="exact")
    deltaR: Fraction = param("magnitude of the force-pole offset", "length", Fraction(0), low=0.0, form="exact")

    def check(self) -> None:
        if self.R_in is None and self.R_out is None:
            for name in ("z_in", "z_out", "module"):
                require_given(getattr(self, name) is not None, "{key} is missing (or R_in and R_out)", name)
        else:
            for name in ("R_in", "R_out"):
                require_given(getattr(self, name) is not None, "R_in and R_out belong together: {key} is missing", name)
            for name in ("z_in", "z_out", "module"):
                require(getattr(self, name) is None, "give radii or teeth, not both", key=name)
        r_in, r_out = self.radii
        if self.mesh == "internal":
            require(r_in != r_out, "an internal mesh needs different radii", key="R_out", value=float(r_out))
        smaller = min(r_in, r_out)
        require(self.deltaR < smaller, "{key} = {value} is out of range", key="deltaR", value=float(self.deltaR),
                allowed=f"< the smaller radius {float(smaller):g} m")  # fmt: skip

    @property
    def radii(self) -> tuple[Fraction, Fraction]:
        """(R_in, R_out) in m."""
        if self.R_in is not None and self.R_out is not None:
            return self.R_in, self.R_out
        assert self.z_in is not None and self.z_out is not None and self.module is not None
        return self.z_in * self.module / 2, self.z_out * self.module / 2

    def row(self, w_in: Form, w_out: Form, w_c: Form) -> Form:
        """The constraint: R_in*W_in +- R_out*W_out."""
        r_in, r_out = self.radii
        return r_in * (w_in - w_c) + MESHES[self.mesh][0] * r_out * (w_out - w_c)

    def loss_form(self, w_in: Form, w_out: Form, w_c: Form) -> Form:
        """The speed along which the offset dissipates: W_in -+ W_out."""
        return (w_in - w_c) + MESHES[self.mesh][1] * (w_out - w_c)

    def contribute(self, b: Builder) -> None:
        shafts = b.w("in"), b.w("out"), b.w("carrier")
        constraint = b.constraint(self.row(*shafts))
        if self.deltaR == 0:
            b.output("F", "force", OUT_REACTION, index=b.reaction(constraint, gain=-1.0))
            return
        slip = self.loss_form(*shafts)
        zero, dR = Table1D.constant(0.0), float(self.deltaR)
        friction = b.loss(
            slip, constraint=constraint, gain=-1.0, own_gain=0.0,
            kA=Table1D.constant(dR), kB=Table1D.constant(-dR), cA=zero, cB=zero,
        )  # fmt: skip
        b.output("F", "force", OUT_REACTION, index=b.loss_of(friction)[1])
        b.output("w_loss", "angular_velocity", OUT_SPEED, form=slip)
        b.output("tauLoss", "torque", OUT_FRICTION, index=friction, gain=-1.0)
        b.output("mode", "1", OUT_MODE, index=friction)
        b.output("loss", "energy", OUT_FRICTION_HEAT, index=friction)
        b.output("lossPower", "power", OUT_FRICTION_POWER, index=friction)
        b.heat("heatPort", HEAT_OF_FRICTION, friction)


def offset_of_efficiency(eta: float, R_in: float, R_out: float, mesh: str = "external") -> float:
    """deltaR that gives the efficiency eta with `in` driving and the carrier at rest (both radii in m).

    external: eta = (R_out - f)*R_in/((R_in + f)*R_out); internal (R_in < R_out): (R_out + f)*R_in/((R_in + f)*R_out).
    """
    sign = 1.0 if mesh == "internal" else -1.0
    return (1.0 - eta) * R_in * R_out / (eta * R_out - sign * R_in)


@dataclass(frozen=True, kw_only=True)
class DragTorque(Component):
    """Idling or drag torque between any two members: T_a = -T_b = -deltaT*sign(w_a - w_b) (Maegi 1998, equation 10).

    At equal speeds it takes any value within +-deltaT (dry friction). flange_b is the housing unless joined.
    `tau` is the torque on flange_a's shaft for w_rel = w_b - w_a > 0, as of a clutch.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": SUPPORT, "heatPort": HEAT_PORT}

    deltaT: float = param("magnitude of the drag torque", "torque", low=0.0, above=True)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        index = b.friction(relative, source=CONSTANT, gain=self.deltaT)
        friction_outputs(b, relative, index)
        b.heat("heatPort", HEAT_OF_FRICTION, index)
