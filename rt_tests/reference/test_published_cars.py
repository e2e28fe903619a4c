"""Cars against published figures, each with the tolerance that rt_tests/reference/published_cars.toml states; the page
docs/published_cars.md says what is simulated now.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import published_cars as published
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: one in every run of the tests, the others with the proofs
EVERY_DAY = "545i"
CARS = [pytest.param(n, marks=() if n == EVERY_DAY else pytest.mark.proof) for n in published.cars()]


@cache
def simulated(name: str) -> dict[str, float]:
    """Figures of a car, computed once."""
    return published.simulated(published.cars()[name])


@pytest.mark.parametrize("name", CARS)
def test_a_car_is_as_published_within_its_tolerance(name: str) -> None:
    car = published.cars()[name]
    for figure, given in car.figures.items():
        off = 100.0 * (simulated(name)[figure] / given["published"] - 1.0)
        assert abs(off) <= given["tolerance"], (figure, off)
        # what is off by more than 5 % is explained
        assert abs(off) <= published.EXPLAINED or car.why.get(figure), figure


@pytest.mark.parametrize("name", CARS)
def test_the_page_says_what_is_simulated(name: str) -> None:
    car = published.cars()[name]
    rows = re.findall(rf"^\| {re.escape(car.title)} \| ([^|]*) \| ([\d.]+) \|", published.PAGE.read_text(), re.M)
    assert {words for words, _ in rows} == set(published.WORDS.values())
    for figure, words in published.WORDS.items():
        assert float(dict(rows)[words]) == pytest.approx(simulated(name)[figure], rel=0.01), figure


def test_without_grip_and_losses_the_v8_is_too_quick() -> None:
    """The figure that the road cars were made for: the comparison fails with ideal gears and tyres that never slip."""
    car = published.cars()["545i"]
    ideal = published.accelerated(replace(car, powertrain="car_6hp26_rig"))
    given = car.figures["t_0_60_mph_s"]
    assert ideal["t_0_60_mph_s"] < given["published"] * (1.0 - 0.01 * given["tolerance"])
