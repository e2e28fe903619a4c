"""Gates: conditions on the metrics of a report that decide the exit status, written in the language of expression.py.

    missed == 0, compute_p99_us < 200
    energy_residual_rel <= 1e-6 and (overruns == 0 or clock == "virtual")
    5 < shifts + 1 <= 20, abs(coupling_speed_max_mps) < 0.05, compute_p99_us < 0.2 ms

Conditions that are separated by commas are gates of their own. A metric is in the unit that its name ends with. One
that was not measured (null) or is not a number (NaN) fails every comparison with it, and says so.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError
from torqueloop.core.describe.renamed import metrics_in
from torqueloop.hil.common.expression import Node, bound, parse, parts, scale_of_key, value_of


@dataclass(frozen=True)
class Gate:
    """One parsed condition."""

    text: str
    root: Node
    #: where it was asked for: "command line", or the file and its table
    source: str = ""
    #: its key there
    name: str = ""

    @property
    def names(self) -> list[str]:
        """Metrics it refers to."""
        return self.root.names


@dataclass(frozen=True)
class GateResult:
    """A gate and what became of it."""

    text: str
    passed: bool
    #: the metrics in it and their values
    values: dict[str, Any]
    #: why it failed; empty when it passed
    cause: str = ""
    source: str = ""
    #: it names a metric this run does not have
    unknown: bool = False


def parse_gates(text: str | Iterable[str] | Mapping[str, str], file: str = "", table: str = "gates") -> list[Gate]:
    """Gates from one text, from several, or from a table {name: text}. file: what errors name, a file or "command
    line". ConfigError with file, table, key, column, and what was expected there."""
    if isinstance(text, str):
        named = [("", text)]
    else:
        named = list(text.items()) if isinstance(text, Mapping) else [("", one) for one in text]
    found = []
    for name, one in ((name, metrics_in(one)) for name, one in named):
        try:
            roots = [bound(one, root, scale_of_key) for root in parse(one, "gates")]
        except ConfigError as error:
            raise error.located(file=file or None, table=table, key=name or "gate") from None
        found += [Gate(part, root, file, name) for part, root in zip(parts(one), roots, strict=True)]
    return found


@dataclass(frozen=True)
class Expression:
    """A number computed from names: sums, products, abs(), min(), max()."""

    text: str
    root: Node

    @property
    def names(self) -> list[str]:
        """Names in it."""
        return self.root.names

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Its value; ConfigError where a name is unknown, NaN where one was not measured or it divides by 0."""
        for name in self.names:
            if name not in values:
                raise UnknownNameError("{key}: there is no value {value}", value=name, hint=_guess(name, values))
        try:
            return float(value_of(self.root, _measured(values)))
        except (_NotMeasured, ZeroDivisionError, OverflowError):
            return math.nan


@lru_cache(maxsize=1024)
def compute(text: str) -> Expression:
    """Parse an expression that is a number. ConfigError with the column and what was expected there."""
    text = metrics_in(text)
    return Expression(text.strip(), bound(text, parse(text, "sum")[0], scale_of_key))


class _NotMeasured(Exception):
    """A metric in a comparison has no value."""


def evaluate(gates: Iterable[Gate], metrics: Mapping[str, Any]) -> list[GateResult]:
    """Each gate on these metrics. A gate with a name that is no metric fails and says so."""
    return [_judge(gate, metrics) for gate in gates]


def unknown_name(gate: Gate, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is no metric: with the closest matches, or where all of them stand."""
    known = sorted(known)
    hint = _guess(name, known) or "all names: `metrics` in the report.json of any run"
    return UnknownNameError(f"gate {gate.text!r}: there is no metric {{value}}", file=gate.source or None,
                            table="gates", key=gate.name or None, value=name, hint=hint)  # fmt: skip


def _guess(name: str, known: Iterable[str]) -> str | None:
    close = " or ".join(map(repr, difflib.get_close_matches(name, list(known), 3, 0.5)))
    return f"did you mean {close}?" if close else None


def _judge(gate: Gate, metrics: Mapping[str, Any]) -> GateResult:
    missing = [name for name in gate.names if name not in metrics]
    source = f"{gate.source}: {gate.name}" if gate.source and gate.name else gate.source or gate.name
    if missing:
        guess = _guess(missing[0], metrics)
        cause = f"there is no metric {missing[0]!r}" + (f"; {guess}" if guess else "")
        return GateResult(gate.text, False, {}, cause, source, unknown=True)
    values = {name: metrics[name] for name in gate.names}
    try:
        passed = bool(value_of(gate.root, _measured(metrics)))
        cause = "" if passed else ", ".join(f"{k} = {_show(v)}" for k, v in values.items()) or "always false"
    except _NotMeasured as missed:
        passed, cause = False, f"{missed} was not measured in this run"
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        passed, cause = False, f"cannot be computed: {error}"
    return GateResult(gate.text, passed, values, cause, source)


def _show(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _measured(values: Mapping[str, Any]) -> Any:
    """Access to values; _NotMeasured for one that is none."""

    def get(name: str) -> Any:
        value = values[name]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise _NotMeasured(name)
        return value

    return get
