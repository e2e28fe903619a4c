"""The one language of gates, conditions, checks, formulas of studies and tests; docs/expressions.md. A text is parsed
here and never handed to Python's eval.

    car.v > 60 km/h and (gear == 2 or abs(engine.w - turbine.w) < 50 rpm)
    missed == 0, compute_p99_us < 0.2 ms
    18.0 + overlap_s / 2
"""

from __future__ import annotations

import math
import operator as op
import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from fractions import Fraction
from functools import cache
from typing import Any, cast

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.units import SYMBOLS, UNITS, column_unit, scaled
from torqueloop.cython_kernels.tick.conditions import DEPTH, UNARY

#: SI unit, and how many of it one is
Scale = tuple[str, Fraction | float]

#: units as they may stand behind a number: as keys have them ("rpm"), as they are printed ("rad/s"), and these
UNITS_WRITTEN: dict[str, Scale] = {
    **{key: (SYMBOLS[dimension], factor) for key, (dimension, factor) in UNITS.items()},
    **{symbol: (symbol, Fraction(1)) for symbol in SYMBOLS.values() if symbol != "1"},
    "km/h": ("m/s", Fraction(10, 36)), "1/min": ("rad/s", UNITS["rpm"][1]), "%": ("1", Fraction(1, 100)),
    "us": ("s", Fraction(1, 10**6)), "ns": ("s", Fraction(1, 10**9)), "kg.m2": ("kg.m2", Fraction(1)),
}  # fmt: skip
_GRAMMAR = r"""
gates: either ("," either)* ","?
?either: both ("or" both)*
?both: negated ("and" negated)*
?negated: "not" negated -> opposite | comparison
?comparison: sum (ORDER sum)*
?sum: product (SIGN product)*
?product: signed (POINT signed)*
?signed: SIGN signed | _atom
_atom: QUANTITY | TEXT | NAME | call | group
!call: NAME "(" sum ("," sum)* ")"
!group: "(" either ")"
other: OTHER
ORDER: /<=|>=|==|!=|<|>/
SIGN: /[+-]/
POINT: /[*\/]/
QUANTITY: /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(\s*(UNITS)(?![\w.(]))?/
TEXT: /"[^"]*"|'[^']*'/
NAME: /[A-Za-z_][\w.\[\]]*/
OTHER.-1: /./s
%ignore /\s+/
"""
#: what the parser expects, in words; those that only continue an expression come last
_EXPECTED = {
    "NAME": "a name", "QUANTITY": "a number", "TEXT": "a text in quotes", "NOT": "`not`", "LPAR": "`(`", "RPAR": "`)`",
    "ORDER": "a comparison (<, <=, >, >=, ==, !=)", "POINT": "an operator (+, -, *, /)", "AND": "`and`", "OR": "`or`",
    "COMMA": "`,`", "$END": "the end",
}  # fmt: skip
#: functions, and the most operands they take
FUNCTIONS = {"abs": 1, "min": 99, "max": 99}
#: deeper nesting than this is a mistake; half of what the stack of the tick holds
_DEPTH_MAX = DEPTH // 2 - 2
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
#: kinds of nodes that hold or do not
CONDITIONS = ("compare", "and", "or", "not")


@dataclass(frozen=True)
class Node:
    """A part of an expression."""

    #: number, text, name, compare, and, or, not, sum, product, negative, abs, min, max
    kind: str
    #: of a number and its unit, a text, a name; operators of compare, sum, product
    value: Any = None
    args: tuple[Node, ...] = ()
    #: unit behind a number, as it was written
    unit: str = ""
    #: columns in the text
    at: int = field(default=0, compare=False)
    until: int = field(default=0, compare=False)
    depth: int = field(default=1, compare=False)

    def walk(self) -> Iterator[Node]:
        """This part and all that it consists of."""
        yield self
        for arg in self.args:
            yield from arg.walk()

    @property
    def names(self) -> list[str]:
        """Names in it, each once."""
        return list(dict.fromkeys(str(node.value) for node in self.walk() if node.kind == "name"))


# --- reading --------------------------------------------------------------------------------------------------------


class _Mistake(Exception):
    """What is wrong, where, and what is allowed there."""

    def __init__(self, problem: str, at: int, allowed: str) -> None:
        super().__init__(problem, at, allowed)
        self.problem, self.at, self.allowed = problem, at, allowed


def parse(text: str, start: str = "either") -> list[Node]:
    """The expressions of a text. start: "gates" for conditions with commas between them, "either" for one condition,
    "sum" for a number. ConfigError that says where it cannot be read and what was expected there."""
    from lark import UnexpectedToken

    what = "number" if start == "sum" else "condition"
    try:
        if not text.strip():
            raise _Mistake(f"holds no {what}", 0, f"a {what}")
        found = _parser().parse(text, start=start)
        roots: list[Node] = found if start == "gates" else [found]
        for root in roots:
            _check(root, text, start)
    except UnexpectedToken as error:
        raise _unreadable(text, *_unexpected(text, error)) from None
    except _Mistake as error:
        raise _unreadable(text, error.problem, error.at, error.allowed) from None
    return roots


