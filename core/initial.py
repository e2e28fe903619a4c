"""Start values: all prescribed speeds and angles must fit together; what nothing determines starts at 0."""

from __future__ import annotations

from fractions import Fraction

from torqueloop.core.builder import Initial, Parts
from torqueloop.core.driveline import Driveline
from torqueloop.core.errors import InitialValueError, UnknownNameError, did_you_mean
from torqueloop.core.exact import reduce, solve_least_norm
from torqueloop.core.topology import Topology, natural
from torqueloop.core.vocabulary import OUT_ANGLE, OUT_SPEED

#: two start values agree when they differ by no more than this part of the larger one (they are decimal numbers,
#: possibly rounded when they were converted from rpm or degrees)
AGREEMENT = 1e-9


def start_values(driveline: Driveline, parts: Parts, topology: Topology) -> tuple[list[float], list[float]]:
    """(u0, z0): the smallest values (sum of squares) that fulfil all prescribed ones."""
    given = [*parts.initials, *_from_table(driveline, parts)]
    return _solve(topology, [i for i in given if i.quantity == "w"]), _solve(
        topology, [i for i in given if i.quantity == "phi"]
    )


def _from_table(driveline: Driveline, parts: Parts) -> list[Initial]:
    """Start values given by the names of outputs."""
    outputs = {o.name: o for o in parts.outputs if o.kind in (OUT_SPEED, OUT_ANGLE)}
    found = []
    for name in sorted(driveline.start, key=natural):
        if name not in outputs:
            raise UnknownNameError(
                f"there is no speed or angle {name!r} to start from", file=driveline.file, table="initial", key=name,
                hint=did_you_mean(name, outputs),
            )  # fmt: skip
        output = outputs[name]
        assert output.form is not None
        quantity = "w" if output.kind == OUT_SPEED else "phi"
        found.append(Initial(name, output.form, quantity, driveline.start[name]))
    return found


def _solve(topology: Topology, given: list[Initial]) -> list[float]:
    """Least-norm solution of row.x = value, exact; contradictions are named."""
    rows: list[dict[str, Fraction]] = []
    rhs: list[Fraction] = []
    kept: list[Initial] = []
    for item in given:
        row, constant = topology.over_independent(item.form)
        value = Fraction(item.value) - (constant if item.quantity == "phi" else 0)
        trial = reduce([*rows, row], [*rhs, value], topology.independent)
        if trial.dependent:
            _, made, residual = trial.dependent[0]
            scale = max([abs(value), *(abs(made[k] * rhs[k]) for k in made if k < len(rhs))])
            if abs(residual) > AGREEMENT * scale:
                others = [kept[k].label for k in sorted(made) if k < len(kept)]
                wanted = float(value - residual)
                raise InitialValueError(
                    f"start values contradict each other: {item.label} = {item.value:g}, but "
                    + (f"{' and '.join(others)} require" if others else "the housing requires")
                    + f" {wanted:g}",
                    sorted({label.rpartition(".")[0] for label in (item.label, *others)}, key=natural),
                )
            continue
        rows.append(row)
        rhs.append(value)
        kept.append(item)
    solution = solve_least_norm(rows, rhs, topology.independent)
    assert solution is not None
    return [float(solution[name]) for name in topology.independent]
