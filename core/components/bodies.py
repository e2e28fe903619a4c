"""Rigid bodies that carry drivelines and move freely, on hinges or on rubber mounts: the carrier as part of the model.

A `RigidBody` moves in space under gravity, its hinges and mounts, and what the driveline on it does: frames of Rotor1D,
Mounting1D, MountedDriveline are joined to its frame_b. What acts between driveline and body is inside: a support that
is joined to nothing is part of the body. All vectors are along the axes of the body but gravity and place.

Attitude: quaternion (q0, q1, q2, q3), scalar first, from the axes of the body to those of the world. The integrals of
the rates w_x .. are the angles that rubber mounts see: right while the body turns by small angles, with an error of the
second order in them; hinges and free motion hold for any attitude.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from torqueloop.core.components.carriers import AXES, OnAxis, Quaternion, unit_quaternion
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import FRAME, FRAME_PORT, ROTATIONAL, TRANSLATIONAL, Flange
from torqueloop.core.describe.frame_parts import Vector
from torqueloop.core.describe.kernel_numbers import OUT_ACCELERATION, OUT_SPEED
from torqueloop.core.describe.params import param, require

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder


@dataclass(frozen=True, kw_only=True)
class RigidBody(Component):
    """Mass m and inertia I about its mass centre, those of its rotors at rest included; g: gravity, along the axes of
    the world.

    Outputs: rates w_x .. and a_x .., velocity v_x .. of the mass centre (along the axes of the body), quaternion q0 ..
    q3, place x, y, z of the mass centre in the world, work_*: of gravity, and of what turning axes add (0 in sum).
    """

    flanges: ClassVar[Mapping[str, Flange]] = {
        "frame_b": Flange(domain=FRAME, required=False),
        **{f"w_{axis}": Flange(domain=ROTATIONAL, required=False) for axis in AXES},
        **{f"v_{axis}": Flange(domain=TRANSLATIONAL, required=False) for axis in AXES},
    }

    m: float = param("mass", "mass", low=0.0, above=True)
    I_11: float = param("moment of inertia about x through the mass centre", "inertia", low=0.0, above=True)
    I_22: float = param("about y", "inertia", low=0.0, above=True)
    I_33: float = param("about z", "inertia", low=0.0, above=True)
    I_21: float = param("product of inertia, element of the tensor", "inertia", 0.0, quantity="product_of_inertia")
    I_31: float = param("product of inertia", "inertia", 0.0, quantity="product_of_inertia")
    I_32: float = param("product of inertia", "inertia", 0.0, quantity="product_of_inertia")
    g_x: float = param("gravity along x of the world", "acceleration", 0.0)
    g_y: float = param("gravity along y", "acceleration", 0.0)
    g_z: float = param("gravity along z", "acceleration", 0.0)
    q0: float = param("attitude at the start: quaternion, scalar part", default=1.0)
    q1: float = param("its x", default=0.0)
    q2: float = param("its y", default=0.0)
    q3: float = param("its z", default=0.0)
    x0: float = param("place of the mass centre at the start, x of the world", "length", 0.0)
    y0: float = param("its y", "length", 0.0)
    z0: float = param("its z", "length", 0.0)
    w0_x: float | None = param("start rate about x of the body", "angular_velocity", None)
    w0_y: float | None = param("about y", "angular_velocity", None)
    w0_z: float | None = param("about z", "angular_velocity", None)
    v0_x: float | None = param("start velocity of the mass centre along x of the body", "velocity", None)
    v0_y: float | None = param("along y", "velocity", None)
    v0_z: float | None = param("along z", "velocity", None)

    def check(self) -> None:
        _ = self.q
        least = float(np.linalg.eigvalsh(np.array(self.tensor))[0])
        require(least > 0.0, "the tensor of inertia has the principal moment {value}", key="I_11", value=least,
                allowed="> 0 kg.m2")  # fmt: skip

    @property
    def tensor(self) -> tuple[Vector, Vector, Vector]:
        """Tensor of inertia about the mass centre."""
        return (
            (self.I_11, self.I_21, self.I_31), (self.I_21, self.I_22, self.I_32), (self.I_31, self.I_32, self.I_33),
        )  # fmt: skip

    @property
    def q(self) -> Quaternion:
        """Attitude at the start."""
        return unit_quaternion((self.q0, self.q1, self.q2, self.q3), "q0")

    def contribute(self, b: Builder) -> None:
        w, v = (tuple(b.w(f"{letter}_{axis}") for axis in AXES) for letter in "wv")
        b.body(
            "frame_b", (w[0], w[1], w[2]), (v[0], v[1], v[2]), m=self.m, tensor=self.tensor,
            g=(self.g_x, self.g_y, self.g_z), r=(self.x0, self.y0, self.z0), q=self.q,
        )  # fmt: skip
        for k, axis in enumerate(AXES):
            b.output(f"w_{axis}", "angular_velocity", OUT_SPEED, form=w[k])
            b.output(f"a_{axis}", "angular_acceleration", OUT_ACCELERATION, form=w[k])
            b.output(f"v_{axis}", "velocity", OUT_SPEED, form=v[k])
            b.initial("w", w[k], getattr(self, f"w0_{axis}"), f"w0_{axis}")
            b.initial("w", v[k], getattr(self, f"v0_{axis}"), f"v0_{axis}")


@dataclass(frozen=True, kw_only=True)
class _AtPoint(Component):
    """What is joined to a point of a body."""

    flanges: ClassVar[Mapping[str, Flange]] = {"frame_a": FRAME_PORT}

    r_x: float = param("the point, from the mass centre, along x of the body", "length", 0.0)
    r_y: float = param("along y", "length", 0.0)
    r_z: float = param("along z", "length", 0.0)

    @property
    def r(self) -> Vector:
        """The point."""
        return self.r_x, self.r_y, self.r_z


@dataclass(frozen=True, kw_only=True)
class SphericalMount(_AtPoint):
    """A ball joint to the world: a point of the body stays where it is, v + w x r = 0. Outputs f_x ..: force on it."""

    def contribute(self, b: Builder) -> None:
        b.hinge("frame_a", self.r)


@dataclass(frozen=True, kw_only=True)
class RevoluteMount(OnAxis, _AtPoint):
    """A hinge to the world: the body turns about the axis n through a point of it.

    Outputs f_x ..: force on the body; t_u, t_v: moments on it across the axis, about u (the axis of the body that is
    least along n, made square to n) and about n x u.
    """

    def contribute(self, b: Builder) -> None:
        n = np.array(self.n)
        u = np.eye(3)[int(np.argmin(np.abs(n)))]
        u = u - (u @ n) * n
        u = u / np.linalg.norm(u)
        across = [tuple(float(x) for x in axis) for axis in (u, np.cross(n, u))]
        b.hinge("frame_a", self.r, blocked=tuple((a[0], a[1], a[2]) for a in across))


@dataclass(frozen=True, kw_only=True)
class FixedMount(_AtPoint):
    """The body is bolted to the world at a point: it does not move; what is on it acts on the bolts.

    Outputs f_x ..: force on the body; t_u, t_v, t_w: moments on it about its x, y, z, at the point.
    """

    def contribute(self, b: Builder) -> None:
        b.hinge("frame_a", self.r, blocked=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))


@dataclass(frozen=True, kw_only=True)
class CardanMount(_AtPoint):
    """Three hinges in turn, about x, y, z, without mass, from the world; inputs tau_1 .. tau_3: the torques in them.

    At 90 deg of the second the first and third axis are parallel and no torque on the body answers tau_1: the state is
    not finite there (SimulationError, on a rig the safe state).
    """

    def contribute(self, b: Builder) -> None:
        tau = tuple(b.input(f"tau_{k}", "torque") for k in (1, 2, 3))
        b.hinge("frame_a", self.r, tau=tau)


@dataclass(frozen=True, kw_only=True)
class BodyMount(_AtPoint):
    """Rubber mount: springs c and dampers d along the axes of the body at a point of it, c_rot, d_rot about them.

    Displacements are those since the start, from there the mount bears the body: leave gravity out of a body on
    mounts, or let it sink into them. Small angles. Outputs f_x .., t_x ..: what acts on the body; heat_*.
    """

    c_x: float = param("stiffness along x", "stiffness", 0.0, low=0.0)
    c_y: float = param("along y", "stiffness", 0.0, low=0.0)
    c_z: float = param("along z", "stiffness", 0.0, low=0.0)
    d_x: float = param("damping along x", "damping", 0.0, low=0.0)
    d_y: float = param("along y", "damping", 0.0, low=0.0)
    d_z: float = param("along z", "damping", 0.0, low=0.0)
    crot_x: float = param("stiffness about x", "rotational_stiffness", 0.0, low=0.0)
    crot_y: float = param("about y", "rotational_stiffness", 0.0, low=0.0)
    crot_z: float = param("about z", "rotational_stiffness", 0.0, low=0.0)
    drot_x: float = param("damping about x", "rotational_damping", 0.0, low=0.0)
    drot_y: float = param("about y", "rotational_damping", 0.0, low=0.0)
    drot_z: float = param("about z", "rotational_damping", 0.0, low=0.0)

    def contribute(self, b: Builder) -> None:
        lines = ((getattr(self, f"{word}_{axis}") for axis in AXES) for word in ("c", "d", "crot", "drot"))
        c, d, c_rot, d_rot = ((x, y, z) for x, y, z in lines)
        b.bushing("frame_a", self.r, c, d, c_rot, d_rot)


@dataclass(frozen=True, kw_only=True)
class LeavingShaft(OnAxis):
    """A shaft that leaves the body: flange_a turns relative to it, flange_b in the world, w_b = w_a + n.w of the body.

    What is joined to flange_b stands in the world (a propeller shaft, a final drive), and its torque acts on the body
    from outside; joined to flange_a it would be part of the body. Output tau: torque on flange_b. The shaft keeps its
    axis n, so the body may turn by small angles across it.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange_a": Flange(), "flange_b": Flange(), "frame_a": FRAME_PORT}

    def contribute(self, b: Builder) -> None:
        b.leaving("frame_a", b.w("flange_b") - b.w("flange_a"), self.n)
