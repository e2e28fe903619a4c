"""The file of a tree of bodies: joints, drivelines on bodies, rows between them, inputs, start. See configs/trees/.

[tree] [body.NAME] [driveline.NAME] [gear.NAME] [actuator.NAME] [row.NAME] [point.NAME] [shaft.NAME] [inputs]
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, FolderName, InFile

Vector = Annotated[list[float], Field(min_length=3, max_length=3)]


class TreeTable(ConfigTable):
    """[tree]: what is simulated, for how long and in which steps."""

    #: Name of the tree in reports.
    name: FolderName
    #: Duration of an offline run [s].
    duration_s: Annotated[float, Field(gt=0, le=1e5)] = 1.0
    #: Step of an offline run [s]. In a rig it is the longest step, and each period has a whole number of equal steps.
    step_s: Annotated[float, Field(gt=0, le=0.1)] = 1e-3
    #: Acceleration of gravity, along the axes of the world [m/s2].
    gravity_mps2: Vector = [0.0, 0.0, -9.81]


class BodyTable(ConfigTable):
    """[body.NAME]: a rigid body and the joint that connects it to its parent. The joint has the name of the body.
    Vectors are along the axes of the body."""

    #: Mass, with the inertias that turn in the body [kg].
    mass_kg: Annotated[float, Field(gt=0)]
    #: Inertia about the mass centre, with the inertias that turn in the body at rest: xx, yy, zz, xy, xz, yz of the
    #: matrix [kg.m2].
    I_kgm2: Annotated[list[float], Field(min_length=6, max_length=6)]
    #: Position of the mass centre, from the joint [m].
    com_m: Vector = [0.0, 0.0, 0.0]
    #: Body that carries this one.
    parent: str = "world"
    #: Kind of the joint to the parent.
    joint: Literal["revolute", "prismatic", "spherical", "free"] = "revolute"
    #: Axis of a revolute or prismatic joint. It has the same components along the axes of the parent and of the body.
    axis: Vector = [0.0, 0.0, 1.0]
    #: Position of the joint on the parent, along the axes of the parent [m].
    at_m: Vector = [0.0, 0.0, 0.0]
    #: Start value of the angle of a revolute joint [rad].
    angle_rad: float | None = None
    #: Start value of the displacement of a prismatic joint [m].
    place_m: float | None = None
    #: Start value of the attitude of a spherical or free joint: the rotation from the axes of the body to those of the
    #: parent, scalar first, with length 1.
    quaternion: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    #: Start value of the angular velocity of a revolute joint [rad/s].
    w_radps: float | None = None
    #: Start value of the velocity of a prismatic joint [m/s].
    v_mps: float | None = None
    #: Start value of the angular velocity of a spherical or free joint, along the axes of the body [rad/s].
    omega_radps: Vector | None = None

    @field_validator("quaternion")
    @classmethod
    def _unit(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and abs(sum(x * x for x in value) - 1.0) > 1e-9:
            raise BadValue(
                "{key} = {value} does not have the length 1", value=value, allowed="w, x, y, z with length 1"
            )
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
    """[driveline.NAME]: a driveline on a body. It is in a file, or its components and connections are here."""

    #: Body that carries the driveline.
    body: str
    #: Axis of all its inertias along the axes of the body, or inertia -> axis.
    axes: Vector | dict[str, Vector]
    #: Driveline file, relative to this one, or the bare name of an installed one.
    file: Annotated[str, InFile("powertrains")] | None = None
    #: Components as in a driveline file ([driveline.NAME.components.X]).
    components: dict[str, dict[str, Annotated[Any, InFile("", "csv")]]] = {}
    #: Connections as in a driveline file.
    connections: list[list[str]] = []

    @model_validator(mode="after")
    def _one_of_both(self) -> DrivelineTable:
        if (self.file is None) == (not self.components):
            raise BadValue("a driveline is in a file or has its components here", key="file", value=self.file,
                           allowed="file, or components and connections")  # fmt: skip
        return self


class GearTable(ConfigTable):
    """[gear.NAME]: a gear between two joints on one housing, phi_a = ratio*phi_b (GearConstraint of the Modelica
    MultiBody library)."""

    #: Revolute joint of a body.
    joint_a: str
    #: Revolute joint of another body with the same parent.
    joint_b: str
    #: Ratio of their angles, phi_a/phi_b.
    ratio: float

    @field_validator("ratio")
    @classmethod
    def _not_0(cls, value: float) -> float:
        if value == 0.0:
            raise BadValue("{key} = {value} is out of range", value=value, allowed="not 0")
        return value


class ActuatorTable(ConfigTable):
    """[actuator.NAME]: a flange of a driveline on the parent of a revolute joint turns the joint."""

    #: Revolute joint that is turned.
    joint: str
    #: Flange that turns it, DRIVELINE.COMPONENT.FLANGE.
    flange: str


class RowTable(ConfigTable):
    """[row.NAME]: a constraint, a weighted sum of speeds that is 0."""

    #: Flange DRIVELINE.COMPONENT.FLANGE -> coefficient on its speed.
    shafts: dict[str, float] = {}
    #: Revolute or prismatic joint -> coefficient on its speed.
    joints: dict[str, float] = {}
    #: Body -> vector along its axes, by which its angular velocity is multiplied (scalar product).
    rates: dict[str, Vector] = {}

    @model_validator(mode="after")
    def _of_something(self) -> RowTable:
        if not (self.shafts or self.joints or self.rates):
            raise BadValue("a row without entries", key="shafts", value={}, allowed="shafts, joints or rates")
        return self


class ShaftTable(ConfigTable):
    """[shaft.NAME]: a shaft with two joints between drivelines of two bodies. It has no torque when all joints of the
    tree and both flanges are at 0."""

    #: Flange of its first end, DRIVELINE.COMPONENT.FLANGE.
    flange_a: str
    #: Flange of its second end, on a driveline of another body.
    flange_b: str
    #: Direction of the driveline's shaft at flange a, in the sense in which it turns, along the axes of its body.
    n_a: Vector = [1.0, 0.0, 0.0]
    #: Direction of the driveline's shaft at flange b, in the sense in which it turns, along the axes of its body.
    n_b: Vector = [1.0, 0.0, 0.0]
    #: Centre of joint a, from the joint of its body, along the axes of the body [m].
    at_a_m: Vector = [0.0, 0.0, 0.0]
    #: Centre of joint b, from the joint of its body, along the axes of the body [m].
    at_b_m: Vector = [0.0, 0.0, 0.0]
    #: Stiffness of the shaft [Nm/rad].
    c_Nm_per_rad: Annotated[float, Field(gt=0)]
    #: Damping of the shaft [Nms/rad].
    d_Nms_per_rad: Annotated[float, Field(ge=0)] = 0.0
    #: Kind of the joint at flange a.
    joint_a: Literal["universal", "constant_velocity"] = "universal"
    #: Kind of the joint at flange b.
    joint_b: Literal["universal", "constant_velocity"] = "universal"
    #: Angle of the fork of flange a from the plane of its joint [deg].
    theta_deg: float = 0.0
    #: Angle between the forks of the shaft. 0: the forks are in line [deg].
    phase_deg: float = 0.0


class PointTable(ConfigTable):
    """[point.NAME]: a point of a body that stays in the place that it has at the start."""

    #: Body that the point belongs to.
    body: str
    #: Position of the point, from the joint of the body, along the axes of the body [m].
    at_m: Vector


class TreeConfig(ConfigTable):
    """A tree of bodies with drivelines on them."""

    FOLDER: ClassVar[str] = "trees"

    tree: TreeTable
    #: Bodies by name. A parent comes before the bodies that it carries.
    body: Annotated[dict[str, BodyTable], Field(min_length=1)]
    #: Drivelines on bodies, by name.
    driveline: dict[str, DrivelineTable] = {}
    #: Gears between joints, by name.
    gear: dict[str, GearTable] = {}
    #: Joints that a driveline turns, by name.
    actuator: dict[str, ActuatorTable] = {}
    #: Other constraints on speeds, by name.
    row: dict[str, RowTable] = {}
    #: Points of bodies that do not move, by name.
    point: dict[str, PointTable] = {}
    #: Shafts with joints between bodies, by name.
    shaft: dict[str, ShaftTable] = {}
    #: Input -> a constant, points [[t_s, value], ...], or a source { kind = "Sine", ... }. The inputs are those of the
    #: drivelines ("DRIVELINE.INPUT_unit"), torques or forces in joints ("JOINT.tau_Nm", "JOINT.f_N") and moments on
    #: bodies ("BODY.t_x_Nm").
    inputs: dict[str, Any] = {}
