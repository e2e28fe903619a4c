"""docs/theory.md: its formulas are evaluated as they are printed and compared with first principles."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from kernel_models import Sketch
from lobatto_pair import both_methods, error_of_both, inner_stability
from numpy.polynomial import Polynomial
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear
from theory_page import BLOCKS, EQUATIONS, LINES, TEXT, Formula, page

from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

if not TEXT:
    pytest.skip("the manual is in the repository only", allow_module_level=True)
#: numbers of the equations that tests below evaluate
CHECKED: set[int] = set()


def evaluates(*numbers: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    CHECKED.update(numbers)
    return lambda test: test


RNG = np.random.default_rng(3)
START = RNG.bit_generator.state
THREE, TWO = (0.0, 0.5, 1.0), (0.0, 1.0)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Whichever tests run before."""
    RNG.bit_generator.state = START


def tableau(nodes: tuple[float, ...]) -> np.ndarray:
    """Weights of collocation: integrals of Lagrange's polynomials from 0 to the nodes."""
    A = np.zeros((len(nodes), len(nodes)))
    for j, c in enumerate(nodes):
        others = [x for x in nodes if x != c]
        integral = (Polynomial.fromroots(others) / np.prod([c - x for x in others])).integ()
        A[:, j] = [integral(x) for x in nodes]
    return A


def definite(n: int) -> np.ndarray:
    X = RNG.normal(size=(n, n))
    return X @ X.T + n * np.eye(n)


# --- the page itself ---


def test_equations_are_numbered_without_a_gap_and_all_references_exist() -> None:
    assert [number for number, _, _ in LINES] == list(range(1, len(LINES) + 1))
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    named = {int(n) for n in re.findall(r"(?<![\w'])\((\d{1,2})\*?\)", prose)}
    assert named <= set(EQUATIONS)


def test_every_equation_that_is_marked_is_evaluated_here() -> None:
    assert {number for number, (_, marked) in EQUATIONS.items() if marked} == CHECKED


def test_the_reader_of_formulas_reads_them() -> None:
    M = definite(3)
    v = RNG.normal(size=3)
    assert Formula("-1/2 v^T M^-1 v + 3 x^2/4 - |y|", {"v": v, "M": M, "x": 2.0, "y": -5.0}).value == pytest.approx(
        -0.5 * v @ np.linalg.inv(M) @ v + 3.0 - 5.0
    )
    with pytest.raises(AssertionError, match="not understood"):
        Formula("1 + 2)", {})


# --- section 2: weights, orders, stability ---


@evaluates(8, 9, 10, 11, 12)
def test_weights_are_integrals_of_lagranges_polynomials() -> None:
    h, u0, z0 = 0.7, 0.3, -1.1
    a = dict(zip(("a0", "am", "a1"), RNG.normal(size=3), strict=True))
    values, A = np.array(list(a.values())), tableau(THREE)
    assert page(9, "um", h=h, u0=u0, **a) == pytest.approx(u0 + h * A[1] @ values, rel=1e-14)
    assert page(10, "u1", h=h, u0=u0, **a) == pytest.approx(u0 + h * A[2] @ values, rel=1e-14)
    assert page(8, "u1", h=h, u0=u0, **a) == pytest.approx(u0 + h * tableau(TWO)[1] @ values[[0, 2]], rel=1e-14)
    z = z0 + h * A @ (u0 + h * A @ values)
    assert page(11, "zm", h=h, u0=u0, z0=z0, **a) == pytest.approx(z[1], rel=1e-14)
    assert page(12, "z1", h=h, u0=u0, z0=z0, **a) == pytest.approx(z[2], rel=1e-14)


@evaluates(17, 18)
def test_the_prediction_is_exact_for_an_acceleration_that_is_a_parabola() -> None:
    a = Polynomial(RNG.normal(size=3))
    u = 0.4 + 0.9 * a.integ()  # over a trial of the length 0.9
    names = {"h": 0.9, "u0": 0.4, "a0": a.coef[0], "s1": a.coef[1], "s2": a.coef[2]}
    assert page(17, "ump", **names) == pytest.approx(u(0.5), rel=1e-14)
    assert page(18, "u1p", **names) == pytest.approx(u(1.0), rel=1e-14)


