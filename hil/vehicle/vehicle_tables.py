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
    """What is pushed through the air."""

    #: mass the tractive force accelerates [kg]: the same as in the rig's powertrain
    mass_kg: Positive
    #: drag coefficient times frontal area [m2]
    cdA_m2: NotNegative
    #: rolling resistance force over normal force [1]
    rolling: Annotated[float, Field(ge=0, le=0.2)]
    #: density of the air [kg/m3]
    air_density_kgpm3: Positive = 1.2


class Brakes(ConfigTable):
    """Service brakes: force at the tyres at brake = 1."""

    #: at full brake pedal
    force_max_N: NotNegative


class Road(ConfigTable):
    """Grade over distance and wind."""

    #: points [s_m, grade_percent], linear between, constant outside; + uphill
    grade_percent: list[tuple[float, float]] = [(0.0, 0.0)]
    #: head wind [m/s], + against the car
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
    """Where the rig is."""

    #: where the rig listens, when nobody says otherwise
    endpoint: str = "tcp://127.0.0.1:43174"
    #: end the process when the rig has been silent for this long [s]
    give_up_s: Positive = 30.0

    @field_validator("endpoint")
    @classmethod
    def _loopback(cls, endpoint: str) -> str:
        try:
            return check_endpoint(endpoint)
        except PeerError as error:
            raise BadValue(str(error), value=endpoint) from None


class Integration(ConfigTable):
    """Numerics of the vehicle's own motion."""

    #: longest sub-step [s]; the midpoint rule is second order, 1 ms gives about 1e-9 m/s in a coast-down
    step_s: Annotated[float, Field(gt=0, le=0.05)] = 1e-3


class CarrierBody(ConfigTable):
    """[carrier.NAME]: the car's body, or another one: carrier NAME of the rig's powertrain. Along its x, y, z."""

    #: moments of inertia, the driveline's at rest included [kg.m2]
    I_kgm2: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    #: stiffness of what it stands on [Nm/rad]
    c_Nm_per_rad: Annotated[list[NotNegative], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: its damping [Nms/rad]
    d_Nms_per_rad: Annotated[list[NotNegative], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: place of its origin in the world, for a carrier with attitude = true; it turns about it [m]
    at_m: Annotated[list[float], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    #: yaw rate as given: points [t_s, radps], linear between, constant outside; default: it follows from the moments
    yaw_radps: Curve = []


class VehicleConfig(ConfigTable):
    """The vehicle process."""

    FOLDER: ClassVar[str] = "vehicles"

    #: name of the vehicle
    name: str
    body: Body
    brakes: Brakes
    road: Road = Road()
    link: Link = Link()
    integration: Integration = Integration()
    #: bodies that carry drivelines of the rig ([vehicle] carriers of the rig file)
    carrier: dict[str, CarrierBody] = {}


def load_vehicle_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> VehicleConfig:
    """Read and check a vehicle file; overrides: dotted key -> value."""
    return load_config(path, VehicleConfig, overrides)