def parts(text: str) -> list[str]:
    """The texts between the commas of a list of conditions that can be read."""
    found, begin, depth = [], 0, 0
    for token in _parser().lex(text):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if token.type == "COMMA" and depth == 0:
            found.append(text[begin : token.start_pos].strip())
            begin = token.end_pos
    return [*found, *filter(None, [text[begin:].strip()])]


def _unreadable(text: str, problem: str, at: int, allowed: str) -> ConfigError:
    return ConfigError(f"{{key}} = {{value}}: {problem} (column {at + 1})", value=text, allowed=allowed)


def _unexpected(text: str, error: Any) -> tuple[str, int, str]:
    at = len(text) if error.token.type == "$END" else error.pos_in_stream
    wanted = set(error.accepts or error.expected)
    # a parenthesis behind a name would make a function of it
    words = [word for name, word in _EXPECTED.items() if name in wanted and (name != "LPAR" or "NAME" in wanted)]
    before = text[:at].rstrip()
    if error.token.type == "NAME" and before and (before[-1].isdigit() or before[-1] == "."):
        return f"unit {str(error.token)!r} is not known", at, "such as km/h, rpm, bar, Nm, s, ms, us, %"
    if error.token.type == "OTHER" and str(error.token) == "=" and "ORDER" in wanted:
        return "cannot be read at '='", at, "`==`"
    shown = text[at : at + 20] or "the end"
    return f"cannot be read at {shown!r}", at, ", ".join(words) or "the end"


def _check(root: Node, text: str, start: str) -> None:
    """A condition where one is asked for, and no number in its place."""
    wanted = [root] if start != "sum" else []
    wanted += [arg for node in root.walk() if node.kind in ("and", "or", "not") for arg in node.args]
    for node in wanted:
        if node.kind not in CONDITIONS:
            shown = text[node.at : node.until]
            example = f"'car.v > {shown}'" if node.kind == "number" else f"'{shown} == 0'"
            raise _Mistake(f"{shown!r} is no condition", node.at, f"a comparison, for instance {example}")


@cache
def _parser() -> Any:
    """The parser of the grammar, made when it is first used."""
    from lark import Lark, Token, Transformer

    class Nodes(Transformer[Any, Any]):
        """Makes nodes while the text is read."""

        def NAME(self, token: Token) -> Node:
            if token.lower() in ("true", "false"):
                return _node(token, "number", float(token.lower() == "true"))
            return _node(token, "name", str(token))

        def TEXT(self, token: Token) -> Node:
            return _node(token, "text", token[1:-1])

        def QUANTITY(self, token: Token) -> Node:
            digits = _NUMBER.match(token)
            assert digits is not None
            if not math.isfinite(number := float(digits[0])):
                raise _Mistake("a number is not finite", int(token.start_pos or 0), "a finite number")
            return replace(_node(token, "number", number), unit=token[digits.end() :].strip())

        def call(self, found: list[Any]) -> Node:
            name, args = found[0], found[2:-1:2]
            if (most := FUNCTIONS.get(name.value)) is None:
                raise _Mistake(f"there is no function {name.value!r}", name.at, ", ".join(FUNCTIONS))
            if len(args) > most:
                raise _Mistake(f"{name.value}() takes {most} argument, not {len(args)}", name.at, f"{most} argument")
            return replace(_joined(name.value, args, at=name.at), until=found[-1].end_pos)

        def group(self, found: list[Any]) -> Node:
            """With its parentheses where it is shown."""
            first, inner, last = found
            return cast("Node", replace(inner, at=first.start_pos, until=last.end_pos))

        def signed(self, found: list[Any]) -> Node:
            sign, arg = found
            return arg if sign == "+" else _joined("negative", [arg], at=sign.start_pos)

        def either(self, found: list[Any]) -> Node:
            return _joined("or", found)

        def both(self, found: list[Any]) -> Node:
            return _joined("and", found)

        def opposite(self, found: list[Any]) -> Node:
            return _joined("not", found)

        def comparison(self, found: list[Any]) -> Node:
            return _joined("compare", found[::2], tuple(map(str, found[1::2])))

        def sum(self, found: list[Any]) -> Node:
            return _joined("sum", found[::2], tuple(map(str, found[1::2])))

        def product(self, found: list[Any]) -> Node:
            return _joined("product", found[::2], tuple(map(str, found[1::2])))

        def gates(self, found: list[Any]) -> list[Node]:
            return found

    units = "|".join(sorted((re.escape(u).replace("/", r"\/") for u in UNITS_WRITTEN), key=len, reverse=True))
    return Lark(_GRAMMAR.replace("UNITS", units), parser="lalr", lexer="basic", transformer=Nodes(),
                start=["gates", "either", "sum", "other"])  # fmt: skip


