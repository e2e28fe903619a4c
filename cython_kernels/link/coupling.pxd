cdef class CouplingSums:
    cdef readonly long long count, max_step
    cdef readonly double max_mps, sum_sq, energy_J, turned_over_J
    cdef double _last_impulse
    cdef bint _begun
    cdef double note(self, long long step, double speed, double impulse, double other_speed) noexcept nogil
