"""Where a component can be joined to others, and to what: the domains."""

from __future__ import annotations

from torqueloop.core.describe.classes import dataclass

ROTATIONAL = "rotational"
TRANSLATIONAL = "translational"
#: temperature and heat flow
THERMAL = "thermal"
#: a place fixed to a carrier: its motion in space, and the torque on it
FRAME = "frame"
#: a flange that takes the domain of what it is joined to
ANY = "any"
#: domains whose connections have nothing to do with the elimination of the mechanics of one dimension
APART = (THERMAL, FRAME)


@dataclass(frozen=True)
class Flange:
    """A place where a component can be joined to others."""

    #: ROTATIONAL, TRANSLATIONAL, THERMAL, FRAME or ANY (of the two that move)
    domain: str = ROTATIONAL
    #: joined to nothing is an error
    required: bool = True
    #: joined to nothing means: fixed in the housing at 0
    support: bool = False


#: the housing side of a component: at rest unless joined to something that moves
SUPPORT = Flange(required=False, support=True)
#: a flange that may stay open
OPEN = Flange(required=False)
#: where a dissipating component gives off its heat; may stay open
HEAT_PORT = Flange(domain=THERMAL, required=False)
#: what is fixed to a carrier
FRAME_PORT = Flange(domain=FRAME)
