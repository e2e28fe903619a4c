"""A gearbox sketch: shafts, planetary sets, elements and gears in a few lines, from which a gearbox file is written.

    name = "my_box"
    torque_Nm = 300                                    # largest turbine torque: sizes the packs
    sets.P1 = { sun = "S", carrier = "out", ring = "in", z_sun = 35, z_ring = 73 }
    clutches.C = ["in", "S"]                           # between two shafts
    brakes.B = "S"                                     # between a shaft and the housing
    free_wheels.F = ["housing", "S"]                   # blocks the second shaft turning slower than the first
    gears.1 = { engaged = ["B"], ratio = 1.479 }       # published ratio, for comparison

`in` is the turbine shaft, `out` the output shaft.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from torqueloop.core.describe.errors import did_you_mean
from torqueloop.hil.common.config_file import BadValue, ConfigTable
from torqueloop.hil.common.config_layers import load_config

HOUSING = "housing"
#: what `torqueloop new gearbox NAME` writes when there is no sketch of this name
SKETCH_TO_BEGIN_WITH = """\
# A gearbox in a few lines; then: torqueloop new gearbox NAME.sketch.toml
# As it stands: a Simpson gear train, three forward gears from two equal planetary sets.
kind = "sketch"
name = "NAME"
title = "NAME: what it is"
# largest turbine torque [Nm]: sizes the packs
torque_Nm = 300.0

# planetary sets: the shaft on each member; "in" is the turbine shaft, "out" the output, "housing" stands still.
# plus_set = true: two planets in mesh. ratio = z_ring/z_sun instead of tooth numbers where they are not known.
[sets]
P1 = { sun = "S", carrier = "out", ring = "R1", z_sun = 32, z_ring = 72 }
P2 = { sun = "S", carrier = "C2", ring = "out", z_sun = 32, z_ring = 72 }

# clutches join two shafts, brakes hold one
[clutches]
FWD = ["in", "R1"]
DIR = ["in", "S"]

[brakes]
B2 = "S"
LR = "C2"

# [a, b]: blocks w_b < w_a
[free_wheels]
OWC = ["housing", "C2"]

