"""The half section of a gearbox from its stick diagram: where sets, packs, shafts and drums lie, for drawing.

Sets stand along the axis in the order of the file, brakes outside against the housing, clutches between, beside or
above the sets, wherever the shafts find the shortest ways with the fewest crossings (`section_grid`): a search of
fixed length from a fixed seed, so equal gearboxes give equal pictures. Lengths are in radii of the rings. No drawing of
a real gearbox is behind it: order and ties are those of the file, places are ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from torqueloop.core.analyse.gear_wheels import WheelSet
from torqueloop.core.analyse.section_grid import Cell, Grid, Net, lines
from torqueloop.core.describe.classes import dataclass

#: size of a cell along the axis and across it
DX, DR = 0.12, 0.07
#: cells of a row of wheels, of the plates of a carrier, of a pack along the axis; rows of a pack
ROW, PLATE, PACK, THICK = 3, 1, 2, 2
#: free columns beside sets, before the first, after the last
GAP, FRONT, BACK = 5, 6, 5
#: rows: rings end, packs above the sets, brakes, all; in gaps packs begin at these
RING_END, ABOVE, BRAKES, ROWS = 17, 20, 24, 27
IN_GAPS = (3, 7, 11, 15, 20)
#: thickness of a ring outside its teeth
RIM = 0.13
#: tries of another place for an element at most, and how many without a better one are enough
TRIES, PATIENCE = 120, 50


@dataclass(frozen=True)
class Coupling:
    """What joins two shafts, or one and the housing (None), without being a gear set."""

    name: str
    #: "clutch", "brake", "freewheel", "gear", "spring", "joint"
    kind: str
    first: str | None
    second: str | None


@dataclass(frozen=True)
class PlacedSet:
    """A set and the member shafts it is tied to; its first row of wheels begins at x."""

    wheels: WheelSet
    x: float
    #: width of a row of wheels
    width: float
    #: member -> shaft, None: the housing
    shafts: Mapping[str, str | None]
    #: which side plates its carrier has: left, right
    plates: tuple[bool, bool]


@dataclass(frozen=True)
class PlacedCoupling:
    """A pack from x to x + width, r_in to r_out. The shaft `outer` is tied to its outside, `inner` to its inside."""

    name: str
    kind: str
    outer: str | None
    inner: str | None
    x: float
    width: float
    r_in: float
    r_out: float


@dataclass(frozen=True)
class ShaftForm:
    """What turns with a shaft beside its wheels: tubes (r, from x, to x) and discs (x, from r, to r)."""

    name: str
    tubes: tuple[tuple[float, float, float], ...]
    discs: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Section:
    """The half section."""

    sets: tuple[PlacedSet, ...]
    couplings: tuple[PlacedCoupling, ...]
    shafts: tuple[ShaftForm, ...]
    length: float
    #: radius of the housing
    housing: float
    #: places where shafts had to be drawn across each other
    crossings: int
    #: where the housing ends, with joints behind it; 0: at `length`
    housing_length: float = 0.0

    @property
    def inside(self) -> float:
        """Length of the housing."""
        return self.housing_length or self.length


@dataclass(frozen=True)
class _Slot:
    """A place for a pack: its first column and row."""

    column: int
    row: int
    #: under the housing
    brake: bool


@dataclass(frozen=True)
class _Column:
    """A set on the grid."""

    wheels: WheelSet
    shafts: Mapping[str, str | None]
    first: int
    plates: tuple[bool, bool]

    @property
    def last(self) -> int:
        """Column behind it."""
        return self.first + ROW * self.wheels.rows

    def carrier(self) -> frozenset[Cell]:
        """Cells beside its plates."""
        radius = next(w for w in self.wheels.wheels if w.role == "planet").places[0][0]
        low, high = int((radius - 0.16) / DR), int((radius + 0.16) / DR)
        sides = [c for c, on in zip((self.first - PLATE - 1, self.last + PLATE), self.plates, strict=True) if on]
        return frozenset((c, r) for c in sides for r in range(max(low, 1), high + 1))

    def terminal(self, member: str) -> frozenset[Cell]:
        """Cells from which a member can be reached."""
        wheel = next((w for w in self.wheels.wheels if w.member == member and w.role != "planet"), None)
        if wheel is None:
            return self.carrier()
        a, b = self.first + ROW * wheel.rows[0], self.first + ROW * (wheel.rows[1] + 1)
        if wheel.role == "ring":
            return frozenset({*((c, RING_END) for c in range(a, b)), (a - 1, RING_END - 1), (b, RING_END - 1)})
        bore = max(1, int((wheel.radius - 0.06) / DR) - 1)
        return frozenset((c, bore) for c in range(a - 1, b + 1))

    def stub(self, member: str, cell: Cell) -> tuple[str, float, float, float]:
        """From a cell of its terminal to the member."""
        x, y = (cell[0] + 0.5) * DX, (cell[1] + 0.5) * DR
        wheel = next((w for w in self.wheels.wheels if w.member == member and w.role != "planet"), None)
        if wheel is None:
            return "tube", y, x, (self.first - 0.5 * PLATE if cell[0] < self.first else self.last + 0.5 * PLATE) * DX
        a, b = self.first + ROW * wheel.rows[0], self.first + ROW * (wheel.rows[1] + 1)
        if wheel.role == "ring" and cell[1] == RING_END:
            return "disc", x, y, wheel.radius + RIM
        if wheel.role == "ring":
            return "tube", y, x, (a if cell[0] < a else b) * DX
        if a <= cell[0] < b:
            return "disc", x, y, wheel.radius * 0.85
        return "tube", y, x, (a + 0.5 if cell[0] < a else b - 0.5) * DX

    def blocked(self) -> Iterator[Cell]:
        """Cells full of wheels and plates."""
        low = min(int((w.radius - 0.06) / DR) for w in self.wheels.wheels if w.role == "sun")
        for column in range(self.first, self.last):
            suns = [w for w in self.wheels.wheels if w.role == "sun"
                    and w.rows[0] <= (column - self.first) // ROW <= w.rows[1]]  # fmt: skip
            bore = min((max(1, int((w.radius - 0.06) / DR) - 1) + 1 for w in suns), default=low)
            yield from ((column, row) for row in range(bore, RING_END))
        radius = next(w for w in self.wheels.wheels if w.role == "planet").places[0][0]
        for column, on in zip((self.first - PLATE, self.last), self.plates, strict=True):
            if on:
                yield from ((column, r) for r in range(int((radius - 0.2) / DR), int((radius + 0.2) / DR) + 1))


def section(
    sets: Sequence[tuple[WheelSet, Mapping[str, str | None]]], couplings: Sequence[Coupling], ends: tuple[str, str]
) -> Section:
    """Place everything. `sets`: wheels with the shaft of each member, in their order along the axis; `ends`: the
    shafts that come in at the left and leave at the right."""
    columns, width = _columns(sets)
    places = _Places(columns, width, couplings, ends)
    places.search()
    return places.drawn()


def _columns(sets: Sequence[tuple[WheelSet, Mapping[str, str | None]]]) -> tuple[list[_Column], int]:
    """The sets one after the other; those that share planets touch."""
    found: list[_Column] = []
    at = FRONT + PLATE
    for k, (wheels, shafts) in enumerate(sets):
        before = k > 0 and _pair(sets[k - 1][0], wheels)
        after = k + 1 < len(sets) and _pair(wheels, sets[k + 1][0])
        found.append(_Column(wheels, shafts, at, (not before, not after)))
        at = found[-1].last + (0 if after else 2 * PLATE + GAP)
    return found, at - (2 * PLATE + GAP) + PLATE + BACK if sets else FRONT + BACK


def _pair(a: WheelSet, b: WheelSet) -> bool:
    return a.partner == b.name or b.partner == a.name


class _Places:
    """Couplings on slots, shafts on their ways."""

    def __init__(
        self, columns: list[_Column], width: int, couplings: Sequence[Coupling], ends: tuple[str, str]
    ) -> None:
        self.columns, self.couplings, self.ends = columns, list(couplings), ends
        if not columns:
            width = FRONT + BACK + (PACK + 2) * len(couplings)
        self.width = width
        self.slots = list(self._slots())
        free = list(self.slots)
        self.at: list[int] = []
        #: the first shaft of a coupling is tied to its outside
        self.turned: list[bool] = [False] * len(couplings)
        for coupling in couplings:
            slot = min(free, key=lambda s: (s.brake != _grounded(coupling), self._far(coupling, s)))
            free.remove(slot)
            self.at.append(self.slots.index(slot))

    def _slots(self) -> Iterator[_Slot]:
        for column in self.columns:
            for first in range(column.first - PLATE, column.last + PLATE - PACK + 1, PACK + 1):
                yield _Slot(first, ABOVE, False)
                yield _Slot(first, BRAKES, True)
        edges = [0, *(c for col in self.columns for c in (col.first - PLATE, col.last + PLATE)), self.width]
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            for first in range(left + 1, right - PACK, PACK + 1):
                for row in IN_GAPS:
                    yield _Slot(first, row, False)
                yield _Slot(first, BRAKES, True)

    def _far(self, coupling: Coupling, slot: _Slot) -> float:
        """Rough way from a slot to what its coupling joins."""
        total = 0.0
        for shaft in (coupling.first, coupling.second):
            cells = [c for t in self._terminals(shaft, ()) for c in t]
            if cells:
                total += min(abs(c[0] - slot.column) + abs(c[1] - slot.row) for c in cells)
        return total

    def _terminals(self, shaft: str | None, placed: Sequence[tuple[Coupling, _Slot, bool]]) -> list[frozenset[Cell]]:
        if shaft is None:
            return []
        found: list[frozenset[Cell]] = []
        joined: dict[str, set[Cell]] = {}
        for column in self.columns:
            for member, owner in column.shafts.items():
                if owner == shaft:
                    cells = column.terminal(member)
                    # the carrier and the ring that two sets share are one piece
                    shares = column.wheels.partner or any(c.wheels.partner == column.wheels.name for c in self.columns)
                    if shares and member in ("carrier", "ring"):
                        joined.setdefault(member, set()).update(cells)
                    else:
                        found.append(cells)
        found += [frozenset(cells) for cells in joined.values()]
        found += [frozenset({(c, 0)}) for c, end in ((0, self.ends[0]), (self.width - 1, self.ends[1])) if end == shaft]
        for coupling, slot, turned in placed:
            for side, owner in zip(_sides(slot, turned, _grounded(coupling)), _ordered(coupling), strict=True):
                if owner == shaft:
                    found.append(side)
        return found

    def _route(self, bound: float = float("inf")) -> tuple[float, list[Net]]:
        """Cost and ways, given up where the cost goes over the bound."""
        placed = [(c, self.slots[k], t) for c, k, t in zip(self.couplings, self.at, self.turned, strict=True)]
        blocked = {cell for column in self.columns for cell in column.blocked()}
        for _, slot, _ in placed:
            blocked |= {(slot.column + i, slot.row + j) for i in range(PACK) for j in range(THICK)}
        shafts = dict.fromkeys(
            s for s in (*self.ends, *(x for c in self.columns for x in c.shafts.values()),
                        *(x for c in self.couplings for x in (c.first, c.second))) if s is not None
        )  # fmt: skip
        nets = [Net(name, self._terminals(name, placed)) for name in shafts]
        # those with the least room first: short ones
        nets.sort(key=lambda n: (_span(n), n.name))
        grid = Grid(self.width, BRAKES + THICK, blocked)
        total = 0.0
        for net in nets:
            total += grid.route(net, bound - total)
            if total > bound:
                break
        return total, nets

    def search(self) -> None:
        """Other places for couplings, kept where they make ways cheaper."""
        chance = random.Random(1)
        self.cost, self.nets = self._route()
        idle = 0
        for _ in range(TRIES if self.couplings else 0):
            if idle == PATIENCE:
                break
            at, turned = list(self.at), list(self.turned)
            k = chance.randrange(len(self.couplings))
            if chance.random() < 0.3:
                self.turned[k] = not self.turned[k]
            else:
                wanted = _grounded(self.couplings[k])
                slot = chance.choice([i for i, s in enumerate(self.slots) if s.brake == wanted and i != self.at[k]])
                if slot in self.at:  # change places
                    self.at[self.at.index(slot)] = self.at[k]
                self.at[k] = slot
            cost, nets = self._route(self.cost)
            idle = 0 if cost < self.cost else idle + 1
            if cost <= self.cost:
                self.cost, self.nets = cost, nets
            else:
                self.at, self.turned = at, turned

    def drawn(self) -> Section:
        """In lengths."""
        sets = tuple(
            PlacedSet(c.wheels, c.first * DX, ROW * DX, dict(c.shafts), c.plates) for c in self.columns
        )  # fmt: skip
        packs = []
        for coupling, k, turned in zip(self.couplings, self.at, self.turned, strict=True):
            slot = self.slots[k]
            pair = _ordered(coupling)
            outer, inner = (pair[0], pair[1]) if not turned or _grounded(coupling) else (pair[1], pair[0])
            packs.append(PlacedCoupling(coupling.name, coupling.kind, outer, inner, slot.column * DX, PACK * DX,
                                        slot.row * DR, (slot.row + THICK) * DR))  # fmt: skip
        placed = [(c, self.slots[k], t) for c, k, t in zip(self.couplings, self.at, self.turned, strict=True)]
        shafts = []
        for net in sorted(self.nets, key=lambda n: n.name):
            tubes, discs = lines(net)
            stubs = list(self._stubs(net, placed))
            shafts.append(ShaftForm(
                net.name,
                (*(((r + 0.5) * DR, (a + 0.5) * DX, (b + 0.5) * DX) for r, a, b in tubes),
                 *((r, min(a, b), max(a, b)) for kind, r, a, b in stubs if kind == "tube")),
                (*(((c + 0.5) * DX, (a + 0.5) * DR, (b + 0.5) * DR) for c, a, b in discs),
                 *((x, min(a, b), max(a, b)) for kind, x, a, b in stubs if kind == "disc")),
            ))  # fmt: skip
        crossings = sum(
            1 for i, a in enumerate(self.nets) for b in self.nets[i + 1 :] for _ in set(a.way) & set(b.way)
        )  # fmt: skip
        return Section(sets, tuple(packs), tuple(shafts), self.width * DX, ROWS * DR, crossings)

    def _stubs(
        self, net: Net, placed: Sequence[tuple[Coupling, _Slot, bool]]
    ) -> Iterator[tuple[str, float, float, float]]:
        """From the cells a way ends at to the packs and members that lie beside them: ("tube", r, from x, to x) or
        ("disc", x, from r, to r)."""
        for coupling, slot, turned in placed:
            for side, owner in zip(_sides(slot, turned, _grounded(coupling)), _ordered(coupling), strict=True):
                for c, r in sorted(side & set(net.way))[:1] if owner == net.name else ():
                    x, y = (c + 0.5) * DX, (r + 0.5) * DR
                    if c < slot.column or c >= slot.column + PACK:
                        yield "tube", y, x, (slot.column if c < slot.column else slot.column + PACK) * DX
                    else:
                        yield "disc", x, y, (slot.row if r < slot.row else slot.row + THICK) * DR
        for column in self.columns:
            for member, owner in column.shafts.items():
                for c, r in sorted(column.terminal(member) & set(net.way)) if owner == net.name else ():
                    yield column.stub(member, (c, r))


def _grounded(coupling: Coupling) -> bool:
    return coupling.first is None or coupling.second is None


def _ordered(coupling: Coupling) -> tuple[str | None, str | None]:
    """(outer, inner): the housing is outside."""
    return (coupling.first, coupling.second) if coupling.second is not None else (None, coupling.first)


def _sides(slot: _Slot, turned: bool, grounded: bool) -> tuple[frozenset[Cell], frozenset[Cell]]:
    """Cells the outer and the inner shaft of a pack can come from: above and left, below and right."""
    columns, rows = range(slot.column, slot.column + PACK), range(slot.row, slot.row + THICK)
    if grounded:
        inner = {*((c, slot.row - 1) for c in columns), *((slot.column - 1, r) for r in rows),
                 *((slot.column + PACK, r) for r in rows)}  # fmt: skip
        return frozenset(), frozenset(inner)
    outside = frozenset({*((c, slot.row + THICK) for c in columns), *((slot.column - 1, r) for r in rows)})
    inside = frozenset({*((c, slot.row - 1) for c in columns), *((slot.column + PACK, r) for r in rows)})
    return (inside, outside) if turned else (outside, inside)


def _span(net: Net) -> int:
    cells = [c for t in net.terminals for c in t]
    if not cells:
        return 0
    return max(c[0] for c in cells) - min(c[0] for c in cells) + max(c[1] for c in cells) - min(c[1] for c in cells)
