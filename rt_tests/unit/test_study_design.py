"""Points of a study, and what is taken of its runs: numbers from elsewhere (closed forms, SciPy)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.signal import find_peaks
from scipy.stats import qmc, spearmanr

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.results.gates import compute
from torqueloop.hil.study.design import count, lines, place, seed_of, unit_place
from torqueloop.hil.study.measures import extremes, factor, taken
from torqueloop.hil.study.page import rank_correlation
from torqueloop.hil.study.study_tables import Metric, StudyConfig


def study(design: str = "grid", vary: Any = None, **more: Any) -> StudyConfig:
    tables = {k: more.pop(k) for k in ("scatter", "objective", "metrics", "set") if k in more}
    data = {"study": {"name": "s", "of": "x", "design": design, **more}, "vary": vary or {}, **tables}
    return validate(data, StudyConfig, "study.toml")


def values(config: StudyConfig) -> list[tuple[float, ...]]:
    return [tuple(line.values.values()) for line in lines(config)]


def test_a_grid_has_every_combination_once() -> None:
    b, c = {"low": 0, "high": 1, "steps": 3}, {"low": 1, "high": 100, "steps": 3, "scale": "log"}
    config = study(vary={"a": [1, 2.5], "b": b, "c": c})
    every = list(itertools.product([1, 2.5], [0, 0.5, 1], [1, 10, 100]))
    assert np.allclose(values(config), every, rtol=1e-12)
    assert count(config) == 18


def test_a_list_goes_side_by_side_and_must_be_of_one_length() -> None:
    assert values(study("list", {"a": [1, 2], "b": [3, 4]})) == [(1, 3), (2, 4)]
    with pytest.raises(ConfigError, match="not of one length"):
        study("list", {"a": [1, 2], "b": [3]})


@pytest.mark.parametrize("design", ["random", "sobol", "latin_hypercube"])
def test_sampled_points_lie_in_their_ranges_and_depend_on_the_seed_alone(design: str) -> None:
    vary = {"a": {"low": -1, "high": 3}, "b": {"low": 0.1, "high": 10, "scale": "log"}, "c": [1, 2, 3, 4]}
    found = np.array(values(study(design, vary, runs=64, seed=7)))
    assert np.array_equal(found, np.array(values(study(design, vary, runs=64, seed=7))))
    assert not np.array_equal(found, np.array(values(study(design, vary, runs=64, seed=8))))
    assert (found.min(axis=0) >= [-1, 0.1, 1]).all() and (found.max(axis=0) <= [3, 10, 4]).all()
    unit = np.column_stack([(found[:, 0] + 1) / 4, np.log(found[:, 1] / 0.1) / np.log(100)])
    if design == "latin_hypercube":
        assert all(sorted(np.floor(x * 64)) == list(range(64)) for x in unit.T), "one point in each layer"
        assert np.unique(found[:, 2], return_counts=True)[1].tolist() == [16] * 4
    if design == "sobol":
        rng = np.random.default_rng(0)
        assert qmc.discrepancy(unit) < 0.5 * np.mean([qmc.discrepancy(rng.random((64, 2))) for _ in range(20)])


@pytest.mark.parametrize("table", [{"low": 2.0, "high": 32.0}, {"low": 2.0, "high": 32.0, "scale": "log"},
                                   {"low": -3.0, "high": 1.0}])  # fmt: skip
def test_an_optimiser_begins_where_it_is_told(table: dict[str, Any]) -> None:
    """`unit_place` is the inverse of `place`; the middle is the arithmetic or the geometric mean."""
    low, high, log = table["low"], table["high"], "scale" in table
    for share in (0.0, 0.2, 0.75, 1.0):
        start = low * (high / low) ** share if log else low + share * (high - low)
        config = study("sobol", vary={"x": {**table, "start": start}}, runs=4)
        assert unit_place(config.vary["x"]) == pytest.approx(share)
        assert place(config.vary["x"], share) == pytest.approx(start)
    free = study("sobol", vary={"x": table}, runs=4).vary["x"]
    assert place(free, unit_place(free)) == pytest.approx(math.sqrt(low * high) if log else (low + high) / 2)


def test_a_list_of_values_has_each_equally_often() -> None:
    varied = study(vary={"x": [5.0, 6.0, 7.0]}).vary["x"]
    found = [place(varied, x) for x in (0.0, 0.33, 0.34, 0.66, 0.67, 1.0)]
    assert found == [5.0, 5.0, 6.0, 6.0, 7.0, 7.0]


def test_every_run_has_a_seed_of_its_own_and_draws_from_it() -> None:
    scatter = {"m": {"mean": 1500, "sd": 50, "low": 1400, "high": 1600}, "x": {"low": 0, "high": 1}}
    config = study(vary={"a": [1, 2]}, scatter=scatter, repeats=500)
    found = list(lines(config))
    assert len({line.seed for line in found}) == 1000 and found[3].seed == seed_of(0, 3)
    m, x = (np.array([line.values[k] for line in found]) for k in ("m", "x"))
    assert abs(m.mean() - 1500) < 5 and 1400 <= m.min() and m.max() <= 1600 and abs(x.mean() - 0.5) < 0.03
    # the run by itself is the run of the study
    generator = np.random.default_rng(found[7].seed)
    assert found[7].values["m"] == generator.normal(1500, 50) and found[7].values["x"] == generator.uniform(0, 1)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, "nothing differs"),
        ({"vary": {"a": {"low": 1, "high": 0}}}, "not above low"),
        ({"vary": {"a": {"low": 0, "high": 1}}}, "needs values or steps"),
        ({"vary": {"a": []}}, "at least one number"),
        ({"vary": {"a": {"low": 0, "high": 1, "scale": "log"}}}, "no logarithm"),
        ({"design": "sobol", "vary": {"a": [1]}}, "study.runs"),
        ({"vary": {"a": [1]}, "runs": 3}, "no study.runs with grid"),
        ({"vary": {"a": [1]}, "repeats": 3}, "the same run again"),
        ({"vary": {"a": [1]}, "scatter": {"a": {"low": 0, "high": 1}}}, "varied and scattered"),
        ({"design": "optimise", "runs": 3, "vary": {"a": {"low": 0, "high": 1}}}, "needs .objective"),
        ({"design": "optimise", "runs": 3, "vary": {"a": [1]}, "objective": {"minimise": "x"}}, "needs a range"),
        ({"vary": {"a": [1]}, "metrics": {"m": {"signal": "x", "take": "extremes"}}}, "prominence"),
        ({"vary": {"a": [1]}, "objective": {"minimise": "x", "maximise": "x"}}, "either minimise or maximise"),
    ],
)
def test_a_study_that_cannot_be_is_refused(data: dict, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        study(**data)
    assert "study.toml" in str(error.value)


def test_a_grid_too_large_is_refused_before_it_fills_the_memory() -> None:
    axis = {"low": 0, "high": 1, "steps": 1000}
    with pytest.raises(ConfigError, match="at most 1000000"):
        count(study(vary={"a": axis, "b": axis, "c": axis}))


@dataclass
class Run:
    time: np.ndarray
    values: dict[str, np.ndarray]
    units: dict[str, str] = field(default_factory=lambda: {"y": "rad/s"})

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]

    def __contains__(self, name: object) -> bool:
        return name in self.values


def test_what_is_taken_of_a_sine_is_what_calculus_says() -> None:
    t = np.linspace(0, 2, 4001)
    run = Run(t, {"y": 3 * np.sin(2 * np.pi * t) + 1})

    def of(take: str, **more: Any) -> float:
        return taken(run, Metric(signal="y", take=take, **more))

    assert of("max") == pytest.approx(4) and of("min") == pytest.approx(-2) and of("range") == pytest.approx(6)
    assert of("mean", until_s=1.0) == pytest.approx(1, abs=1e-3) and of("integral") == pytest.approx(2)
    assert of("std") == pytest.approx(3 / math.sqrt(2), rel=1e-3) and of("rms") == pytest.approx(
        math.sqrt(5.5), rel=1e-3
    )
    assert of("steepest") == pytest.approx(6 * np.pi, rel=1e-5)
    assert of("first", from_s=0.25) == pytest.approx(4) and of("last", until_s=0.75) == pytest.approx(-2)
    assert of("reverse") == pytest.approx(2) and of("reverse", until_s=0.5) == 0.0
    assert of("extremes", prominence=1.0) == 4
    assert math.isnan(of("max", from_s=5.0))
    assert factor(Metric(signal="y", unit="rpm"), run.units, "m") == pytest.approx(np.pi / 30)
    with pytest.raises(ConfigError, match="no unit of y"):
        factor(Metric(signal="y", unit="bar"), run.units, "m")


def test_extremes_are_those_scipy_finds() -> None:
    """Of a smooth random curve that begins and ends at its lowest: peaks of a prominence, and the valleys between."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        y = np.convolve(rng.normal(size=400), np.hanning(15), "same")
        y[0] = y[-1] = y.min() - 10.0
        for prominence in (0.5, 2.0, 5.0):
            peaks, _ = find_peaks(y, prominence=prominence)
            assert extremes(y, prominence) == 2 * len(peaks) - 1


