"""One force by Lobatto IIIA, another by Lobatto IIIC, in the way of docs/theory.md, section 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from theory_page import page

#: nodes, weights of Lobatto IIIA and of Lobatto IIIC
NODES = {2: np.array([0.0, 1.0]), 3: np.array([0.0, 0.5, 1.0])}
OUTER = {2: np.array([[0.0, 0.0], [0.5, 0.5]]), 3: np.array([[0, 0, 0], [5, 8, -1], [4, 16, 4]]) / 24.0}
INNER = {2: np.array([[0.5, -0.5], [0.5, 0.5]]), 3: np.array([[2, -4, 2], [2, 5, -1], [2, 8, 2]]) / 12.0}


def both_methods(
    points: int, h: float, u: float, tau0: float, rates: tuple[float, float], load: Callable[[float], float], t: float
) -> tuple[float, float]:
    """A trial of u' = load(t) - d u - g u, rates = (d, g): d by Lobatto IIIA, the port g by IIIC as the page lets it
    act. The speed at the end and the port's law there."""
    d, g = rates
    loads = np.array([load(t + h * c) for c in NODES[points]])

    def residual(unknown: np.ndarray) -> np.ndarray:
        k, v = unknown[:points], unknown[points:]
        if points == 2:
            acts = np.array([tau0, page(35, "F1", k0=k[0], k1=k[1], tau0=tau0)])
        else:
            middle, end = (page(36, left, k0=k[0], km=k[1], k1=k[2], tau0=tau0) for left in ("Fm", "F1"))
            acts = np.array([tau0, middle, end])
        rest = loads - d * v
        x = u + h * (OUTER[points] @ rest + INNER[points] @ k)
        return np.concatenate([k + g * x, v - u - h * OUTER[points] @ (rest + acts)])

    zero = residual(np.zeros(2 * points))
    matrix = np.array([residual(one) - zero for one in np.eye(2 * points)]).T
    found = np.linalg.solve(matrix, -zero)
    return float(found[-1]), float(found[points - 1])


def error_of_both(points: int, h: float) -> float:
    """Error of u' = cos t - 2 u - 3 u at t = 1 against the closed form."""
    u, lam = 1.0, 5.0
    tau = -3.0 * u
    for k in range(round(1.0 / h)):
        u, tau = both_methods(points, h, u, tau, (2.0, 3.0), np.cos, k * h)
    smooth = (lam * np.cos(1.0) + np.sin(1.0)) / (lam * lam + 1.0)
    return float(abs(u - smooth - (1.0 - lam / (lam * lam + 1.0)) * np.exp(-lam)))


def inner_stability(points: int, z: float) -> float:
    """By what a trial of the port alone multiplies the speed."""
    if points == 2:
        return 1.0 / (1.0 - z + z**2 / 2.0)
    return (1.0 + z / 4.0) / (1.0 - 0.75 * z + z**2 / 4.0 - z**3 / 24.0)
