"""Owner of the limits of sent signals (see safety.pxd). Real-time: set before arming."""

from libc.math cimport INFINITY

from torqueloop.cython_kernels.tick.words cimport BETWEEN_BLOCK

#: fewer guards than this side by side are looked at one by one
cdef int AT_ONCE = 4


cdef bint _quiet(const guard_t* g):
    """Whether there are values that need no further look."""
    return g.quiet_lo <= g.quiet_hi


cdef class Safety(Blocks):
    """Limits of one rig with `n_sig` signals and a tick of `tick_s`; handed to Rig.set_safety."""

    def __cinit__(self, n_sig: int, tick_s: float):
        self.n_sig, self.tick_s = n_sig, tick_s

    def set_guards(self, guards: list) -> None:
        """Once, before arming. Rows (slot, lo, hi, tolerance, slew per s or 0, latch the safe state)."""
        cdef guard_t* g
        if self.s.guard != NULL:
            raise RuntimeError("the limits of a rig are set once")
        self.s.guard = <guard_t*>self.block(len(guards) * sizeof(guard_t))
        for k, (slot, lo, hi, tol, slew_per_s, safe) in enumerate(guards):
            if not 0 <= slot < self.n_sig:
                raise IndexError(f"signal slot {slot}: allowed 0..{self.n_sig - 1}")
            if not lo <= hi or slew_per_s < 0.0:
                raise ValueError(f"limits {lo}..{hi}, slew {slew_per_s}: allowed lo <= hi, slew >= 0")
            g = &self.s.guard[k]
            g.quiet_lo, g.quiet_hi = (lo, hi) if slew_per_s == 0.0 else (1.0, -1.0)
            g.slot, g.lo, g.hi, g.tol, g.slew, g.safe = slot, lo, hi, tol, slew_per_s * self.tick_s, safe
        self.s.n_guard = len(guards)
        self.make_bands()

    cdef int make_bands(self) except -1:
        """Guards whose signals are neighbours, and all quiet between their limits or all not."""
        cdef guard_t* g
        cdef band_t* band
        cdef double* limits
        cdef int k, i, size
        self.s.band = <band_t*>self.block(self.s.n_guard * sizeof(band_t))
        for k in range(self.s.n_guard):
            g = &self.s.guard[k]
            band = &self.s.band[self.s.n_band - 1]  # one before the first: not looked at
            if k == 0 or g.slot != band.slot + band.n or _quiet(g) != _quiet(g - 1):
                band = &self.s.band[self.s.n_band]
                band.slot, band.first = g.slot, k
                self.s.n_band += 1
            band.n += 1
        for k in range(self.s.n_band):
            band = &self.s.band[k]
            g = &self.s.guard[band.first]
            if band.n < AT_ONCE or not _quiet(g):
                continue
            size = (band.n + BETWEEN_BLOCK - 1) // BETWEEN_BLOCK * BETWEEN_BLOCK
            limits = <double*>self.block(2 * size * sizeof(double))
            for i in range(size):
                limits[i] = g[i].quiet_lo if i < band.n else -INFINITY
                limits[size + i] = g[i].quiet_hi if i < band.n else INFINITY
            band.lo, band.hi = limits, limits + size
        return 0

    def set_solver_limit(self, ticks: int) -> None:
        """So many ticks in a row with a step that only a plain impulse could finish latch the safe state; 0: never."""
        if ticks < 0:
            raise ValueError(f"solver limit {ticks} ticks: allowed 0 or more")
        self.s.solver_limit = ticks

    def guard_counts(self) -> list:
        """Ticks in which each limited signal was held back."""
        return [self.s.guard[k].count for k in range(self.s.n_guard)]
