"""Ways of shafts through the half section of a gearbox: a grid over axis and radius, ways along its lines.

What turns with a shaft is a surface of revolution, in the half section a line: along the axis a tube, across it a disc.
Two shafts may cross only where one passes straight over the other, which no real gearbox has: a crossing is dear, so
that it is left only where the places of the elements allow nothing else.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import field

from torqueloop.core.describe.classes import dataclass

Cell = tuple[int, int]
#: cost of a bend, of a crossing, of a shaft that finds no way; a step costs 1
BEND, CROSSING, LOST = 0.6, 14.0, 400.0


@dataclass
class Net:
    """A shaft: places it must reach (any cell of each), and the way that was found."""

    name: str
    terminals: list[frozenset[Cell]]
    #: cell -> directions of the way there: 1 along the axis, 2 across, 3 both
    way: dict[Cell, int] = field(default_factory=dict)
    steps: set[tuple[Cell, Cell]] = field(default_factory=set)
    cost: float = 0.0


class Grid:
    """Cells (column along the axis, row along the radius) and who is in them. A cell is also a number, column * rows +
    row, and so is a cell that was entered in a direction: 4 * cell + direction."""

    def __init__(self, columns: int, rows: int, blocked: Iterable[Cell]) -> None:
        self.columns, self.rows = columns, rows
        self.blocked: set[Cell] = set(blocked)
        self._taken: dict[Cell, dict[str, int]] = {}

    def route(self, net: Net, bound: float = float("inf")) -> float:
        """Join all terminals of a net, the nearest first; the cost. One beyond the bound is not found out exactly."""
        left = [t - self.blocked for t in net.terminals]
        left = [t for t in left if t]
        net.cost = LOST * (len(net.terminals) - len(left))
        if not left:
            return net.cost
        floor = self._floor(net.name)
        tree: set[Cell] = set(left.pop(0))
        first = True
        while left:
            path, cost = self._path(floor, tree, set().union(*left), bound - net.cost)
            net.cost += cost
            if path is None:
                break
            if first:  # of the first terminal only the cell the way begins at belongs to the shaft's way
                tree, first = {path[0]}, False
            reached = next(k for k, t in enumerate(left) if path[-1] in t)
            left.pop(reached)
            self._lay(net, path)
            tree |= set(path)
        return net.cost

    def _lay(self, net: Net, path: list[Cell]) -> None:
        net.way.setdefault(path[0], 0)
        for a, b in zip(path[:-1], path[1:], strict=True):
            kind = 1 if a[1] == b[1] else 2
            net.steps.add((min(a, b), max(a, b)))
            for cell in (a, b):
                net.way[cell] = net.way.get(cell, 0) | kind
        for cell in path:
            self._taken.setdefault(cell, {})[net.name] = net.way[cell]

    def _floor(self, name: str) -> bytearray:
        """Of every cell: 0 free, 1 or 2 another shaft runs straight along or across, 3 none of our business."""
        floor = bytearray(self.columns * self.rows)
        for cell, taken in self._taken.items():
            kinds = {kind for other, kind in taken.items() if other != name}
            if kinds:
                floor[cell[0] * self.rows + cell[1]] = kinds.pop() if kinds in ({1}, {2}) else 3
        for column, row in self.blocked:
            if 0 <= column < self.columns and 0 <= row < self.rows:
                floor[column * self.rows + row] = 3
        return floor

    def _path(
        self, floor: bytearray, sources: set[Cell], targets: set[Cell], bound: float
    ) -> tuple[list[Cell] | None, float]:
        """Cheapest way from any source to any target (Dijkstra over cells and directions)."""
        rows, columns = self.rows, self.columns
        numbers = [c * rows + r for c, r in sorted(sources)]
        goals = {c * rows + r for c, r in targets if 0 <= c < columns and 0 <= r < rows}
        best = [float("inf")] * (4 * rows * columns)
        back: dict[int, int] = {}
        heap: list[tuple[float, int]] = []
        for start in numbers:
            if start in goals and not floor[start]:
                return [divmod(start, rows)], 0.0
            if not floor[start]:
                heap += [(0.0, 4 * start + k) for k in range(4)]
                best[4 * start : 4 * start + 4] = [0.0] * 4
        heapq.heapify(heap)
        shift = (rows, -rows, 1, -1)
        while heap:
            cost, state = heapq.heappop(heap)
            if cost > best[state]:
                continue
            if cost > bound:
                break
            cell, way = divmod(state, 4)
            if cell in goals and not floor[cell]:
                return self._walk(back, state), cost
            row = cell % rows
            for k in (way,) if floor[cell] else range(4):  # straight on over another shaft
                if (k == 2 and row == rows - 1) or (k == 3 and row == 0) or (k ^ way) == 1:
                    continue
                to = cell + shift[k]
                if not 0 <= to < len(floor):
                    continue
                over = floor[to]
                if over == 3 or over == (1 if k < 2 else 2):
                    continue
                fresh = cost + 1.0 + (BEND if way != k else 0.0) + (CROSSING if over else 0.0)
                if fresh < best[4 * to + k]:
                    best[4 * to + k] = fresh
                    back[4 * to + k] = state
                    heapq.heappush(heap, (fresh, 4 * to + k))
        return None, LOST

    def _walk(self, back: dict[int, int], state: int) -> list[Cell]:
        path = [divmod(state // 4, self.rows)]
        while state in back:
            state = back[state]
            path.append(divmod(state // 4, self.rows))
        return path[::-1]


def lines(net: Net) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The way of a net as (tubes: row, first, last column), (discs: column, first, last row)."""
    return _runs(net, 0), _runs(net, 1)


def _runs(net: Net, along: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    steps = sorted((a[1 - along], a[along]) for a, b in net.steps if a[1 - along] == b[1 - along])
    for fixed, start in steps:
        if found and found[-1][0] == fixed and found[-1][2] == start:
            found[-1] = (fixed, found[-1][1], start + 1)
        else:
            found.append((fixed, start, start + 1))
    return found
