"""Trees of bodies on joints, coupled exactly with 1-D drivelines: offline. See docs/moving_bodies.md."""

from torqueloop.core.multibody.carried import Carried as Carried
from torqueloop.core.multibody.coupled import Coupled as Coupled
from torqueloop.core.multibody.coupled import Solution as Solution
from torqueloop.core.multibody.coupled import State as State
from torqueloop.core.multibody.integrate import Stepper as Stepper
from torqueloop.core.multibody.integrate import Trajectory as Trajectory
from torqueloop.core.multibody.integrate import integrate as integrate
from torqueloop.core.multibody.rows import PointHeld as PointHeld
from torqueloop.core.multibody.rows import Row as Row
from torqueloop.core.multibody.rows import actuated_revolute as actuated_revolute
from torqueloop.core.multibody.rows import gear_constraint as gear_constraint
from torqueloop.core.multibody.shafts import BodyShaft as BodyShaft
from torqueloop.core.multibody.tree import WORLD as WORLD
from torqueloop.core.multibody.tree import Body as Body
from torqueloop.core.multibody.tree import Tree as Tree
