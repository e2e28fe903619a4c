"""Conditions on signals: what is read, what is refused, and where they hold."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.conditions import Condition, parse_condition
from torqueloop.hil.common.levers import word_value

UNITS = {"car.v": "m/s", "engine.w": "rad/s", "driver.lever": "1", "TCU_Status.gear_actual": "1", "C4.p": "Pa"}


def resolved(text: str) -> Condition:
    return parse_condition(text).resolved(UNITS.__getitem__, word_value)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("car.v > 36 km/h", [("car.v", ">", 10.0)]),
        ("car.v>=-0.5", [("car.v", ">=", -0.5)]),
        ("C4.p < 5 bar and car.v == 0", [("C4.p", "<", 5e5), ("car.v", "==", 0.0)]),
        ("TCU_Status.gear_actual == 2 and car.v < 3", [("TCU_Status.gear_actual", "==", 2.0), ("car.v", "<", 3.0)]),
        ("driver.lever == R or driver.lever != D", [("driver.lever", "==", 1.0), ("driver.lever", "!=", 3.0)]),
        ("car.v > 1e1 m/s", [("car.v", ">", 10.0)]),
    ],
)  # fmt: skip
def test_is_read(text: str, terms: list[tuple[str, str, float]]) -> None:
    found = [(t.signal, t.operator, t.value) for t in resolved(text).terms]
    assert [f[:2] for f in found] == [t[:2] for t in terms]
    assert [f[2] for f in found] == pytest.approx([t[2] for t in terms])
    assert resolved(text).any_of == (" or " in text)


def test_rpm_is_pi_over_30() -> None:
    (term,) = resolved("engine.w > 3000 rpm").terms
    assert (term.signal, term.operator, term.unit, term.written) == ("engine.w", ">", "rad/s", "rpm")
    assert term.value == pytest.approx(100 * np.pi) and term.per_SI == pytest.approx(np.pi / 30)


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
        ("", "wanted: a comparison"),
        ("car.v", "column 1"),
        ("car.v > ", "wanted: a comparison"),
        ("car.v > 1 furlong", "'furlong' is not known"),
        ("car.v > 1 bar", "is in m/s, not in Pa"),
        ("car.v > 1 and engine.w < 2 or car.v < 3", "not mixed"),
        ("car.v > 1 xor car.v < 3", "'xor' is not known"),
        ("car.v > 1 km/h, car.v < 3", "wanted: `and`, `or`"),
        ("__import__('os') > 1", "wanted: a comparison"),
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


def test_where_it_holds() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    signals = {"car.v": x, "engine.w": x[::-1]}
    assert resolved("car.v > 0.5 and engine.w > 0.5").holds(signals).tolist() == [False, True, True, False]
    assert resolved("car.v > 2.5 or engine.w > 2.5").holds(signals).tolist() == [True, False, False, True]
    assert resolved("car.v == 2").holds(signals).tolist() == [False, False, True, False]
    assert resolved("car.v != 2").holds(signals).tolist() == [True, True, False, True]
