"""A driveline: named components joined at flanges, with tables, start values, gears. TOML gives the same object.

d = Driveline("two shafts")
d.add("J1", Inertia(J=1.0, w0=10.0))
d.add("J2", Inertia(J=2.0))
d.add("clutch", Clutch(fn_max=160.0, mue_pos=0.5))
d.connect("J1.flange_b", "clutch.flange_a")
d.connect("clutch.flange_b", "J2.flange_a")
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from decimal import Decimal
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import DuplicateError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.describe.naming import FORMULA, natural
from torqueloop.core.describe.published import Published
from torqueloop.core.describe.tables import Columns, Table, Table1D, Table2D
from torqueloop.core.describe.units import exact, is_number

#: "auto": 4 when there are springs (second order drifts in phase) or gears of changing ratio (it loses energy), else 2
ORDERS: tuple[int | str, ...] = ("auto", 2, 4)
COLOUR = re.compile("#[0-9a-fA-F]{6}")
#: more planets than this in one set are a mistake
MOST_PLANETS = 12
#: line pressure of a gearbox whose file does not say it [Pa]: usual for six to eight gears
LINE_MIN, LINE_MAX = 3e5, 17e5


@dataclass(frozen=True)
class Gear:
    """A gear of a gearbox: which elements are engaged in it, and the ratio it is known by."""

    engaged: tuple[str, ...]
    ratio: float | None = None


@dataclass(frozen=True)
class Gearbox:
    """Names of the input and output shafts (components with a shaft) of a gearbox; range of its line pressure [Pa]."""

    input: str
    output: str
    line_min: float = LINE_MIN
    line_max: float = LINE_MAX


@dataclass(frozen=True)
class Display:
    """What of a picture of it the connections leave open (`[display]`); it changes nothing that is computed."""

    #: gear sets from the input on; those not named come after them, in the order of the file
    order: tuple[str, ...] = ()
    #: component on a shaft -> its colour, "#rrggbb"
    colours: Mapping[str, str] = field(default_factory=dict)
    #: gear set -> number of planets that are drawn
    planets: Mapping[str, int] = field(default_factory=dict)


class Driveline:
    """Components joined at flanges."""

    def __init__(self, name: str = "driveline", order: int | str = "auto") -> None:
        #: name, for reports
        self.name = name
        if order not in ORDERS:
            raise RangeError("{key} = {value} is unknown", table="solver", key="order", value=order,
                             allowed="2 | 4 | \"auto\"")  # fmt: skip
        #: order of the integrator asked for: 2, 4 or "auto"
        self.order = order
        #: component name -> component
        self.components: dict[str, Component] = {}
        #: table name -> curve or map
        self.tables: dict[str, Table] = {}
        #: output name (a speed or an angle) -> start value in SI
        self.start: dict[str, float] = {}
        #: gear name -> Gear
        self.gears: dict[str, Gear] = {}
        #: input and output shaft, where the driveline is (or contains) a gearbox
        self.gearbox: Gearbox | None = None
        #: how it is drawn
        self.display: Display = Display()
        #: what its makers state of it, to compare with
        self.published: Published = Published()
        #: file it was read from, for messages
        self.file: str | None = None
        #: where each component was defined, for messages
        self.origin: dict[str, str] = {}
        #: and each table
        self.table_origin: dict[str, str] = {}
        self._sets: list[tuple[str, ...]] = []

    # --- building -------------------------------------------------------------------------------------------------
    def add(self, name: str, component: Component) -> Component:
        """Add a component under a name; returns it."""
        if not name or any(c in name for c in " \t\n\"'<>,") or name[0] in FORMULA or not name.isprintable():
            raise RangeError("component name {value} is not usable", value=name,
                             allowed="no spaces, quotes, commas, < or >; not = + - @ at its beginning")  # fmt: skip
        if name in self.components:
            raise DuplicateError(f"component {name!r} exists already", table=f"components.{name}", file=self.file)
        if not isinstance(component, Component):
            raise RangeError("{value} is not a component", table=f"components.{name}", value=component)
        self.components[name] = component
        return component

    def add_table(self, name: str, table: Table) -> None:
        """Add a curve or map that components refer to by its name."""
        if name in self.tables:
            raise DuplicateError(f"table {name!r} exists already", table=f"tables.{name}", file=self.file)
        if not isinstance(table, (Table1D, Table2D, Columns)):
            raise RangeError("{value} is not a Table1D, Table2D or Columns", table=f"tables.{name}", value=table)
        self.tables[name] = table

    def connect(self, *flanges: str) -> None:
        """Join two or more flanges, written "component.flange"."""
        if len(flanges) < 2:
            raise RangeError("a connection needs at least 2 flanges", table="connections", value=list(flanges))
        for flange in flanges:
            self._check_flange(flange)
        if len(set(flanges)) < len(flanges):
            raise DuplicateError(f"a flange is named twice in one connection: {list(flanges)}", table="connections")
        self._sets.append(tuple(flanges))

    def disconnect(self, flange: str) -> None:
        """Take a flange out of the connection it is in, so that something else can be put there."""
        self._check_flange(flange)
        if not any(flange in group for group in self._sets):
            raise UnknownNameError(f"{flange} is joined to nothing", table="connections", value=flange, file=self.file)
        left = [tuple(f for f in group if f != flange) for group in self._sets]
        self._sets = [group for group in left if len(group) > 1]

    def set_start(self, output: str, value: float) -> None:
        """Start value of a speed, angle or pressure, by the name of its output ("J1.w", "s.phi_rel", "C4.p"), in SI."""
        place: dict[str, Any] = {"file": self.file, "table": "initial", "key": output}
        if not is_number(value):
            raise RangeError("start value {key} = {value} is not a number", value=value, **place)
        try:
            self.start[output] = float(exact(value))
        except RangeError as error:
            raise error.located(**place) from None

    def add_gear(self, name: str, engaged: Sequence[str], ratio: float | Decimal | None = None) -> None:
        """Name a gear by the elements engaged in it."""
        if name in self.gears:
            raise DuplicateError(f"gear {name!r} exists already", table=f"gears.{name}", file=self.file)
        for element in engaged:
            if element not in self.components:
                raise UnknownNameError(
                    f"there is no component {element!r}", table=f"gears.{name}", key="engaged", value=element,
                    file=self.file, hint=did_you_mean(element, self.components),
                )  # fmt: skip
        self.gears[name] = Gear(tuple(engaged), None if ratio is None else float(exact(ratio)))

    def set_gearbox(
        self, input: str, output: str, line_min: float = LINE_MIN, line_max: float = LINE_MAX
    ) -> None:  # fmt: skip
        """Name the input and output shafts, give the range of the line pressure [Pa]."""
        for key, name in (("input", input), ("output", output)):
            if name not in self.components:
                raise UnknownNameError(
                    f"there is no component {name!r}", table="gearbox", key=key, value=name, file=self.file,
                    hint=did_you_mean(name, self.components),
                )  # fmt: skip
        if not 0.0 <= line_min < line_max:
            raise RangeError("{key} = {value} is out of range", table="gearbox", key="line_min_bar",
                             value=1e-5 * line_min, allowed="0 <= line_min_bar < line_max_bar")  # fmt: skip
        self.gearbox = Gearbox(input, output, line_min, line_max)

    def set_display(
        self, order: Sequence[str] = (), colours: Mapping[str, str] | None = None,
        planets: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """How it is drawn; colours and planets are added to those given before, an order takes the place of another."""
        place: dict[str, Any] = {"table": "display", "file": self.file}
        for key, names in (("order", order), ("colours", colours or {}), ("planets", planets or {})):
            for name in names:
                if name not in self.components:
                    raise UnknownNameError(f"{{key}}: there is no component {name!r}", key=key, value=name,
                                           hint=did_you_mean(name, self.components), **place)  # fmt: skip
        for name, colour in (colours or {}).items():
            if not isinstance(colour, str) or not COLOUR.fullmatch(colour):
                raise RangeError("{key} = {value} is no colour", key=f"colours.{name}", value=colour,
                                 allowed='"#rrggbb"', **place)  # fmt: skip
        for name, n in (planets or {}).items():
            if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_PLANETS:
                raise RangeError("{key} = {value} is no number of planets", key=f"planets.{name}", value=n,
                                 allowed=f"1 .. {MOST_PLANETS}", **place)  # fmt: skip
        was = self.display
        self.display = Display(
            tuple(order) or was.order, {**was.colours, **(colours or {})}, {**was.planets, **(planets or {})}
        )  # fmt: skip

    def replace(self, name: str, **values: Any) -> None:
        """Change parameters of a component (a new component object takes its place)."""
        if name not in self.components:
            raise UnknownNameError(f"there is no component {name!r}", hint=did_you_mean(name, self.components))
        self.components[name] = replace(self.components[name], **values)

    def copy(self) -> Driveline:
        """Another driveline of the same components and tables (which never change themselves)."""
        made = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (dict, list)):
                setattr(made, name, value.copy())
        return made

    def _check_flange(self, flange: str) -> None:
        owner, _, end = flange.rpartition(".")
        if owner not in self.components:
            raise UnknownNameError(
                f"connection to {flange!r}: there is no component {owner!r}", table="connections", file=self.file,
                hint=did_you_mean(owner, self.components),
            )  # fmt: skip
        component = self.components[owner]
        if end not in component.flanges:
            raise UnknownNameError(
                f"connection to {flange!r}: {component.kind} has no flange {end!r}", table="connections",
                file=self.file, hint=did_you_mean(end, component.flanges),
            )  # fmt: skip

    # --- looking --------------------------------------------------------------------------------------------------
    @property
    def connections(self) -> tuple[tuple[str, ...], ...]:
        """The connection sets: those that share a flange are one, flanges and sets sorted."""
        groups: list[set[str]] = []
        for new in self._sets:
            merged = set(new)
            rest = []
            for group in groups:
                if group & merged:
                    merged |= group
                else:
                    rest.append(group)
            groups = [*rest, merged]
        return tuple(sorted((tuple(sorted(g, key=natural)) for g in groups), key=lambda g: [natural(f) for f in g]))

    def _content(self) -> tuple[Any, ...]:
        return (
            self.name, self.order, self.components, self.tables, self.start, self.gears, self.gearbox, self.connections,
            self.display, self.published,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        """Equal content; the order of listing, sources and files do not count. It cannot be hashed: it changes."""
        if not isinstance(other, Driveline):
            return NotImplemented
        return self._content() == other._content()

    def __repr__(self) -> str:
        return f"Driveline({self.name!r}, {len(self.components)} components, {len(self.connections)} connections)"

    def unused_tables(self) -> list[str]:
        """Tables that no component refers to."""
        used = {v for c in self.components.values() for v in vars(c).values() if isinstance(v, str)}
        return sorted(set(self.tables) - used)
