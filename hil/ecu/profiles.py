"""Shifts by profiles: phases written once for roles, used for every pair of gears.

    [[profiles.up.phases]]                                  roles instead of elements: "on", "off"
    elements = { on = { law = "fill" } }

    [shifts]
    2-3 = { profile = "up" }                                on: pressed in 3 only, off: pressed in 2 only
    3-4 = { profile = "up", change.inertia = { inertia_s = 0.5 } }
    6-2 = { via = "4" }                                     6-4, then 4-2 without a stop between

In a profile the gains of `regulate` are per Nm of turbine torque: an element gets them times its torque per Nm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError, model_validator

from torqueloop.core.describe.errors import did_you_mean
from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.ecu.laws import Law, Phase

ROLES = ("on", "off")


class Profile(ConfigTable):
    """Phases for two roles: "on" means the elements that are pressed in the new gear only, "off" those that are pressed
    in the old gear only."""

    #: The phases in their order.
    phases: list[Phase]


class Shift(ConfigTable):
    """A shift. It consists of phases of its own, of the phases of a profile, or of two shifts through a gear between.
    After the last phase the elements of the new gear are pressed."""

    #: Phases of this shift alone.
    phases: list[Phase] = []
    #: Name of the profile that this shift uses.
    profile: str | None = None
    #: Elements of the role "on". By default these are the elements that are pressed in the new gear only.
    on: list[str] | None = None
    #: Elements of the role "off". By default these are the elements that are pressed in the old gear only.
    off: list[str] | None = None
    #: Gear between: the shift consists of the phases of FROM-VIA and those of VIA-TO.
    via: str | None = None
    #: Name of a phase of the profile -> values that differ in this shift.
    change: dict[str, dict[str, Any]] = {}

    @model_validator(mode="after")
    def _one_of(self) -> Shift:
        given = [bool(self.phases), self.profile is not None, self.via is not None]
        if sum(given) != 1:
            raise BadValue("a shift has phases, a profile or via: one of them", key="phases")
        if self.profile is None and (self.on or self.off or self.change):
            raise BadValue("on, off and change belong to a profile", key="profile")
        return self


class GearOf(Protocol):
    """A gear of a TCU file."""

    @property
    def elements(self) -> list[str]: ...
    @property
    def torque(self) -> dict[str, float]: ...


def expand(
    key: str,
    shift: Shift,
    profiles: Mapping[str, Profile],
    gears: Mapping[str, GearOf],
    shifts: Mapping[str, Shift],
) -> tuple[Phase, ...]:
    """The phases of a shift for elements; BadValue when something it refers to is not there."""
    if shift.phases:
        return tuple(shift.phases)
    source, _, target = key.removesuffix(".coast").partition("-")
    if shift.via is not None:
        return _through(key, source, shift.via, target, profiles, gears, shifts)
    assert shift.profile is not None
    if shift.profile not in profiles:
        raise BadValue(f"shift {key!r}: no profile {{value}}", key="shifts", value=shift.profile,
                       allowed=", ".join(profiles), hint=did_you_mean(shift.profile, profiles))  # fmt: skip
    roles = roles_of(shift, gears[source], gears[target])
    phases = profiles[shift.profile].phases
    if unknown := set(shift.change) - {phase.name for phase in phases}:
        raise BadValue(f"shift {key!r}: profile {shift.profile!r} has no phase {{value}}", key="change",
                       value=sorted(unknown)[0], allowed=", ".join(p.name for p in phases))  # fmt: skip
    return tuple(_bound(key, phase, roles, shift, gears[source], gears[target]) for phase in phases)


def roles_of(shift: Shift, old: GearOf, new: GearOf) -> dict[str, list[str]]:
    """role -> elements."""
    on = shift.on if shift.on is not None else [n for n in new.elements if n not in old.elements]
    off = shift.off if shift.off is not None else [n for n in old.elements if n not in new.elements]
    return {"on": on, "off": off}


def _bound(key: str, phase: Phase, roles: Mapping[str, list[str]], shift: Shift, old: GearOf, new: GearOf) -> Phase:
    elements: dict[str, Law] = {}
    for word, law in phase.elements.items():
        for name in roles.get(word, [word] if word not in ROLES else []):
            factor = new.torque.get(name) or old.torque.get(name) or 0.0
            if word in ROLES and law.law in ("torque", "regulate") and not factor:
                # it carries nothing in either gear (a free wheel beside it does): it may as well be open
                law_here = Law(law="open", ramp_s=0.0) if word == "off" else Law(law="kiss")
            elif word in ROLES and law.law == "regulate":
                gains = {"kp_Nm_per_radps": factor * law.kp_Nm_per_radps, "ki_Nm_per_rad": factor * law.ki_Nm_per_rad}
                law_here = law.model_copy(update=gains)
            else:
                law_here = law
            elements[name] = law_here
    changed = {**phase.model_dump(exclude={"elements"}), **shift.change.get(phase.name, {}), "elements": elements}
    try:
        return Phase.model_validate(changed)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        where = f"shift {key!r}, change of phase {phase.name!r}"
        raise BadValue(f"{where}: {place}: {first['msg']}", key="change") from None


def _through(
    key: str,
    source: str,
    via: str,
    target: str,
    profiles: Mapping[str, Profile],
    gears: Mapping[str, GearOf],
    shifts: Mapping[str, Shift],
) -> tuple[Phase, ...]:
    ending = ".coast" if key.endswith(".coast") else ""
    found: list[Phase] = []
    for a, b in ((source, via), (via, target)):
        # a part that has no profile of its own for coasting goes as under power
        part = next((n for n in (f"{a}-{b}{ending}", f"{a}-{b}") if n in shifts), None)
        if part is None or shifts[part].via is not None:
            raise BadValue(f"shift {key!r}: via = {{value}} needs the shift {a}-{b} with phases or a profile",
                           key="shifts", value=via)  # fmt: skip
        phases = expand(part, shifts[part], profiles, gears, shifts)
        # nothing is locked in the gear between: what stays pressed gets line pressure there
        found += [
            phase.model_copy(update={"from_gear": a, "to_gear": b})
            for phase in phases
            if b == target or phase.stage != "closing"
        ]
    return tuple(found)
