"""Where a value comes from: entries of [inputs], [outputs], and of what devices read."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, model_validator

from torqueloop.hil.common.config_file import BadValue, ConfigTable


class Link(ConfigTable):
    """[inputs.NAME]: where the value comes from."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string", "number")

    #: Name of the signal: a signal of the model, a bus, the driver, the vehicle or the rig.
    signal: str | None = None
    #: Constant instead of a signal: a number in the unit of the target, or a word of its value table.
    value: float | str | None = None
    #: Factor on the value in SI. With `gain` or `offset` the units are not checked.
    gain: float = 1.0
    #: Number that is added after the gain, in SI.
    offset: float = 0.0

    @model_validator(mode="after")
    def _one(self) -> Link:
        if (self.signal is None) == (self.value is None):
            raise BadValue("needs either signal or value", key="signal", value=self.signal)
        return self

    @property
    def converts(self) -> bool:
        """A gain or offset of its own was given: units are the author's business."""
        return bool({"gain", "offset"} & self.model_fields_set)


def written_out(value: Any) -> Any:
    """An entry as a table, whichever form it has: "engine.w" and 1.0 are short ones."""
    if isinstance(value, str):
        return {"signal": value}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"value": value}
    return value


class SignalLink(ConfigTable):
    """A signal, or { signal = ..., gain = ..., offset = ... }."""

    SHORT_FORMS: ClassVar[tuple[str, ...]] = ("string",)

    #: Name of the signal.
    signal: str
    #: Factor on its value in SI.
    gain: float = 1.0
    #: Number that is added after the gain.
    offset: float = 0.0


#: mark of a table that a signal or a number may stand for
SHORT = BeforeValidator(written_out)
AnySignal = Annotated[SignalLink, SHORT]
