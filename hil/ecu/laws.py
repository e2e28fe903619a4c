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

    fill      fill_bar for fill_s of the element, then its kiss point (both as learnt)
    kiss      kiss point
    torque    ramp to `end` times the torque it carries in its gear now (from where it is, or `start`)
    bar       ramp to `end` bar (start: where it is)
    line      ramp to line pressure
    open      ramp to 0 bar
    hold      stay where it is
    continue  go on with the ramp begun in an earlier phase
    regulate  closed loop on turbine speed: PI around `base` times its torque follows the way to synchronisation
    """

    #: what is done, see above
    law: Literal["fill", "kiss", "torque", "bar", "line", "open", "hold", "continue", "regulate"]
    #: where the ramp begins, in units of `end`; default: where the element is
    start: float | None = None
    #: where it ends: multiple of the element's torque (torque), or bar (bar)
    end: NotNegative = 0.0
    #: duration of the ramp; default: that of the phase
    ramp_s: Seconds | None = None
    #: regulate: torque multiple around which is controlled
    base: NotNegative = 1.0
    #: lower limit of the torque multiple under regulate
    min: NotNegative = 0.0
    #: upper one
    max: Positive = 4.0
    #: regulate: proportional gain
    kp_Nm_per_radps: NotNegative = 1.0
    #: regulate: integral gain
    ki_Nm_per_rad: NotNegative = 5.0
    #: regulate: more torque of this element makes the turbine slower ("down") or faster ("up")
    pulls: Literal["down", "up"] = "down"


class Phase(ConfigTable):
    """One phase of a shift: laws per element until its end."""

    #: for logs
    name: str
    #: shown in the status message
    stage: Literal["filling", "torque", "inertia", "closing"]
    #: length of the phase
    duration_s: Annotated[float, Field(ge=0, le=10)]
    #: "time": ends after duration_s. "filled": duration_s after the last element is filled. "ratio_left": when the
    #: turbine leaves the old ratio. "synchronised": when it has reached the new one.
    until: Literal["time", "filled", "ratio_left", "synchronised"] = "time"
    #: an event that does not come ends the phase after duration_s + timeout_s; the next phase goes on
    timeout_s: Seconds = 0.0
    #: wanted time from here to synchronisation (for `regulate`)
    inertia_s: Annotated[float, Field(gt=0, le=5)] = 0.4
    #: element (in a profile: role) -> what it does
    elements: dict[str, Law] = {}
    #: gear this phase goes from, where the shift goes through a gear between (set by `via`)
    from_gear: str | None = None
    #: gear it goes to
    to_gear: str | None = None
