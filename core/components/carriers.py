"""What joins a driveline of one dimension to a body that moves in space: carriers, mountings, rotors, bevel gears.

Angles and speeds of a driveline on a carrier are those relative to the carrier; a support that is joined to nothing
is part of the carrier, but its torque is then in no moment on it: join it to a Mounting1D. Axes and moments are along
the axes of the carrier's frame. Mass and inertia of the rotors at rest belong to the body that is the carrier.

The moment on a carrier is the sum of its support torques and of -(omega x J*w*n) + J*(n.z)*n of its rotors. With all
supports mounted it equals -(J*n*dw/dt + omega x J*w*n) plus what the driveline gets from outside.

After Modelica.Mechanics.MultiBody.Parts (Rotor1D, Mounting1D, BevelGear1D) and C. Schweiger, M. Otter: Modelling 3D
Mechanical Effects of 1D Powertrains, 3rd Int. Modelica Conference 2003.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import RangeError
from torqueloop.core.describe.flange import FRAME_PORT, OPEN, Flange
from torqueloop.core.describe.frame_parts import Vector
from torqueloop.core.describe.kernel_numbers import OUT_INPUT, OUT_REACTION
from torqueloop.core.describe.params import param, require
from torqueloop.core.signals import Constant, Signal

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

AXES = ("x", "y", "z")
#: how far the length of a quaternion may be from 1
UNIT = 1e-6
Quaternion = tuple[float, float, float, float]
#: inputs of the pose of a carrier, in this order: quaternion, place
POSE = ("q0", "q1", "q2", "q3", "x", "y", "z")


def unit_vector(n: Vector, key: str) -> Vector:
    """n with length 1; RangeError for none."""
    length = math.hypot(*n)
    require(length > 0.0, "{key} = {value} is no direction", key=key, value=list(n), allowed="a vector that is not 0")
    return n[0] / length, n[1] / length, n[2] / length


def unit_quaternion(q: Quaternion, key: str) -> Quaternion:
    """q with length 1; RangeError unless it has it but for rounding."""
    length = math.hypot(*q)
    if not abs(length - 1.0) <= UNIT:
        given = ", ".join(f"{x:g}" for x in q)
        problem = f"{{key}} .. q3 = {given}: a quaternion of length {length:g} is no attitude"
        raise RangeError(problem, key=key, value=q[0], allowed="length 1")
    return q[0] / length, q[1] / length, q[2] / length, q[3] / length


@dataclass(frozen=True, kw_only=True)
class World(Component):
    """A carrier at rest. Outputs t_x, t_y, t_z: moment of the driveline on it; f_x ..: force of shafts to others."""

    flanges: ClassVar[Mapping[str, Flange]] = {"frame_b": FRAME_PORT}

    def contribute(self, b: Builder) -> None:
        b.carrier("frame_b")


@dataclass(frozen=True, kw_only=True)
class MovingCarrier(Component):
    """A carrier whose motion is given: inputs w_x, w_y, w_z, its angular velocity along its own axes (rad/s).

    Its angular acceleration is the derivative of these signals (one that jumps has none and is refused), or, with
    `use_z`, the inputs z_x, z_y, z_z (rad/s2): only they turn the rotors, so that a w that jumps changes the gyroscopic
    moments at once and nothing else. Outputs w_x .. and t_x, t_y, t_z: moment of the driveline on the carrier.

    With `attitude` shafts with joints may lead to other carriers (docs/joint_shafts.md): inputs q0 .. q3, the
    quaternion from its axes to those of the world (scalar first, made length 1; one shorter than 0.5 or longer than 2
    is no attitude and ends the run), and x, y, z, the place of its origin in the world; outputs f_x, f_y, f_z: force
    of these shafts, t_x .. with its moment about the origin. The parameters q0 .. q3, x0 .. are the pose in which
    these shafts were put together, and what the inputs are without a signal.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"frame_b": FRAME_PORT}

    use_z: bool = param("the angular acceleration is an input of its own", default=False, form="flag")
    attitude: bool = param("attitude and place in the world are inputs", default=False, form="flag")
    q0: float = param("attitude as shafts were put together: quaternion, scalar part", default=1.0)
    q1: float = param("its x", default=0.0)
    q2: float = param("its y", default=0.0)
    q3: float = param("its z", default=0.0)
    x0: float = param("place of the origin as shafts were put together, x of the world", "length", 0.0)
    y0: float = param("its y", "length", 0.0)
    z0: float = param("its z", "length", 0.0)

    def check(self) -> None:
        _ = self.assembled
        given = [key for key in ("q1", "q2", "q3", "x0", "y0", "z0") if getattr(self, key) != 0.0]
        require(self.attitude or not given, "{key} goes with attitude = true", key=given[0] if given else "q1",
                value=getattr(self, given[0]) if given else 0.0, allowed="0")  # fmt: skip

    @property
    def assembled(self) -> Quaternion:
        """Attitude as shafts were put together."""
        return unit_quaternion((self.q0, self.q1, self.q2, self.q3), "q0")

    def default_inputs(self) -> dict[str, Signal]:
        pose = (*self.assembled, self.x0, self.y0, self.z0)
        return {name: Constant(value) for name, value in zip(POSE, pose, strict=True)} if self.attitude else {}

    def contribute(self, b: Builder) -> None:
        w = tuple(b.input(f"w_{axis}", "angular_velocity") for axis in AXES)
        if self.use_z:
            z = tuple(b.input(f"z_{axis}", "angular_acceleration") for axis in AXES)
        else:
            z = tuple(b.derived_input(f"w_{axis}", 1, "angular_acceleration") for axis in AXES)
        for axis, index in zip(AXES, w, strict=True):
            b.output(f"w_{axis}", "angular_velocity", OUT_INPUT, index=index)
        pose = tuple(b.input(name, "length" if name in AXES else "1") for name in POSE) if self.attitude else ()
        b.carrier("frame_b", w, z, pose=pose, q0=self.assembled, r0=(self.x0, self.y0, self.z0))


