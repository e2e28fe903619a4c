"""Random linear networks of bodies, springs and dampers: as a driveline, and as dense equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from dense_network import Network

from torqueloop.core.components import ConstantTorque, Damper, Inertia, SpringDamper
from torqueloop.core.describe.driveline import Driveline

Array = np.ndarray


@dataclass(frozen=True)
class Drawn:
    """One network: element s0, s1 ... lies between the nodes of its pair, shaft Jk where a node has inertia."""

    driveline: Driveline
    network: Network
    pairs: list[tuple[int, int]]
    heavy: Array


def random_network(seed: int, draw: Callable[[np.random.Generator], SpringDamper], damper: float = 0.0) -> Drawn:
    """Four to eight nodes, some without inertia, some of those with a constant torque. damper: one more between
    the first two, N.m.s/rad."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 9))
    # a tree, some springs more, and such to two bodies, so that no spring hangs loose
    pairs = [(int(rng.integers(0, k)), k) for k in range(1, count)]
    for _ in range(count // 2):
        first, second = sorted(int(i) for i in rng.choice(count, 2, replace=False))
        pairs.append((first, second))
    heavy = rng.random(count) < 0.4
    heavy[:2] = True
    pairs += [(body, k) for k in range(count) if not heavy[k] for body in (0, 1)]
    d = Driveline("network", order=4)
    M, K, D, f = np.zeros((count, count)), np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    at: list[list[str]] = [[] for _ in range(count)]
    z, u = np.zeros(count), np.zeros(count)
    for k in range(count):
        if heavy[k]:
            M[k, k], z[k], u[k] = rng.uniform(0.5, 2.0), rng.uniform(-0.2, 0.2), rng.uniform(-1, 1)
            d.add(f"J{k}", Inertia(J=M[k, k], phi0=z[k], w0=u[k]))
            at[k].append(f"J{k}.flange_a")
        elif rng.random() < 0.4:
            f[k] = rng.uniform(-5, 5)
            d.add(f"T{k}", ConstantTorque(tau_constant=f[k]))
            at[k].append(f"T{k}.flange")
    for n, (i, j) in enumerate(pairs):
        name, part = f"s{n}", draw(rng)
        d.add(name, part)
        at[i].append(f"{name}.flange_a")
        at[j].append(f"{name}.flange_b")
        row = np.zeros(count)
        row[j], row[i] = 1.0, -1.0
        K += part.c * np.outer(row, row)
        D += part.d * np.outer(row, row)
        f += part.c * part.phi_rel0 * row
    if damper:
        d.add("d", Damper(d=damper))
        at[0].append("d.flange_a")
        at[1].append("d.flange_b")
        D[:2, :2] += damper * np.array([[1.0, -1.0], [-1.0, 1.0]])
    for flanges in at:
        d.connect(*flanges)
    return Drawn(d, Network(M, K, D, f, z, u), pairs, heavy)
