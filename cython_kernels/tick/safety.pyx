"""Owner of the limits of sent signals (see safety.pxd). Real-time: set before arming."""

from libc.stdlib cimport calloc, free


cdef class Safety:
    """Limits of one rig with `n_sig` signals and a tick of `tick_s`; handed to Rig.set_safety."""

    def __cinit__(self, n_sig: int, tick_s: float):
        self.n_sig, self.tick_s = n_sig, tick_s

    def __dealloc__(self):
        free(self.s.guard)

    def set_guards(self, guards: list) -> None:
        """Once, before arming. Rows (slot, lo, hi, tolerance, slew per s or 0, latch the safe state)."""
        cdef guard_t* g
        if self.s.guard != NULL:
            raise RuntimeError("the limits of a rig are set once")
        self.s.guard = <guard_t*>calloc(len(guards) + 1, sizeof(guard_t))
        if self.s.guard == NULL:
            raise MemoryError
        for k, (slot, lo, hi, tol, slew_per_s, safe) in enumerate(guards):
            if not 0 <= slot < self.n_sig:
                raise IndexError(f"signal slot {slot}: allowed 0..{self.n_sig - 1}")
            if not lo <= hi or slew_per_s < 0.0:
                raise ValueError(f"limits {lo}..{hi}, slew {slew_per_s}: allowed lo <= hi, slew >= 0")
            g = &self.s.guard[k]
            g.quiet_lo, g.quiet_hi = (lo, hi) if slew_per_s == 0.0 else (1.0, -1.0)
            g.slot, g.lo, g.hi, g.tol, g.slew, g.safe = slot, lo, hi, tol, slew_per_s * self.tick_s, safe
        self.s.n_guard = len(guards)

    def set_solver_limit(self, ticks: int) -> None:
        """So many ticks in a row with a step that only a plain impulse could finish latch the safe state; 0: never."""
        if ticks < 0:
            raise ValueError(f"solver limit {ticks} ticks: allowed 0 or more")
        self.s.solver_limit = ticks

    def guard_counts(self) -> list:
        """Ticks in which each limited signal was held back."""
        return [self.s.guard[k].count for k in range(self.s.n_guard)]
