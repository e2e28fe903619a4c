"""The file of a tree of bodies: joints, drivelines on bodies, rows between them, inputs, start. See configs/trees/.

[tree] [body.NAME] [driveline.NAME] [gear.NAME] [actuator.NAME] [row.NAME] [point.NAME] [shaft.NAME] [inputs]
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, FolderName, InFile

Vector = Annotated[list[float], Field(min_length=3, max_length=3)]


class TreeTable(ConfigTable):
    """[tree]: what is simulated, how long, in which steps."""

    #: name of the tree, in reports
    name: FolderName
    #: of an offline run [s]
    duration_s: Annotated[float, Field(gt=0, le=1e5)] = 1.0
    #: of an offline run; of a peer: the longest, a period is divided evenly [s]
    step_s: Annotated[float, Field(gt=0, le=0.1)] = 1e-3
    #: acceleration of gravity, along the axes of the world [m/s2]
    gravity_mps2: Vector = [0.0, 0.0, -9.81]


class BodyTable(ConfigTable):
    """[body.NAME]: a rigid body and the joint that carries it, which has its name. Vectors along its own axes."""

    #: mass, with what turns in it at rest [kg]
    mass_kg: Annotated[float, Field(gt=0)]
    #: inertia about its mass centre: xx, yy, zz, xy, xz, yz of the matrix [kg.m2]
    I_kgm2: Annotated[list[float], Field(min_length=6, max_length=6)]
    #: mass centre from the joint [m]
    com_m: Vector = [0.0, 0.0, 0.0]
    #: body that carries it
    parent: str = "world"
    #: joint to its parent
    joint: Literal["revolute", "prismatic", "spherical", "free"] = "revolute"
    #: axis of a revolute or prismatic joint, along the axes of parent and body
    axis: Vector = [0.0, 0.0, 1.0]
    #: place of the joint on the parent, along the axes of the parent [m]
    at_m: Vector = [0.0, 0.0, 0.0]
    #: start of a revolute joint [rad]
    angle_rad: float | None = None
    #: start of a prismatic joint [m]
    place_m: float | None = None
    #: start of a spherical or free one: from its axes to its parent's; scalar first, length 1
    quaternion: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    #: start of a revolute joint: its rate [rad/s]
    w_radps: float | None = None
    #: start of a prismatic joint [m/s]
    v_mps: float | None = None
    #: start of a spherical or free one: angular velocity, along its axes [rad/s]
    omega_radps: Vector | None = None

    @field_validator("quaternion")
    @classmethod
    def _unit(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and abs(sum(x * x for x in value) - 1.0) > 1e-9:
            raise BadValue("{key} = {value} has not the length 1", value=value, allowed="w, x, y, z with length 1")
        return value

    @model_validator(mode="after")
    def _of_this_joint(self) -> BodyTable:
        own = {"revolute": ("angle_rad", "w_radps"), "prismatic": ("place_m", "v_mps")}
        allowed = own.get(self.joint, ("quaternion", "omega_radps"))
        for key in ("angle_rad", "place_m", "quaternion", "w_radps", "v_mps", "omega_radps"):
            if key not in allowed and getattr(self, key) is not None:
                raise BadValue(f"a {self.joint} joint has no {key}", key=key, value=getattr(self, key),
                               allowed=", ".join(allowed))  # fmt: skip
        return self


class DrivelineTable(ConfigTable):
    """[driveline.NAME]: a 1-D driveline on a body: in a file, or its components and connections here."""

    #: body that carries it
    body: str
    #: axis of all its inertias along the axes of the body, or inertia -> axis
    axes: Vector | dict[str, Vector]
    #: driveline file, relative to this one, or the bare name of an installed one
    file: Annotated[str, InFile("powertrains")] | None = None
    #: as in a driveline file ([driveline.NAME.components.X])
    components: dict[str, dict[str, Any]] = {}
    #: as in a driveline file
    connections: list[list[str]] = []

    @model_validator(mode="after")
    def _one_of_both(self) -> DrivelineTable:
        if (self.file is None) == (not self.components):
            raise BadValue("a driveline is in a file or has its components here", key="file", value=self.file,
                           allowed="file, or components and connections")  # fmt: skip
        return self


class GearTable(ConfigTable):
    """[gear.NAME]: GearConstraint, phi_a = ratio*phi_b of two joints on one housing."""

    #: revolute joint of a body
    joint_a: str
    #: that of another body with the same parent
    joint_b: str
    #: of their angles
    ratio: float

    @field_validator("ratio")
    @classmethod
    def _not_0(cls, value: float) -> float:
        if value == 0.0:
            raise BadValue("{key} = {value} is out of range", value=value, allowed="not 0")
        return value


class ActuatorTable(ConfigTable):
    """[actuator.NAME]: ActuatedRevolute, a flange of a driveline on the joint's parent turns the joint."""

    #: revolute joint
    joint: str
    #: DRIVELINE.COMPONENT.FLANGE
    flange: str


