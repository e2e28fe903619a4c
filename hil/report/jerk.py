"""Jerk of the car: how fast its acceleration changes [m/s3].

    j(t) = slope of the straight line of least squares through a(t') with |t' - t| <= HALF_S

(Savitzky and Golay, Anal. Chem. 36 (1964) 1627: first derivative, polynomial of order 1.) On a sine of frequency f it
gives the true derivative times 3 (sin x - x cos x) / x^3 with x = 2 pi f HALF_S: 0.71 (-3 dB) at 10 Hz, the limit to
which the acceleration of a shift is judged as a person feels it; faster ripple is comfort of another kind (noise).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: half width of the line [s]: -3 dB at 10 Hz
HALF_S = 0.029


def jerk(a: NDArray[np.float64], tick_s: float) -> NDArray[np.float64]:
    """Jerk [m/s3] of evenly sampled acceleration [m/s2]; at the ends with the samples there are."""
    n = max(1, round(HALF_S / tick_s))
    if len(a) < 2:
        return np.zeros(len(a))
    k = np.arange(-n, n + 1, dtype=np.float64)
    if len(a) <= 2 * n:
        return np.full(len(a), (a[-1] - a[0]) / ((len(a) - 1) * tick_s))
    inner = np.convolve(a, -k, "valid") / (tick_s * float(k @ k))
    # the first and last lines have their window moved inwards
    return np.concatenate([np.full(n, inner[0]), inner, np.full(n, inner[-1])])
