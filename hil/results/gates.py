"""Gates: conditions on the metrics of a report that decide the exit status.

    missed == 0, compute_p99_us < 200
    energy_residual_rel <= 1e-6 and (overruns == 0 or clock == "virtual")
    5 < shifts + 1 <= 20, abs(coupling_speed_max_mps) < 0.05

A list of expressions separated by commas; each is a gate of its own. An expression compares sums, differences, products
and quotients of numbers and metric names; `and`, `or`, `not`, parentheses, abs(), min(), max(); strings in quotes;
true, false. The text is parsed here and never handed to Python's eval. A metric that was not measured (null) or is not
a number (NaN) fails every comparison with it, and says so.

Grammar:  list := or ("," or)*          or := and ("or" and)*          and := not ("and" not)*
          not  := "not" not | compare    compare := sum (op sum)*       op := < <= > >= == !=
          sum  := term (("+"|"-") term)*  term := unary (("*"|"/") unary)*  unary := "-" unary | atom
          atom := number | string | name | name "(" sum ("," sum)* ")" | "(" or ")"
"""

from __future__ import annotations

import difflib
import math
import operator as op
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torqueloop.core.describe.errors import TorqueloopError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<string>\"[^\"]*\"|'[^']*')|(?P<op><=|>=|==|!=|[<>()+\-*/,])|(?P<bad>\S))"
)
_ORDER = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "==": op.eq, "!=": op.ne}
_ARITHMETIC = {"+": op.add, "-": op.sub, "*": op.mul, "/": op.truediv}
_FUNCTIONS = {"abs": (1, 1), "min": (1, 99), "max": (1, 99)}
#: Deeper nesting than this is a mistake, and the parser is recursive.
_DEPTH_MAX = 50


class GateError(TorqueloopError):
    """A gate cannot be read, or names a metric that does not exist."""


@dataclass(frozen=True)
class _Node:
    kind: str  # number string name call neg not and or sum compare
    value: Any = None
    args: tuple[_Node, ...] = ()


@dataclass(frozen=True)
class Gate:
    """One parsed condition."""

    text: str
    root: _Node
    #: where it was asked for: "command line", or the file
    source: str = ""

    @property
    def names(self) -> list[str]:
        """Metrics it refers to."""
        found: dict[str, None] = {}

        def walk(node: _Node) -> None:
            if node.kind == "name":
                found[node.value] = None
            for arg in node.args:
                walk(arg)

        walk(self.root)
        return list(found)


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


# --- parsing --------------------------------------------------------------------------------------------------------


