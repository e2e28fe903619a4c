"""Means of outputs over an interval: what a model that steps more slowly than the driveline receives.

A value at the end of an interval is a sample: what oscillates faster than the samples, as a stiff shaft does, is
aliased, and the momentum that one model gives is not the momentum that the other one gets. The mean is the impulse over
the interval. Of a spring and damper along a row with the twist q it follows from the twist alone, whether the step
resolves the torque or not:

    impulse = c*integral of (q - q0) + d*(change of q),   integral over a tick: h/2*(q_a + q_b) + h^2/12*(w_a - w_b)

(exact where the speed is a parabola over the tick, the case of three points; the second term is 0 at order 2, whose own
impulse is the trapezoidal rule). Of all other outputs the mean is that of the trapezoidal rule over the ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.kernel_numbers import OUT_COMPLIANCE

if TYPE_CHECKING:
    from torqueloop.core.simulate.offline import Simulation

Array = NDArray[np.float64]


class IntervalMeans:
    """Means of some outputs of a simulation from one `begin` to the next; `tick` after each of its ticks."""

    def __init__(self, simulation: Simulation, names: Sequence[str]) -> None:
        model, arrays = simulation.model, simulation.model.arrays
        self._simulation, self._h = simulation, simulation.h
        self._at = np.array([model.output_index(name) for name in names], dtype=np.intp)
        springs = [k for k, at in enumerate(self._at) if arrays.out["kind"][at] == OUT_COMPLIANCE]
        of = [int(arrays.out["idx"][self._at[k]]) for k in springs]
        self._springs, self._gain = springs, arrays.out["gain"][self._at[springs]]
        self._c, self._d = arrays.lin["c"][of], arrays.lin["d"][of]
        self._rows = np.zeros((len(of), arrays.n))
        self._off = arrays.row_off[arrays.lin["row"][of]] - arrays.lin["phi0"][of]
        for k, row in enumerate(arrays.lin["row"][of]):
            part = slice(arrays.row_ptr[row], arrays.row_ptr[row + 1])
            self._rows[k, arrays.row_idx[part]] = arrays.row_val[part]
        self._hermite = self._h**2 / 12.0 if arrays.order == 4 and simulation.substeps == 1 else 0.0
        self._sum: Array = np.zeros(len(names))
        self._ticks = 0
        self._values: Array
        self._q: Array
        self._w: Array

    def begin(self) -> None:
        """The interval begins at the present instant."""
        self._sum[:], self._ticks = 0.0, 0
        self._values, self._q, self._w = self._now()

    def tick(self) -> None:
        """A tick of the interval is over."""
        values, q, w = self._now()
        impulse = 0.5 * self._h * (self._values + values)
        twist = 0.5 * self._h * (self._q + q) + self._hermite * (self._w - w)
        impulse[self._springs] = -self._gain * (self._c * twist + self._d * (q - self._q))
        self._sum += impulse
        self._ticks += 1
        self._values, self._q, self._w = values, q, w

    def means(self) -> Array:
        """Means since the interval began; at its begin the values themselves."""
        return self._sum / (self._ticks * self._h) if self._ticks else self._values.copy()

    def _now(self) -> tuple[Array, Array, Array]:
        state = self._simulation.state
        return self._simulation.outputs()[self._at], self._rows @ state.z + self._off, self._rows @ state.u
