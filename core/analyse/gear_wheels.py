"""The wheels of planetary sets: radii, places, phases of the teeth and spin of the planets, from tooth numbers.

A set is drawn in units of the rolling radius of its ring. Tooth numbers z rule speeds, as in `planets` and `gears`:

    sun-planet      z_s (w_s - w_c) = -z_p (w_p - w_c)        planet-ring   z_p (w_p - w_c) = z_r (w_r - w_c)
    planet-planet   z_1 (w_1 - w_c) = -z_2 (w_2 - w_c)

so both wheels of a mesh pass as many teeth whatever the planet's number is. Where a file gives none, the planet has
(z_r - z_s)/2 teeth, rounded down where that is no whole number (real wheels are profile-shifted then), a plus set two
planets in series; a plus set and a set with the same carrier and ring share the outer planets (Ravigneaux).
Every mesh has operating circles of its own that add up to its centre distance, so that two modules a few per cent apart
meet on one planet.

Planets stand at even angles where teeth allow it, else at the nearest ones at which they can be put in:
(z_s + z_r) theta = 2 pi k, for a plus set (z_r - z_s) theta = 2 pi k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field, replace

from torqueloop.core.components.gears import IdealPlanetary
from torqueloop.core.components.planets import Planetary, Ravigneaux
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError

TAU = 2.0 * math.pi
#: free space between neighbouring planets, in teeth of their module
CLEAR = 2.6
#: teeth of the smallest planet that is drawn, and the numbers of planets in the order they are tried
LEAST_TEETH, NUMBERS = 8, (4, 3, 5, 6, 2)
#: numbers of planets that two sets may share
SHARED = (3, 4, 5)


@dataclass(frozen=True)
class Wheel:
    """A wheel, or equal ones: a sun, a ring, the planets of one kind."""

    name: str
    #: "sun", "ring" or "planet"
    role: str
    teeth: int
    #: mean operating radius [ring = 1]
    radius: float
    #: rows of the set it reaches over, first and last
    rows: tuple[int, int]
    #: member whose shaft it is on: "sun", "ring" ...; of planets "carrier"
    member: str
    #: angle of the wheel = sum of coefficient * angle of the member
    spin: dict[str, float]
    #: (distance from the axis, angle on the carrier) of each wheel
    places: tuple[tuple[float, float], ...] = ((0.0, 0.0),)
    #: direction of the middle of a tooth of each wheel when all angles are 0
    phases: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class Mesh:
    """Two wheels whose teeth are in contact; `inner`: the second is a ring around the first. `pairs`: which of each."""

    first: str
    second: str
    inner: bool
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class WheelSet:
    """The wheels of one component. Rows are places along the axis, from 0."""

    name: str
    wheels: tuple[Wheel, ...]
    meshes: tuple[Mesh, ...]
    #: the set with which it shares ring, carrier and outer planets, "" for none: it is drawn beside it
    partner: str = ""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return 1 + max(w.rows[1] for w in self.wheels)

    def wheel(self, name: str) -> Wheel:
        """One of its wheels."""
        return next(w for w in self.wheels if w.name == name)


@dataclass
class _Assembly:
    """A set being put together; wheels join by meshes, each of which gives the phase of one more wheel."""

    name: str
    wheels: dict[str, Wheel] = field(default_factory=dict)
    meshes: list[Mesh] = field(default_factory=list)

    def put(self, wheel: Wheel) -> None:
        self.wheels[wheel.name] = wheel

    def mesh(self, known: str, fresh: str, inner: bool = False) -> None:
        """Teeth of `fresh` stand so that they meet those of `known`; of many pairs with one ring or sun the first."""
        a, b = self.wheels[known], self.wheels[fresh]
        n = max(len(a.places), len(b.places))
        pairs = tuple((k % len(a.places), k % len(b.places)) for k in range(n))
        phases = [fitting(a, i, b, j, inner) for i, j in pairs[: len(b.places)]]
        self.wheels[fresh] = replace(b, phases=tuple(phases))
        self.meshes.append(Mesh(known, fresh, inner, pairs))

    def step(self, beside: str, fresh: Wheel) -> None:
        """The second wheel of stepped planets. Which of its teeth stands where is that of the first planet; the others
        are alike (see `_stepped`), and are turned to where their second mesh wants them when that is made."""
        self.wheels[fresh.name] = replace(fresh, phases=self.wheels[beside].phases)

    def mesh_step(self, step: str, fresh: str, inner: bool) -> None:
        """A sun or ring that meets the second wheels: the first pair gives its phase, and it those of the others."""
        self.mesh(step, fresh, inner)
        a, b = self.wheels[step], self.wheels[fresh]
        phases = [a.phases[0], *(fitting_back(a, i, b, inner) for i in range(1, len(a.places)))]
        self.wheels[step] = replace(a, phases=tuple(phases))

    def done(self, partner: str = "") -> WheelSet:
        return WheelSet(self.name, tuple(self.wheels.values()), tuple(self.meshes), partner)


def contact(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Direction from place a to place b, both (distance, angle)."""
    x = b[0] * math.cos(b[1]) - a[0] * math.cos(a[1])
    y = b[0] * math.sin(b[1]) - a[0] * math.sin(a[1])
    return math.atan2(y, x)