class _Parser:
    """Recursive descent over the tokens of one list of gates."""

    def __init__(self, text: str, source: str = "") -> None:
        self.text = text
        self.source = source
        self.tokens: list[tuple[str, str, int, int]] = []  # kind, text, begin, end
        pos = 0
        while (match := _TOKEN.match(text, pos)) is not None:
            kind = str(match.lastgroup)
            if kind == "bad":
                self.fail(f"unexpected {match.group(kind)!r}", match.start(kind))
            self.tokens.append((kind, match.group(kind), match.start(kind), match.end(kind)))
            pos = match.end()
        self.tokens.append(("end", "the end", len(text), len(text)))
        self.k = 0
        self.depth = 0

    def fail(self, what: str, at: int) -> None:
        source = f" ({self.source})" if self.source else ""
        raise GateError(f"gate {self.text!r}{source}: {what} at column {at + 1}\n  {self.text}\n  {' ' * at}^")

    @property
    def token(self) -> tuple[str, str, int, int]:
        return self.tokens[self.k]

    def take(self, *texts: str) -> str | None:
        """Consume the token if it is one of these operators or words."""
        kind, text, _, _ = self.token
        if kind in ("op", "name") and text in texts:
            self.k += 1
            return text
        return None

    def gates(self) -> list[tuple[str, _Node]]:
        found = []
        while self.token[0] != "end":
            begin = self.token[2]
            node = self.either()
            found.append((self.text[begin : self.tokens[self.k - 1][3]], node))
            if node.kind not in ("compare", "and", "or", "not"):
                self.fail(f"{found[-1][0]!r} is no condition; write for instance '{found[-1][0]} == 0'", begin)
            if self.token[0] != "end" and not self.take(","):
                self.fail(f"expected ',' or a comparison, found {self.token[1]!r}", self.token[2])
        if not found:
            # a gate that vanishes would pass
            self.fail("holds no condition", 0)
        return found

    def either(self) -> _Node:
        node = self.both()
        while self.take("or"):
            node = _Node("or", None, (node, self.both()))
        return node

    def both(self) -> _Node:
        node = self.negation()
        while self.take("and"):
            node = _Node("and", None, (node, self.negation()))
        return node

    def negation(self) -> _Node:
        if self.take("not"):
            self.enter()
            node = _Node("not", None, (self.negation(),))
            self.depth -= 1
            return node
        first = self.sum()
        operators, args = [], [first]
        while operator := self.take(*_ORDER):
            operators.append(operator)
            args.append(self.sum())
        return _Node("compare", tuple(operators), tuple(args)) if operators else first

    def sum(self) -> _Node:
        node = self.term()
        while operator := self.take("+", "-"):
            node = _Node("sum", operator, (node, self.term()))
        return node

    def term(self) -> _Node:
        node = self.unary()
        while operator := self.take("*", "/"):
            node = _Node("sum", operator, (node, self.unary()))
        return node

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            self.fail("nested too deeply", self.token[2])

    def unary(self) -> _Node:
        self.enter()
        node = _Node("neg", None, (self.unary(),)) if self.take("-") else self.atom()
        self.depth -= 1
        return node

    def atom(self) -> _Node:
        kind, text, at, _ = self.token
        if kind == "number":
            self.k += 1
            return _Node("number", float(text))
        if kind == "string":
            self.k += 1
            return _Node("string", text[1:-1])
        if kind == "name" and text not in ("and", "or", "not"):
            self.k += 1
            if text.lower() in ("true", "false"):
                return _Node("number", float(text.lower() == "true"))
            return self.call(text, at) if self.take("(") else _Node("name", text)
        if self.take("("):
            node = self.either()
            self.close()
            return node
        self.fail(f"expected a name, a number or '(', found {text!r}", at)
        raise AssertionError

    def call(self, name: str, at: int) -> _Node:
        if name not in _FUNCTIONS:
            self.fail(f"no function {name!r} (there are {', '.join(_FUNCTIONS)})", at)
        args = [self.sum()]
        while self.take(","):
            args.append(self.sum())
        self.close()
        least, most = _FUNCTIONS[name]
        if not least <= len(args) <= most:
            self.fail(f"{name}() takes {least} argument, not {len(args)}", at)
        return _Node("call", name, tuple(args))

    def close(self) -> None:
        if not self.take(")"):
            self.fail(f"expected ')', found {self.token[1]!r}", self.token[2])


def parse_gates(text: str | Iterable[str] | Mapping[str, str], source: str = "") -> list[Gate]:
    """Gates from one text, from several, or from a table {name: text}. Raises GateError with the column."""
    if isinstance(text, Mapping):
        named = text.items()
        return [gate for name, one in named for gate in parse_gates(one, f"{source}: {name}" if source else name)]
    texts = [text] if isinstance(text, str) else list(text)
    return [Gate(part, root, source) for one in texts for part, root in _Parser(one, source).gates()]