# what carries torque in each gear; published ratio (three decimals) for comparison.
# 1_engine_braking: the elements that let the engine brake where a free wheel would overrun
[gears]
1 = { engaged = ["FWD", "OWC"], ratio = 2.444 }
1_engine_braking = { engaged = ["FWD", "LR"], ratio = 2.444 }
2 = { engaged = ["FWD", "B2"], ratio = 1.444 }
3 = { engaged = ["FWD", "DIR"], ratio = 1.0 }
R = { engaged = ["DIR", "LR"], ratio = -2.25 }
"""
Positive = Annotated[float, Field(gt=0)]
Teeth = Annotated[int, Field(ge=1, le=1000)]


class PlanetarySet(ConfigTable):
    """One planetary set: its tooth numbers, or their ratio where they are not known."""

    #: Shaft of the sun, or "housing".
    sun: str
    #: Shaft of the carrier, or "housing".
    carrier: str
    #: Shaft of the ring, or "housing".
    ring: str
    #: Number of teeth of the sun.
    z_sun: Teeth | None = None
    #: Number of teeth of the ring.
    z_ring: Teeth | None = None
    #: z_ring/z_sun, instead of tooth numbers.
    ratio: Annotated[float, Field(gt=1)] | None = None
    #: If true, the set has two planets in mesh: z_ring w_ring - z_sun w_sun = (z_ring - z_sun) w_carrier.
    plus_set: bool = False

    @model_validator(mode="after")
    def _one_of(self) -> PlanetarySet:
        teeth = self.z_sun is not None and self.z_ring is not None
        if teeth == (self.ratio is not None) or (self.z_sun is None) != (self.z_ring is None):
            raise BadValue("give z_sun and z_ring, or ratio", key="z_sun", value=self.z_sun)
        return self


class SketchGear(ConfigTable):
    """A gear: the elements that carry torque in it."""

    #: Clutches, brakes and free wheels that carry torque.
    engaged: Annotated[list[str], Field(min_length=1)]
    #: Published ratio, input speed over output speed, with three decimals.
    ratio: float | None = None


class Sketch(ConfigTable):
    """A gearbox in a few lines. Its input shaft is `in`, and its output shaft is `out`."""

    FOLDER: ClassVar[str] = "sketches"

    #: Name of the gearbox and of its files.
    name: str
    #: What the gearbox is, in words.
    title: str = ""
    #: Largest torque of the turbine [Nm]. The packs are made for it.
    torque_Nm: Positive
    #: Lowest line pressure of the hydraulic control [bar].
    line_min_bar: Positive = 3.0
    #: Highest line pressure of the hydraulic control [bar].
    line_max_bar: Positive = 17.0
    #: Planetary sets by name.
    sets: Annotated[dict[str, PlanetarySet], Field(min_length=1)]
    #: Plate clutches: name -> the two shafts that it joins.
    clutches: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]] = {}
    #: Plate brakes: name -> the shaft that it holds.
    brakes: dict[str, str] = {}
    #: Free wheels: name -> two shafts. The second one cannot turn more slowly than the first.
    free_wheels: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]] = {}
    #: Shaft -> moment of inertia [kg.m2], where it is known. The others are assumed.
    inertias_kgm2: dict[str, Positive] = {}
    #: Clutch or brake -> thickness of its steel plates [mm], where it is known. The others have 3 mm.
    plates_mm: dict[str, Positive] = {}
    #: Gears by name: "1", "2" ..., "R". The name of a variant that brakes the engine ends in "_engine_braking".
    gears: Annotated[dict[str, SketchGear], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Sketch:
        shafts = self.shafts()
        ends = {**self.clutches, **{n: [s] for n, s in self.brakes.items()}, **self.free_wheels}
        used = {shaft for s in self.sets.values() for shaft in (s.sun, s.carrier, s.ring)}
        used |= {shaft for between in ends.values() for shaft in between}
        for end in ("in", "out"):
            if end not in used:
                raise BadValue(f"nothing is on the shaft {end!r}", key="sets", allowed="in: turbine, out: output")
        known = [*shafts, HOUSING]
        taken = {*self.sets, *shafts, HOUSING, "mu_paper"}
        for name, between in ends.items():
            if name in taken:
                raise BadValue(f"element {name!r} has the name of a shaft or set", value=name, key=name)
            for shaft in between:
                if shaft not in known:
                    raise BadValue(
                        f"{name}: no set has the shaft {{value}}, and no other element", key=name, value=shaft,
                        allowed=", ".join(known), hint=did_you_mean(shaft, known),
                    )  # fmt: skip
        for name in self.plates_mm:
            if name not in (packs := [*self.clutches, *self.brakes]):
                raise BadValue(
                    "plates_mm: {value} is no clutch or brake", key="plates_mm", value=name, allowed=", ".join(packs),
                    hint=did_you_mean(name, packs),
                )  # fmt: skip
        for gear, entry in self.gears.items():
            for name in entry.engaged:
                if name not in ends:
                    raise BadValue(
                        f"gears.{gear}: {{value}} is no element", key="gears", value=name, allowed=", ".join(ends),
                        hint=did_you_mean(name, ends),
                    )  # fmt: skip
        return self

    def shafts(self) -> list[str]:
        """Shafts in the order they turn up, the turbine shaft first and the output last; behind those of the sets the
        ones that join two elements in series (a brake and a free wheel, say)."""
        found = [s for entry in self.sets.values() for s in (entry.sun, entry.carrier, entry.ring)]
        ends = [s for pair in (*self.clutches.values(), *self.free_wheels.values()) for s in pair]
        ends += self.brakes.values()
        found += [s for s in dict.fromkeys(ends) if ends.count(s) > 1]
        inner = [s for s in dict.fromkeys(found) if s not in ("in", "out", HOUSING)]
        return ["in", *inner, "out"]


def load_sketch(path: str | Path) -> Sketch:
    """Read and check a sketch; ConfigError names the mistake."""
    return load_config(path, Sketch)
