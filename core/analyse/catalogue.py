"""The catalogue of all component kinds, made from their declarations and docstrings: docs/components.md.

    python -m torqueloop.core.analyse.catalogue > docs/components.md

Inputs and outputs are those of a small example of each kind: the required parameters, and those that bring outputs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from torqueloop.core.components import FAMILIES, KINDS, Component, Flange, Param, params_of
from torqueloop.core.components.files import component_from_config
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.flange import ANY, FRAME, ROTATIONAL, THERMAL, TRANSLATIONAL
from torqueloop.core.describe.params import REQUIRED
from torqueloop.core.describe.parts import Parts
from torqueloop.core.describe.tables import Columns, Table1D, Table2D
from torqueloop.core.describe.units import DIMENSIONS, SYMBOLS

#: a table of losses
LOSSES: dict[str, Any] = {
    "columns": ["w_a_radps", "eta1", "eta2", "tbf1_Nm", "tbf2_Nm"],
    "rows": [[0, Decimal("0.9"), Decimal("0.8"), 1, 2]],
}
#: parameters an example needs besides the required ones, or other values than `_value` would take
EXAMPLES: dict[str, dict[str, Any]] = {
    "ElastoBacklash": {"b_rad": Decimal("0.1")},
    "ElastoBacklash2": {"b_rad": Decimal("0.1")},
    "LossyGear": {"lossTable": LOSSES},
    "Gearbox": {"lossTable": LOSSES, "b_rad": Decimal("0.1")},
    "IdealGear": {"ratio": 3},
    "HardStop": {"phi_min_deg": -30, "phi_max_deg": 30},
    "TranslationalHardStop": {"s_min_mm": 0, "s_max_mm": 50},
    "IdealPlanetary": {"z_sun": 30, "z_ring": 70},
    "Planetary": {"z_sun": 30, "z_planet_sun": 20, "z_ring": 70},
    "PlanetRing": {"z1": 20, "z2": 70},
    "Ravigneaux": {"z_ring": 90},
    "LockUpTC": {"mp": {"columns": ["nu", "mp_Nms2_per_rad2"], "rows": [[0, 1], [1, 0]]}, "mu": 1},
    "GearMesh": {"z_in": 20, "z_out": 40, "module_m": Decimal("0.002"), "deltaR_m": Decimal("0.001")},
    "LaminarClutch": {"cgeo_m": Decimal("0.5"), "mue_pos": Decimal("0.1"), "area_m2": Decimal("0.01")},
    "LaminarBrake": {"cgeo_m": Decimal("0.5"), "mue_pos": Decimal("0.1"), "area_m2": Decimal("0.01")},
    "OneWayLaminarClutch": {"cgeo_m": Decimal("0.5"), "mue_pos": Decimal("0.1"), "area_m2": Decimal("0.01")},
    "WetClutchDrag": {"r_i_m": Decimal("0.5")},
    "Engine": {"wot_Nm": 100, "drag_Nm": -10},
    "Engine3": {"wot_Nm": 100},
}

#: words for the domain of a flange; rotational ones have none
DOMAINS = {ROTATIONAL: "", TRANSLATIONAL: "sliding", THERMAL: "heat", FRAME: "frame", ANY: "any"}

HEAD = """# Components

Made by `python -m torqueloop.core.analyse.catalogue`; do not edit. [driveline_format.md](driveline_format.md) describes
driveline files.

