"""The link to the vehicle as the tick has it: what `Rig.set_vehicle` takes. Names are slots here."""

from __future__ import annotations

from dataclasses import dataclass

#: (slot, 0, factor, 0): one summand
Summand = tuple[int, int, float, float]


@dataclass(frozen=True, kw_only=True)
class VehicleRows:
    """Slots and limits of the link, and the sums that give the impulse of the tractive force."""

    #: slot of the first signal that is received (VEHICLE_SLOT)
    first_slot: int
    #: which of them is ramped to 0 when the vehicle is silent
    ramped: int
    #: a value older than this is stale; it is held for hold_s and then ramped within ramp_s [s]
    age_limit_s: float
    hold_s: float
    ramp_s: float
    #: values refused in a row before the safe state
    refuse_limit: int
    #: momentum of the car [Ns], and the forces on it besides the tractive force, with their signs changed [N]
    momentum: tuple[Summand, ...]
    force: tuple[Summand, ...]
    #: slots of impulse and mean of the tractive force, which the tick writes
    impulse_slot: int
    force_slot: int
    #: slots that are sent
    speed_slot: int
    distance_slot: int
    brake_slot: int
    #: slots that are sent behind these: moments on bodies
    more: tuple[int, ...] = ()
