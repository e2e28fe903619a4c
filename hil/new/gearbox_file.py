"""A gearbox file from a sketch: packs sized by the torques of the statics, the rest assumed, all commented."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from torqueloop.core.analyse.gear_statics import ONE, GearRow, GearTrain, TrainElement, solve_gear
from torqueloop.core.analyse.sizing import annulus_cm2, pack_torque_Nm
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.new.sketch import HOUSING, PlanetarySet, Sketch

#: a pack holds this multiple of its largest static torque at the highest line pressure
MARGIN = 1.25
RETURN_BAR, MU = 0.8, 0.11
#: the regulator lets the line pressure rise to this multiple of its highest value
REGULATOR = 1.03
#: plates packs are made from, outer and inner radius [mm]: Raybestos prints of ZF 6HP26 (A/C), 4HP20 (C), a large one
PLATES_MM = ((97.5, 81.9), (107.0, 77.47), (125.0, 100.0))
#: numbers of faces; only the largest plates take more than FACES_MAX
FACES, FACES_MAX = (4, 6, 8, 10, 12, 14, 16, 18, 20), 12
#: assumed moments of inertia [kg m2]
J_INPUT, J_OUTPUT, J_INNER = 0.020, 0.015, 0.008

FRICTION = '''\
# ---------------------------------------------------------------- friction
[tables.mu_paper]
source = """assumed: paper lining in ATF at 80 C, rising with sliding speed as organic linings do
(shape: Strobl et al. 2023, doi 10.1007/s10010-023-00669-4)"""
columns = ["v_mps", "mu"]
rows = [
  [0.0, 0.110], [0.01, 0.112], [0.05, 0.116], [0.1, 0.119], [0.5, 0.128], [1.0, 0.132], [2.0, 0.135], [5.0, 0.136],
  [10.0, 0.133], [20.0, 0.126],
]
'''


@dataclass(frozen=True)
class Pack:
    """A plate pack; its piston has the area of the plates."""

    faces: int
    r_o_mm: float
    r_i_mm: float

    @property
    def area_cm2(self) -> float:
        """Area of the piston, rounded down."""
        return math.floor(10.0 * annulus_cm2(self.r_o_mm, self.r_i_mm)) / 10.0

    def holds_Nm(self, line_bar: float) -> float:
        """Torque at a line pressure and the friction coefficient of standstill."""
        pressure = line_bar - RETURN_BAR
        return pack_torque_Nm(self.faces, self.r_o_mm, self.r_i_mm, self.area_cm2, MU, pressure)


def pack_for(torque_Nm: float, line_bar: float) -> Pack:
    """The pack of the smallest plates that holds the torque, with the fewest faces."""
    for r_o, r_i in PLATES_MM:
        for faces in FACES:
            pack = Pack(faces, r_o, r_i)
            if pack.holds_Nm(line_bar) >= torque_Nm and (faces <= FACES_MAX or (r_o, r_i) == PLATES_MM[-1]):
                return pack
    largest = Pack(FACES[-1], *PLATES_MM[-1]).holds_Nm(line_bar)
    raise ConfigError(
        f"no pack of {FACES[-1]} faces holds {torque_Nm:.0f} Nm at {line_bar:g} bar",
        key="torque_Nm", allowed=f"at most {largest:.0f} Nm in each element",
    )  # fmt: skip


def train_of_sketch(sketch: Sketch) -> GearTrain:
    """The ideal gear train of a sketch."""
    rows = tuple(_gear_row(name, s) for name, s in sketch.sets.items())
    elements = [TrainElement(n, "LaminarClutch", _shaft(a), _shaft(b)) for n, (a, b) in sketch.clutches.items()]
    elements += [TrainElement(n, "LaminarBrake", s, None) for n, s in sketch.brakes.items()]
    elements += [
        TrainElement(n, "FreeWheel", _shaft(a), _shaft(b), -1) for n, (a, b) in sketch.free_wheels.items()
    ]  # fmt: skip
    return GearTrain(sketch.name, tuple(sketch.shafts()), rows, tuple(elements), "in", "out")


def _shaft(name: str) -> str | None:
    return None if name == HOUSING else name


def _gear_row(name: str, s: PlanetarySet) -> GearRow:
    if s.ratio is not None:
        i = Fraction(str(s.ratio))
    else:
        i = Fraction(s.z_ring or 0, s.z_sun or 1)
    i = -i if s.plus_set else i
    terms = (("sun", s.sun, ONE), ("ring", s.ring, i), ("carrier", s.carrier, -(ONE + i)))
    return GearRow(name, tuple((member, _shaft(shaft), k) for member, shaft, k in terms), i)


def largest_torques(sketch: Sketch) -> dict[str, Fraction]:
    """Largest |torque| of each element over the gears it is engaged in, per Nm at the input."""
    train = train_of_sketch(sketch)
    largest: dict[str, Fraction] = {}
    for gear, entry in sketch.gears.items():
        state = solve_gear(train, gear, entry.engaged, entry.ratio)
        for name, torque in state.torques.items():
            largest[name] = max(largest.get(name, Fraction(0)), abs(torque))
    return largest


def gearbox_text(sketch: Sketch, header: str = "") -> str:
    """The gearbox file."""
    largest = largest_torques(sketch)
    parts = [header or _header(sketch), f'kind = "gearbox"\nname = "{sketch.name}"\n', _connections(sketch)]
    low, high = sketch.line_min_bar, sketch.line_max_bar
    parts.append(f'[gearbox]\ninput = "in"\noutput = "out"\nline_min_bar = {low:g}\nline_max_bar = {high:g}\n')
    parts.append(_shaft_tables(sketch))
    parts.append(_set_tables(sketch))
    parts.append(_pack_tables(sketch, largest))
    if sketch.free_wheels:
        parts.append(_free_wheel_tables(sketch))
    parts += [FRICTION, _gear_tables(sketch)]
    return "\n".join(parts)


def _header(sketch: Sketch) -> str:
    return (
        f"# {sketch.title or sketch.name}\n"
        "#\n"
        "# Written by `torqueloop new gearbox` from a sketch; everything here may be changed.\n"
        "#   sketched   shafts, sets, elements, gears, line pressure\n"
        f"#   derived    packs: the smallest that hold {MARGIN:g} x the torque of the statics\n"
        f"#              at {sketch.torque_Nm:g} Nm and {sketch.line_max_bar:g} bar\n"
        "#   assumed    moments of inertia, plates, fill times, friction\n"
        "#\n"
        "# Signs: all shafts turn positive in the direction of the engine. w_rel = w_b - w_a; A.tau > 0 speeds up the\n"
        "# shaft at flange_a.\n"
    )


def _connections(sketch: Sketch) -> str:
    """One set of flanges per shaft end: gears at flange_a (the output: flange_a too), elements at flange_b."""
    gears: dict[str, list[str]] = {s: [] for s in [*sketch.shafts(), HOUSING]}
    for name, s in sketch.sets.items():
        for member in ("sun", "carrier", "ring"):
            gears[getattr(s, member)].append(f"{name}.{member}")
    for name, (a, b) in {**sketch.clutches, **sketch.free_wheels}.items():
        gears[a].append(f"{name}.flange_a")
        gears[b].append(f"{name}.flange_b")
    for name, shaft in sketch.brakes.items():
        gears[shaft].append(f"{name}.flange_a")
    lines = ["# what is on each shaft", "connections = ["]
    for shaft, flanges in gears.items():
        end = "housing.flange" if shaft == HOUSING else f"{shaft}.{'flange_b' if shaft == 'in' else 'flange_a'}"
        if flanges:  # without brakes there is nothing on the housing
            lines.append("  [" + ", ".join(f'"{f}"' for f in [end, *flanges]) + "],")
    return "\n".join([*lines, "]", ""])


def _shaft_tables(sketch: Sketch) -> str:
    lines = ["# ---------------------------------------------------------------- shafts"]
    assumed = {"in": J_INPUT, "out": J_OUTPUT}
    for shaft in sketch.shafts():
        given = sketch.inertias_kgm2.get(shaft)
        source = (
            "of the sketch"
            if given is not None
            else "assumed: usual for a shaft of such a box; range 0.003..0.02 kg m2"
        )
        value = given if given is not None else assumed.get(shaft, J_INNER)
        lines += [f"[components.{shaft}]", 'kind = "Inertia"', f"J_kgm2 = {value:g}", f'source = "{source}"', ""]
    return "\n".join([*lines, *(["[components.housing]", 'kind = "Fixed"', ""] if on_housing(sketch) else [])])


def on_housing(sketch: Sketch) -> bool:
    """Something is joined to the housing itself (brakes have their support of their own)."""
    members = [shaft for s in sketch.sets.values() for shaft in (s.sun, s.carrier, s.ring)]
    return HOUSING in [*members, *(shaft for pair in sketch.free_wheels.values() for shaft in pair)]


def _set_tables(sketch: Sketch) -> str:
    lines = [
        "# ---------------------------------------------------------------- planetary sets",
        "# z_sun w_sun + z_ring w_ring = (z_sun + z_ring) w_carrier",
        "# plus set: z_ring w_ring - z_sun w_sun = (z_ring - z_sun) w_carrier",
    ]
    for name, s in sketch.sets.items():
        lines += [f"[components.{name}]", 'kind = "IdealPlanetary"']
        if s.ratio is not None:
            lines += [f"ratio = {-s.ratio if s.plus_set else s.ratio!r}"]
        else:
            lines += [f"z_sun = {s.z_sun}", f"z_ring = {s.z_ring}", *(["plus_set = true"] if s.plus_set else [])]
        lines += ['source = "the sketch: head of this file"', ""]
    return "\n".join(lines)


def _pack_tables(sketch: Sketch, largest: dict[str, Fraction]) -> str:
    line = sketch.line_max_bar
    lines = [
        "# ---------------------------------------------------------------- pressure-actuated clutches and brakes",
        "# assumed: plates as printed for the ZF 6HP26 (A/C) and 4HP20 (C), the largest ones own; range 80..130 mm",
        "# derived: a piston has the area of its plates, pi (r_o^2 - r_i^2)",
        f"# derived: faces, the fewest that hold {MARGIN:g} x the largest static torque at {sketch.torque_Nm:g} Nm of",
        f"#          the turbine and {line:g} bar of line pressure less the return spring, mu {MU:g} (standstill)",
        f"# derived: p_max, {REGULATOR:g} x the highest line pressure: tolerance of the ZF 4HP22, 10 +- 0.3 bar",
        f"# assumed: return spring {RETURN_BAR:g} bar; range 0.3..1.5 bar (Mercedes 722.6: 0.3..1.5)",
        "# assumed: the piston takes up its clearance in 120 ms before any torque; range 80..200 ms",
        "# assumed: pressure lag 40 ms rising, 30 ms falling; range 20..60 ms, 20..40 ms",
    ]
    for name in [*sketch.clutches, *sketch.brakes]:
        factor = float(largest.get(name, Fraction(0)))
        needed = MARGIN * factor * sketch.torque_Nm
        pack = pack_for(needed, line)
        gears = [g for g, entry in sketch.gears.items() if name in entry.engaged]
        lines += [
            f"[components.{name}]",
            f'kind = "{"LaminarClutch" if name in sketch.clutches else "LaminarBrake"}"',
            f'source = "derived: gears {", ".join(gears) or "none"}; {factor:.3f} Nm per Nm of the input; '
            f'{needed:.0f} Nm needed, holds {pack.holds_Nm(line):.0f} Nm at {line:g} bar"',
            f"faces = {pack.faces}",
            f"r_o_mm = {pack.r_o_mm}",
            f"r_i_mm = {pack.r_i_mm}",
            *([f"plate_mm = {sketch.plates_mm[name]:g}"] if name in sketch.plates_mm else []),
            'mue_pos = "mu_paper"',
            "peak = 1.0",
            f"area_cm2 = {pack.area_cm2:g}",
            f"p_return_bar = {RETURN_BAR}",
            f"p_max_bar = {REGULATOR * line:.1f}",
            'actuator = "fill_time"',
            "tau_rise_ms = 40",
            "tau_fall_ms = 30",
            "t_fill_ms = 120",
            "t_empty_ms = 60",
            "",
        ]
    return "\n".join(lines)


def _free_wheel_tables(sketch: Sketch) -> str:
    lines = ["# ---------------------------------------------------------------- free wheels: w_b < w_a is blocked"]
    for name, (a, b) in sketch.free_wheels.items():
        lines += [f"[components.{name}]", 'kind = "FreeWheel"', f'source = "blocks w_{b} < w_{a}"', ""]
    return "\n".join(lines)


def _gear_tables(sketch: Sketch) -> str:
    lines = ["# ---------------------------------------------------------------- gears: what carries torque"]
    for gear, entry in sketch.gears.items():
        lines += [f"[gears.{_key(gear)}]", "engaged = [" + ", ".join(f'"{n}"' for n in entry.engaged) + "]"]
        lines += [] if entry.ratio is None else [f"ratio = {entry.ratio!r}"]
        lines.append("")
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