@dataclass(frozen=True, kw_only=True)
class OnAxis(Component):
    """What the parts with one axis share."""

    n_x: float = param("axis, along x of its carrier or body (made length 1)", default=1.0)
    n_y: float = param("axis, along y", default=0.0)
    n_z: float = param("axis, along z", default=0.0)

    def check(self) -> None:
        _ = self.n

    @property
    def n(self) -> Vector:
        """The axis, with length 1."""
        return unit_vector((self.n_x, self.n_y, self.n_z), "n_x")


@dataclass(frozen=True, kw_only=True)
class Mounting1D(OnAxis):
    """Holds flange_b at phi0 relative to the carrier and passes its torque on to it about the axis n.

    Output tau: torque on flange_b; the carrier gets tau*n.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_b": Flange(), "frame_a": FRAME_PORT}

    phi0: Fraction = param("angle relative to the carrier", "angle", Fraction(0), form="exact")

    def contribute(self, b: Builder) -> None:
        held = b.constraint(b.w("flange_b"), self.phi0, held=True)
        tau = b.reaction(held, gain=-1.0)
        b.output("tau", "torque", OUT_REACTION, index=tau)
        b.moment("frame_a", tau, self.n)


@dataclass(frozen=True, kw_only=True)
class Rotor1D(OnAxis):
    """A rotor about the axis n of its carrier: J*(dw/dt + n.z) = sum of its torques, w and phi relative to the carrier.

    The carrier gets -(omega x J*w*n) + J*(n.z)*n besides the reactions of these torques. exact = false neglects both
    terms of J*(n.z), which is right where the driveline accelerates much faster than its carrier.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": OPEN, "flange_b": OPEN, "frame_a": FRAME_PORT}

    J: float = param("moment of inertia about the axis", "inertia", low=0.0, above=True)
    exact: bool = param("keep J*(n.z), the angular acceleration of the carrier", default=True, form="flag")
    phi0: float | None = param("start angle", "angle", None)
    w0: float | None = param("start speed", "angular_velocity", None)

    def contribute(self, b: Builder) -> None:
        shaft = b.w("flange_a")
        b.join("flange_a", "flange_b")
        b.inertia("flange_a", self.J)
        b.rotor("frame_a", shaft, self.J, self.n, self.exact)
        b.motion_outputs(shaft)
        b.initial("phi", shaft, self.phi0, "phi0")
        b.initial("w", shaft, self.w0, "w0")


