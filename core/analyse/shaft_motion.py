"""Angles and speeds of all shafts over a run, from what was recorded of them.

Every angle and speed that is recorded is a row over the independent coordinates of the driveline; as many of them as
are independent give the coordinates, and these every shaft. So tooth numbers hold exactly between all shafts, whatever
is recorded. Where angles do not suffice, recorded speeds are integrated over every recorded sample (trapezoidal rule
with the end correction h²/12 of their slopes: order 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.topology import Topology
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.kernel_numbers import OUT_ANGLE, OUT_SPEED
from torqueloop.core.describe.parts import Output, Parts

Array = NDArray[np.float64]
#: part of a row that is rounding
TINY = 1e-9


@dataclass(frozen=True)
class Motion:
    """Of each shaft at the given times."""

    #: times of the samples [s]
    t: Array
    #: shaft -> angle since the first sample [rad]
    angle: Mapping[str, Array]
    #: shaft -> speed [rad/s]
    speed: Mapping[str, Array]
    #: recorded speeds that were integrated, and angles that were differentiated
    integrated: tuple[str, ...]
    differentiated: tuple[str, ...]


def integral(t: Array, w: Array) -> Array:
    """Integral from the first sample, order 4 where w is smooth. A kink of slope s costs s h²/12, 1e-4 rad at 1 ms and
    1000 rad/s², a jump nothing."""
    if len(t) < 3:
        return np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (w[1:] + w[:-1]))]) if len(t) else w
    h = np.diff(t)
    slope = np.gradient(w, t, edge_order=2)
    pieces = 0.5 * h * (w[1:] + w[:-1]) - h * h / 12.0 * np.diff(slope)
    return np.concatenate([[0.0], np.cumsum(pieces)])


class _Rows:
    """Independent rows among those that are offered, in that order."""

    def __init__(self, n: int) -> None:
        self.rows, self.signals = np.zeros((0, n)), list[str]()
        self._basis: list[Array] = []

    def offer(self, name: str, row: Array) -> bool:
        """Take a row if it is independent of the others."""
        rest = self.rest(row)
        if np.linalg.norm(rest) <= TINY * max(1.0, float(np.linalg.norm(row))):
            return False
        self._basis.append(rest / np.linalg.norm(rest))
        self.rows = np.vstack([self.rows, row])
        self.signals.append(name)
        return True

    def rest(self, row: Array) -> Array:
        """The part of a row that is independent of the rows taken."""
        left = row.astype(float)
        for _ in range(2):  # twice is enough for rounding
            for unit in self._basis:
                left = left - (left @ unit) * unit
        return left

    def tells(self, row: Array) -> bool:
        return bool(np.linalg.norm(self.rest(row)) <= TINY * max(1.0, float(np.linalg.norm(row))))

    def weights(self, row: Array) -> Array:
        """The row as a sum of those taken."""
        return np.asarray(np.linalg.lstsq(self.rows.T, row, rcond=None)[0])


def motion(
    parts: Parts, topology: Topology, wanted: Iterable[str], t: Array, signals: Mapping[str, Array], every: int
) -> Motion:
    """Angles and speeds of the wanted shafts at each `every`-th sample. ConfigError where they cannot be known, with
    what would have to be recorded."""
    place = {name: k for k, name in enumerate(topology.independent)}
    rows = {node: _row(topology.rows[node][0], place) for node in wanted}
    outputs = [o for o in parts.outputs if o.form is not None and o.kind in (OUT_ANGLE, OUT_SPEED)]
    given = [(o, _row(topology.over_independent(o.form)[0], place)) for o in outputs if o.form is not None]
    # the shafts' own before those of elements on them, and these before differences of two
    given.sort(key=lambda entry: (np.count_nonzero(entry[1]), not entry[0].name.endswith((".phi", ".w"))))
    angles, speeds = _Rows(len(place)), _Rows(len(place))
    for output, row in given:
        if output.name in signals:
            (angles if output.kind == OUT_ANGLE else speeds).offer(output.name, row)
    _complete(rows, angles, speeds, given)
    integrated, differentiated = _each_by_the_other(angles, speeds, rows)
    angle_of = {n: _since(integral(t, signals[n])[::every] if n in integrated else signals[n][::every])
                for n in angles.signals}  # fmt: skip
    speed_of = {n: np.gradient(signals[n], t)[::every] if n in differentiated else signals[n][::every]
                for n in speeds.signals}  # fmt: skip
    return Motion(
        t[::every],
        {node: _sum(angles, angle_of, row, len(t[::every])) for node, row in rows.items()},
        {node: _sum(speeds, speed_of, row, len(t[::every])) for node, row in rows.items()},
        tuple(sorted(integrated)), tuple(sorted(differentiated)),
    )  # fmt: skip


def _row(row: Mapping[str, object], place: Mapping[str, int]) -> Array:
    found = np.zeros(len(place))
    for name, value in row.items():
        found[place[name]] = float(value)  # type: ignore[arg-type]
    return found


def _since(values: Array) -> Array:
    return values - values[0] if len(values) else values


def _sum(taken: _Rows, values: Mapping[str, Array], row: Array, n: int) -> Array:
    total = np.zeros(n)
    if not row.any():
        return total
    for name, weight in zip(taken.signals, taken.weights(row), strict=True):
        if abs(weight) > TINY:
            total = total + weight * values[name]
    return total


def _complete(
    rows: Mapping[str, Array], angles: _Rows, speeds: _Rows, given: Sequence[tuple[Output, Array]]
) -> None:  # fmt: skip
    """ConfigError if neither angles nor speeds determine how a shaft turns."""
    known = _Rows(angles.rows.shape[1])
    for taken in (angles, speeds):
        for name, row in zip(taken.signals, taken.rows, strict=True):
            known.offer(name, row)
    missing = [node for node, row in rows.items() if not known.tells(row)]
    if not missing:
        return
    more = []
    for output, row in given:
        useful = any(row @ rows[node] for node in missing)
        if output.kind == OUT_ANGLE and useful and known.offer(output.name, row):
            more.append(output.name)
        if all(known.tells(rows[node]) for node in missing):
            break
    raise ConfigError(
        f"the run does not show how {', '.join(missing)} turn{'s' if len(missing) == 1 else ''}: too few signals were "
        "recorded", table="record", key="signals", hint=f"with {', '.join(more)} in it (or all) they are known",
    )  # fmt: skip


def _each_by_the_other(angles: _Rows, speeds: _Rows, rows: Mapping[str, Array]) -> tuple[set[str], set[str]]:
    """Speeds that are integrated where angles do not suffice, angles that are differentiated where speeds do not."""
    integrated, differentiated = set[str](), set[str]()
    before = list(zip(angles.signals, angles.rows, strict=True))
    if not all(angles.tells(row) for row in rows.values()):
        for name, row in zip(speeds.signals, speeds.rows, strict=True):
            if angles.offer(name, row):
                integrated.add(name)
    if not all(speeds.tells(row) for row in rows.values()):
        for name, row in before:
            if speeds.offer(name, row):
                differentiated.add(name)
    return integrated, differentiated