def _node(token: Any, kind: str, value: Any) -> Node:
    return Node(kind, value, at=token.start_pos, until=token.end_pos)


def _joined(kind: str, args: list[Node], value: Any = None, at: int | None = None) -> Node:
    begin, depth = args[0].at if at is None else at, 1 + max(arg.depth for arg in args)
    if depth > _DEPTH_MAX:
        raise _Mistake("nested too deeply", begin, f"{_DEPTH_MAX} levels")
    return Node(kind, value, tuple(args), at=begin, until=args[-1].until, depth=depth)


# --- units ----------------------------------------------------------------------------------------------------------

#: the scale of a part whose unit nobody knows
UNKNOWN: Scale = ("?", Fraction(1))


def scale_of_key(name: str) -> Scale:
    """The unit at the end of a name: of a metric "compute_p99_us", of a column "overlap_s"."""
    for unit in ("us", "ns"):
        if name.endswith(f"_{unit}"):
            return UNITS_WRITTEN[unit]
    dimension, factor = column_unit(name)
    return UNKNOWN if (dimension, factor) == ("1", 1) else (SYMBOLS[dimension], factor)


def bound(
    text: str, root: Node, scale_of: Callable[[str], Scale], word: Callable[[str, str], float] | None = None
) -> Node:
    """With every name known, and every quantity as a plain number on the scale of what it is compared with or added
    to. scale_of(name): its unit, or an error; word(name, text): the number of a word of its value table, or an error;
    None: texts are compared as such. ConfigError where units do not fit."""

    def known(name: str) -> bool:
        try:
            scale_of(name)
        except TorqueloopError:
            return False
        return True

    def worded(node: Node) -> Node:
        """A comparison with a word, the word as its number."""
        if word is None or node.args[0].kind != "name" or len(node.args) != 2:
            return node
        left, right = node.args
        if right.kind not in ("name", "text") or (right.kind == "name" and known(str(right.value))):
            return node
        scale_of(str(left.value))
        number = word(str(left.value), str(right.value))
        if node.value not in (("==",), ("!=",)):
            raise ConfigError(f"{{key}}: words have no order: {text[node.at : node.until]}", value=text,
                              allowed="== or !=")  # fmt: skip
        return replace(node, args=(left, replace(right, kind="number", value=number)))

    def fitted(node: Node) -> tuple[Node, Scale | None]:
        if node.kind == "name":
            return node, scale_of(str(node.value))
        if node.kind == "text" and word is not None:
            raise _unreadable(text, f"{node.value!r} is no word of a signal here", node.at, "SIGNAL == WORD")
        if node.kind in ("number", "text"):
            return node, UNITS_WRITTEN[node.unit] if node.unit else None
        done = [fitted(arg) for arg in (worded(node) if node.kind == "compare" else node).args]
        scales = [scale for _, scale in done if scale is not None]
        if node.kind in ("compare", "sum", "min", "max"):
            return alike(node, done)
        if node.kind == "product":
            k = next((k for k, (_, scale) in enumerate(done) if scale is not None), 0)
            if len(scales) == 1 and (k == 0 or node.value[k - 1] == "*"):
                return replace(node, args=tuple(arg for arg, _ in done)), scales[0]
            # quantities among factors with units count in SI; what comes out has a unit that nobody knows
            args = tuple(times(arg, s[1]) if s and not arg.names else arg for arg, s in done)
            return replace(node, args=args), UNKNOWN if scales else None
        keeps = scales[0] if node.kind in ("abs", "negative") and scales else None
        return replace(node, args=tuple(arg for arg, _ in done)), keeps

    def alike(node: Node, done: list[tuple[Node, Scale | None]]) -> tuple[Node, Scale | None]:
        """Arguments on one scale: that of the first that has names, else SI."""
        scales = [scale for arg, scale in done if scale is not None and arg.names]
        written = [(arg, scale) for arg, scale in done if scale is not None and not arg.names]
        target = scales[0] if scales else (written[0][1][0], Fraction(1)) if written else None
        for arg, scale in written:
            assert target is not None
            for other in (target, *scales):
                if other == UNKNOWN:
                    problem = f"it is not known in which unit {text[node.at : node.until]!r} is"
                    raise _unreadable(text, problem, arg.at, "a number without a unit")
                if scale[0] != other[0]:
                    of = next((a for a, s in done if s == other), node)
                    problem = f"{text[of.at : of.until]} is in {other[0]}, not in {scale[0]}"
                    raise _unreadable(text, problem, arg.at, f"a unit of {other[0]}")
        same = all(scale[0] == scales[0][0] for scale in scales)
        if not same and node.kind == "compare" and UNKNOWN not in scales:
            several = [f"{text[a.at : a.until]} in {s[0]}" for a, s in done if s is not None]
            raise _unreadable(text, f"{' and '.join(several)} cannot be compared", node.at, "one unit")
        if target is None or not same:
            return replace(node, args=tuple(arg for arg, _ in done)), UNKNOWN if scales else None
        args = tuple(arg if scale is None else times(arg, scale[1] / target[1]) for arg, scale in done)
        return replace(node, args=args), None if node.kind == "compare" else target

    root, scale = fitted(root)
    return times(root, scale[1]) if scale is not None and not root.names else root


