"""The two domains that move, as data: a law is written with the words of rotation, a domain is what they become.

    phi, w, tau      s, v, f          angle, speed (or velocity), torque      position, speed, force

The kernels know one law each, whatever it moves (a form, an inertia, a torque); names, dimensions and the words of a
page are all that a translational component has of its own. In texts the words stand in braces: "{phi}_rel0" is phi_rel0
or s_rel0, "smallest {relative angle}" is "smallest relative angle" or "smallest distance".
"""

from __future__ import annotations

from collections.abc import Mapping

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.flange import ROTATIONAL, TRANSLATIONAL, Flange


class _Words(dict[str, str]):
    """Words that stay what they are unless they are named."""

    def __missing__(self, word: str) -> str:
        return word


@dataclass(frozen=True)
class Motion:
    """A domain in which things move."""

    #: ROTATIONAL or TRANSLATIONAL
    domain: str
    #: word of rotation -> word here, of names and texts
    words: Mapping[str, str]
    #: dimension of rotation -> dimension here
    dimensions: Mapping[str, str]

    def text(self, pattern: str) -> str:
        """A name or a text with the words of this domain."""
        return pattern.format_map(_Words(self.words))

    def dimension(self, of_rotation: str) -> str:
        """The dimension here of what has this one in rotation; what turns nothing keeps its own (time, energy)."""
        return self.dimensions.get(of_rotation, of_rotation)

    @property
    def flange(self) -> Flange:
        """A flange that must be joined."""
        return Flange(domain=self.domain)

    @property
    def open(self) -> Flange:
        """A flange that may stay open."""
        return Flange(domain=self.domain, required=False)

    @property
    def support(self) -> Flange:
        """The side of the housing: at rest unless joined."""
        return Flange(domain=self.domain, required=False, support=True)


ROTATION = Motion(ROTATIONAL, {}, {})
TRANSLATION = Motion(
    TRANSLATIONAL,
    {
        "phi": "s",
        "w": "v",
        "tau": "f",
        "angle": "position",
        "relative angle": "distance",
        "torque": "force",
        "J": "m",
        "Torque": "Force",
    },
    {
        "angle": "length",
        "angular_velocity": "velocity",
        "angular_acceleration": "acceleration",
        "torque": "force",
        "inertia": "mass",
        "rotational_stiffness": "stiffness",
        "rotational_damping": "damping",
    },
)

#: by the word a flange has
MOTIONS = {motion.domain: motion for motion in (ROTATION, TRANSLATION)}

#: name, dimension of position, speed, acceleration, in the words of rotation
OF_A_PART = (("{phi}", "angle"), ("{w}", "angular_velocity"), ("a", "angular_acceleration"))