@evaluates(21, 22, 23, 24, 25)
@pytest.mark.parametrize("z", [-0.3, -2.0 + 1.0j, -40.0 - 3.0j, 2.5j])
def test_stability_functions_are_those_of_the_weights(z: complex) -> None:
    for nodes, number, left in ((TWO, 21, "R2(z)"), (THREE, 22, "R4(z)")):
        Y = np.linalg.solve(np.eye(len(nodes)) - z * tableau(nodes), np.ones(len(nodes)))
        R = page(number, left, z=z)
        assert R == pytest.approx(Y[-1], rel=1e-13)
        assert abs(R) <= 1.0 + 1e-13, "A-stable"
    assert page(23, "Rm(z)", z=z, R4=R) == pytest.approx(Y[1], rel=1e-13)
    for number, left, P in (
        (24, "|Q2|^2 - |P2|^2", 1 + z / 2),
        (25, "|Q4|^2 - |P4|^2", 1 + z / 2 + z * z / 12),
    ):
        Q = P - z
        assert page(number, left, z=z) == pytest.approx(abs(Q) ** 2 - abs(P) ** 2, rel=1e-12, abs=1e-12)


@evaluates(26, 27)
@pytest.mark.parametrize("x", [0.1, 0.25, 0.8])
def test_the_polynomial_grows_inside_a_trial_as_the_page_says(x: float) -> None:
    z = -1e7
    for nodes, number, left in ((TWO, 26, "D2(x, z)"), (THREE, 27, "D4(x, z)")):
        Y = np.linalg.solve(np.eye(len(nodes)) - z * tableau(nodes), np.ones(len(nodes)))
        inside = 1.0 + Polynomial.fit(nodes, z * Y, len(nodes) - 1, domain=[0, 1], window=[0, 1]).integ()(x)
        assert inside == pytest.approx(page(number, left, x=x, z=z), rel=1e-5)


def explicit_recursion(points: int, z: float) -> np.ndarray:
    """Matrix of (u, h a0, h s1, h s2) over a trial whose force z u/h is taken at speeds predicted as the page says."""
    u, a0, s1, s2 = np.eye(4)
    names = {"h": 1.0, "u0": u, "a0": a0, "s1": s1, "s2": s2 if points == 3 else 0.0 * s2}
    a1 = z * page(18, "u1p", **names)
    if points == 2:
        return np.array([page(8, "u1", h=1.0, u0=u, a0=a0, a1=a1), a1, a1 - a0, 0.0 * s2])
    am = z * page(17, "ump", **names)
    curved = 2.0 * a0 - 4.0 * am + 2.0 * a1
    end = page(10, "u1", h=1.0, u0=u, a0=a0, am=am, a1=a1)
    return np.array([end, a1, -3.0 * a0 + 4.0 * am - a1 + 2.0 * curved, curved])


@evaluates(19, 20)
@pytest.mark.parametrize(("points", "number"), [(2, 19), (3, 20)])
def test_the_explicit_part_is_stable_up_to_the_limit(points: int, number: int) -> None:
    limit = float(EQUATIONS[number][0].split("<")[1])

    def radius(z: float) -> float:
        return float(np.abs(np.linalg.eigvals(explicit_recursion(points, -z))).max())

    assert radius(limit - 1e-3) <= 1.0 + 1e-12 < radius(limit + 1e-3)


@pytest.mark.parametrize(("order", "number"), [(2, 19), (4, 20)])
def test_the_kernel_finds_torques_with_the_accelerations_before_that_limit(order: int, number: int) -> None:
    """Three ports on one shaft, each well below the limit or far beyond it: their sum counts."""
    limit, J, h = float(EQUATIONS[number][0].split("<")[1]), 1e-3, 1e-3
    for part in (0.2, 0.97, 1.03, 40.0):
        sketch = Sketch([J], [1.0], order=order)
        for _ in range(3):
            sketch.resistance(0, k1=-part * limit * J / h)
        sketch.output(0, 0)
        model = KernelModel(sketch.arrays(), h, "generic")
        out = np.zeros((600, model.sizes["outputs"]))
        model.run(KernelState(model), np.zeros((600, 0)), out)
        assert abs(out[-20:, 0]).max() < 1e-9


