"""Points of a study: which values each run has. Every number follows from the study file: same file, same points.

seed of run k       numpy SeedSequence(study.seed, spawn_key=(1, k)); what is scattered is drawn from it, in order
sampled designs     SeedSequence(study.seed, spawn_key=(0,)); Sobol and Latin hypercube: scipy.stats.qmc, scrambled
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.record.mf4 import MissingExtraError
from torqueloop.hil.study.study_tables import RUNS_MAX, Scattered, StudyConfig, Varied

Array = NDArray[np.float64]
#: draws of a normal distribution until one is inside its limits
DRAWS = 10_000


@dataclass(frozen=True)
class Line:
    """One run before it was made: a line of the table."""

    run: int
    seed: int
    #: column -> value
    values: dict[str, float]


def seed_of(study: int, run: int) -> int:
    """Seed of a run: 63 bits, so that every table can hold it."""
    return int(np.random.SeedSequence(study, spawn_key=(1, run)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def line(config: StudyConfig, run: int, point: Sequence[float]) -> Line:
    """The line of a run at a point of the design."""
    seed = seed_of(config.study.seed, run)
    generator = np.random.default_rng(seed)
    values = dict(zip(config.vary, map(float, point), strict=True))
    return Line(run, seed, values | {name: drawn(name, s, generator) for name, s in config.scatter.items()})


def lines(config: StudyConfig) -> Iterator[Line]:
    """All lines of a design that does not depend on what comes out."""
    repeats = config.study.repeats
    for k, point in enumerate(points(config)):
        for repeat in range(repeats):
            yield line(config, k * repeats + repeat, point)


def count(config: StudyConfig) -> int:
    """Number of runs (of an optimiser: at most). RangeError where a grid is too large."""
    study = config.study
    if study.runs is not None:
        total = study.runs * study.repeats
    elif study.design == "grid":
        total = math.prod(len(axis(v)) for v in config.vary.values()) * study.repeats
    else:
        total = max((len(axis(v)) for v in config.vary.values()), default=1) * study.repeats
    if total > RUNS_MAX:
        raise RangeError("{value} runs", table="study", key="design", value=total, allowed=f"at most {RUNS_MAX}")
    return total


def points(config: StudyConfig) -> Iterator[Sequence[float]]:
    """Points of a grid, list or sampled design, in their order."""
    axes = list(config.vary.values())
    if config.study.design == "grid":
        yield from itertools.product(*(axis(v) for v in axes))
    elif config.study.design == "list":
        yield from zip(*(axis(v) for v in axes), strict=True) if axes else [()]
    else:
        assert config.study.runs is not None
        for row in unit_points(config.study.design, len(axes), config.study.runs, config.study.seed):
            yield [place(v, float(x)) for v, x in zip(axes, row, strict=True)]


def axis(varied: Varied) -> list[float]:
    """Values of a column that has values or steps."""
    if varied.values is not None:
        return list(varied.values)
    assert varied.steps is not None
    return [place(varied, k / (varied.steps - 1)) for k in range(varied.steps)]


def place(varied: Varied, x: float) -> float:
    """The value at x (0..1) of a column: of the range, or one of its values, all equally often."""
    if varied.values is not None:
        return varied.values[min(int(x * len(varied.values)), len(varied.values) - 1)]
    assert varied.low is not None and varied.high is not None
    if x <= 0.0 or x >= 1.0:  # the ends exactly
        return varied.low if x <= 0.0 else varied.high
    if varied.scale == "log":
        return float(varied.low * (varied.high / varied.low) ** x)
    return varied.low + (varied.high - varied.low) * x


def unit_place(varied: Varied) -> float:
    """Where an optimiser begins on a column, 0..1."""
    if varied.start is None:
        return 0.5
    assert varied.low is not None and varied.high is not None
    if varied.scale == "log":
        return math.log(varied.start / varied.low) / math.log(varied.high / varied.low)
    return (varied.start - varied.low) / (varied.high - varied.low)


def unit_points(design: str, dimensions: int, runs: int, seed: int) -> Array:
    """Points in the unit cube: runs x dimensions."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    if dimensions == 0:
        return np.empty((runs, 0))
    if design == "random":
        return generator.random((runs, dimensions))
    try:
        from scipy.stats import qmc
    except ImportError:
        raise MissingExtraError(f"design {design} needs scipy: pip install 'torqueloop[sweep]'") from None
    if design == "latin_hypercube":
        return np.asarray(qmc.LatinHypercube(dimensions, rng=generator).random(runs))
    # whole powers of two are balanced; the first `runs` of the next one are what was asked for
    power = math.ceil(math.log2(runs)) if runs > 1 else 0
    return np.asarray(qmc.Sobol(dimensions, rng=generator).random_base2(power))[:runs]


def drawn(name: str, scattered: Scattered, generator: np.random.Generator) -> float:
    """A number of a distribution."""
    low = -math.inf if scattered.low is None else scattered.low
    high = math.inf if scattered.high is None else scattered.high
    if scattered.mean is None or scattered.sd is None:
        return float(generator.uniform(low, high))
    for _ in range(DRAWS):
        value = float(generator.normal(scattered.mean, scattered.sd))
        if low <= value <= high:
            return value
    raise RangeError("{key}: no draw is between low and high", table="scatter", key=name, value=scattered.sd)
