"""A hydraulic unit with one pressure solenoid for each shift element of any gearbox: sizes from its file, the rest
assumed and marked so."""

from __future__ import annotations

from collections.abc import Sequence

from torqueloop.core.components.laminar import Laminar
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError

BAR = 1e5
#: clearance of a piston with plates, of the lock-up clutch [mm]
CLEARANCE_MM, LOCKUP_MM = 1.5, 1.0
#: the piston begins to move at this share of the pressure at which its plates touch
BEGINS = 0.75
#: opening that fills a piston at 3 bar in about 0.1 s, oil that a full one takes, for each cm3 of its filling
FEED_MM2, GIVE_CM3PBAR = 0.8, 0.025
#: p_max of a gearbox file over the highest line pressure (tolerance of the ZF 4HP22, 10 +- 0.3 bar)
LINE_MARGIN = 1.03


@dataclass(frozen=True)
class Piston:
    """An element with a pressure: its component, its name in the hydraulic unit."""

    component: str
    name: str
    element: Laminar

    @property
    def solenoid(self) -> str:
        """Name of its pressure solenoid."""
        return f"EDS_{self.name}"


def pistons(driveline: Driveline, inputs: Sequence[str]) -> list[Piston]:
    """Elements that take a pressure (inputs NAME.p); the lock-up clutch is called LU."""
    found = [(n.removesuffix(".p"), driveline.components.get(n.removesuffix(".p"))) for n in inputs if n.endswith(".p")]
    return [Piston(n, "LU" if n == "lockup" else n, c) for n, c in found if isinstance(c, Laminar)]


def hydraulic_text(name: str, gearbox: str, found: Sequence[Piston]) -> str:
    """The file of the hydraulic unit; ConfigError where an element's piston has no area."""
    for p in found:
        if p.element.area is None:
            raise ConfigError(
                "{key}: {value} has no piston: its volume is not known", key="area_cm2", value=p.component
            )
    line = round(min(p.element.p_max for p in found) / BAR / LINE_MARGIN, 1)
    lines = [
        f"# Hydraulic unit for {gearbox} with one pressure solenoid for each shift element (direct control).",
        "# Written by `torqueloop new rig --dbc`; replace what is assumed by what is known. docs/hydraulics.md",
        "#",
        "# derived: fill_cm3 = clearance x piston area of the gearbox file; full_bar = its return spring",
        f"# derived: line pressure {line:g} bar = p_max of the gearbox file / {LINE_MARGIN:g}",
        f"# assumed: clearance {CLEARANCE_MM:g} mm, lock-up clutch {LOCKUP_MM:g} mm; range 1.0..2.0 mm",
        f"# assumed: a piston begins to move at {BEGINS:g} of the pressure at which its plates touch; range 0.5..0.9",
        "# assumed: pump 20 cm3; range 15..25 cm3",
        "# assumed: currents 0..1 A, pressure rises with the current; range 0.8..1.2 A, falling where a solenoid is",
        "#          open without current",
        "# assumed: feed openings fill a piston at 3 bar in about 0.1 s; range 0.05..0.2 s",
        "# assumed: valves of 40 Hz, damping 0.9, leaks, elasticities: of ordinary size; range 20..100 Hz",
        "", 'kind = "hydraulics"', f'name = "{name}"', "",
        "[oil]", "density_kgpm3 = 850.0", "laminar_bar = 0.02",
        "flow_over_degC = [[-20.0, 0.35], [20.0, 0.75], [80.0, 1.0], [120.0, 1.05]]", "",
        "[pump]", "displacement_cm3 = 20.0", "volumetric = 0.9", "mechanical = 0.85", "",
        "[line]", f"max_bar = {line:.1f}", "give_cm3pbar = 0.05", "leak_cm3psbar = 2.0",
    ]  # fmt: skip
    for p in found:
        lines += ["", f"[solenoid.{p.solenoid}]", f"bar_over_command = [[0.0, 0.0], [1.0, {line:.1f}]]",
                  "hysteresis_bar = 0.1", "coil_s = 0.002"]  # fmt: skip
    for p in found:
        clearance = LOCKUP_MM if p.component == "lockup" else CLEARANCE_MM
        fill = round(clearance * 1e-3 * float(p.element.area or 0.0) * 1e6, 1)
        full = float(p.element.p_return) / BAR
        lines += [
            "", f"[circuit.{p.name}]", f'supply = ["{p.solenoid}"]', "spool = { natural_Hz = 40.0, damping = 0.9 }",
            f"feed_mm2 = {FEED_MM2 * fill:.1f}", f"fill_cm3 = {fill:.1f}", f"return_bar = {BEGINS * full:.3f}",
            f"full_bar = {full:.3f}", f"give_cm3pbar = {GIVE_CM3PBAR * fill:.3f}", "leak_cm3psbar = 0.3",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def without_lag(found: Sequence[Piston]) -> dict[str, str | int]:
    """Keys of [plant.set] that take the pressure lag of the gearbox file away: the hydraulic unit has its own."""
    keys: dict[str, str | int] = {}
    for p in found:
        if p.element.actuator == "fill_time":
            keys[f"components.{p.component}.actuator"] = "first_order"
        keys |= {f"components.{p.component}.tau_{way}_ms": 0 for way in ("rise", "fall")}
    return keys
