"""[monitors] of a rig file: what every drive is held to by itself (docs/monitors.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from torqueloop.core.describe.errors import closest
from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.monitors.catalogue import BY_NAME

Limit = Annotated[float, Field(ge=0, le=1e6)]
Reason = Annotated[str, Field(min_length=3, max_length=300)]


class Monitors(ConfigTable):
    """[monitors]: what every drive is held to by itself, judged from gearbox, car and rig file (docs/monitors.md)."""

    #: highest gear the whole drive comes to: "top" is that of the gearbox file, "" is not looked at. A run that is cut
    #: short by --duration is not held to it
    reaches: str = ""
    #: monitor -> limit instead of its own, in the unit of docs/monitors.md
    limit: dict[str, Limit] = {}
    #: monitor -> why it does not count for this rig; the report shows the reason
    waive: dict[str, Reason] = {}
    #: signal with the gear the control unit says is engaged; default: a received signal gear_actual, or that of the
    #: interface file
    told: str = ""
    #: signal with the gear it goes to; default: a received signal gear_target, or that of the interface file
    asked: str = ""
    #: signal that is not 0 while the control unit closes the park lock
    park: str = ""
    #: signal that is not 0 while the control unit asks the engine for torque; default: `active` of [engine_control]
    request: str = ""
    #: signal that is not 0 while it is told that the request is followed; default: what is sent of
    #: engine_control.intervention
    answer: str = ""

    @field_validator("limit", "waive")
    @classmethod
    def _known(cls, table: dict[str, float] | dict[str, str]) -> dict[str, float] | dict[str, str]:
        for name in table:
            if name not in BY_NAME:
                near = closest(name, BY_NAME)
                raise BadValue("{value} is no monitor", value=name, allowed=", ".join(BY_NAME),
                               hint=f"did you mean '{near}'?" if near else None)  # fmt: skip
        return table