@dataclass(frozen=True, kw_only=True)
class BevelGear1D(Component):
    """Gear between shafts about n_a and n_b: phi_a = ratio*phi_b; torque on flange_b = -ratio * torque on flange_a.

    The carrier gets tau_a*n_a + tau_b*n_b, the torques of the shafts on the gear (outputs tau_a, tau_b).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange(), "frame_a": FRAME_PORT}

    ratio: Fraction = param("transmission ratio phi_a/phi_b", default=Fraction(1), form="exact", quantity="ratio")
    na_x: float = param("axis of flange_a, along x of the carrier (made length 1)", default=1.0)
    na_y: float = param("axis of flange_a, along y", default=0.0)
    na_z: float = param("axis of flange_a, along z", default=0.0)
    nb_x: float = param("axis of flange_b, along x of the carrier (made length 1)", default=1.0)
    nb_y: float = param("axis of flange_b, along y", default=0.0)
    nb_z: float = param("axis of flange_b, along z", default=0.0)

    def check(self) -> None:
        require(self.ratio != 0, "{key} = {value} is out of range", key="ratio", value=0, allowed="not 0")
        _ = self.n_a, self.n_b

    @property
    def n_a(self) -> Vector:
        """Axis of flange_a, with length 1."""
        return unit_vector((self.na_x, self.na_y, self.na_z), "na_x")

    @property
    def n_b(self) -> Vector:
        """Axis of flange_b, with length 1."""
        return unit_vector((self.nb_x, self.nb_y, self.nb_z), "nb_x")

    def contribute(self, b: Builder) -> None:
        gear = b.constraint(b.w("flange_a") - self.ratio * b.w("flange_b"))
        # the force of the row acts as +1 on side a and as -ratio on side b; the shafts answer on the gear
        for short, gain, n in (("tau_a", -1.0, self.n_a), ("tau_b", float(self.ratio), self.n_b)):
            tau = b.reaction(gear, gain=gain)
            b.output(short, "torque", OUT_REACTION, index=tau)
            b.moment("frame_a", tau, n)


@dataclass(frozen=True, kw_only=True)
class AbsoluteSpeedSensor(OnAxis):
    """Output w: speed of the flange plus n.omega of its carrier, its angular velocity in space about the axis n."""

    flanges: ClassVar[Mapping[str, Flange]] = {"flange": Flange(), "frame_a": FRAME_PORT}

    def contribute(self, b: Builder) -> None:
        b.absolute_speed("w", "frame_a", b.w("flange"), self.n)


@dataclass(frozen=True, kw_only=True)
class MountedDriveline(OnAxis):
    """A driveline as it is on a carrier: all its inertias turn about the axis n, its housing is part of the carrier.

    Every inertia of the components `parts` is a rotor as Rotor1D is, every support and Fixed of theirs that is in the
    housing is mounted. Output tau: torque of the driveline on its housing; the carrier gets tau*n and what rotors give.
    A support of theirs that is joined to something else (a Mounting1D about another axis) is not in the housing.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"frame_a": FRAME_PORT}

    parts: str = param("its components: names with * and ?, blanks between them", default="*", form="names")
    exact: bool = param("keep J*(n.z), the angular acceleration of the carrier", default=True, form="flag")

    def contribute(self, b: Builder) -> None:
        b.mounted("frame_a", self.parts, self.n, self.exact)