def times(node: Node, ratio: Fraction | float) -> Node:
    """A part that is given on one scale, on another one of the same unit, of which `ratio` makes one."""
    if ratio == 1:
        return node
    if node.kind == "number":
        return replace(node, value=float(scaled(node.value, ratio)))
    if node.kind == "negative":
        return replace(node, args=(times(node.args[0], ratio),))
    return Node("product", ("*",), (node, Node("number", float(ratio))))


# --- evaluating -----------------------------------------------------------------------------------------------------


def value_of(node: Node, get: Callable[[str], Any], within: float = 0.0) -> Any:
    """Value of a node whose names have these values: numbers, texts, or arrays, sample by sample. within: part of the
    larger of 1 and a number within which two are equal. What decides `and` and `or` of numbers ends them."""
    if node.kind in ("number", "text"):
        return node.value
    if node.kind == "name":
        return get(str(node.value))
    if node.kind in ("and", "or"):
        found: Any = node.kind == "and"
        for arg in node.args:
            held = value_of(arg, get, within)
            found = (found & held) if node.kind == "and" else (found | held)
            if isinstance(found, bool) and found is (node.kind == "or"):
                break
        return found
    args = [value_of(arg, get, within) for arg in node.args]
    if node.kind == "compare":
        found = True
        for operator, left, right in zip(node.value, args, args[1:], strict=False):
            found = found & _compared(operator, left, right, within)
        return found
    if any(isinstance(arg, str) for arg in args):
        raise TypeError("arithmetic with text")
    if node.kind == "not":
        return not args[0] if isinstance(args[0], bool) else ~args[0]
    if node.kind == "negative":
        return -args[0]
    if node.kind == "abs":
        return abs(args[0])
    if node.kind in ("min", "max"):
        if within:
            return (np.fmin if node.kind == "min" else np.fmax).reduce(np.broadcast_arrays(*args))
        return min(args) if node.kind == "min" else max(args)
    found = args[0]
    for operator, arg in zip(node.value, args[1:], strict=True):
        # signals divide as the tick does: by 0 to infinity
        found = np.divide(found, arg) if operator == "/" and within else _ARITHMETIC[operator](found, arg)
    return found


_ARITHMETIC = {"+": op.add, "-": op.sub, "*": op.mul, "/": op.truediv}
_ORDER = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "==": op.eq, "!=": op.ne}


def _compared(operator: str, left: Any, right: Any, within: float) -> Any:
    if isinstance(left, str) != isinstance(right, str) and operator not in ("==", "!="):
        raise TypeError(f"{left!r} and {right!r} have no order")
    if within and operator in ("==", "!="):
        size = abs(right)
        most = np.maximum(1.0, size) if isinstance(size, np.ndarray) else max(1.0, size)
        found = (abs(left - right) <= within * most) == (operator == "==")
    else:
        found = _ORDER[operator](left, right)
    return found if isinstance(found, np.ndarray) else bool(found)


def code_of(node: Node, slot: Callable[[str], int]) -> tuple[tuple[str, int, float], ...]:
    """A condition as the tick evaluates it (cython_kernels/tick/conditions.pyx)."""

    def operations(node: Node) -> Iterator[tuple[str, int, float]]:
        if node.kind == "number":
            yield "number", 0, float(node.value)
        elif node.kind == "name":
            yield "signal", slot(str(node.value)), 0.0
        elif node.kind == "compare":
            for k, operator in enumerate(node.value):
                yield from operations(node.args[k])
                yield from operations(node.args[k + 1])
                yield operator, 0, 0.0
                if k:
                    yield "and", 0, 0.0
        else:
            joints = node.value or (node.kind,) * (len(node.args) - 1)
            yield from operations(node.args[0])
            for joint, arg in zip(joints, node.args[1:], strict=True):
                yield from operations(arg)
                yield joint, 0, 0.0
            if node.kind in UNARY:
                yield node.kind, 0, 0.0

    return tuple(operations(node))
