"""The content of an animation: what is drawn and how it moves, as plain values for JSON.

Numbers over time are base64 of little endian floats. Angles are given twice, modulo one turn and as speeds: between two
samples the page goes along the cubic through both (Hermite), which takes the whole turns from the speeds. That cubic is
linear in its values, so wheels that mesh at the samples mesh between them.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.analyse.gear_section import RIM, PlacedCoupling, PlacedSet
from torqueloop.core.analyse.shaft_motion import Motion
from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.animate.stage import Stage

Array = NDArray[np.float64]
#: colours of shafts, apart from those of the modes of elements; the input's and the output's first
PALETTE = ("#63aebf", "#4fa873", "#c9737a", "#8d78c9", "#a8925c", "#8e9db0", "#b573b5", "#84766b", "#cf9484", "#5c8f8a",
           "#9c86a0", "#a3a36c")  # fmt: skip
#: states of elements: 0 open, 1 slipping, 2 locked, 3 not recorded
OPEN, SLIPPING, LOCKED, UNKNOWN = range(4)
#: torque below which a slipping element is open [Nm]
NO_TORQUE = 1e-9
#: samples of a plot at most
PLOT_POINTS = 2400


@dataclass(frozen=True)
class Curves:
    """One plot: curves over common times."""

    title: str
    unit: str
    t: Array
    #: (name, values)
    lines: Sequence[tuple[str, Array]]


@dataclass(frozen=True)
class Recorded:
    """What of a run goes into the picture beside the motion of its shafts."""

    title: str
    subtitle: str
    #: element -> (times from which on it has a state, states)
    states: Mapping[str, tuple[Array, NDArray[np.int8]]]
    #: (from s, to s, gear)
    gears: Sequence[tuple[float, float, str]]
    #: (name, begin s, end s)
    shifts: Sequence[tuple[str, float, float]]
    curves: Sequence[Curves]
    #: quaternion of the body at the samples of the motion, scalar first
    attitude: Array | None = None
    #: factor on the angle it has turned since its first sample
    exaggeration: float = 1.0
    notes: Sequence[str] = field(default=())


def packed(values: Iterable[Any], kind: str = "<f4") -> str:
    """Base64 of the values."""
    return base64.b64encode(np.asarray(values, kind).tobytes()).decode()


def states(t: Array, mode: Array, tau: Array | None) -> tuple[Array, NDArray[np.int8]]:
    """Changes of the state of an element: locked where it sticks, slipping where it slides and carries torque."""
    slips = np.abs(mode) == 1
    state = np.where(mode == 0, LOCKED, np.where(slips, SLIPPING, OPEN)).astype(np.int8)
    if tau is not None:
        state[slips & (np.abs(tau) <= NO_TORQUE)] = OPEN
    changes = np.flatnonzero(np.diff(state, prepend=state[:1] - 1)) if len(state) else np.zeros(0, int)
    return t[changes], state[changes]


def planet_tracks(place: PlacedSet, motion: Motion) -> dict[str, tuple[Array, Array]]:
    """Absolute angle and speed of the planets of each kind, from those of the members: their rolling in the meshes."""
    found = {}
    for wheel in place.wheels.wheels:
        if wheel.role == "planet":
            pair = []
            for values in (motion.angle, motion.speed):
                total = np.zeros(len(motion.t))
                for member, factor in wheel.spin.items():
                    shaft = place.shafts[member]
                    if shaft is not None:
                        total = total + factor * values[shaft]
                pair.append(total)
            found[f"{place.wheels.name}/{wheel.name}"] = (pair[0], pair[1])
    return found


def tracks(stage: Stage, motion: Motion) -> dict[str, tuple[Array, Array]]:
    """All angles and speeds that the picture needs."""
    found = {name: (motion.angle[name], motion.speed[name]) for name in stage.shafts}
    for place in stage.section.sets:
        found |= planet_tracks(place, motion)
    return found


def content(stage: Stage, motion: Motion, recorded: Recorded) -> dict[str, Any]:
    """Everything that the page receives."""
    turning = tracks(stage, motion)
    number = {name: k for k, name in enumerate(turning)}
    colours = _colours(stage)
    tau = 2.0 * math.pi
    return {
        "title": recorded.title,
        "subtitle": recorded.subtitle,
        "notes": list(recorded.notes),
        "t": packed(motion.t, "<f8"),
        "tracks": [
            {"name": name, "angle": packed(np.mod(angle, tau)), "speed": packed(speed)}
            for name, (angle, speed) in turning.items()
        ],
        "length": stage.section.length,
        "inside": stage.section.inside,
        "housing": stage.section.housing,
        "rim": RIM,
        "sets": [_set(place, number, colours) for place in stage.section.sets],
        "couplings": [
            {"name": c.name, "kind": c.kind, "x": c.x, "width": c.width, "r_in": c.r_in, "r_out": c.r_out,
             "outer": number.get(c.outer or "", -1), "inner": number.get(c.inner or "", -1),
             "joint": _joint(stage, c)}
            for c in stage.section.couplings
        ],
        "shafts": [
            {"name": s.name, "track": number.get(s.name, -1), "colour": colours.get(s.name, "#888888"),
             "tubes": s.tubes, "discs": s.discs}
            for s in stage.section.shafts if s.name in number
        ],
        "converter": _converter(stage, number, colours),
        "body": _body(stage, recorded),
        "states": [
            {"name": name, "t": packed(t, "<f8"), "state": packed(state, "i1")}
            for name, (t, state) in recorded.states.items()
        ],
        "gears": [list(g) for g in recorded.gears],
        "shifts": [list(s) for s in recorded.shifts],
        "plots": [
            {"title": c.title, "unit": c.unit, "t": packed(c.t, "<f8"),
             "lines": [{"name": name, "values": packed(values)} for name, values in c.lines]}
            for c in recorded.curves
        ],
    }  # fmt: skip


def _colours(stage: Stage) -> dict[str, str]:
    box = stage.driveline.gearbox
    first = [s for s in ((box.input, box.output) if box else ()) if s in stage.shafts]
    order = dict.fromkeys([*first, *stage.shafts])
    found = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(order)}
    for component, colour in stage.driveline.display.colours.items():
        for flange in stage.driveline.components[component].flanges:
            node = stage.topology.place.get(f"{component}.{flange}", ("", 0))[0]
            if node in found:
                found[node] = colour
    return found


def _set(place: PlacedSet, number: Mapping[str, int], colours: Mapping[str, str]) -> dict[str, Any]:
    name, carrier = place.wheels.name, place.shafts.get("carrier")
    return {
        "name": name, "x": place.x, "width": place.width, "rows": place.wheels.rows, "plates": list(place.plates),
        "carrier": {"track": number.get(carrier or "", -1), "colour": colours.get(carrier or "", "#777777")},
        "wheels": [
            {
                "name": w.name, "role": w.role, "teeth": w.teeth, "radius": w.radius, "rows": list(w.rows),
                "track": number.get(f"{name}/{w.name}" if w.role == "planet" else place.shafts[w.member] or "", -1),
                "shaft": place.shafts[w.member] or "housing",
                "colour": colours.get(place.shafts[w.member] or "", "#777777"),
                "places": [list(p) for p in w.places], "phases": list(w.phases),
            }
            for w in place.wheels.wheels
        ],
    }  # fmt: skip


def _joint(stage: Stage, c: PlacedCoupling) -> dict[str, Any] | None:
    """Bends, angles of the forks at phi = 0 and planes of a joint shaft, from the left to the right of the picture."""
    part = stage.joints.get(c.name)
    if part is None:
        return None
    ends = [{"hooke": h, "bend": b, "fork": f} for h, b, f in zip(part.hooke, part.bend, part.theta, strict=True)]
    first = stage.topology.place[f"{c.name}.flange_a"][0]
    return {"joints": part.joints, "planes": part.planes, "ends": ends if first == c.outer else ends[::-1]}


def _converter(stage: Stage, number: Mapping[str, int], colours: Mapping[str, str]) -> dict[str, Any] | None:
    c = stage.converter
    if c is None:
        return None
    return {
        "name": c.name, "lockup": c.lockup, "pump": number.get(c.pump, -1), "turbine": number.get(c.turbine, -1),
        "pump_colour": colours.get(c.pump, "#888888"), "turbine_colour": colours.get(c.turbine, "#888888"),
        "pump_shaft": c.pump, "turbine_shaft": c.turbine,
    }  # fmt: skip


def _body(stage: Stage, recorded: Recorded) -> dict[str, Any] | None:
    if stage.body is None or recorded.attitude is None:
        return None
    return {
        "name": stage.body.name,
        "factor": recorded.exaggeration,
        "mounts": [list(m) for m in stage.body.mounts],
        "q": packed(recorded.attitude.ravel()),
    }
