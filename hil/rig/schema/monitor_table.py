"""[monitors] of a rig file: what every drive is held to by itself (docs/monitors.md)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from torqueloop.core.describe.errors import closest
from torqueloop.core.describe.renamed import MONITORS, keys_in
from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.monitors.catalogue import BY_NAME

Limit = Annotated[float, Field(ge=0, le=1e6)]
Reason = Annotated[str, Field(min_length=3, max_length=300)]


class Monitors(ConfigTable):
    """[monitors]: checks that judge every run without any setting. They follow from the files of gearbox, car and
    rig (docs/monitors.md)."""

    #: Highest gear that the run must reach. "top" is the highest gear of the gearbox file; with "" no gear is required.
    #: A run that `--duration` shortens is not judged by it.
    reaches: str = ""
    #: Monitor -> limit that replaces the default, in the unit of docs/monitors.md.
    limit: dict[str, Limit] = {}
    #: Monitor -> reason why it does not count for this rig. The report shows the reason.
    waive: dict[str, Reason] = {}
    #: Signal with the gear that the control unit reports as engaged. By default it is a received signal gear_actual, or
    #: that of the interface file.
    reported: str = ""
    #: Signal with the gear to which the control unit shifts. By default it is a received signal gear_target, or that of
    #: the interface file.
    asked: str = ""
    #: Signal that is not 0 while the control unit closes the park lock.
    park: str = ""
    #: Signal that is not 0 while the control unit asks the engine for torque. By default it is `active` of
    #: [engine_control].
    request: str = ""
    #: Signal that is not 0 while the rig reports to the control unit that the engine follows the request. By default it
    #: is the signal that is sent of engine_control.intervention.
    answer: str = ""

    @model_validator(mode="before")
    @classmethod
    def _former_names(cls, data: Any) -> Any:
        return keys_in(data, MONITORS)

    @field_validator("limit", "waive")
    @classmethod
    def _known(cls, table: dict[str, float] | dict[str, str]) -> dict[str, float] | dict[str, str]:
        for name in table:
            if name not in BY_NAME:
                near = closest(name, BY_NAME)
                raise BadValue("{value} is no monitor", value=name, allowed=", ".join(BY_NAME),
                               hint=f"did you mean '{near}'?" if near else None)  # fmt: skip
        return table
