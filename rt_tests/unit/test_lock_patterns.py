"""Lock patterns that are kept: whatever was built before them, they are the solution of the equations with multipliers.

A pattern of whole steps is kept, and the matrices of trials of another length are formed from what it holds. Random
sequences of elements at rest and lengths are asked of one state. Each answer has the bits of one built in a new state,
and agrees with NumPy's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_models import CLUTCH, CONFIGS, Sketch
from numpy.typing import NDArray
from relaxing_lines import clutched

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Clutch, ElastoBacklash, Inertia, LossyGear, SpringDamper
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.probes.patterns import lock_pattern

Array = NDArray[np.float64]
H = 1e-3
#: Lobatto IIIA: weights of the accelerations of middle and end in the speeds there (docs/theory.md, section 3)
WEIGHTS = np.array([[1 / 3, -1 / 24], [2 / 3, 1 / 6]])
some = settings(derandomize=True, deadline=None, max_examples=60, database=None)
#: as parts of h
lengths = st.sampled_from([1.0, 1.0, 0.5, 1e-3, 1e-9]) | st.floats(1e-4, 1.5)


@dataclass
class Line:
    """A random driveline: inertias, springs (rows, stiffnesses, dampings) and rows of clutches; and its model."""

    M: Array
    R: Array
    c: Array
    d: Array
    B: Array
    model: KernelModel

    def matrices(self, h: float) -> tuple[Array, Array]:
        """Matrices of a trial of the length h, of two points and of three."""
        D, K = (self.R.T @ (x[:, None] * self.R) for x in (self.d, self.c))
        four = np.kron(np.eye(2), self.M) + h * np.kron(WEIGHTS, D) + h * h * np.kron(WEIGHTS @ WEIGHTS, K)
        return self.M + 0.5 * h * D + 0.25 * h * h * K, four


def random_line(seed: int, order: int) -> Line:
    """2 to 15 speeds (beyond 12 torques are not formed), 1 to 14 clutches (beyond 12 not every pattern is kept), which
    may hold the same speeds, and 0 to as many springs and dampers as speeds."""
    g = np.random.default_rng(seed)
    n, nf = int(g.integers(2, 16)), int(g.integers(1, 15))
    count = int(g.integers(0, n + 1))
    A = g.normal(size=(n, n))
    M = 0.02 * A @ A.T + np.diag(10.0 ** g.uniform(-2.0, 0.0, n))
    sketch = Sketch(M, np.zeros(n), nin=0, order=order)

    def row() -> dict[int, float]:
        on = sorted(g.choice(n, int(g.integers(1, min(3, n) + 1)), replace=False))
        return {int(i): float(g.choice([1.0, -1.0, 0.5, 2.0, -1.48])) for i in on}

    rows = {"B": [row() for _ in range(nf)], "R": [row() for _ in range(count)]}
    c = g.choice([0.0, 1.0, 1.0], count) * 10.0 ** g.uniform(2.0, 6.0, count)
    d = g.choice([0.0, 1.0], count) * 10.0 ** g.uniform(-1.0, 2.0, count)
    for entries in rows["B"]:
        sketch.friction(sketch.row(entries), gain=1.0, **CLUTCH)
    for k, entries in enumerate(rows["R"]):
        sketch.spring(sketch.row(entries), float(c[k]), float(d[k]))
    dense = {
        name: np.array([[r.get(i, 0.0) for i in range(n)] for r in list_]).reshape(-1, n)
        for name, list_ in rows.items()
    }
    return Line(M, dense["R"], c, d, dense["B"], KernelModel(sketch.arrays(), H, "generic"))


def held(S: Array, B: Array) -> tuple[Array, Array]:
    """Accelerations P from forces with the rows B at rest, and the torques T of least norm that hold them."""
    n = len(S)
    if not len(B):
        return np.linalg.inv(S), np.zeros((0, n))
    _, sizes, rows = np.linalg.svd(B)
    Z = rows[np.count_nonzero(sizes > 1e-9 * sizes[0]) :].T
    P = Z @ np.linalg.solve(Z.T @ S @ Z, Z.T)
    return P, np.linalg.pinv(B.T, rcond=1e-9) @ (S @ P - np.eye(n))


def near(found: Array, right: Array, of: Array | None = None) -> None:
    size = np.abs(right if of is None else of).max(initial=1e-12)
    assert np.abs(found - right).max(initial=0.0) <= 1e-8 * size


def check_numbers(line: Line, stuck: list[int], length: float, found: dict[str, Any]) -> None:
    n, nf, B = len(line.M), len(line.B), line.B[stuck]
    S, S4 = line.matrices(length * H)
    for name, matrix, torques in (("P", S, "T"), ("P0", line.M, "T0")):
        P, T = held(matrix, B)
        near(found[name], P, np.linalg.inv(matrix))
        if found[torques] is not None:
            near(found[torques][:, :n].T, P, np.linalg.inv(matrix))
            near(found[torques][:, n : n + nf].T[stuck], T, np.linalg.pinv(B.T, rcond=1e-9) if stuck else None)
            others = [i for i in range(nf) if i not in stuck]
            assert not found[torques][:, n + np.array(others, dtype=int)].any()
    if found["P4"] is not None:
        P, T = held(S4, np.kron(np.eye(2), B))
        near(found["P4"].T, P, np.linalg.inv(S4))
        if found["T4"] is not None:
            near(found["T4"].T.reshape(2, nf, 2 * n)[:, stuck].reshape(-1, 2 * n), T, np.abs(T) + 1.0)


def same_bits(kept: dict[str, Any], fresh: dict[str, Any]) -> None:
    for name, matrix in fresh.items():
        assert (kept[name] is None) == (matrix is None), name
        assert matrix is None or np.array_equal(kept[name], matrix, equal_nan=False), name


@some
@given(seed=st.integers(0, 10_000), order=st.sampled_from([2, 4]), data=st.data())
def test_patterns_asked_in_any_order_solve_the_equations(seed: int, order: int, data: st.DataObject) -> None:
    line = random_line(seed, order)
    kept = KernelState(line.model)
    for _ in range(data.draw(st.integers(1, 6))):
        stuck = sorted(data.draw(st.sets(st.integers(0, len(line.B) - 1))))
        length = data.draw(lengths)
        found = lock_pattern(kept, stuck, length)
        same_bits(found, lock_pattern(KernelState(line.model), stuck, length))
        check_numbers(line, stuck, length, found)


def lossy(order: int) -> Driveline:
    """x - clutch - lossy gear - shaft - y with a clearance to z."""
    d = Driveline("lossy", order=order)
    for name, J in (("x", 0.2), ("g", 0.1), ("y", 1.0), ("z", 0.3)):
        d.add(name, Inertia(J=J))
    d.add("k", Clutch(fn_max=10.0, mue_pos=1.0))
    d.add("gear", LossyGear(ratio=3.0, lossTable=[[0.0, 0.9, 0.9, 0.0, 0.0]]))
    d.add("shaft", SpringDamper(c=2e3, d=1.0))
    d.add("gap", ElastoBacklash(c=1e3, d=1.0, b=0.02, phi_rel0=0.05))
    for first, second in (
        ("x", "k"),
        ("k", "g"),
        ("g", "gear"),
        ("gear", "shaft"),
        ("shaft", "y"),
        ("y", "gap"),
        ("gap", "z"),
    ):
        ends = [f"{part}.flange_{side}" for part, side in ((first, "b"), (second, "a"))]
        d.connect(*ends)
    return d


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kind", ["no inertia", "losses", "car"])
@settings(some, max_examples=15)
@given(data=st.data())
def test_patterns_of_drivelines_do_not_depend_on_what_was_built_before(
    kind: str, order: int, data: st.DataObject
) -> None:
    compiled = compile_driveline(
        {"no inertia": clutched, "losses": lossy}[kind](order)
        if kind != "car"
        else load(CONFIGS / "powertrains" / "car_4hp22.toml")
    )
    assert kind != "no inertia" or len(compiled.arrays.rx)
    assert kind != "losses" or len(compiled.arrays.ls)
    model = KernelModel(compiled.arrays, H, "generic")
    kept = KernelState(model)
    for _ in range(data.draw(st.integers(1, 6))):
        stuck = sorted(data.draw(st.sets(st.integers(0, len(compiled.arrays.fr) - 1))))
        length = data.draw(lengths)
        same_bits(lock_pattern(kept, stuck, length), lock_pattern(KernelState(model), stuck, length))
