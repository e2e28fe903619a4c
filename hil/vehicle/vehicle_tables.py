"""Configuration of the vehicle process: body, brakes, road, wind, link. One TOML file, see configs/vehicles/."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable, Curve
from torqueloop.hil.common.config_layers import load_config
from torqueloop.hil.link.endpoints import PeerError, check_endpoint

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Body(ConfigTable):
    """Mass and resistance of the vehicle."""

    #: Mass that the tractive force accelerates [kg]. It is the same as in the powertrain of the rig.
    mass_kg: Positive
    #: Drag coefficient times frontal area [m2].
    cdA_m2: NotNegative
    #: Rolling resistance force divided by the normal force [1].
    rolling: Annotated[float, Field(ge=0, le=0.2)]
    #: Density of the air [kg/m3].
    air_density_kgpm3: Positive = 1.2


class Brakes(ConfigTable):
    """Service brakes. Their force at the tyres is proportional to the signal brake."""

    #: Force at the full brake pedal, brake = 1.
    force_max_N: NotNegative


class Road(ConfigTable):
    """Grade of the road over its distance, and wind."""

    #: Points [s_m, grade_percent]. The grade is linear between the points and constant outside of them. Positive values
    #: are uphill.
    grade_percent: list[tuple[float, float]] = [(0.0, 0.0)]
    #: Head wind [m/s]. Positive values blow against the car.
    head_wind_mps: Annotated[float, Field(ge=-60, le=60)] = 0.0

    @field_validator("grade_percent", mode="before")
    @classmethod
    def _points(cls, points: object) -> object:
        if not isinstance(points, list) or not points:
            raise BadValue("{key} is not a list of points", allowed="[[s_m, grade_percent], ...]")
        rows = []
        for point in points:
            if (
                not isinstance(point, list | tuple)
                or len(point) != 2
                or not all(isinstance(x, int | float) for x in point)
            ):
                raise BadValue("{key} has a bad point", value=point, allowed="[s_m, grade_percent]")
            if not -100.0 <= point[1] <= 100.0:
                raise BadValue("{key}: grade {value} %", value=point[1], allowed="-100 .. 100")
            rows.append((float(point[0]), float(point[1])))
        for (s0, _), (s1, _) in pairwise(rows):
            if s1 <= s0:
                raise BadValue(
                    "{key}: distances do not increase at {value}", value=s1, allowed="strictly increasing s_m"
                )
        return rows


class Link(ConfigTable):
    """Connection of the vehicle process to the rig."""

    #: Address at which the rig listens. `torqueloop vehicle --endpoint` replaces it.
    endpoint: str = "tcp://127.0.0.1:43174"
    #: The process ends when the rig has been silent for this long [s].
    give_up_s: Positive = 30.0

    @field_validator("endpoint")
    @classmethod
    def _loopback(cls, endpoint: str) -> str:
        try:
            return check_endpoint(endpoint)
        except PeerError as error:
            raise BadValue(str(error), value=endpoint) from None


class Integration(ConfigTable):
    """Integration of the motion of the vehicle."""

    #: Longest sub-step [s]. The midpoint rule is of second order: with 1 ms its error is about 1e-9 m/s in a
    #: coast-down.
    step_s: Annotated[float, Field(gt=0, le=0.05)] = 1e-3


class CarrierBody(ConfigTable):
    """[carrier.NAME]: the body of the car or another body, which is the carrier NAME of the rig's powertrain. All
    vectors are along its axes x, y, z."""

    #: Moments of inertia, with the driveline at rest in them [kg.m2].
    I_kgm2: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    #: Stiffness of the mounts of the body [Nm/rad].
    c_Nm_per_rad: Annotated[list[NotNegative], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: Damping of the mounts [Nms/rad].
    d_Nms_per_rad: Annotated[list[NotNegative], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: Position of the origin of the body in the world, for a carrier with attitude = true [m]. The body turns about
    #: this point.
    at_m: Annotated[list[float], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: Yaw rate as a function of time: points [t_s, radps]. It is linear between the points and constant outside of
    #: them. By default the yaw rate follows from the moments.
    yaw_radps: Curve = []


class VehicleConfig(ConfigTable):
    """Keys of a vehicle file, which the vehicle process reads."""

    FOLDER: ClassVar[str] = "vehicles"

    #: Name of the vehicle.
    name: str
    body: Body
    brakes: Brakes
    road: Road = Road()
    link: Link = Link()
    integration: Integration = Integration()
    #: Bodies that carry drivelines of the rig, by the names in [vehicle] carriers of the rig file.
    carrier: dict[str, CarrierBody] = {}


def load_vehicle_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> VehicleConfig:
    """Read and check a vehicle file; overrides: dotted key -> value."""
    return load_config(path, VehicleConfig, overrides)