def solved(A: np.ndarray, lam: float, h: float) -> float:
    """Error at t = 1 of collocation of y' = lam (y - cos t) - sin t, y(0) = 1."""
    y, t, c = 1.0, 0.0, A.sum(axis=1)
    for _ in range(round(1.0 / h)):
        forced = -np.sin(t + c * h) - lam * np.cos(t + c * h)
        y = np.linalg.solve(np.eye(len(A)) - h * lam * A, y + h * A @ forced)[-1]
        t += h
    return float(abs(y - np.cos(t)))


@pytest.mark.parametrize(("nodes", "order"), [(TWO, 2), (THREE, 4)])
def test_orders_are_2_and_4_where_the_step_resolves_and_2_in_the_stiff_limit(
    nodes: tuple[float, ...], order: int
) -> None:
    A = tableau(nodes)
    assert np.log2(solved(A, -1.0, 1 / 16) / solved(A, -1.0, 1 / 32)) == pytest.approx(order, abs=0.02)
    assert np.log2(solved(A, -1e6, 1 / 16) / solved(A, -1e6, 1 / 32)) == pytest.approx(2, abs=0.02)
    assert solved(A, -1e6, 1 / 16) / solved(A, -1e7, 1 / 16) == pytest.approx(10.0, rel=0.02), "h^2/lambda"


