"""Linear algebra in exact rational numbers, with a record of which rows made what.

Rows are dicts column -> Fraction. Small systems (tens of rows), so clarity goes before speed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

from torqueloop.core.describe.classes import dataclass

Column = TypeVar("Column", bound=Hashable)
Row = dict[Column, Fraction]


@dataclass
class Reduced(Generic[Column]):
    """Reduced row echelon form of rows.x = rhs."""

    #: pivot column -> (remaining row over free columns, right-hand side): x_pivot = rhs - sum(row*x_free)
    pivots: dict[Column, tuple[Row[Column], Fraction]]
    #: pivot column -> {input row index: factor}: how the row was combined
    made_of: dict[Column, dict[int, Fraction]]
    #: for every input row that added nothing: (its index, combination of rows that gives 0, residual right-hand side)
    dependent: list[tuple[int, dict[int, Fraction], Fraction]]


def _axpy(target: dict[Column, Fraction], factor: Fraction, source: Mapping[Column, Fraction]) -> None:
    """target += factor*source, zeros removed."""
    for key, value in source.items():
        new = target.get(key, Fraction(0)) + factor * value
        if new:
            target[key] = new
        else:
            target.pop(key, None)


def reduce(
    rows: Sequence[Mapping[Column, Fraction]], rhs: Sequence[Fraction], order: Sequence[Column]
) -> Reduced[Column]:
    """Gauss-Jordan with pivots taken in the order of the columns.

    The pivot of a row is its first column in `order`. Clearing keeps that so (a later row that is subtracted starts
    further right), hence the pivots are the first independent columns in `order` (the greedy basis of a matroid) and
    the free columns the most wanted ones when `order` goes from least to most wanted.
    """
    position = {column: k for k, column in enumerate(order)}
    basis: dict[Column, tuple[Row[Column], Fraction, dict[int, Fraction]]] = {}
    dependent: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for index, source in enumerate(rows):
        row: Row[Column] = {k: Fraction(v) for k, v in source.items() if v != 0}
        right = Fraction(rhs[index])
        made: dict[int, Fraction] = {index: Fraction(1)}
        for known, (krow, kright, kmade) in basis.items():
            if known in row:
                factor = -row[known]
                _axpy(row, factor, krow)
                _axpy(made, factor, kmade)
                right += factor * kright
        if not row:
            dependent.append((index, made, right))
            continue
        pivot = min(row, key=lambda c: position[c])
        scale = 1 / row[pivot]
        row = {k: v * scale for k, v in row.items()}
        made = {k: v * scale for k, v in made.items()}
        right *= scale
        for known, (krow, kright, kmade) in basis.items():
            if pivot in krow:
                factor = -krow[pivot]
                _axpy(krow, factor, row)
                _axpy(kmade, factor, made)
                basis[known] = (krow, kright + factor * right, kmade)
        basis[pivot] = (row, right, made)
    pivots = {c: ({k: v for k, v in row.items() if k != c}, right) for c, (row, right, _) in basis.items()}
    return Reduced(pivots, {c: made for c, (_, _, made) in basis.items()}, dependent)


def solve_least_norm(
    rows: Sequence[Mapping[Column, Fraction]], rhs: Sequence[Fraction], columns: Sequence[Column]
) -> dict[Column, Fraction] | None:
    """The solution of rows.x = rhs with the smallest sum of squares, or None when there is none. Exact.

    Dependent rows are dropped, then x = A^T y with (A A^T) y = rhs.
    """
    first = reduce(rows, rhs, columns)
    if any(right != 0 for _, _, right in first.dependent):
        return None
    dropped = {index for index, _, _ in first.dependent}
    kept = [i for i in range(len(rows)) if i not in dropped]
    normal: list[Row[int]] = []
    for i in kept:
        normal.append({
            j: sum((v * rows[j].get(k, Fraction(0)) for k, v in rows[i].items()), Fraction(0)) for j in kept
        })  # fmt: skip
    solved = reduce(normal, [rhs[i] for i in kept], kept)
    y = {i: solved.pivots[i][1] for i in kept}
    x: dict[Column, Fraction] = {c: Fraction(0) for c in columns}
    for i in kept:
        for k, v in rows[i].items():
            x[k] += v * y[i]
    return x


def null_direction(
    rows: Sequence[Mapping[Column, Fraction]], columns: Sequence[Column]
) -> dict[Column, Fraction] | None:
    """One non-zero x with rows.x = 0, or None when there is only x = 0."""
    reduced = reduce(rows, [Fraction(0)] * len(rows), columns)
    free = [c for c in columns if c not in reduced.pivots]
    if not free:
        return None
    chosen = free[0]
    x = {c: Fraction(0) for c in columns}
    x[chosen] = Fraction(1)
    for pivot, (row, _) in reduced.pivots.items():
        x[pivot] = -row.get(chosen, Fraction(0))
    return x
