"""The integral of a signal, by quadrature of 10 points between its events: exact to rounding for smooth signals."""

from __future__ import annotations

import numpy as np

from torqueloop.core.signals.base import Array, Scaled, Signal

#: longest panel of the quadrature, s (a sine of 200 Hz: half a turn, error below 1e-14)
PANEL = 2.5e-3
_X, _W = np.polynomial.legendre.leggauss(10)


class Integral(Signal):
    """y = y_start + k * integral of u from t_start (Modelica: Integrator)."""

    def __init__(self, u: Signal, k: float = 1.0, y_start: float = 0.0, t_start: float = 0.0) -> None:
        self.u: Signal = u
        self.k: float = k
        self.y_start: float = y_start
        self.t_start: float = t_start
        # ends of the panels done so far, and the integral up to there
        self._ends, self._sums = [t_start], [0.0]

    def _grow(self, t: float) -> None:
        """Panels up to t; their ends lie on a fixed raster and on events, whatever times are asked for."""
        while self._ends[-1] < t:
            begin = self._ends[-1]
            raster = self.t_start + (np.floor((begin - self.t_start) / PANEL + 1e-9) + 1.0) * PANEL
            end = min([float(raster), *self.u.event_times(begin, float(raster))])
            self._ends.append(end)
            self._sums.append(self._sums[-1] + self._panel(begin, end))

    def _panel(self, begin: float, end: float) -> float:
        half = 0.5 * (end - begin)
        return float(half * (_W @ self.u.sample(begin + half * (1.0 + _X), 0)))

    def sample(self, t: Array, side: int = 0) -> Array:
        y = np.empty(t.shape)
        for i, at in enumerate(t):
            self._grow(float(at))
            k = max(0, int(np.searchsorted(self._ends, at, side="left")) - 1)
            rest = self._panel(self._ends[k], float(at)) if at > self.t_start else 0.0
            y[i] = self.y_start + self.k * (self._sums[k] + rest)
        return y

    def event_times(self, t0: float, t1: float) -> list[float]:
        return self.u.event_times(t0, t1)

    def derivative(self) -> Signal:
        return Scaled(self.u, self.k)
