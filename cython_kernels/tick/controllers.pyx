"""Controllers in the tick, after the driver's tables and before hydraulic unit, engine control and the model's inputs: they see
what has come in this tick and the model as it was at the end of the last one, and each the commands of those before it.

One that is called every k ticks is called in the simulated ticks 0, k, 2k, ...; between them its commands are held. The time
since its last call follows from the tick, so there is no state besides its signals.
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.controls.laws cimport MOST_READS, Law, control_step
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of


cdef void controllers_tick(const controllers_t* m, double* sig, int64_t tick) noexcept nogil:
    """All of them, once a tick: signals are read from `sig`, their own written there. tick: simulated ticks so far.
    real-time: yes."""
    cdef double[MOST_READS] read
    cdef const controller_t* c = m.controller
    cdef const controller_t* end = c + m.n
    cdef int32_t k
    while c < end:
        if tick % c.every == 0:
            for k in range(c.law.n_read):
                read[k] = c.gain[k] * sig[c.source[k]] + c.offset[k]
            control_step(&c.law, read, sig + c.first, c.every * m.tick_s if tick > 0 else 0.0)
        c += 1


cdef class Controllers(Blocks):
    """The tables of `n` controllers for a signal table of `n_sig` slots."""

    def __cinit__(self, int n_sig, int n, double tick_s):
        self.n_sig, self.room, self._laws = n_sig, n, []
        self.m.tick_s = tick_s
        self.m.controller = <controller_t*>self.block(n * sizeof(controller_t))

    cdef int32_t slot(self, index) except -1:
        if not 0 <= index < self.n_sig:
            raise IndexError(f"signal slot {index}: allowed 0..{self.n_sig - 1}")
        return index

    def add(self, Law law not None, int first, int every, list reads) -> None:
        """One more, called after those before. first: slot of its first own signal; reads: (slot, gain, offset) in the order
        of the law. Its numbers begin as they stand in the signal table."""
        cdef controller_t* c = &self.m.controller[self.m.n]
        cdef int32_t k
        if self.m.n == self.room:
            raise IndexError(f"controller {self.m.n} of {self.room}")
        if len(reads) != law.c.n_read or every < 1 or first < 2:
            raise ValueError(f"{law.kind}: {len(reads)} reads, every {every} ticks, first slot {first}; allowed: "
                             f"{law.c.n_read}, >= 1, >= 2")
        self.slot(first + law.c.n_own - 1)
        c.law, c.first, c.every = law.c, first, every
        for k in range(law.c.n_read):
            c.source[k], c.gain[k], c.offset[k] = self.slot(reads[k][0]), reads[k][1], reads[k][2]
        self._laws.append(law)
        self.m.n += 1

    def tick(self, sig, int64_t tick) -> None:
        """One tick on a signal table (float64), for tests and tools."""
        cdef Py_buffer view
        cdef double* p = doubles_of(sig, &view, True)
        cdef Py_ssize_t n = view.len // 8
        if n == self.n_sig:
            controllers_tick(&self.m, p, tick)
        PyBuffer_Release(&view)
        if n != self.n_sig:
            raise ValueError(f"signal table of {n}: allowed {self.n_sig}")