def test_small_ripple_is_no_extreme_and_a_ramp_has_none() -> None:
    t = np.linspace(0, 1, 1000)
    assert extremes(t, 0.01) == 0 and extremes(t + 0.004 * np.sin(300 * t), 0.01) == 0
    assert extremes(np.zeros(5), 0.1) == 0 and extremes(np.sin(np.pi * t), 0.1) == 1
    assert extremes(-np.sin(2 * np.pi * t), 0.1) == 2


def test_rank_correlation_is_scipys() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 9, 200).astype(float)
    y = x**3 + rng.normal(0, 200, 200)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert rank_correlation(x, np.ones(200)) is None and rank_correlation(x[:3], y[:3]) is None


def test_expressions_are_numbers_of_names() -> None:
    assert compute(" 18.0 + 2 * max(a, b) - abs(c) / 4 ")({"a": 1, "b": 3, "c": -8}) == 22.0
    assert math.isnan(compute("1 / a")({"a": 0})) and math.isnan(compute("a + 1")({"a": None}))
    with pytest.raises(ConfigError, match="no value 'overlap'.*did you mean 'overlap_s'"):
        compute("overlap")({"overlap_s": 1.0})
    for wrong in ("", "1 +", "1 2", "a < b", "f(1)"):
        with pytest.raises(ConfigError):
            compute(wrong)
