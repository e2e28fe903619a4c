"""Random drivelines as in stiff_trains.py with hard stops between their shafts and to the housing.

    python rt_tests/property/stopped_trains.py [--count 500] [--first 0]

runs that many different ones with both orders and names those that break one of the bounds the property test holds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from stiff_trains import Books, H, books, stiff_train

from torqueloop.core.components import Fixed, HardStop
from torqueloop.core.simulate.offline import Simulation

STEPS = 100
#: of the energy turned over
CLOSES = 1e-3
#: rad: how far beyond an end an angle may be (what the shift of the boxed problem leaves)
BEYOND = 2e-6
#: how hard a stop may pull, of the hardest it has pushed: springs around it are far stiffer than the step resolves
PULL = 1e-5


@dataclass(frozen=True)
class Stopped:
    """One run."""

    books: Books
    #: how far ends were passed, rad
    beyond: float
    #: the largest pull of a stop over its push
    pull: float
    #: how often an end was reached or left
    hits: int

    def broken(self) -> list[str]:
        """What it does not hold."""
        found, turned = self.books, self.books.turned_over
        broken = {
            "not finite": not np.isfinite(found.stored).all(),
            f"{self.beyond:.3g} rad beyond an end": not self.beyond <= BEYOND,
            f"a stop pulls with {self.pull:.3g} of its push": not self.pull <= PULL,
            f"{found.residual:.3g} of {turned:.3g} J": not found.residual <= CLOSES * turned,
            f"{found.given_back:.3g} J of heat given back": not found.given_back <= 1e-12 * turned,
            f"negative heat: {found.counters['negative_heat']}": found.counters["negative_heat"] > 0,
        }
        return [what for what, is_so in broken.items() if is_so]


def run_stopped(seed: int, order: int) -> Stopped:
    """One random driveline."""
    d, inputs = stiff_train(seed, order)
    g = np.random.default_rng(1000 + seed)
    shafts = sorted(name for name in d.components if name.startswith("J"))
    ends: dict[str, tuple[float, float]] = {}
    for k, shaft in enumerate(shafts):
        if g.random() < 0.5:
            continue
        name = f"s{k}"
        ends[name] = (-float(10.0 ** g.uniform(-3.0, 0.0)), float(10.0 ** g.uniform(-3.0, 0.0)))
        other = f"{shafts[k - 1]}.flange_b"
        if k == 0 or g.random() < 0.5:
            other = f"h{k}.flange"
            d.add(f"h{k}", Fixed())
        d.add(name, HardStop(phi_min=ends[name][0], phi_max=ends[name][1]))
        d.connect(other, f"{name}.flange_a")
        d.connect(f"{shaft}.flange_a", f"{name}.flange_b")
    result = Simulation(d, h=H, kernel="generic").run(STEPS * H, inputs=inputs)
    beyond = pull = 0.0
    hits = 0
    for name, (lo, hi) in ends.items():
        phi, at = result[f"{name}.phi_rel"], result[f"{name}.stopped"]
        beyond = max(beyond, float(phi.max() - hi), float(lo - phi.min()))
        tau = result[f"{name}.tau"]
        assert np.all(tau[at == 0.0] == 0.0)
        pull = max(pull, float((tau * np.sign(at)).max()) / (1e-3 + float(np.abs(tau).max())))
        hits += int(np.count_nonzero(np.diff(at)))
    return Stopped(books(result), beyond, pull, hits)


def main() -> None:
    """The two orders."""
    parser = argparse.ArgumentParser(description="random drivelines with hard stops")
    parser.add_argument("--count", type=int, default=500, help="how many different ones")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    for order in (2, 4):
        runs = {seed: run_stopped(seed, order) for seed in seeds}
        for seed, run in runs.items():
            if run.broken():
                print(f"order {order}, driveline {seed}: {'; '.join(run.broken())}")
        every = list(runs.values())
        print(
            f"order {order}: {len(every)} drivelines, {sum(bool(r.broken()) for r in every)} break a bound; "
            f"ends reached or left {sum(r.hits for r in every)} times; "
            f"energy closes to {max(r.books.residual / r.books.turned_over for r in every):.1e} at worst; "
            f"{max(r.beyond for r in every):.1e} rad beyond an end, {max(r.pull for r in every):.1e} of a push pulled; "
            f"{sum(r.books.counters['fallbacks'] for r in every)} of {len(every) * STEPS} steps fell back"
        )


if __name__ == "__main__":
    main()
