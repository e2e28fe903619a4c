"""What an element does in a phase of a shift, and what a phase is: tables of the TCU file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from torqueloop.hil.common.config_file import ConfigTable

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=10)]
Bar = Annotated[float, Field(ge=0, le=20)]
Percent = Annotated[float, Field(ge=0, le=100)]


class Law(ConfigTable):
    """What one element does in one phase.

    fill      apply fill_bar for fill_s of the element, then its kiss point (learnt values, if there are any)
    kiss      apply the kiss point
    torque    ramp to `end` times the torque that the element carries in its gear at this time
    bar       ramp to `end` bar
    line      ramp to line pressure
    open      ramp to 0 bar
    hold      keep the present pressure
    continue  continue the ramp that an earlier phase began
    regulate  control the turbine speed so that it is synchronous after inertia_s: PI controller, which begins at the
              present torque of the element and adds what the inertia of the engine needs (hil/ecu/shift.py)
    """

    #: What the element does: one of the laws above.
    law: Literal["fill", "kiss", "torque", "bar", "line", "open", "hold", "continue", "regulate"]
    #: Value at which the ramp begins, in the unit of `end`. By default it begins at the present pressure.
    start: float | None = None
    #: Value at which the ramp ends: a multiple of the torque of the element (`torque`), or a pressure in bar (`bar`).
    end: NotNegative = 0.0
    #: Duration of the ramp. By default it is the duration of the phase.
    ramp_s: Seconds | None = None
    #: Law `regulate`: smallest multiple of the torque of the element.
    min: NotNegative = 0.0
    #: Law `regulate`: largest multiple of the torque of the element.
    max: Positive = 4.0
    #: Law `regulate`: proportional gain.
    kp_Nm_per_radps: NotNegative = 1.0
    #: Law `regulate`: integral gain.
    ki_Nm_per_rad: NotNegative = 5.0
    #: Law `regulate`: whether more torque of this element makes the turbine slower ("down") or faster ("up").
    pulls: Literal["down", "up"] = "down"


class Phase(ConfigTable):
    """One phase of a shift: the law of each element until the phase ends."""

    #: Name of the phase in logs.
    name: str
    #: Part of the shift that the status message shows.
    stage: Literal["filling", "torque", "inertia", "closing"]
    #: Length of the phase.
    duration_s: Annotated[float, Field(ge=0, le=10)]
    #: What ends the phase. "time": `duration_s`. "filled": `duration_s` after the last element is filled. "ratio_left":
    #: the turbine leaves the old ratio. "synchronised": the turbine has reached the new ratio.
    until: Literal["time", "filled", "ratio_left", "synchronised"] = "time"
    #: If the event does not occur, the phase ends after `duration_s` + `timeout_s`, and the next phase begins.
    timeout_s: Seconds = 0.0
    #: Wanted time from the begin of this phase to synchronisation, for the law `regulate`.
    inertia_s: Annotated[float, Field(gt=0, le=5)] = 0.4
    #: Element, or role in a profile -> what it does.
    elements: dict[str, Law] = {}
    #: Gear from which this phase shifts, in a shift through a gear between. `via` sets it.
    from_gear: str | None = None
    #: Gear to which this phase shifts, in a shift through a gear between. `via` sets it.
    to_gear: str | None = None
