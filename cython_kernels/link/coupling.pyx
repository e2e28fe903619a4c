"""Difference between the rig's car and the vehicle model's car: two integrations of the same motion.

    residual  dv = v_rig - v_vehicle at the same stamp [m/s]
    energy    dE = sum of dI * dv [J], dI the tractive impulse of the interval: the work the interface
              creates (+) or loses (-) because the two sides do not move alike
"""

cimport cython
from libc.math cimport fabs


@cython.auto_pickle(False)
cdef class CouplingSums:
    """The sums of both. real-time: no."""

    def __cinit__(self):
        #: step of the largest residual; -1: none
        self.max_step = -1

    cdef double note(self, long long step, double speed, double impulse, double other_speed) noexcept nogil:
        cdef double dv = speed - other_speed
        self.count += 1
        self.sum_sq += dv * dv
        if fabs(dv) > self.max_mps:
            self.max_mps, self.max_step = fabs(dv), step
        if self._begun:
            self.energy_J += (impulse - self._last_impulse) * dv
            self.turned_over_J += fabs((impulse - self._last_impulse) * speed)
        self._last_impulse, self._begun = impulse, True
        return dv

    def add(self, long long step, double speed, double impulse, double other_speed) -> float:
        """One comparison: the rig's speed and impulse at a stamp, the vehicle's speed there."""
        return self.note(step, speed, impulse, other_speed)