def fitting(a: Wheel, i: int, b: Wheel, j: int, inner: bool) -> float:
    """Phase of b that puts a gap of b before a tooth of a; `inner`: b is the ring around a."""
    beta = a.places[i][1] if inner else contact(a.places[i], b.places[j])
    u = a.teeth * (beta - a.phases[i]) / TAU
    if inner:
        return beta - TAU / b.teeth * (u + 0.5)
    return beta + math.pi - TAU / b.teeth * (0.5 - u)


def fitting_back(a: Wheel, i: int, b: Wheel, inner: bool) -> float:
    """Phase of planet i of a that meets b, the sun or (`inner`) the ring, as that stands."""
    beta = a.places[i][1]
    if inner:
        return beta - TAU / a.teeth * (b.teeth * (beta - b.phases[0]) / TAU - 0.5)
    return fitting(b, 0, a, i, False)


def mesh_error(wheels: WheelSet, mesh: Mesh, pair: tuple[int, int], angle: dict[str, float], carrier: float) -> float:
    """How far two meshing wheels are off, in tooth pitches (-0.5 .. 0.5), at angles of the wheels and the carrier."""
    a, b = wheels.wheel(mesh.first), wheels.wheel(mesh.second)
    i, j = pair
    places = [(r, t + carrier) for r, t in (a.places[i], b.places[j])]
    beta = places[0][1] if mesh.inner else contact(places[0], places[1])
    u = a.teeth * (beta - a.phases[i] - angle[a.name]) / TAU
    if mesh.inner:
        off = b.teeth * (beta - b.phases[j] - angle[b.name]) / TAU - u - 0.5
    else:
        off = b.teeth * (beta + math.pi - b.phases[j] - angle[b.name]) / TAU + u - 0.5
    return off - round(off)


def wheel_sets(driveline: Driveline) -> dict[str, WheelSet]:
    """The sets of a driveline whose tooth numbers are known; sets given by a ratio get numbers that make it nearly."""
    shared = {name: partner for name, partner in _shared(driveline)}
    found = {}
    for name, component in driveline.components.items():
        if isinstance(component, IdealPlanetary):
            found[name] = _ideal(name, component, driveline, shared.get(name, ""))
        elif isinstance(component, Planetary):
            found[name] = _stepped(name, component)
        elif isinstance(component, Ravigneaux):
            found[name] = _ravigneaux(name, component)
    return {n: aligned(s, found[s.partner]) if s.partner else s for n, s in found.items()}


