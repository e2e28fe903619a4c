"""Start values: all prescribed speeds and angles must fit together; what nothing determines starts at 0.

Gears of changing ratio tie the start speeds of their sides as w_a = i*w_b with the ratio i at t = 0. It is known when
compiling if it is constant, given by the speed, or by an input the component itself feeds; ratios from other inputs
come with `StartConditions.speeds(inputs)` when a run begins. Angles are not tied: they are integrals of the speeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from torqueloop.core.compile.exact import reduce, solve_least_norm
from torqueloop.core.compile.topology import Row, Topology
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import InitialValueError, RangeError, UnknownNameError, did_you_mean
from torqueloop.core.describe.kernel_numbers import OUT_ANGLE, OUT_PRESSURE, OUT_SPEED, RATIO_INPUT, RATIO_SPEED
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import Initial, Parts, VariableGearPart
from torqueloop.core.describe.ranges import RANGES
from torqueloop.core.describe.units import SYMBOLS

#: two start values agree when they differ by no more than this part of the larger one (they are decimal numbers,
#: possibly rounded when they were converted from rpm or degrees)
AGREEMENT = 1e-9
#: rounds in which a ratio that depends on the speed it produces must settle, and the change that counts as settled
ROUNDS, SETTLED = 60, 1e-14


@dataclass(frozen=True)
class StartConditions:
    """What is prescribed at the start; `speeds` and `angles` solve for all independent coordinates.

    The solution is the smallest one (sum of squares) that fulfils everything prescribed.
    """

    topology: Topology
    given: tuple[Initial, ...]
    gears: tuple[VariableGearPart, ...]
    input_names: tuple[str, ...]
    #: values at t = 0 of inputs that are known when compiling
    known: Mapping[str, float]

    @property
    def ratio_inputs(self) -> tuple[str, ...]:
        """Inputs that give the ratio of a gear at the start."""
        needed = [self.input_names[g.input] for g in self.gears if g.kind != RATIO_SPEED and _constant(g) is None]
        return tuple(dict.fromkeys(needed))

    def angles(self) -> list[float]:
        """Angles at t = 0."""
        return _floats(self.topology, _solve(self.topology, [i for i in self.given if i.quantity == "phi"]))

    def check_stops(self, parts: Parts) -> None:
        """Everything with hard stops starts within them; InitialValueError says where it would be."""
        found = _solve(self.topology, [i for i in self.given if i.quantity == "phi"])
        for stop in parts.stops:
            if stop.input >= 0:
                continue
            row, constant = self.topology.over_independent(parts.frictions[stop.friction].form)
            at = float(sum((c * found[k] for k, c in row.items()), constant))
            slack = AGREEMENT * max(abs(x) for x in (stop.lo, stop.hi) if math.isfinite(x))
            if not stop.lo - slack <= at <= stop.hi + slack:
                raise InitialValueError(
                    f"{stop.owner} starts at {at:g}, outside of its stops: {stop.lo:g} .. {stop.hi:g}", [stop.owner]
                )

    def speeds(self, inputs: Mapping[str, float] | None = None) -> list[float]:
        """Speeds at t = 0 with these values of inputs at t = 0; a gear whose ratio remains unknown ties nothing."""
        values = {**self.known, **(inputs or {})}
        given = [i for i in self.given if i.quantity == "w"]
        self._check_free(given)
        ratios = {k: ratio for k, gear in enumerate(self.gears) if (ratio := self._ratio(gear, values)) is not None}
        found = _solve(self.topology, [*self._tied(ratios), *given])
        by_speed = [k for k, gear in enumerate(self.gears) if k not in ratios and gear.kind == RATIO_SPEED]
        if not by_speed:
            return _floats(self.topology, found)
        for _ in range(ROUNDS):
            now = {k: self._at_speed(self.gears[k], found) for k in by_speed}
            if all(k in ratios and abs(now[k] - ratios[k]) <= SETTLED * abs(now[k]) for k in by_speed):
                return _floats(self.topology, found)
            ratios |= now
            found = _solve(self.topology, [*self._tied(ratios), *given])
        owners = [self.gears[k].owner for k in by_speed]
        raise InitialValueError(
            f"no start speed fits the ratio of {', '.join(owners)}, which changes too steeply with the speed: "
            "give the start value of the other side", owners,
        )  # fmt: skip

    def _check_free(self, given: list[Initial]) -> None:
        """No speed is given that follows from springs and dampers; InitialValueError names the first one."""
        for item in given:
            if set(self.topology.over_independent(item.form)[0]) & set(self.topology.relaxing):
                raise InitialValueError(
                    f"start value {item.label} = {item.value:g}: springs and dampers alone move a shaft without "
                    "inertia there, so its speed follows from the angles; give these, or add an Inertia (or Mass)",
                    [item.label.rpartition(".")[0]],
                )

    def _ratio(self, gear: VariableGearPart, values: Mapping[str, float]) -> float | None:
        """The ratio at t = 0 as far as it does not depend on the speed; None: not known."""
        if (constant := _constant(gear)) is not None:
            return constant
        if gear.kind == RATIO_SPEED:
            return None
        value = values.get(self.input_names[gear.input])
        if value is None or not math.isfinite(value):
            return None  # an input that is no number is reported by the run
        if gear.kind == RATIO_INPUT:
            return value
        assert gear.curve is not None
        return gear.curve(value)

    def _at_speed(self, gear: VariableGearPart, speeds: Row) -> float:
        """The ratio of a gear that goes by |w_a|."""
        row, _ = self.topology.over_independent(gear.form_a)
        assert gear.curve is not None
        return gear.curve(abs(float(sum((c * speeds[k] for k, c in row.items()), Fraction(0)))))

    def _tied(self, ratios: Mapping[int, float]) -> list[Initial]:
        """w_a - i*w_b = 0 of the gears whose ratio is known."""
        gears = [(self.gears[k], Fraction(ratio)) for k, ratio in sorted(ratios.items())]
        return [Initial(f"{gear.owner}.ratio", gear.form_a - i * gear.form_b, "w", 0.0) for gear, i in gears]


def _constant(gear: VariableGearPart) -> float | None:
    """The ratio of a gear whose curve is flat."""
    return gear.curve.y[0] if gear.curve is not None and min(gear.curve.y) == max(gear.curve.y) else None


def start_conditions(driveline: Driveline, parts: Parts, topology: Topology) -> StartConditions:
    """All prescribed start values of a driveline."""
    return StartConditions(
        topology,
        (*parts.initials, *_from_table(driveline, parts)),
        tuple(parts.variable_gears),
        tuple(parts.inputs),
        {name: signal.after(0.0) for name, signal in parts.default_inputs.items()},
    )


def _from_table(driveline: Driveline, parts: Parts) -> list[Initial]:
    """Start values given by the names of outputs."""
    outputs = {o.name: o for o in parts.outputs if o.kind in (OUT_SPEED, OUT_ANGLE)}
    pressures = {o.name for o in parts.outputs if o.kind == OUT_PRESSURE}
    found = []
    for name in sorted(driveline.start.keys() - pressures, key=natural):
        if name not in outputs:
            raise UnknownNameError(
                f"there is no speed, angle or pressure {name!r} to start from", file=driveline.file, table="initial",
                key=name, hint=did_you_mean(name, [*outputs, *pressures]),
            )  # fmt: skip
        output = outputs[name]
        assert output.form is not None
        allowed = next(RANGES[d] for d, symbol in SYMBOLS.items() if symbol == output.unit)
        if not allowed.holds(driveline.start[name]):
            raise RangeError("start value {key} = {value} is out of range", file=driveline.file, table="initial",
                             key=name, value=driveline.start[name], allowed=str(allowed))  # fmt: skip
        quantity = "w" if output.kind == OUT_SPEED else "phi"
        found.append(Initial(name, output.form, quantity, driveline.start[name] / output.gain))
    return found


def start_pressures(driveline: Driveline, parts: Parts) -> None:
    """Pressures given by the names of outputs become those that actuators start with; the others start at 0."""
    for output in parts.outputs:
        if output.kind != OUT_PRESSURE or output.name not in driveline.start:
            continue
        value, actuator = driveline.start[output.name] / output.gain, parts.actuators[output.index]
        if not 0.0 <= value <= actuator.p_max:
            raise RangeError(
                "start value {key} = {value} Pa is out of range", file=driveline.file, table="initial", key=output.name,
                value=value, allowed=f"0 .. {actuator.p_max:g} Pa (p_max)",
            )  # fmt: skip
        parts.actuators[output.index] = replace(actuator, p0=value)


def _solve(topology: Topology, given: list[Initial]) -> Row:
    """Least-norm solution of row.x = value, exact; contradictions are named, repetitions are allowed."""
    rows: list[Row] = []
    rhs: list[Fraction] = []
    for item in given:
        row, constant = topology.over_independent(item.form)
        rows.append(row)
        rhs.append(Fraction(item.value) - (constant if item.quantity == "phi" else 0))
    repeated = reduce(rows, rhs, topology.independent).dependent
    for index, made, residual in repeated:
        scale = max(abs(factor * rhs[k]) for k, factor in made.items())
        if abs(residual) > AGREEMENT * scale:
            _contradiction(given[index], given[index].value - float(residual), [given[k] for k in made])
    dropped = {index for index, _, _ in repeated}
    kept = [k for k in range(len(given)) if k not in dropped]
    solution = solve_least_norm([rows[k] for k in kept], [rhs[k] for k in kept], topology.independent)
    assert solution is not None
    return solution


def _floats(topology: Topology, solution: Row) -> list[float]:
    """In the order of the coordinates."""
    return [float(solution[name]) for name in topology.independent]


def _contradiction(item: Initial, wanted: float, involved: list[Initial]) -> NoReturn:
    """Which start values contradict each other, and what the others require."""
    others = [other.label for other in involved if other is not item]
    raise InitialValueError(
        f"start values contradict each other: {item.label} = {item.value:g}, but "
        + (f"{' and '.join(others)} require" if others else "the housing requires")
        + f" {wanted:g}",
        sorted({label.rpartition(".")[0] for label in (item.label, *others)}, key=natural),
    )
