"""What a rig consists of, for who draws it: gear sets as levers, friction elements, the signals of both."""

from __future__ import annotations

from dataclasses import field

from torqueloop.core.analyse.gearbox_report import train_of
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.rig.resolve.plan import RigPlan


@dataclass(frozen=True)
class Member:
    """A member of a gear set on its lever."""

    name: str
    #: place along the lever: -z_ring/z_sun (sun), 0 (carrier), 1 (ring)
    x: float
    #: shaft it is part of; "": the housing, which stands still
    shaft: str
    #: signal of its speed [rad/s]; "": not an output, it follows from the others
    signal: str


@dataclass(frozen=True)
class Lever:
    """A planetary set: w_sun + ratio w_ring = (1 + ratio) w_carrier puts its members on a straight line."""

    name: str
    members: list[Member]


@dataclass(frozen=True)
class Layout:
    """Of one rig. Signals that it does not have are ""."""

    levers: list[Lever] = field(default_factory=list)
    #: friction elements: NAME.mode, NAME.w_rel, NAME.tau, NAME.p are their signals where there are such
    elements: list[str] = field(default_factory=list)
    #: what is shown first: key -> signal
    signals: dict[str, str] = field(default_factory=dict)
    #: key of `signals` -> words of its values, by number as text
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    #: bus -> file of its CAN database, in the order of the bus log
    databases: dict[str, str] = field(default_factory=dict)


#: keys of Layout.signals -> signal, or end of a signal's name that only one has
_SHOWN = {
    "engine": "engine.w", "turbine": "turbine.w", "output": "out.w", "speed": "car.v", "acceleration": "car.a",
    "gear": ".gear_actual", "target": ".gear_target", "shifting": ".shift_active", "pedal": "driver.pedal",
    "brake": "driver.brake", "lever": "driver.lever", "tau": "engine.tau",
}  # fmt: skip
_PLACE = {"carrier": 0.0, "ring": 1.0}


def layout(plan: RigPlan) -> Layout:
    """The layout of a rig; without levers if the gear sets of its driveline cannot be distinguished."""
    names = plan.table.names
    elements = [n.removesuffix(".mode") for n in names if n.endswith(".mode")]
    shown = {}
    for key, wanted in _SHOWN.items():
        found = [n for n in names if (n.endswith(wanted) if wanted.startswith(".") else n == wanted)]
        shown[key] = found[0] if len(found) == 1 else ""
    databases = {bus.name: str(bus.database.path.absolute()) for bus in plan.buses}
    return Layout(_levers(plan), elements, shown, _words(plan, shown), databases)


def _words(plan: RigPlan, shown: dict[str, str]) -> dict[str, dict[str, str]]:
    """Value tables of the CAN databases; of the driver's lever its positions."""
    found = {"lever": {str(k): word for k, word in enumerate(LEVERS)}}
    tables = {bus.slot(s): s for bus in plan.buses for s in bus.database.signals}
    for key in ("gear", "target"):
        info = tables.get(plan.table.slot(shown[key])) if shown[key] else None
        if info is not None:
            found[key] = {f"{raw * info.scale + info.offset:g}": word for raw, word in info.choices.items()}
    return found


def _levers(plan: RigPlan) -> list[Lever]:
    try:
        train = train_of(plan.driveline)
    except TorqueloopError:  # no [gearbox] with input and output
        return []
    levers = []
    for row in train.rows:
        if row.ratio is None:
            continue
        members = []
        for member, shaft, _ in row.members:
            x = _PLACE.get(member, -float(row.ratio))
            signal = "" if shaft is None or f"{shaft}.w" not in plan.table else f"{shaft}.w"
            members.append(Member(member, x, shaft or "", signal))
        levers.append(Lever(row.component, sorted(members, key=lambda m: m.x)))
    return levers
