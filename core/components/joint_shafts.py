"""Shafts with universal (Hooke, Cardan) and constant-velocity joints.

A universal joint at the bend angle beta turns x, the angle of the fork of its outer shaft from the plane of both,
into y = atan2(sin x, cos x cos(beta)) of the other shaft. Whole turns are equal; within a turn the ratio of speeds is

    dy/dx = cos(beta)/(1 - sin(beta)^2 cos(x)^2)             between cos(beta) and 1/cos(beta), twice a turn

A shaft between two joints carries the torque tau = c*D + d*D' of its twist D, and gives its flanges -tau*dy_a/dx_a and
tau*dy_b/dx_b, so that no power is lost. Two universal joints transmit the speed unchanged if their bend angles are
equal, their planes are one, and the forks of the shaft between them are in line (phase = planes).

Without friction a joint bears no torque about its pins, so it transmits a couple along the normal of its cross. Across
the outer shaft that is a moment on its bearings, tau*tan(beta)*sin(x)*cos(x) along the normal of the plane and
tau*tan(beta)*sin(x)^2 in it; one of constant velocity, whose couple halves the bend, gives tau*tan(beta/2) in it.

F. Duditza: Kardangelenkgetriebe und ihre Anwendungen, 1973; H. C. Seherr-Thoss, F. Schmelz, E. Aucktor: Universal
Joints and Driveshafts, 2nd ed. 2006; J. Andreasson, M. Gaefvert: Rotational3D, 6th Int. Modelica Conference 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from torqueloop.core.components.carriers import unit_vector
from torqueloop.core.components.of_motion import TWO_SHAFTS
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import FRAME_PORT, Flange
from torqueloop.core.describe.joint_parts import LARGEST_BEND
from torqueloop.core.describe.kernel_numbers import OUT_COMPLIANCE, OUT_JOINT, OUT_PORT, OUT_REACTION
from torqueloop.core.describe.params import param, require, require_given
from torqueloop.core.describe.vocabulary import JOINT_OUTPUTS

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder

UNIVERSAL, CONSTANT_VELOCITY = "universal", "constant_velocity"
#: numbers of the outputs in the kernel (joint_output)
TWIST_OUTPUTS = (("tau", "torque", 0), ("twist", "angle", 1), ("loss", "energy", 4), ("work_bend", "energy", 5))


def check_bend(key: str, beta: float | None) -> None:
    """RangeError for a joint at 90 deg and near it."""
    require(
        beta is None or abs(beta) <= LARGEST_BEND,
        "{key} = {value} rad: a joint that is bent by 90 deg passes no torque",
        key=key, value=beta, allowed="-80 .. 80 deg",
    )  # fmt: skip


def joint_outputs(b: Builder, joint: int, outputs: tuple[tuple[str, str, int], ...]) -> None:
    """Outputs (name, dimension, number in the kernel) of a joint shaft, after those all of them have."""
    for name, dimension, which in outputs:
        b.output(name, dimension, OUT_JOINT, index=joint * JOINT_OUTPUTS + which)


def twist_outputs(b: Builder, joint: int, spring: int) -> None:
    """What every joint shaft shows. The torque on flange a is mean + ripple_a, on flange b -mean + ripple_b."""
    joint_outputs(b, joint, TWIST_OUTPUTS)
    b.output("mean", "torque", OUT_COMPLIANCE, index=spring)
    b.output("ripple_a", "torque", OUT_PORT, port=("joint_a", joint))
    b.output("ripple_b", "torque", OUT_PORT, port=("joint_b", joint))


@dataclass(frozen=True, kw_only=True)
class UniversalJoint(Component):
    """A universal joint, and the shaft behind it as a spring and damper: tau = c*D + d*D', D = y(phi_a) - phi_b.

    Flange a is fixed to the fork before the joint, its torque is -tau*dy/dx. The twist D is 0 at phi_a = phi_b = 0 with
    the bend angle beta. With `bend_input` the bend angle is the input beta (rad; held within 80 deg): what bends
    the loaded joint does work (output work_bend); one that jumps twists the shaft at once.
    Outputs: tau, twist, ratio dy/dx, moments m_n, m_p of the joint on the bearings of shaft a, loss, work_bend;
    mean, ripple_a, ripple_b (the torque on flange a is mean + ripple_a, on b -mean + ripple_b).
    """

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    c: float = param("stiffness of the shaft behind the joint", "rotational_stiffness", low=0.0, above=True)
    d: float = param("its damping", "rotational_damping", 0.0, low=0.0)
    beta: float | None = param("bend angle; none: by the bearings of both shafts", "angle", None)
    bend_input: bool = param("the bend angle is an input", default=False, form="flag")
    theta: float = param("angle of the fork of flange a from the plane of both shafts at phi_a = 0", "angle", 0.0)

    def check(self) -> None:
        check_bend("beta", self.beta)

    def contribute(self, b: Builder) -> None:
        bend = b.input("beta", "angle") if self.bend_input else -1
        # an input that is bent otherwise than at the start: relaxed where it is straight
        beta = 0.0 if self.beta is None and self.bend_input else self.beta
        joint, spring = b.joint_shaft(
            b.w("flange_a"), b.w("flange_b"), self.c, self.d, hooke=(1, 0), bend_in=(bend, -1), fork=self.theta,
            given=None if beta is None else (beta, 0.0), joints=1,
        )  # fmt: skip
        twist_outputs(b, joint, spring)
        joint_outputs(b, joint, (("ratio", "1", 2), ("m_n", "torque", 6), ("m_p", "torque", 7)))


@dataclass(frozen=True, kw_only=True)
class JointShaft(Component):
    """A shaft between two joints as a spring and damper: propeller shaft, drive shaft, steering shaft.

    tau = c*D + d*D', D = y_a(phi_a) - y_b(phi_b); torques on the flanges: -tau*dy_a/dphi_a and tau*dy_b/dphi_b. The
    twist D is 0 at phi_a = phi_b = 0 with the bend angles beta_a, beta_b. With `bend_inputs` these are inputs (rad;
    held within 80 deg): what bends the loaded shaft does work (work_bend); an angle that jumps twists it at once.
    phase: by how much the fork of the shaft at joint b is turned against the one at joint a; 0 lets equal bends in one
    plane cancel out, 90 deg adds them up. planes: angle from the plane of joint a to that of joint b, about the shaft.
    Outputs: tau, twist, ratio_a, ratio_b (dphi_shaft/dphi_a, dphi_b/dphi_shaft), moments ma_n, ma_p, mb_n, mb_p on the
    bearings of the outer shafts along the normal of each plane and in it, with a length the force f_n, f_p of the
    shaft on joint a (the opposite on b), loss, work_bend; between carriers that move against each other bend_a, bend_b
    and distance of the joints; and
    mean, ripple_a, ripple_b (the torque on flange a is mean + ripple_a, on b -mean + ripple_b).
    """

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    c: float = param("stiffness of the shaft", "rotational_stiffness", low=0.0, above=True)
    d: float = param("its damping", "rotational_damping", 0.0, low=0.0)
    joint_a: str = param("joint at flange_a", default=UNIVERSAL, form="choice", choices=(UNIVERSAL, CONSTANT_VELOCITY))
    joint_b: str = param("joint at flange_b", default=UNIVERSAL, form="choice", choices=(UNIVERSAL, CONSTANT_VELOCITY))
    beta_a: float | None = param("bend angle of joint a; none: by the bearings of both shafts", "angle", None)
    beta_b: float | None = param("bend angle of joint b", "angle", None)
    bend_inputs: bool = param("the bend angles are inputs", default=False, form="flag")
    theta: float = param("angle of the fork of flange a from the plane of its joint at phi_a = 0", "angle", 0.0)
    phase: float = param("angle between the forks of the shaft; 0: in line", "angle", 0.0)
    planes: float = param("angle between the planes of the joints, about the shaft", "angle", 0.0)
    length: float | None = param("distance of the joints", "length", None, low=0.0, above=True)

    def check(self) -> None:
        check_bend("beta_a", self.beta_a)
        check_bend("beta_b", self.beta_b)
        require_given((self.beta_a is None) == (self.beta_b is None), "{key} is missing beside the other one", "beta_b")
        directed = self.beta_a is None and not self.bend_inputs
        require(
            not directed or (self.length is None and self.planes == 0.0),
            "{key} follows from the bearings",
            key="length" if self.length is not None else "planes",
            value=self.length if self.length is not None else self.planes,
            allowed="with beta_a, beta_b only",
        )

    def contribute(self, b: Builder) -> None:
        bends = (b.input("beta_a", "angle"), b.input("beta_b", "angle")) if self.bend_inputs else (-1, -1)
        none = 0.0 if self.bend_inputs else None
        beta_a, beta_b = (none if beta is None else beta for beta in (self.beta_a, self.beta_b))
        joint, spring = b.joint_shaft(
            b.w("flange_a"), b.w("flange_b"), self.c, self.d,
            hooke=(int(self.joint_a == UNIVERSAL), int(self.joint_b == UNIVERSAL)), bend_in=bends, fork=self.theta,
            given=None if beta_a is None or beta_b is None else (beta_a, beta_b), phase=self.phase, planes=self.planes,
            length=self.length or 0.0,
        )  # fmt: skip
        twist_outputs(b, joint, spring)
        joint_outputs(b, joint, (("ratio_a", "1", 2), ("ratio_b", "1", 3)))
        moments = ("ma_n", "ma_p", "mb_n", "mb_p")
        joint_outputs(b, joint, tuple((name, "torque", 6 + k) for k, name in enumerate(moments)))
        if self.length is not None or (self.beta_a is None and not self.bend_inputs):
            joint_outputs(b, joint, (("f_n", "force", 10), ("f_p", "force", 11)))


@dataclass(frozen=True, kw_only=True)
class ConstantVelocityJoint(Component):
    """A rigid joint of constant velocity without friction: w_a = w_b at any bend angle.

    Outputs: tau, the torque it passes on; m_p = tau*tan(beta/2), the moment on the bearings of each shaft, in the plane
    of both.
    """

    flanges: ClassVar[Mapping[str, Flange]] = TWO_SHAFTS

    beta: float | None = param("bend angle; none: by the bearings of both shafts", "angle", None)

    def check(self) -> None:
        check_bend("beta", self.beta)

    def contribute(self, b: Builder) -> None:
        joint = b.constraint(b.w("flange_a") - b.w("flange_b"))
        tau = b.reaction(joint, gain=-1.0)
        b.output("tau", "torque", OUT_REACTION, index=tau)
        moment = b.reaction(joint)
        b.output("m_p", "torque", OUT_REACTION, index=moment)
        b.rigid_joint(self.beta, tau, moment)


@dataclass(frozen=True, kw_only=True)
class ShaftBearing(Component):
    """The direction of a shaft on a carrier: the reference that joints need, one for each of their two shafts.

    A shaft is what turns as one piece: joined flanges and the rigid parts between them; a spring begins another.
    n: axis, in the sense in which it turns; r: centre of the joint the shaft ends in, both along the axes of the
    carrier; r counts from its origin, which is the mass centre of a RigidBody. Joints without a bend angle of their
    own take it from the bearings of their shafts, and their torques along n act on the carrier.
    """

    flanges: ClassVar[Mapping[str, Flange]] = {"flange": Flange(), "frame_a": FRAME_PORT}

    n_x: float = param("axis, along x of the carrier (made length 1)", default=1.0)
    n_y: float = param("axis, along y", default=0.0)
    n_z: float = param("axis, along z", default=0.0)
    r_x: float = param("centre of the joint, along x", "length", 0.0)
    r_y: float = param("along y", "length", 0.0)
    r_z: float = param("along z", "length", 0.0)

    def check(self) -> None:
        unit_vector((self.n_x, self.n_y, self.n_z), "n_x")

    def contribute(self, b: Builder) -> None:
        n = unit_vector((self.n_x, self.n_y, self.n_z), "n_x")
        b.bearing("flange", "frame_a", n, (self.r_x, self.r_y, self.r_z))