def _shared(driveline: Driveline) -> Iterator[tuple[str, str]]:
    """(plus set, set) pairs that are one Ravigneaux set: same carrier, same ring, same teeth of the ring."""
    sets = {n: c for n, c in driveline.components.items() if isinstance(c, IdealPlanetary) and c.z_ring}
    groups = [set(group) for group in driveline.connections]
    for name, plus in sets.items():
        for other, plain in sets.items():
            joined = all(any({f"{name}.{m}", f"{other}.{m}"} <= group for group in groups) for m in ("carrier", "ring"))
            if plus.plus_set and not plain.plus_set and plus.z_ring == plain.z_ring and joined:
                assert plus.z_ring and plus.z_sun and plain.z_sun
                g = math.gcd(plus.z_ring - plus.z_sun, plus.z_ring + plain.z_sun)
                if any(g % n == 0 for n in SHARED):
                    yield name, other
                    break


def numbers(component: IdealPlanetary) -> tuple[int, int]:
    """Teeth of sun and ring; of a set given by its ratio the smallest that come within 0.5 % of it."""
    if component.z_sun is not None and component.z_ring is not None:
        return component.z_sun, component.z_ring
    i = abs(float(component.i))
    i = max(i, 1.0 / i) if i != 1.0 else 1.05
    return min(((s, round(s * i)) for s in range(24, 60)), key=lambda z: (abs(z[1] / z[0] / i - 1) > 5e-3, z[0]))


def _angles(assembly: int, most: int, wanted: int | None = None) -> tuple[float, ...]:
    """Where planets stand: theta = 2 pi k/assembly; `wanted`, or as many as fit (`most`), evenly if that can be."""
    even = [n for n in NUMBERS if n <= most and assembly % n == 0]
    n = wanted or (even[0] if even else next((n for n in (3, 4, 2) if n <= most), 1))
    return tuple(TAU * k / assembly for k in sorted({round(k * assembly / n) for k in range(n)}))


def _in_pairs(assembly: int) -> tuple[float, ...]:
    """Where the planets of two sets that share them stand: three, four or five, evenly."""
    n = next(n for n in SHARED if assembly % n == 0)
    return tuple(TAU * k / n for k in range(n))


def _turn(a: float, b: float, apart: float) -> float:
    """Angle on the carrier between planets at distances a and b from its axis that are `apart` from each other."""
    return math.acos(min(1.0, max(-1.0, (a * a + b * b - apart * apart) / (2.0 * a * b))))


def _most(distance: float, radius: float, teeth: int) -> int:
    """How many planets of this radius fit beside each other."""
    x = radius * (1.0 + CLEAR / teeth) / distance
    return 1 if x >= 1.0 else max(1, int(math.pi / math.asin(x) + 1e-9))


