"""[controllers.NAME] of a rig file. Laws: cython_kernels/controls/laws.pyx; ranges: core/controls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, field_validator

from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.rig.describe.links import Link, written_out

#: points [x, y], and a curve of them
_POINT: dict[str, Any] = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_CURVE: dict[str, Any] = {"type": "array", "minItems": 1, "items": _POINT}
#: what `parameters` may hold in a file (controller_plan reads it)
PARAMETERS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "number"}, _CURVE, {"type": "array", "items": _CURVE}]},
}


class Read(Link):
    """One entry of `reads`: where the controller has a number from."""

    #: a constant in SI instead
    value: float | None = None


class ControllerTable(ConfigTable):
    """[controllers.NAME]: a controller that runs in the tick; its commands are signals controller.NAME.COMMAND."""

    #: its law, see docs/controllers.md
    kind: Literal["cooling_fan", "driver", "fuel_flow", "gearbox", "idle"]
    #: it is called so often [s]: a whole number of ticks; default: each tick. In between its commands are held
    period_s: Annotated[float, Field(gt=0, le=10)] | None = None
    #: what it reads -> a signal, { signal = ..., gain = ..., offset = ... }, or a number in SI
    reads: dict[str, Read] = {}
    #: parameter -> number in SI, curve [[x, y], ...], or list of curves; those left out have their defaults
    parameters: Annotated[dict[str, Any], WithJsonSchema(PARAMETERS_SCHEMA)] = {}

    @field_validator("reads", mode="before")
    @classmethod
    def _short(cls, table: Any) -> Any:
        return {name: written_out(value) for name, value in table.items()} if isinstance(table, dict) else table