def test_a_contact_with_an_exponent_that_closes_costs_order_4() -> None:
    p, errors = 1.5, []
    A = tableau(THREE)
    for h in (0.1, 0.05):
        a = np.zeros(3)
        for _ in range(60):
            u = 1.0 + h * A @ a
            a = -(np.maximum(h * A @ u, 0.0) ** p)
        exact = solve_ivp(
            lambda t, y: [y[1], -(max(y[0], 0.0) ** p)], (0, h), [0.0, 1.0], "DOP853", rtol=1e-13, atol=1e-16
        )
        errors.append(abs(u[2] - exact.y[1, -1]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1.0 + p, abs=0.05)


def energy_after_cuts(points: int, angle: float, phase: float, x: np.ndarray) -> np.ndarray:
    """Change of the energy of an undamped oscillator, cut at the fractions x of a trial with h omega = angle."""
    Q = np.array([[0.0, -angle], [angle, 0.0]])  # of (speed, angle), over the trial
    y0 = np.array([np.sin(phase), np.cos(phase)])
    nodes = TWO if points == 2 else THREE
    Y = np.linalg.solve(np.eye(2 * len(nodes)) - np.kron(tableau(nodes), Q), np.tile(y0, len(nodes))).reshape(-1, 2)
    rate = Polynomial.fit(nodes, Y @ Q[0], len(nodes) - 1, domain=[0, 1], window=[0, 1])
    speed = y0[0] + rate.integ()
    return np.asarray(speed(x) ** 2 + (y0[1] + angle * speed.integ()(x)) ** 2 - 1.0)


def test_the_table_of_cuts_has_the_largest_change_of_energy() -> None:
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.e-]+) \| ([\d.e-]+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 3
    x = np.linspace(0.0, 1.0, 61)
    for angle, two, three in rows:
        for points, printed in ((2, two), (3, three)):
            phases = np.linspace(0.0, np.pi, 61)
            found = max(np.abs(energy_after_cuts(points, float(angle), phase, x)).max() for phase in phases)
            assert found == pytest.approx(float(printed), rel=0.06)


# --- sections 3 to 7 ---


@evaluates(28, 30, 31)
def test_a_lock_pattern_is_the_solution_of_the_equations_with_multipliers() -> None:
    n, S, g = 6, definite(6), RNG.normal(size=6)
    held = RNG.normal(size=(2, n))
    B = np.vstack([held, held[0] + 2.0 * held[1]])  # three elements that hold two speeds
    Z = np.linalg.svd(held)[2][2:].T
    P = page(28, "P", Z=Z, S=S)
    whole = np.block([[S, -held.T], [held, np.zeros((2, 2))]])
    a = np.linalg.solve(whole, np.concatenate([g, np.zeros(2)]))[:n]
    assert page(28, "a", P=P, g=g) == pytest.approx(a, rel=1e-10)
    tau = page(30, "T", B_s=B, S=S, P=P, I=np.eye(n)) @ g
    assert B.T @ tau == pytest.approx(S @ a - g, rel=1e-9)
    assert np.linalg.svd(B.T)[2][-1] @ tau == pytest.approx(0.0, abs=1e-12), "the least norm: nothing in the null space"

    seen, K = RNG.normal(size=(2, n)), definite(2)
    M, C = definite(n), seen.T @ K @ seen
    free = np.linalg.svd(np.vstack([held, seen]))[2][4:].T
    rest = Z @ Z.T @ seen.T
    rest = rest - free @ np.linalg.solve(free.T @ M @ free, free.T @ M @ rest)
    split = page(31, "P", Z_r=free, Z_e=rest, M=M, S=M + C)
    assert split == pytest.approx(page(28, "P", Z=Z, S=M + C), rel=1e-9, abs=1e-12)


@evaluates(35, 36)
@pytest.mark.parametrize("points", [2, 3])
def test_steep_ports_keep_the_order_beside_other_forces_and_come_to_rest(points: int) -> None:
    errors = [error_of_both(points, h) for h in (1 / 32, 1 / 64)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 * points - 2, abs=0.1)
    for tau0 in (0.0, 50.0):
        left = both_methods(points, 1.0, 1.0, tau0, (0.0, 7.0), lambda t: 0.0, 0.0)[0]
        assert left == pytest.approx(inner_stability(points, -7.0), rel=1e-12)
    for d in (0.0, 1e3):
        assert abs(both_methods(points, 1.0, 1.0, -1.0, (d, 1e9), lambda t: 0.0, 0.0)[0]) < 1e-5, "L-stable"


@evaluates(37)
def test_steep_friction_has_one_answer_with_springs_and_any_number_of_elements() -> None:
    L = tableau(THREE)[1:, 1:]
    weights = page(37, "Dg")
    assert page(37, "Dg L + L^T Dg") == pytest.approx(weights @ L + L.T @ weights, rel=1e-12, abs=1e-12)
    n, steep = 5, 3
    for _ in range(20):
        M, D, K, B = definite(n), 30.0 * definite(n), 900.0 * definite(n), RNG.normal(size=(steep, n))
        A4 = np.kron(np.eye(2), M) + np.kron(L, D) + np.kron(L @ L, K)
        H = np.kron(L, B) @ np.linalg.solve(A4, np.kron(np.eye(2), B.T))
        power = np.kron(weights, np.eye(steep)) @ H
        assert np.linalg.eigvalsh(power + power.T).min() > -1e-12 * np.abs(power).max()
        k = 10.0 ** RNG.uniform(-3.0, 6.0, size=2 * steep)
        assert np.linalg.det(np.eye(2 * steep) + np.diag(k) @ H) > 0.0


def boxed(B: np.ndarray, b: np.ndarray, limits: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Torques of the boxed problem with W = B B^T + diag(shift), by a bounded least-squares solver."""
    factor = np.linalg.cholesky(B @ B.T + np.diag(shift)).T
    found = lsq_linear(factor, -np.linalg.solve(factor.T, b), (-limits, limits), "bvls", tol=1e-14)
    return np.asarray(found.x)


@evaluates(40)
def test_redundant_locks_leave_torques_open_but_not_slips() -> None:
    more = []
    for _ in range(10):
        rows = RNG.normal(size=(2, 5))
        B = np.vstack([rows, rows, rows[0] - rows[1]])  # five elements, two speeds
        c = 3.0 * RNG.normal(size=5)
        limits = RNG.uniform(0.05, 1.0, size=5)
        b, W = B @ c, B @ B.T
        one = boxed(B, b, limits, np.full(5, 1e-9))
        other = boxed(B, b, limits, 1e-9 * np.array([1.0, 1e3, 1.0, 1e3, 1.0]))
        assert W @ one + b == pytest.approx(W @ other + b, abs=1e-6)
        energy = [page(40, "F(tau)", tau=tau, W=W, b=b) for tau in (one, other)]
        assert energy[0] == pytest.approx(energy[1], abs=1e-7)
        more.append(np.sum(other**2) - np.sum(one**2))
        for tau in RNG.uniform(-limits, limits, size=(200, 5)):
            assert page(40, "F(tau)", tau=tau, W=W, b=b) >= energy[0] - 1e-7
    assert min(more) > -1e-5 and max(more) > 1e-3, "the uniform shift selects the least norm"


@evaluates(42)
def test_a_plastic_impact_loses_the_energy_the_page_says() -> None:
    for _ in range(20):
        M, u, B = definite(4), RNG.normal(size=4), RNG.normal(size=(3, 4))
        W, r = B @ np.linalg.solve(M, B.T), B @ u
        factor = np.linalg.cholesky(W).T
        L = lsq_linear(factor, np.linalg.solve(factor.T, r), (0.0, np.inf), "bvls", tol=1e-14).x
        after = u - np.linalg.solve(M, B.T @ L)
        assert max(B @ after) < 1e-9 and abs(L @ (B @ after)) < 1e-9
        change = 0.5 * after @ M @ after - 0.5 * u @ M @ u
        assert page(42, "T+ - T-", L=L, W=W) == pytest.approx(change, abs=1e-9)


# --- section 8: energy ---


@evaluates(43)
def test_the_trapezoidal_rule_closes_the_balance() -> None:
    h, M, u0, u1 = 0.3, definite(4), RNG.normal(size=4), RNG.normal(size=4)
    rows, f0 = np.vstack([np.eye(4), RNG.normal(size=(2, 4))]), RNG.normal(size=6)
    f1 = RNG.normal(size=6)
    f1[:4] += 2.0 * M @ (u1 - u0) / h - rows.T @ (f0 + f1)  # so that the means of all forces accelerate from u0 to u1
    work = sum(h * (w0 + w1) / 2 * (a + b) / 2 for w0, w1, a, b in zip(rows @ u0, rows @ u1, f0, f1, strict=True))
    change = Formula(EQUATIONS[43][0].split(" = ")[1], {"u1": u1, "u0": u0, "M": M}).value
    assert change == pytest.approx(work, rel=1e-12)
    assert "h (w0 + w1)/2 (f0 + f1)/2" in EQUATIONS[43][0]


def parabola(values: np.ndarray) -> Polynomial:
    return Polynomial.fit(THREE, values, 2, domain=[0, 1], window=[0, 1])


@evaluates(44, 45)
def test_the_sum_at_gauss_nodes_closes_the_balance_of_springs() -> None:
    nodes = [Formula(side.split(" = ")[1], {}).value for side in EQUATIONS[44][0].split(",")]
    slope = Polynomial.fromroots(THREE).deriv()
    assert slope(np.array(nodes)) == pytest.approx([0.0, 0.0], abs=1e-14)
    c, d, m, h = 4e3, 5.0, 0.2, 0.5  # h omega = 70, h d/m = 12
    Q = np.array([[-d / m, -c / m], [1.0, 0.0]])
    Y = np.linalg.solve(np.eye(6) - h * np.kron(tableau(THREE), Q), np.tile([0.7, 0.02], 3)).reshape(3, 2)
    w, q = Y.T

    def work(f: np.ndarray) -> float:
        return h * page(45, "Wg", w0=w[0], wm=w[1], w1=w[2], f0=f[0], fm=f[1], f1=f[2])

    heat, turned = -work(-d * w), 0.5 * m * w[0] ** 2 + 0.5 * c * q[0] ** 2
    assert work(-c * q) == pytest.approx(-0.5 * c * (q[2] ** 2 - q[0] ** 2), abs=1e-12 * turned)
    assert 0.5 * m * (w[2] ** 2 - w[0] ** 2) == pytest.approx(work(-c * q) - heat, abs=1e-12 * turned)
    assert heat > 0.0
    p = parabola(w)
    assert heat == pytest.approx(h * d * sum(p(x) ** 2 for x in nodes) / 2, rel=1e-12)
    gauss = np.array([[0.25, 0.25 - 3**0.5 / 6], [0.25 + 3**0.5 / 6, 0.25]])
    stages = np.linalg.solve(np.eye(4) - h * np.kron(gauss, Q), np.tile([0.7, 0.02], 2)).reshape(2, 2)
    assert np.array([0.7, 0.02]) + h * stages.mean(axis=0) @ Q.T == pytest.approx(Y[2], abs=1e-10), (
        "the method of Gauss"
    )


# --- sections 9 to 12 ---


@evaluates(49)
def test_a_side_of_a_contact_never_gives_energy_in_an_impulse_step() -> None:
    law = re.search(r"^N = (max\(.*?\)\))", BLOCKS, re.MULTILINE)
    assert law
    for x0, x1, c, d, dt in RNG.uniform([-1, -1, 0, 0, 1e-3], [1, 1, 10, 10, 1], size=(3000, 5)):
        N = Formula(law[1], {"x0": x0, "x1": x1, "c": c, "d": d, "dt": dt}).value
        kept = 0.5 * c * (max(0.0, x1) ** 2 - max(0.0, x0) ** 2)
        assert N * (x1 - x0) >= kept - 1e-12
    assert "E(x1) - E(x0)" in EQUATIONS[49][0]


@evaluates(50)
def test_what_decays_within_a_trial_is_seen_in_its_derivative() -> None:
    for z in (-0.4, -3.0 + 2.0j, -500.0):
        R2, R4 = page(21, "R2(z)", z=z), page(22, "R4(z)", z=z)
        Rm = page(23, "Rm(z)", z=z, R4=R4)
        assert page(50, "1 - R2", z=z) == pytest.approx(1.0 - R2, rel=1e-9)
        assert page(50, "1 - 2 Rm + R4", z=z) == pytest.approx(1.0 - 2.0 * Rm + R4, rel=1e-9)
        for left, nodes, Y in (("d0 - d1", (1.0, R2), 1), ("d0 - 2 dm + d1", (1.0, Rm, R4), 2)):
            e, mu = 0.3, 2.0 - 1.0j
            d = [-mu * e * value for value in nodes]
            shown = d[0] - d[1] if Y == 1 else d[0] - 2.0 * d[1] + d[2]
            assert page(50, left, mu=mu, e=e, R2=R2, Rm=Rm, R4=R4) == pytest.approx(shown, rel=1e-12)


@evaluates(51)
@pytest.mark.parametrize("z", [-0.4, -3.0 + 2.0j, -500.0])
def test_the_excess_is_what_the_method_has_beyond_the_true_motion(z: complex) -> None:
    """u' = -mu u + force over a trial, by collocation and exactly; the force is constant (two points) or linear."""
    h, mu, e, x0, force = 0.3, -z / 0.3, 0.7, 0.2, (1.1, -0.6)
    for nodes, number, left, slope in ((TWO, 21, "R2(z)", 0.0), (THREE, 22, "R4(z)", force[1])):
        A, f = h * tableau(nodes), force[0] + slope * h * np.array(nodes)
        smooth = f / mu - slope / mu**2  # the motion without a decaying part
        u1 = np.linalg.solve(np.eye(len(nodes)) + mu * A, smooth[0] + e + A @ f)[-1]
        true = smooth[-1] + np.exp(-mu * h) * (e - x0)
        x1 = page(51, "x1", R=page(number, left, z=z), z=z, e=e, x0=x0)
        assert x1 == pytest.approx(u1 - true, rel=1e-9)


@evaluates(53)
def test_a_shaft_without_inertia_relaxes_as_the_page_says() -> None:
    D, K = definite(5), definite(5)
    z, z_rate, q, g = RNG.normal(size=3), RNG.normal(size=3), RNG.normal(size=2), RNG.normal(size=2)
    names = {"D_yy": D[:2, :2], "D_yz": D[:2, 2:], "K_yy": K[:2, :2], "K_yz": K[:2, 2:]}
    shift = page(53, "q", y=np.zeros(2), z=z, **names)
    rate = page(53, "q'", q=q, z=z, g=g, **names) - page(53, "q", y=np.zeros(2), z=z_rate, **names)
    balance = D[:2, :2] @ rate + D[:2, 2:] @ z_rate + K[:2, :2] @ (q - shift) + K[:2, 2:] @ z
    assert balance == pytest.approx(g, rel=1e-10)


@evaluates(57)
def test_one_loss_has_one_answer_where_the_page_says() -> None:
    loss = np.linspace(-400.0, 400.0, 200001)
    answers = set()
    for kA, kB, X, r0, cA, cB in RNG.uniform([0, -1, -4, -5, 0, 0], [1, 0, 4, 5, 1, 1], size=(60, 6)):
        conditions = [part.split(">")[0].strip() for part in EQUATIONS[57][0].split("and")]
        unique = all(Formula(condition, {"kA": kA, "kB": kB, "X": X}).value > 0.05 for condition in conditions)
        r = r0 - X * loss
        miss = loss - np.maximum(kA * r + cA, kB * r + cB)
        count = int(np.sum(miss[1:] * miss[:-1] < 0.0))
        assert not unique or count == 1
        answers.add(count)
    assert answers > {1}, "elsewhere there are none, or two"


@evaluates(68)
def test_the_pressure_of_an_actuator_satisfies_its_equation() -> None:
    r, c, x_b, p_b = 1.7, Polynomial([0.3, -1.2, 0.8]), 0.2, 2.0
    at = {"c1": c.deriv(1), "c2": c.deriv(2)}

    def Q(x: float) -> float:
        return float(page(68, "Q", r=r, c=c(x), c1=at["c1"](x), c2=at["c2"](x)))

    def p(x: float) -> float:
        return float(page(68, "p", Q=Q(x), Q_b=Q(x_b), p_b=p_b, r=r, x=x, x_b=x_b))

    assert p(x_b) == p_b
    for x in (0.3, 0.7):
        assert (p(x + 1e-5) - p(x - 1e-5)) / 2e-5 == pytest.approx(r * (c(x) - p(x)), rel=1e-8)


@evaluates(61)
def test_a_universal_joint_has_that_ratio() -> None:
    for x, beta in ((0.3, 0.5), (2.0, 1.1), (-1.2, 0.2)):
        y = [np.arctan2(np.sin(t), np.cos(t) * np.cos(beta)) for t in (x - 1e-6, x + 1e-6)]
        line = EQUATIONS[61][0].rsplit(" = ", 1)[1]
        assert Formula(line, {"x": x, "beta": beta}).value == pytest.approx((y[1] - y[0]) / 2e-6, rel=1e-8)


@evaluates(62, 64)
def test_a_shaft_between_joints_keeps_its_energy_over_any_turn() -> None:
    beta, c, d, h = 0.6, 80.0, 0.4, 0.5
    for x0, x1 in ((0.3, 0.9), (-1.0, 1.3), (2.0, 2.0001)):
        y0, y1 = (np.arctan2(np.sin(x), np.cos(x) * np.cos(beta)) for x in (x0, x1))
        printed = page(64, "tan(y1 - y0)", beta=beta, q0=x0, q1=x1, x0=x0, x1=x1)
        assert printed == pytest.approx(np.tan(y1 - y0), rel=1e-9)
        D0, D1 = y0 - 0.1, y1 - 0.1  # the other end rests
        tau = page(62, "tau", c=c, d=d, h=h, D0=D0, D1=D1)
        work = -tau * (y1 - y0) / (x1 - x0) * (x1 - x0)
        kept = 0.5 * c * (D1**2 - D0**2) + d * (D1 - D0) ** 2 / h
        assert work == pytest.approx(-kept, rel=1e-9)


@evaluates(66)
def test_the_attitude_is_of_order_4() -> None:
    def omega(t: float) -> np.ndarray:
        return np.array([1.0 + np.sin(2 * t), np.cos(3 * t), t * t - 0.4])

    def skew(v: np.ndarray) -> np.ndarray:
        return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])

    def turned(v: np.ndarray) -> np.ndarray:
        angle, X = float(np.linalg.norm(v)), skew(v)
        return np.eye(3) + np.sin(angle) / angle * X + (1 - np.cos(angle)) / angle**2 * X @ X

    exact = solve_ivp(
        lambda t, y: (y.reshape(3, 3) @ skew(omega(t))).ravel(),
        (0, 1),
        np.eye(3).ravel(),
        "DOP853",
        rtol=1e-12,
        atol=1e-13,
    ).y[:, -1]
    errors = []
    for steps in (10, 20):
        h, R = 1.0 / steps, np.eye(3)
        for k in range(steps):
            at = {"omega0": omega(k * h), "omegam": omega((k + 0.5) * h), "omega1": omega((k + 1) * h)}
            R = R @ turned(page(66, "theta", h=h, **at))
        errors.append(np.abs(R.ravel() - exact).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)
