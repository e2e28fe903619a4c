"""Trees of bodies on joints, coupled exactly with 1-D drivelines: offline. See docs/moving_bodies.md."""

from torqueloop.core.multibody.carried import Carried as Carried
from torqueloop.core.multibody.coupled import Coupled as Coupled
from torqueloop.core.multibody.integrate import Trajectory as Trajectory
from torqueloop.core.multibody.integrate import integrate as integrate
from torqueloop.core.multibody.rows import PointHeld as PointHeld
from torqueloop.core.multibody.rows import Row as Row
from torqueloop.core.multibody.tree import WORLD as WORLD
from torqueloop.core.multibody.tree import Body as Body
from torqueloop.core.multibody.tree import Tree as Tree