class RowTable(ConfigTable):
    """[row.NAME]: a sum of speeds that is 0."""

    #: DRIVELINE.COMPONENT.FLANGE -> coefficient
    shafts: dict[str, float] = {}
    #: revolute or prismatic joint -> coefficient
    joints: dict[str, float] = {}
    #: body -> vector along its axes, times its angular velocity
    rates: dict[str, Vector] = {}

    @model_validator(mode="after")
    def _of_something(self) -> RowTable:
        if not (self.shafts or self.joints or self.rates):
            raise BadValue("a row of nothing", key="shafts", value={}, allowed="shafts, joints or rates")
        return self


class ShaftTable(ConfigTable):
    """[shaft.NAME]: a shaft with two joints between drivelines of two bodies, without force where all is at 0."""

    #: DRIVELINE.COMPONENT.FLANGE of its first end
    flange_a: str
    #: and of the other, on a driveline of another body
    flange_b: str
    #: direction of shaft a along the axes of its body, in the sense in which it turns
    n_a: Vector = [1.0, 0.0, 0.0]
    #: that of shaft b
    n_b: Vector = [1.0, 0.0, 0.0]
    #: centre of joint a, from the joint of its body, along the axes of the body [m]
    at_a_m: Vector = [0.0, 0.0, 0.0]
    #: that of joint b
    at_b_m: Vector = [0.0, 0.0, 0.0]
    #: stiffness of the shaft
    c_Nm_per_rad: Annotated[float, Field(gt=0)]
    #: its damping
    d_Nms_per_rad: Annotated[float, Field(ge=0)] = 0.0
    #: joint at flange a
    joint_a: Literal["universal", "constant_velocity"] = "universal"
    #: joint at flange b
    joint_b: Literal["universal", "constant_velocity"] = "universal"
    #: angle of the fork of flange a from the plane of its joint
    theta_deg: float = 0.0
    #: angle between the forks of the shaft; 0: in line
    phase_deg: float = 0.0


class PointTable(ConfigTable):
    """[point.NAME]: a point of a body that stays where it is at the start."""

    #: body
    body: str
    #: from the joint, along the axes of the body [m]
    at_m: Vector


class TreeConfig(ConfigTable):
    """A tree of bodies with drivelines on them."""

    FOLDER: ClassVar[str] = "trees"

    tree: TreeTable
    #: parents before those they carry
    body: Annotated[dict[str, BodyTable], Field(min_length=1)]
    #: drivelines on bodies
    driveline: dict[str, DrivelineTable] = {}
    #: gears between joints
    gear: dict[str, GearTable] = {}
    #: joints that a driveline turns
    actuator: dict[str, ActuatorTable] = {}
    #: other rows
    row: dict[str, RowTable] = {}
    #: points that are held
    point: dict[str, PointTable] = {}
    #: shafts with joints between bodies
    shaft: dict[str, ShaftTable] = {}
    #: "DRIVELINE.INPUT_unit", torque or force in a joint ("JOINT.tau_Nm", "JOINT.f_N"), moment on a body
    #: ("BODY.t_x_Nm"): a constant, points [[t_s, value], ...] or a source { kind = "Sine", ... }
    inputs: dict[str, Any] = {}