def _ideal(name: str, component: IdealPlanetary, driveline: Driveline, partner: str) -> WheelSet:
    z_sun, z_ring = numbers(component)
    if component.i < 0:
        other = driveline.components.get(partner)
        long = (numbers(other)[1] - numbers(other)[0]) // 2 if isinstance(other, IdealPlanetary) else None
        third = z_ring + numbers(other)[0] if isinstance(other, IdealPlanetary) else 0
        return _plus(name, z_sun, z_ring, long, third, partner)
    z = max((z_ring - z_sun) // 2, 1)
    pairs = [plus for plus, plain in _shared(driveline) if plain == name]
    made = _Assembly(name)
    a = 0.5 * (1.0 + z_sun / z_ring)
    most, wanted = _most(a, 0.5 * (1 - z_sun / z_ring), z), driveline.display.planets.get(name)
    angles = _angles(z_sun + z_ring, most, wanted)
    if wanted is not None and (wanted > most or pairs):
        allowed = "none: a set that shares its planets with another" if pairs else f"1 .. {most}: as many as fit"
        raise RangeError("{key} = {value} planets cannot be drawn", file=driveline.file, table="display.planets",
                         key=name, value=wanted, allowed=allowed)  # fmt: skip
    if pairs:
        plus = driveline.components[pairs[0]]
        assert isinstance(plus, IdealPlanetary)
        angles = _in_pairs(math.gcd(z_sun + z_ring, numbers(plus)[1] - numbers(plus)[0]))
        a = 1.0 - z / z_ring
    places = tuple((a, t) for t in angles)
    _simple(made, z_sun, z, z, z_ring, places, rows=(0, 0))
    return made.done()


def _simple(
    made: _Assembly, z_sun: int, z1: int, z2: int, z_ring: int, places: tuple[tuple[float, float], ...],
    rows: tuple[int, int],
) -> None:  # fmt: skip
    """Sun, planets (z1 meets the sun in the first row, z2 the ring in the last), ring."""
    a = places[0][0]
    spin = {"sun": -z_sun / z1, "carrier": 1.0 + z_sun / z1}
    made.put(Wheel("sun", "sun", z_sun, a * z_sun / (z_sun + z1), (rows[0], rows[0]), "sun", {"sun": 1.0}))
    inner, outer = a * z1 / (z_sun + z1), a * z2 / (z_ring - z2)
    if rows[0] == rows[1]:
        made.put(Wheel("planet", "planet", z1, 0.5 * (inner + outer), rows, "carrier", spin, places))
        made.mesh("sun", "planet")
        last = "planet"
    else:
        made.put(Wheel("planet_sun", "planet", z1, inner, (rows[0], rows[0]), "carrier", spin, places))
        made.mesh("sun", "planet_sun")
        made.step("planet_sun", Wheel("planet_ring", "planet", z2, outer, (rows[1], rows[1]), "carrier", spin, places))
        last = "planet_ring"
    made.put(Wheel("ring", "ring", z_ring, a * z_ring / (z_ring - z2), (rows[1], rows[1]), "ring", {"ring": 1.0}))
    if last == "planet":
        made.mesh(last, "ring", inner=True)
    else:
        made.mesh_step(last, "ring", inner=True)


def _plus(name: str, z_sun: int, z_ring: int, long: int | None, third: int, partner: str) -> WheelSet:
    """Sun, inner planets, outer planets, ring."""
    gap = z_ring - z_sun
    z_out = long if long is not None else max(LEAST_TEETH, math.ceil(0.29 * gap))
    z_in = max(LEAST_TEETH, math.ceil(0.62 * gap) - z_out) if long is not None else z_out
    made = _Assembly(name)
    a_in, a_out, apart = (z_sun + z_in) / z_ring, 1.0 - z_out / z_ring, (z_in + z_out) / z_ring
    turn = _turn(a_in, a_out, apart)
    most = min(4, _most(a_out, z_out / z_ring + 0.3 * z_in / z_ring, z_out))
    angles = _in_pairs(math.gcd(gap, third)) if third else _angles(gap, most)
    inner = tuple((a_in, t + turn) for t in angles)
    outer = tuple((a_out, t) for t in angles)
    spin_in = {"sun": -z_sun / z_in, "carrier": 1.0 + z_sun / z_in}
    spin_out = {"sun": z_sun / z_out, "carrier": 1.0 - z_sun / z_out}
    made.put(Wheel("sun", "sun", z_sun, z_sun / z_ring, (0, 0), "sun", {"sun": 1.0}))
    made.put(Wheel("planet_inner", "planet", z_in, z_in / z_ring, (0, 0), "carrier", spin_in, inner))
    made.put(Wheel("planet_outer", "planet", z_out, z_out / z_ring, (0, 0), "carrier", spin_out, outer))
    made.put(Wheel("ring", "ring", z_ring, 1.0, (0, 0), "ring", {"ring": 1.0}))
    made.mesh("sun", "planet_inner")
    made.mesh("planet_inner", "planet_outer")
    made.mesh("planet_outer", "ring", inner=True)
    return made.done(partner)


def aligned(plus: WheelSet, plain: WheelSet) -> WheelSet:
    """The plus set turned on its sun until its outer planets continue those of the set it shares them with."""
    outer, other = plus.wheel("planet_outer"), plain.wheel("planet")
    by = (other.phases[0] - outer.phases[0]) / outer.spin["sun"]
    turned = []
    for wheel in plus.wheels:
        share = outer.spin["sun"] * outer.teeth / wheel.teeth if wheel.role == "ring" else wheel.spin["sun"]
        turned.append(replace(wheel, phases=tuple(phase + share * by for phase in wheel.phases)))
    return replace(plus, wheels=tuple(turned))


def _whole(*teeth: object) -> tuple[int, ...]:
    """Rolling radii in any unit as tooth numbers that are drawn: whole ones as they are."""
    values = [float(z) for z in teeth]  # type: ignore[arg-type]
    if all(v == round(v) and v >= LEAST_TEETH for v in values):
        return tuple(round(v) for v in values)
    scale = 24.0 / min(values)
    return tuple(max(1, round(v * scale)) for v in values)


def _stepped(name: str, component: Planetary) -> WheelSet:
    z_sun, z1, z2, z_ring = _whole(
        component.z_sun, component.z_planet_sun, component.outer_wheel, component.z_ring
    )  # fmt: skip
    made = _Assembly(name)
    a = 1.0 - z2 / z_ring
    radius = max(a * z1 / (z_sun + z1), z2 / z_ring)
    # all planets alike: theta (z_s/z_1 + z_r/z_2) = 2 pi k gcd(z_1, z_2)/(z_1 z_2)
    assembly = (z_sun * z2 + z_ring * z1) // math.gcd(z1, z2)
    places = tuple((a, t) for t in _angles(assembly, min(4, _most(a, radius, min(z1, z2)))))
    _simple(made, z_sun, z1, z2, z_ring, places, rows=(0, 0) if z1 == z2 else (0, 1))
    return made.done()


def _ravigneaux(name: str, component: Ravigneaux) -> WheelSet:
    wheel2 = component.z_planet2 if component.z_planet2_sun is None else component.z_planet2_sun
    z_sun1, z_sun2, z_short, z_long, z_step, z_ring = _whole(
        component.z_sun1, component.z_sun2, component.z_planet1, component.z_planet2, wheel2, component.z_ring
    )
    a_long = 1.0 - z_long / z_ring
    a_short = (z_sun1 + z_short) / z_ring
    turn = _turn(a_short, a_long, (z_short + z_long) / z_ring)
    assembly = math.gcd(z_ring - z_sun1, z_ring + z_sun2)
    angles = _angles(assembly, min(4, _most(a_long, z_long / z_ring + 0.3 * z_short / z_ring, z_long)))
    short = tuple((a_short, t + turn) for t in angles)
    long = tuple((a_long, t) for t in angles)
    spin_short = {"sun1": -z_sun1 / z_short, "carrier": 1.0 + z_sun1 / z_short}
    spin_long = {"sun1": z_sun1 / z_long, "carrier": 1.0 - z_sun1 / z_long}
    made = _Assembly(name)
    made.put(Wheel("sun1", "sun", z_sun1, z_sun1 / z_ring, (0, 0), "sun1", {"sun1": 1.0}))
    made.put(Wheel("planet1", "planet", z_short, z_short / z_ring, (0, 0), "carrier", spin_short, short))
    # where the long planet has one wheel only, it reaches over both rows
    rows = (0, 1) if z_step == z_long else (0, 0)
    made.put(Wheel("planet2", "planet", z_long, z_long / z_ring, rows, "carrier", spin_long, long))
    made.put(Wheel("ring", "ring", z_ring, 1.0, (0, 0), "ring", {"ring": 1.0}))
    made.mesh("sun1", "planet1")
    made.mesh("planet1", "planet2")
    made.mesh("planet2", "ring", inner=True)
    sun2 = Wheel("sun2", "sun", z_sun2, a_long * z_sun2 / (z_step + z_sun2), (1, 1), "sun2", {"sun2": 1.0})
    made.put(sun2)
    if z_step == z_long:
        made.mesh("planet2", "sun2")
    else:
        radius = a_long * z_step / (z_step + z_sun2)
        made.step("planet2", Wheel("planet2_sun", "planet", z_step, radius, (1, 1), "carrier", spin_long, long))
        made.mesh_step("planet2_sun", "sun2", inner=False)
    return made.done()