@dataclass(frozen=True)
class Expression:
    """A number computed from names: sums, products, abs(), min(), max()."""

    text: str
    root: _Node
    source: str = ""

    @property
    def names(self) -> list[str]:
        """Names in it."""
        return Gate(self.text, self.root).names

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Its value; GateError where a name is unknown, NaN where one was not measured or it divides by 0."""
        missing = [name for name in self.names if name not in values]
        if missing:
            source = f" ({self.source})" if self.source else ""
            raise GateError(f"{self.text!r}{source}: {_no_metric(missing[0], values)}".replace("metric", "value"))
        try:
            return float(_value(self.root, values))
        except (_NotMeasured, ZeroDivisionError, OverflowError):
            return math.nan


def compute(text: str, source: str = "") -> Expression:
    """Parse an expression that is a number. GateError with the column."""
    parser = _Parser(text, source)
    if parser.token[0] == "end":
        parser.fail("holds no number", 0)
    root = parser.sum()
    if parser.token[0] != "end":
        parser.fail(f"expected the end, found {parser.token[1]!r}", parser.token[2])
    return Expression(text.strip(), root, source)


# --- evaluating -----------------------------------------------------------------------------------------------------


class _NotMeasured(Exception):
    """A metric in a comparison has no value."""


def evaluate(gates: Iterable[Gate], metrics: Mapping[str, Any]) -> list[GateResult]:
    """Each gate on these metrics. A gate with a name that is no metric fails and says so."""
    return [_judge(gate, metrics) for gate in gates]


def unknown_name(gate: Gate, name: str, known: Iterable[str]) -> GateError:
    """The error for a name that is no metric: with the closest matches, or where all of them stand."""
    source = f" ({gate.source})" if gate.source else ""
    known = sorted(known)
    every = "" if _close(name, known) else "; all names: `metrics` in the report.json of any run"
    return GateError(f"gate {gate.text!r}{source}: {_no_metric(name, known)}{every}")


def _close(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), 3, 0.5)


def _no_metric(name: str, known: Iterable[str]) -> str:
    guess = " or ".join(repr(c) for c in _close(name, known))
    return f"there is no metric {name!r}" + (f"; did you mean {guess}?" if guess else "")


def _judge(gate: Gate, metrics: Mapping[str, Any]) -> GateResult:
    missing = [name for name in gate.names if name not in metrics]
    if missing:
        return GateResult(gate.text, False, {}, _no_metric(missing[0], metrics), gate.source, unknown=True)
    values = {name: metrics[name] for name in gate.names}
    try:
        passed = bool(_value(gate.root, metrics))
        cause = "" if passed else ", ".join(f"{k} = {_show(v)}" for k, v in values.items()) or "always false"
    except _NotMeasured as missing:
        passed, cause = False, f"{missing} was not measured in this run"
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        passed, cause = False, f"cannot be computed: {error}"
    return GateResult(gate.text, passed, values, cause, gate.source)


def _show(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _value(node: _Node, metrics: Mapping[str, Any]) -> Any:
    """Value of a node; comparisons between text and number raise TypeError as in Python, except == and !=."""
    if node.kind in ("number", "string"):
        return node.value
    if node.kind == "name":
        value = metrics[node.value]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise _NotMeasured(node.value)
        return value
    if node.kind == "and":
        return all(bool(_value(arg, metrics)) for arg in node.args)
    if node.kind == "or":
        return any(bool(_value(arg, metrics)) for arg in node.args)
    args = [_value(arg, metrics) for arg in node.args]
    if node.kind == "not":
        return not args[0]
    if node.kind == "neg":
        return -args[0]
    if node.kind == "call":
        return abs(args[0]) if node.value == "abs" else {"min": min, "max": max}[node.value](args)
    if node.kind == "sum":
        left, right = args
        if isinstance(left, str) or isinstance(right, str):
            raise TypeError("arithmetic with text")
        return _ARITHMETIC[node.value](left, right)
    return all(_compare(op, a, b) for op, a, b in zip(node.value, args, args[1:], strict=False))


def _compare(operator: str, left: Any, right: Any) -> bool:
    if operator not in ("==", "!=") and isinstance(left, str) != isinstance(right, str):
        raise TypeError(f"{left!r} and {right!r} have no order")
    return bool(_ORDER[operator](left, right))
