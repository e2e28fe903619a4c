"""Conditions on signals: what is read, what is refused, and where they hold."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.conditions import Watched
from torqueloop.hil.common.conditions import Condition, parse_condition
from torqueloop.hil.common.expression import bound, parse, scale_of_key, value_of
from torqueloop.hil.common.levers import word_value

UNITS = {
    "car.v": "m/s",
    "engine.w": "rad/s",
    "turbine.w": "rad/s",
    "driver.lever": "1",
    "TCU_Status.gear_actual": "1",
    "C4.p": "Pa",
}


NAMES = list(UNITS)


def unit(name: str) -> str:
    if name not in UNITS:
        raise ConfigError("there is no {value}", value=name)
    return UNITS[name]


def resolved(text: str) -> Condition:
    return parse_condition(text).resolved(unit, word_value)


@pytest.mark.parametrize(
    ("text", "at", "holds"),
    [
        ("car.v > 36 km/h", {"car.v": 10.0}, False), ("car.v > 36 km/h", {"car.v": 10.0000001}, True),
        ("car.v >= 36 km/h", {"car.v": 10.0}, True), ("car.v>=-0.5", {"car.v": -0.5}, True),
        ("C4.p < 5 bar and car.v == 0", {"C4.p": 499999.0}, True),
        ("C4.p < 5 bar and car.v == 0", {"C4.p": 499999.0, "car.v": 0.1}, False),
        ("driver.lever == R or driver.lever == 'D'", {"driver.lever": 3.0}, True),
        ("driver.lever == R or driver.lever == D", {"driver.lever": 2.0}, False),
        ("(car.v > 1 or engine.w > 1) and not C4.p > 1 bar", {"engine.w": 2.0, "C4.p": 1e5}, True),
        ("car.v > 1 or engine.w > 1 and not C4.p > 1 bar", {"car.v": 2.0, "C4.p": 2e5}, True),
        ("abs(car.v) < 0.01 km/h", {"car.v": -0.0027}, True), ("abs(car.v) < 0.01 km/h", {"car.v": -0.0028}, False),
        ("-36 km/h < car.v < 2 * 18 km/h", {"car.v": -9.9}, True), ("-36 km/h < car.v < 20", {"car.v": -10.1}, False),
        ("engine.w > turbine.w + 30 rpm", {"engine.w": 103.2, "turbine.w": 100.0}, True),
        ("engine.w > turbine.w + 30 rpm", {"engine.w": 103.1, "turbine.w": 100.0}, False),
        ("max(engine.w, turbine.w) / 2 >= 300 rpm", {"turbine.w": 62.84}, True),
        ("car.v / engine.w > 3", {"car.v": 1.0}, True),
    ],
)  # fmt: skip
def test_holds_as_written_in_the_tick_and_over_a_recording(text: str, at: dict[str, float], holds: bool) -> None:
    condition = resolved(text)
    values = {name: at.get(name, 0.0) for name in NAMES}
    assert condition.met(values) == holds
    assert condition.holds({n: np.array([x, x]) for n, x in values.items()}).tolist() == [holds, holds]
    assert Watched(len(NAMES), condition.code(NAMES.index)).holds(np.array(list(values.values()))) == holds


NUMBERS = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["car.v", "engine.w", "C4.p", "turbine.w"]), st.sampled_from(["0", "0.5", "2", "3e1"]),
        st.tuples(NUMBERS, st.sampled_from("+-*/"), NUMBERS).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        NUMBERS.map(lambda x: f"-{x}"), NUMBERS.map(lambda x: f"abs({x})"),
        st.tuples(st.sampled_from(["min", "max"]), NUMBERS, NUMBERS).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
    )
)  # fmt: skip
HELD = st.deferred(
    lambda: st.one_of(
        st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS).map(" ".join),
        st.tuples(HELD, st.sampled_from(["and", "or"]), HELD).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        HELD.map(lambda x: f"not {x}"),
    )
)


@settings(max_examples=300, deadline=None)
@example("car.v < engine.w / min(C4.p, turbine.w)", [0.0, -2.0, 0.5, -2.0])
@given(HELD, st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 2.0]), min_size=4, max_size=4))
def test_the_tick_evaluates_every_condition_as_python_does(text: str, values: list[float]) -> None:
    """Python's own evaluation, with numpy's division by 0, is the second answer; == within 1e-9 of the larger of 1 and
    the right side."""
    units = dict.fromkeys(["car.v", "engine.w", "C4.p", "turbine.w"], "1")
    try:
        condition = parse_condition(text).resolved(units.__getitem__, word_value)
    except ConfigError as error:
        assert "nested too deeply" in str(error) or "names no signal" in str(error)
        return
    python = re.sub(r"(?<![\w.])([\d.]+(?:e\d+)?)(?![\w.])", r"F(\1)", text)
    for k, name in enumerate(units):
        python = python.replace(name, f"x[{k}]")

    class F(float):
        """A float whose == and != have the tolerance, and whose / is that of IEEE 754."""

        def __eq__(self, other: object) -> bool:
            return abs(float(self) - float(other)) <= 1e-9 * max(1.0, abs(float(other)))  # type: ignore[arg-type]

        def __ne__(self, other: object) -> bool:
            return not self == other

        def __truediv__(self, other: float) -> F:
            with np.errstate(all="ignore"):
                return F(np.float64(self) / np.float64(other))

        def __add__(self, other: float) -> F:
            return F(float(self) + float(other))

        def __sub__(self, other: float) -> F:
            return F(float(self) - float(other))

        def __mul__(self, other: float) -> F:
            return F(float(self) * float(other))

        def __neg__(self) -> F:
            return F(-float(self))

        def __abs__(self) -> F:
            return F(abs(float(self)))

    def one_zero(a: F, b: F) -> None:
        """Which of 0 and -0 is the smaller one is not said by IEEE 754, and a division by it shows which was taken."""
        assume(a != b or math.copysign(1.0, float(a)) == math.copysign(1.0, float(b)))

    def least(a: F, b: F) -> F:
        one_zero(a, b)
        return F(np.fmin(float(a), float(b)))

    def most(a: F, b: F) -> F:
        one_zero(a, b)
        return F(np.fmax(float(a), float(b)))

    names = {"F": F, "x": [F(v) for v in values], "min": least, "max": most, "abs": abs}
    wanted = bool(eval(python, {"__builtins__": {}}, names))
    assert Watched(4, condition.code(list(units).index)).holds(np.array(values)) == wanted
    at = dict(zip(units, values, strict=True))
    assert condition.met(at) == wanted
    assert condition.holds({n: np.array([v, v]) for n, v in at.items()}).tolist() == [wanted, wanted]


@pytest.mark.parametrize(
    ("text", "signal", "value", "shown"),
    [
        ("engine.w > 3000 rpm", "engine.w", 200 * np.pi, "6000 rpm"),
        ("engine.w > 300", "engine.w", 200.0, "200 rad/s"),
        ("car.v <= 36 km/h and C4.p < 1 bar", "car.v", 12.0, "43.2 km/h"), ("C4.p < 100 kPa", "C4.p", 1.5e5, "150 kPa"),
        ("driver.lever == R", "driver.lever", 3.0, "3"),
    ],
)  # fmt: skip
def test_a_value_is_shown_in_the_unit_of_its_limit(text: str, signal: str, value: float, shown: str) -> None:
    (number,), unit = resolved(text).shown(signal, value, unit=UNITS[signal])
    assert number + unit == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no condition"),
        ("car.v", "'car.v' is no condition (column 1); allowed: a comparison"),
        ("car.v > ", "(column 8); allowed: a name, a number"),
        ("car.v > 1 furlong", "'furlong' is not known"),
        ("car.v > 1 bar", "is in m/s, not in Pa"),
        ("car.v == 2 or 3", "'3' is no condition (column 15)"),
        ("car.v = 3", "column 7); allowed: `==`"),
        ("car.v > engine.w", "car.v in m/s and engine.w in rad/s cannot be compared"),
        ("car.v > 1 xor car.v < 3", "'xor' is not known"),
        ("car.v > 1 km/h, car.v < 3", "cannot be read at ', car.v < 3' (column 15); allowed: the end"),
        ("__import__('os') > 1", "there is no function '__import__' (column 1); allowed: abs, min, max"),
        ("driver.lever == X", "allowed: a number, or for a lever P, R"),
        ("car.v == D", "is no value of car.v"),
        ("driver.lever > D", "words have no order"),
        ("car.v > 1e999", "not finite"),
    ],
)
def test_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolved(text)
    assert said in str(error.value)


#: nested too deeply in its last operands only
DEEP = "1 + (" * 200 + "2" + ")" * 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("car.v + 2 km/h and car.v > 1", "'car.v + 2 km/h' is no condition (column 1); allowed: a comparison, "
         "for instance 'car.v + 2 km/h == 0'"),
        ("car.v > 1 or not -abs(car.v)", "'-abs(car.v)' is no condition (column 18)"),
        ("car.v > 1 or 2 * (car.v - 3)", "'2 * (car.v - 3)' is no condition (column 14)"),
        ("not (car.v + 1) * 2 or car.v > 1", "'(car.v + 1) * 2' is no condition (column 5)"),
        ("car.v > 1 and 36", "'36' is no condition (column 15); allowed: a comparison, for instance 'car.v > 36'"),
        ("1 < foo(car.v)", "there is no function 'foo' (column 5); allowed: abs, min, max"),
        ("2 > abs(car.v, 3)", "abs() takes 1 argument, not 2 (column 5); allowed: 1 argument"),
        (f"car.v > {DEEP}", "nested too deeply (column "),
        ("car.v > 2 and driver.lever < D", "words have no order: driver.lever < D; allowed: == or !="),
        ("car.v > 2 and 'D' == driver.lever", "'D' is no word of a signal here (column 15); allowed: SIGNAL == WORD"),
        ("car.v * engine.w > 3 km/h", "it is not known in which unit 'car.v * engine.w > 3 km/h' is (column 20); "
         "allowed: a number without a unit"),
        ("1 < car.v + 2 bar", "car.v is in m/s, not in Pa (column 13); allowed: a unit of m/s"),
        ("C4.p > 1 and max(engine.w, 30 rpm, 5 s) > 2",
         "engine.w is in rad/s, not in s (column 36); allowed: a unit of rad/s"),
        ("car.v > 1 and abs(car.v) > 2 * engine.w",
         "abs(car.v) in m/s and 2 * engine.w in rad/s cannot be compared (column 15); allowed: one unit"),
        ("car.v > 1 and car.v < 1e999", "a number is not finite (column 23); allowed: a finite number"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_with_its_part_of_the_text_and_its_column(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolved(text)
    assert said in str(error.value)


def test_where_it_holds() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    signals = {"car.v": x, "engine.w": x[::-1]}
    assert resolved("car.v > 0.5 and engine.w > 0.5").holds(signals).tolist() == [False, True, True, False]
    assert resolved("car.v > 2.5 or engine.w > 2.5").holds(signals).tolist() == [True, False, False, True]
    assert resolved("car.v == 2").holds(signals).tolist() == [False, False, True, False]
    assert resolved("car.v != 2").holds(signals).tolist() == [True, True, False, True]


#: unit -> names and numbers with units, each with what one is in SI
WRITTEN = {
    "time": ([("a_s", 1.0), ("b_ms", 1e-3), ("c_us", 1e-6)], [("3 s", 3.0), ("250 ms", 0.25), ("7e3 us", 7e-3)]),
    "speed": ([("v_kmh", 1 / 3.6), ("u_mps", 1.0)], [("36 km/h", 10.0), ("2.5 m/s", 2.5)]),
    "rotation": ([("n_rpm", math.pi / 30), ("w_radps", 1.0)], [("300 rpm", 10 * math.pi), ("5 rad/s", 5.0)]),
}
#: (as it is written, the same in SI for Python)
Said = tuple[str, str]


def quantities(kind: str) -> st.SearchStrategy[Said]:
    """Expressions of one unit."""
    names, numbers = WRITTEN[kind]
    plain = [*((n, f"(x['{n}'] * {one!r})") for n, one in names), *((text, repr(si)) for text, si in numbers)]
    factor = st.sampled_from(["2", "0.5", "30", "(1 + 2)"])

    def longer(inner: st.SearchStrategy[Said]) -> st.SearchStrategy[Said]:
        two = st.tuples(inner, inner)
        return st.one_of(
            *(two.map(lambda p, s=sign: (f"({p[0][0]} {s} {p[1][0]})", f"({p[0][1]} {s} {p[1][1]})")) for sign in "+-"),
            *(two.map(lambda p, f=f: (f"{f}({p[0][0]}, {p[1][0]})", f"{f}({p[0][1]}, {p[1][1]})"))
              for f in ("min", "max")),
            *(inner.map(lambda p, f=f: (f"{f}({p[0]})", f"{f}({p[1]})")) for f in ("-", "abs")),
            st.tuples(inner, factor).map(lambda p: (f"{p[0][0]} * {p[1]}", f"{p[0][1]} * {p[1]}")),
            st.tuples(factor, inner).map(lambda p: (f"{p[0]} * {p[1][0]}", f"{p[0]} * {p[1][1]}")),
            st.tuples(inner, factor).map(lambda p: (f"({p[0][0]} / {p[1]})", f"({p[0][1]} / {p[1]})")),
            st.tuples(inner, factor, factor).map(
                lambda p: (f"{p[1]} * {p[0][0]} / {p[2]}", f"{p[1]} * {p[0][1]} / {p[2]}")
            ),
        )  # fmt: skip

    return st.recursive(st.sampled_from(plain), longer, max_leaves=5)


COMPARED = st.sampled_from(sorted(WRITTEN)).flatmap(
    lambda kind: st.tuples(quantities(kind), st.sampled_from("<>"), quantities(kind))
)


@settings(max_examples=120, deadline=None, report_multiple_bugs=False)
@given(COMPARED, st.lists(st.sampled_from([-7.0, 0.3, 40.0, 260.0]), min_size=7, max_size=7))
def test_quantities_of_one_unit_compare_as_their_numbers_in_si_do(
    compared: tuple[Said, str, Said], x: list[float]
) -> None:
    left, order, right = compared
    names = [name for known, _ in WRITTEN.values() for name, _ in known]
    at = dict(zip(names, x, strict=True))
    mine = {"x": at, "min": min, "max": max, "abs": abs, "__builtins__": {}}
    difference = eval(left[1], mine) - eval(right[1], mine)
    assume(abs(difference) > 1e-9)
    text = f"{left[0]} {order} {right[0]}"
    (root,) = parse(text)
    assert value_of(bound(text, root, scale_of_key), at.__getitem__) == ((difference < 0) == (order == "<"))


def test_a_quotient_of_quantities_counts_in_si() -> None:
    for text, value in (("6 s / 3 ms", 2000.0), ("12 / 3 s", 4.0), ("2 / 3 ms * 6 ms", 4.0), ("36 km/h * 5 ms", 0.05)):
        (root,) = parse(text, "sum")
        assert value_of(bound(text, root, scale_of_key), lambda name: name) == pytest.approx(value), text


@pytest.mark.parametrize("number", [-1000.0, -0.5, 0.0, 0.5, 1000.0])
def test_equal_means_a_billionth_of_the_larger_of_1_and_the_amount_of_the_number(number: float) -> None:
    within = 1e-9 * max(1.0, abs(number))
    near, far = number + 0.9 * within, number - 1.1 * within
    for operator, held in (("==", [True, False]), ("!=", [False, True])):
        condition = parse_condition(f"car.v {operator} {number}").resolved(UNITS.__getitem__, word_value)
        assert [condition.met({"car.v": x}) for x in (near, far)] == held
        assert list(condition.holds({"car.v": np.array([near, far])})) == held
        # a signal on the right side: its samples have an amount each
        condition = parse_condition(f"{number} {operator} car.v").resolved(UNITS.__getitem__, word_value)
        assert list(condition.holds({"car.v": np.array([near, far])})) == held
