"""[monitors] of a rig file: what every drive is held to by itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from torqueloop.hil.common.config_file import ConfigTable

Limit = Annotated[float, Field(ge=0, le=1e4)]


class Monitors(ConfigTable):
    """[monitors]: what every drive is held to by itself, judged from the recorded signals (docs/monitors.md).
    0 waives a limit."""

    #: the gears that are engaged, from the speeds alone, are those the control unit's shift schedule asks for, one
    #: after the other; a gear that is due is engaged in time
    gears: bool = True
    #: highest gear the whole drive comes to: "top" is that of the gearbox file, "" is not looked at. A run that is cut
    #: short by --duration is not held to it
    reaches: str = ""
    #: longest time from the old ratio to the new one; the phases of the soft TCU's shift may allow less [s]
    shift_s: Limit = 1.5
    #: with the lever in a gear, the pedal pressed and the brake released the car moves its way within this time [s]
    moves_off_s: Limit = 3.0
    #: largest amount of the car's acceleration [m/s2]; no tyre holds more than about 1 g
    acceleration_mps2: Limit = 10.0
    #: largest acceleration in a shift beyond its levels before and behind [m/s2]
    shift_peak_mps2: Limit = 3.0
    #: steps that only a plain impulse could finish; -1: not looked at
    fallbacks: Annotated[int, Field(ge=-1)] = 0
