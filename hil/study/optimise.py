"""Points that an optimiser asks for, in batches. Equal answers lead to equal questions, so that an interrupted
study takes the same way again and is answered from its journal until it comes to something new.

All of them search the unit cube; hil/study/design.py says which values that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.record.mf4 import MissingExtraError
from torqueloop.hil.study.design import place, unit_place
from torqueloop.hil.study.study_tables import StudyConfig

#: points (values of the columns) -> what is to be small, infinite where a run does not count
Ask = Callable[[Sequence[Sequence[float]]], list[float]]
#: methods of scipy.optimize that search everywhere, and those that go on from one point
GLOBAL = ("differential_evolution", "dual_annealing", "direct")
LOCAL = ("Nelder-Mead", "Powell", "COBYQA")
METHODS = (*GLOBAL, *LOCAL, "optuna")
#: what a run that does not count is to an optimiser that computes with its answers
WORST = 1e30


class _Enough(Exception):
    """All runs are made."""


def optimise(config: StudyConfig, ask: Ask, at_a_time: int) -> None:
    """Ask for points until study.runs were asked for, or the optimiser is content."""
    assert config.objective is not None and config.study.runs is not None
    method = config.objective.method
    if method not in METHODS:
        raise RangeError("{key} = {value} is unknown", table="objective", key="method", value=method,
                         allowed=", ".join(METHODS))  # fmt: skip
    left = config.study.runs
    columns = list(config.vary.values())

    def cost(cube: Iterable[Sequence[float]]) -> list[float]:
        nonlocal left
        points = [[place(v, float(x)) for v, x in zip(columns, row, strict=True)] for row in cube][:left]
        left -= len(points)
        found = ask(points) if points else []
        if left <= 0:
            raise _Enough
        return [c if math.isfinite(c) else WORST for c in found]

    try:
        if method == "optuna":
            _optuna(config, cost, at_a_time)
        else:
            _scipy(config, method, cost)
    except _Enough:
        pass


def _scipy(config: StudyConfig, method: str, cost: Callable[[Iterable[Sequence[float]]], list[float]]) -> None:
    try:
        from scipy import optimize
    except ImportError:
        raise MissingExtraError("an optimiser needs scipy: pip install 'torqueloop[sweep]'") from None
    runs, n = int(config.study.runs or 0), len(config.vary)
    bounds, rng = [(0.0, 1.0)] * n, np.random.default_rng(np.random.SeedSequence(config.study.seed, spawn_key=(0,)))

    def one(x: Any) -> float:
        return cost([x])[0]

    if method == "differential_evolution":
        # a generation at a time: `workers` is given all its points at once
        size = max(5, min(15 * n, runs // 8))
        optimize.differential_evolution(
            one, bounds, maxiter=runs, popsize=max(1, size // n), init="sobol" if n * size > 8 else "latinhypercube",
            rng=rng, workers=lambda _, points: cost(points), updating="deferred", polish=False, tol=1e-6,
        )  # fmt: skip
    elif method == "dual_annealing":
        optimize.dual_annealing(one, bounds, maxfun=runs, rng=rng)
    elif method == "direct":
        optimize.direct(one, bounds, maxfun=runs, maxiter=runs)
    else:
        start = [unit_place(v) for v in config.vary.values()]
        optimize.minimize(one, start, method=method, bounds=bounds, options={"maxiter": runs})


def _optuna(config: StudyConfig, cost: Callable[[Iterable[Sequence[float]]], list[float]], at_a_time: int) -> None:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("method optuna needs Optuna: pip install 'torqueloop[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=config.study.seed)
    made = optuna.create_study(sampler=sampler)
    space: dict[str, optuna.distributions.BaseDistribution]
    space = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in config.vary}
    while True:
        trials = [made.ask(space) for _ in range(at_a_time)]
        for trial, value in zip(trials, cost([list(t.params.values()) for t in trials]), strict=True):
            made.tell(trial, value)


__all__ = ["METHODS", "optimise"]
