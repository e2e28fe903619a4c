"""Drag torque of an open wet clutch over its slip: rises with the slip while oil fills the gaps, falls beyond its peak.

Between two plates at distance h, of which one turns with w relative to the other, the mean radial flow of a laminar
film (v = r*w*z/h, pressure p, no pressure at both rims) is

    Q/(2*pi*r) = h^3/(12*mu)*(0.3*rho*r*w^2 - dp/dr)
    =>  Q_full = pi*rho*h^3*(r_o^2 - r_i^2)*w^2/(40*mu*ln(r_o/r_i))

per gap. Up to the slip w_c at which Q_full is the flow fed to a gap the film is whole. Beyond, it breaks off at the
equivalent radius r_e, r_e^2 = r_i^2 + (Q/Q_full)*(r_o^2 - r_i^2) (Kato), and only the film inside is sheared:

    tau = N*pi*mu/(2*h)*(r_e^4 - r_i^4)*w against w,    Q/Q_full = min(1, (w_c/w)^2)

which is tau = d*w up to w_c (the peak is d*w_c) and d*w_c*((1 - b)*x + b*x^3), x = w_c/|w|, beyond; d = N*pi*mu/(2*h)*
(r_o^4 - r_i^4), b = (r_o^2 - r_i^2)/(r_o^2 + r_i^2). With mu(T) = mu*exp(-beta*(T - T_ref)): d ~ mu, w_c ~ sqrt(mu).

Valid for plates without grooves, laminar flow, an open pack with equal gaps. The surface tension (Yuan) lets the film
break off a little earlier, the mist beyond it (Iqbal) adds a torque that rises slowly with w: both are left out.
Sources: Y. Kato, T. Murasugi, H. Hirano, T. Shibayama, Fluid characteristics between two plates in drag torque of wet
clutch, Japanese Journal of Tribology 38 (1993); Y. Yuan, E. A. Liu, J. Hill, Q. Zou, An improved hydrodynamic model for
open wet transmission clutches, J. Fluids Eng. 129 (2007) 333-337; S. Iqbal, F. Al-Bender, B. Pluymers, W. Desmet,
Mathematical model and experimental evaluation of drag torque in disengaged wet clutches, ISRN Tribology 2013, 206539.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.of_motion import TWO_SHAFTS
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.kernel_numbers import HEAT_OF_PORT, OUT_PORT, OUT_PORT_POWER, OUT_PORT_WORK
from torqueloop.core.describe.params import param, require

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class WetClutchDrag(Component):
    """Drag of an open wet clutch (join it in parallel): d*w_rel up to the slip w_c, falling as the film breaks off.

    d, w_c and the fall from geometry, oil and feed as in the text above. Output tau: torque on flange_a, as of a clutch
    (> 0 for w_rel > 0). Temperature: that of heatPort, or T while it is open. With openInput an input `open` (0 closed
    to 1 open) scales the torque; without, it acts at every slip: closed, there is none.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {**TWO_SHAFTS, "heatPort": HEAT_PORT}

    gaps: int = param("number of gaps between plates", form="integer", low=1)
    r_o: float = param("outer radius of the plates", "length", low=0.0, above=True)
    r_i: float = param("inner radius of the plates", "length", low=0.0, above=True)
    h: float = param("clearance of one gap", "length", low=0.0, above=True)
    Q: float = param("oil fed to the whole pack", "volume_flow", low=0.0, above=True)
    mu: float = param("dynamic viscosity of the oil at T_ref", "viscosity", low=0.0, above=True)
    rho: float = param("density of the oil", "density", 850.0, low=0.0, above=True)
    beta: float = param("decrease of ln(mu) with temperature", "temperature_coefficient", 0.0, low=0.0)
    T_ref: float = param("temperature of mu", "temperature", 313.15, low=0.0, above=True)
    T: float = param("temperature while heatPort is open", "temperature", 313.15, low=0.0, above=True)
    openInput: bool = param("is there an input `open` that scales the torque?", default=False, form="flag")

    def check(self) -> None:
        require(self.r_o > self.r_i, "{key} = {value} is out of range", key="r_o", value=self.r_o,
                allowed=f"> r_i = {self.r_i:g} m")  # fmt: skip

    @property
    def d(self) -> float:
        """Torque over slip while the film is whole, at T_ref [Nms/rad]."""
        return self.gaps * math.pi * self.mu / (2.0 * self.h) * (self.r_o**4 - self.r_i**4)

    @property
    def w_c(self) -> float:
        """Slip of the peak, at T_ref [rad/s]."""
        ring = (self.r_o**2 - self.r_i**2) / math.log(self.r_o / self.r_i)
        full = math.pi * self.rho * self.h**3 * ring / (40.0 * self.mu)
        return math.sqrt(self.Q / self.gaps / full)

    def contribute(self, b: Builder) -> None:
        relative = b.w("flange_b") - b.w("flange_a")
        share = (self.r_o**2 - self.r_i**2) / (self.r_o**2 + self.r_i**2)
        opened = b.input("open", "1") if self.openInput else -1
        port = ("drag", b.drag(relative, self.d, self.w_c, share, self.beta, self.T_ref, "heatPort", self.T, opened))
        b.relative_outputs(relative)
        b.output("tau", "torque", OUT_PORT, port=port, gain=-1.0)
        b.output("heat", "energy", OUT_PORT_WORK, port=port, gain=-1.0)
        b.output("lossPower", "power", OUT_PORT_POWER, port=port, gain=-1.0)
        b.heat("heatPort", HEAT_OF_PORT, port)
