"""Ratios, element torques and slips of a gearbox file in every gear, as data and as a text table.

report = gearbox_report("zf_4hp22")
report.gears["1"].ratio            # Fraction(181, 73)
print(report.text())
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from torqueloop.core.analyse.gear_statics import GearRow, GearState, GearTrain, TrainElement, solve_gear
from torqueloop.core.compile.compiler import analyse
from torqueloop.core.compile.topology import Topology
from torqueloop.core.components.gears import IdealPlanetary
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.core.describe.kernel_numbers import BILATERAL, LOSS, NOTHING
from torqueloop.core.describe.parts import GROUND, FrictionPart

if TYPE_CHECKING:
    from torqueloop.core.describe.component import Component

#: makers print ratios with three decimals: half of the last one, and what a double adds to it
PUBLISHED_ROUNDING = 5.1e-4
#: some cut the others off instead of rounding (121/79 = 1.5316 is printed as 1.531)
PUBLISHED_DECIMALS = 1000


def agrees(ratio: float, published: float) -> str | None:
    """How a ratio becomes the published one, to three decimals: "rounded" or "cut off" (truncated); None: it does
    not."""
    if abs(ratio - published) <= PUBLISHED_ROUNDING:
        return "rounded"
    whole = math.trunc(ratio * PUBLISHED_DECIMALS)
    return "cut off" if whole == round(published * PUBLISHED_DECIMALS) else None


@dataclass(frozen=True)
class GearboxReport:
    """A gearbox in all its gears, everything per 1 rad/s and 1 Nm at the input, exact."""

    name: str
    train: GearTrain
    gears: dict[str, GearState]

    def text(self) -> str:
        """Tables of ratios, torques and slips for a terminal."""
        return "\n\n".join([self._ratios(), self._torques(), self._slips(), *self._remarks()])

    def as_dict(self) -> dict[str, object]:
        """Plain floats for JSON."""
        return {
            "gearbox": self.name,
            "gears": {
                gear: {
                    "engaged": list(s.engaged),
                    "ratio": None if s.ratio is None else float(s.ratio),
                    "ratio_exact": None if s.ratio is None else str(s.ratio),
                    "published": s.published,
                    "output_torque": float(s.output_torque),
                    "torque_per_Nm_input": {e: float(t) for e, t in s.torques.items()},
                    "slip_per_input_speed": {e: float(w) for e, w in s.slips.items()},
                    "shaft_speed_per_input_speed": {e: float(w) for e, w in s.speeds.items()},
                    "determinate": s.determinate,
                    "remarks": list(s.remarks),
                }
                for gear, s in self.gears.items()
            },
        }

    def _ratios(self) -> str:
        lines = [f"{self.name}: ratios (input speed / output speed)"]
        lines.append(f"{'gear':>18} {'ratio':>10} {'exact':>14} {'published':>10}  engaged")
        for gear, s in self.gears.items():
            ratio = "   standing" if s.ratio is None else f"{float(s.ratio):10.5f}"
            exact = "" if s.ratio is None else str(s.ratio)
            published = "" if s.published is None else f"{s.published:.3f}"
            lines.append(f"{gear:>18} {ratio:>10} {exact:>14} {published:>10}  {' '.join(s.engaged)}")
        return "\n".join(lines)

    def _table(self, title: str, cells: Mapping[str, Mapping[str, Fraction]], columns: list[str]) -> str:
        lines = [title, f"{'gear':>18} " + " ".join(f"{c:>9}" for c in columns)]
        for gear, row in cells.items():
            entries = (f"{float(row[c]):9.5f}" if c in row else f"{'.':>9}" for c in columns)
            lines.append(f"{gear:>18} " + " ".join(entries))
        return "\n".join(lines)

    def _torques(self) -> str:
        names = [e.name for e in self.train.elements]
        title = "torque on the first shaft of each engaged element per Nm at the input (opposite on the second shaft)"
        return self._table(title, {g: s.torques for g, s in self.gears.items()}, names)

    def _slips(self) -> str:
        names = [e.name for e in self.train.elements]
        ends = "  ".join(f"{e.name}:{e.first or 'housing'}-{e.second or 'housing'}" for e in self.train.elements)
        title = f"slip of each open element, first minus second shaft, per rad/s at the input\n  ({ends})"
        return self._table(title, {g: s.slips for g, s in self.gears.items()}, names)

    def _remarks(self) -> list[str]:
        lines = []
        for gear, s in self.gears.items():
            if not s.determinate:
                lines.append(f"gear {gear}: more elements than the torques determine; least-norm split shown")
            if s.ratio is not None and s.published is not None:
                how = agrees(float(s.ratio), s.published)
                if how is None:
                    off = abs(float(s.ratio) - s.published)
                    lines.append(f"gear {gear}: ratio differs from the published one by {off:.4f}")
                elif how == "cut off":
                    lines.append(f"gear {gear}: the published ratio is cut off after three decimals, not rounded")
            lines += [f"gear {gear}: {r}" for r in s.remarks]
        return ["\n".join(lines)] if lines else []


def find_gearbox(name: str | Path) -> Path:
    """Path of a gearbox file: a path, or the name of one of configs/gearboxes."""
    path = Path(name)
    if path.suffix == ".toml" or os.path.isfile(path):
        if not os.path.isfile(path):
            raise ConfigError("there is no such gearbox file", file=str(path))
        return path
    import torqueloop.configs

    folder = Path(next(iter(torqueloop.configs.__path__))) / "gearboxes"
    found = folder / f"{name}.toml"
    if not os.path.isfile(found):
        known = sorted(f.stem for f in folder.glob("*.toml"))
        raise ConfigError("there is no gearbox {value}", value=str(name), hint=did_you_mean(str(name), known))
    return found


def gearbox_report(source: str | Path | Driveline) -> GearboxReport:
    """Report of a gearbox given as file, name or driveline with [gearbox] and [gears]."""
    if isinstance(source, Driveline):
        driveline, place = source, source.name
    else:
        from torqueloop.core.components.files import load

        path = find_gearbox(source)
        driveline, place = load(path), str(path)
    train = train_of(driveline)
    if not driveline.gears:
        raise ConfigError("the file describes no gears: tables [gears.1] with `engaged` are missing", file=place)
    states = {
        name: solve_gear(train, name, gear.engaged, None if gear.ratio is None else float(gear.ratio))
        for name, gear in driveline.gears.items()
    }
    return GearboxReport(driveline.name, train, states)


def train_of(driveline: Driveline) -> GearTrain:
    """The ideal gear train of a driveline: its exact gear rows and friction elements over merged shafts."""
    if driveline.gearbox is None:
        raise ConfigError("no [gearbox] table with input and output", table="gearbox")
    parts, topology = analyse(driveline)
    rows = []
    for constraint in parts.constraints:
        component = driveline.components[constraint.owner]
        members = []
        for flange, k in constraint.form.terms.items():
            node = topology.place[flange][0]
            short = flange.rpartition(".")[2]
            if not (node == GROUND and short.startswith("support")):
                members.append((short, None if node == GROUND else node, k))
        ratio = component.i if isinstance(component, IdealPlanetary) else None
        rows.append(GearRow(constraint.owner, tuple(members), ratio))
    # losses of gears and forced motions are friction to the kernel only
    frictions = [part for part in parts.frictions if part.source not in (LOSS, BILATERAL)]
    elements = tuple(_element(part, driveline.components[part.owner], topology) for part in frictions)
    ends = {}
    for end in ("input", "output"):
        name = getattr(driveline.gearbox, end)
        if name not in topology.nodes:
            raise ConfigError(
                "{value} is no shaft of the gearbox", table="gearbox", key=end, value=name,
                hint=did_you_mean(name, topology.nodes),
            )  # fmt: skip
        ends[end] = name
    # shafts in the order of the file
    shafts = sorted(topology.nodes, key=lambda n: list(driveline.components).index(n.partition(".")[0]))
    return GearTrain(name=driveline.name, shafts=tuple(shafts), rows=tuple(rows), elements=elements, **ends)


def _element(part: FrictionPart, component: Component, topology: Topology) -> TrainElement:
    """A friction element between shafts; relative speed: second minus first of a clutch, the shaft of a brake."""
    row, _ = topology.over_nodes(part.form)
    minus = next((n for n, c in row.items() if c < 0), None)
    plus = next((n for n, c in row.items() if c > 0), None)
    clutch = "flange_a" in component.flanges and "support" not in component.flanges
    # free in the forward sense: such an element can only push the plus side forward
    sense = 1 if part.forward == NOTHING else 0
    if clutch:
        return TrainElement(part.owner, component.kind, minus, plus, -sense)
    return TrainElement(part.owner, component.kind, plus, minus, sense)
