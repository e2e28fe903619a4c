"""Random drivelines as in stiff_trains.py with hard stops between their shafts and to the housing.

Nothing goes beyond an end or is pulled by one, energy closes, an impact only takes."""

from __future__ import annotations

import numpy as np
import pytest
from stiff_trains import Books, H, books, stiff_train

from torqueloop.core.components import Fixed, HardStop
from torqueloop.core.simulate.offline import Simulation

BLOCKS, BLOCK, STEPS = 4, 15, 100
#: of the energy turned over
CLOSES = 1e-3
#: rad: how far beyond an end an angle may be (what the shift of the boxed problem leaves)
BEYOND = 2e-6
#: how hard a stop may pull, of the hardest it has pushed: springs around it are far stiffer than the step resolves
PULL = 1e-5


def run_stopped(seed: int, order: int) -> tuple[Books, float, float, int]:
    """Books, how far ends were passed, the largest pull of a stop over its push, and how often one was reached."""
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
    return books(result), beyond, pull, hits


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_stops_hold_do_not_pull_and_only_take(block: int, order: int) -> None:
    hits = fallbacks = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        found, beyond, pull, reached = run_stopped(seed, order)
        where = f"driveline {seed}, order {order}: {found.counters}"
        assert np.isfinite(found.stored).all(), where
        assert beyond <= BEYOND, f"{beyond} rad beyond an end, {where}"
        assert pull <= PULL, f"a stop pulls with {pull} of its push, {where}"
        assert found.residual <= CLOSES * found.turned_over, f"{found.residual} of {found.turned_over} J, {where}"
        assert found.given_back <= 1e-12 * found.turned_over, where
        hits += reached
        fallbacks += found.counters["fallbacks"]
    print(f"order {order}, block {block}: ends reached or left {hits} times, {fallbacks} fallbacks")
    assert hits > 3 * BLOCK