The kind in a file is the name of the class in Python. If a translational component has the name of a rotational one,
its kind begins with `Translational` (`TranslationalSpring`). Parameters are shown as TOML keys with their SI unit
(`c_Nm_per_rad`). In Python they have SI values and no unit in the name (`c`). **Bold** parameters are required. Flanges
in brackets may stay open. An open `support` is the housing. The heat of an open `heatPort` is an output, but no
component receives it. w_rel = w_b - w_a.
"""


def example(kind: type[Component]) -> dict[str, Any]:
    """A small TOML table of a kind."""
    body: dict[str, Any] = {"kind": kind.__name__, **EXAMPLES.get(kind.__name__, {})}
    for name, p in params_of(kind).items():
        keys = _keys(name, p)
        if p.default is REQUIRED and not any(key in body for key in keys):
            body[keys[0]] = _value(p)
    return body


def _keys(name: str, p: Param) -> list[str]:
    """The keys of a parameter, the one for an example first."""
    with_units = [f"{name}_{unit}" if unit else name for unit in DIMENSIONS[p.dimension]]
    return (
        [name, *with_units]
        if p.form in ("curve", "map", "columns", "integer", "flag", "choice", "names")
        else with_units
    )


def _value(p: Param) -> Any:
    """Some value in the range of a required parameter."""
    if p.form == "curve":
        labels = [_label("x", p.columns[0]), _label("y", p.columns[1])]
        return {"columns": labels, "rows": [[0, _number(p)], [10, _number(p)]]}
    if p.form == "map":
        labels = [_label(n, d) for n, d in zip("xyz", p.columns, strict=True)]
        return {"columns": labels, "rows": [[x, y, x] for x in (0, 10) for y in (0, 1)]}
    if p.form == "integer":
        return 20
    return _number(p)


def _label(name: str, dimension: str) -> str:
    unit = next(iter(DIMENSIONS[dimension]))
    return f"{name}_{unit}" if unit else name


def _number(p: Param) -> Decimal:
    """1, or what is allowed."""
    if p.high is not None and p.high < 1.0:
        return Decimal(repr(p.high))
    if p.low is not None and p.low > 1.0:
        return Decimal(repr(p.low + 1.0))
    return Decimal(1)


def parts_of(kind: type[Component]) -> Parts:
    """What the example of a kind contributes, under the name "x"."""
    component = component_from_config(example(kind), Path())
    parts = Parts()
    component.contribute(Builder(parts, "x", component, {}))
    return parts


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_family(name, kinds) for name, kinds in FAMILIES.items())


def _family(name: str, kinds: tuple[type[Component], ...]) -> str:
    text = f"\n## {name}\n"
    for module in dict.fromkeys(kind.__module__ for kind in kinds):
        text += f"\n```text\n{(inspect.getdoc(sys.modules[module]) or '').strip()}\n```\n"
    text += "\n| kind | law | flanges | parameters | inputs | outputs |\n|---|---|---|---|---|---|\n"
    return text + "".join(f"| {' | '.join(_row(kind))} |\n" for kind in kinds)


def _row(kind: type[Component]) -> list[str]:
    parts = parts_of(kind)
    inputs = zip(parts.inputs, parts.input_units, strict=True)
    return [
        f"`{kind.__name__}`",
        _prose(kind),
        ", ".join(_flange(n, f) for n, f in kind.flanges.items()),
        "<br>".join(_parameter(n, p) for n, p in params_of(kind).items()),
        ", ".join(f"`{_short(n)}` {unit}" for n, unit in inputs),
        ", ".join(f"`{_short(o.name)}` {o.unit}" for o in parts.outputs),
    ]


def _short(name: str) -> str:
    return name.partition(".")[2]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _prose(kind: type[Component]) -> str:
    """The docstring; its paragraphs on lines of their own."""
    paragraphs = (inspect.cleandoc(kind.__doc__ or "")).split("\n\n")
    return _cell("<br>".join(" ".join(line.strip() for line in p.splitlines()) for p in paragraphs))


def _flange(name: str, flange: Flange) -> str:
    text = f"`{name}`" + (f" ({DOMAINS[flange.domain]})" if DOMAINS[flange.domain] else "")
    return text if flange.required else f"[{text}]"


def _parameter(name: str, p: Param) -> str:
    required = p.default is REQUIRED
    key = _keys(name, p)[0]
    text = f"**`{key}`**" if required else f"`{key}`"
    if p.columns:
        text += " (" + ", ".join(SYMBOLS[d] for d in p.columns) + ")"
    text += f": {p.doc}"
    allowed = p.allowed() if p.form in ("number", "exact", "integer", "choice") else None
    if allowed:
        text += f"; {allowed.removesuffix(' ' + next(iter(DIMENSIONS[p.dimension]))).strip()}"
    if not required and p.default is not None:
        text += f"; default {_default(p.default)}"
    return _cell(text)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (float, Fraction)):
        return f"{float(value):g}"
    if isinstance(value, (Table1D, Table2D, Columns)):
        columns: Mapping[str, Any] = vars(value)
        return str([list(row) for row in zip(*columns["data"], strict=True)]) if "data" in columns else "a table"
    return str(value)


if __name__ == "__main__":
    assert set(KINDS) == {kind.__name__ for family in FAMILIES.values() for kind in family}
    sys.stdout.write(page())
