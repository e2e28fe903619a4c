"""Transactions of the control channel and images of a whole rig, for Python.

    control = Control(); rig.set_control(control)
    control.post([(slot, HOLD, value), ...])            one transaction at a time; nothing waits here
    while not control.free: ...                         it is free again at the end of the tick that has taken it
    tick, ok = control.answer()

Everything that is posted takes effect whole at the top of one tick, or not at all.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.clock.atomic cimport (
    load_acquire_i32,
    store_relaxed_i64,
    store_release_i32,
    swap_if_i32,
)
from torqueloop.cython_kernels.kernel.kernel cimport KernelModel, KernelState
from torqueloop.cython_kernels.tick.faults cimport fault_state_t, queued_t
from torqueloop.cython_kernels.tick.transaction cimport (
    CTL_FREE,
    CTL_GAINS,
    CTL_HELD,
    CTL_HOLD,
    CTL_IMAGE,
    CTL_LINKS,
    CTL_MODEL,
    CTL_NEXT,
    CTL_OK,
    CTL_POSTED,
    CTL_RELEASE,
    CTL_RESTORE,
    CTL_SET,
    CTL_STORED,
    CTL_WHO,
    CTL_WRITES,
    image_head_t,
    image_rx_t,
)

cnp.import_array()

#: kinds of writes
SET, HOLD, RELEASE = CTL_SET, CTL_HOLD, CTL_RELEASE
#: most writes in one transaction, most signals held at a time
MAX_WRITES, MAX_HELD = CTL_WRITES, CTL_HELD
#: bits of what a recorded transaction did (transaction.pxd)
MODEL, RESTORE, LINKS = CTL_MODEL, CTL_RESTORE, CTL_LINKS


cdef class Image:
    """State of a whole rig between two ticks. sizes: those of `Rig.image_sizes`."""

    def __init__(self, sizes):
        n_sig, nx, nk, n_messages, n_driver, n_guard, n_fault, n_queue, n_sending = self.sizes = tuple(int(n) for n in sizes)
        words = n_sig + nx + nk + n_messages + n_driver + 2 * n_guard + n_sending
        size = sizeof(image_head_t) + sizeof(image_rx_t) * n_messages + 8 * words
        self._memory = np.zeros(size + n_fault * sizeof(fault_state_t) + n_queue * sizeof(queued_t), dtype=np.uint8)
        self._memory[::4096] = 0
        cdef char* at = <char*>cnp.PyArray_DATA(self._memory)
        cdef image_t* m = &self.m
        m.n_sig, m.nx, m.nk, m.n_messages, m.n_driver, m.n_guard, m.n_fault, m.n_queue, m.n_sending = self.sizes
        m.head = <image_head_t*>at
        m.rx = <image_rx_t*>(at + sizeof(image_head_t))
        m.sig = <double*>(m.rx + m.n_messages)
        m.x = m.sig + m.n_sig
        m.k = <int64_t*>(m.x + m.nx)
        m.tx = m.k + m.nk
        m.hint = m.tx + m.n_messages
        m.guard_last = <double*>(m.hint + m.n_driver)
        m.guard_seen = <int64_t*>(m.guard_last + m.n_guard)
        m.fault = <fault_state_t*>(m.guard_seen + m.n_guard)
        m.queue = <queued_t*>(m.fault + m.n_fault)
        m.sending = <int64_t*>(m.queue + m.n_queue)

    @property
    def tick(self) -> int:
        """Simulated ticks that were done."""
        return self.m.head.tick

    def signal(self, slot: int) -> float:
        """A signal's value."""
        if not 0 <= slot < self.m.n_sig:
            raise IndexError(f"signal slot {slot}: allowed 0..{self.m.n_sig - 1}")
        return self.m.sig[slot]

    def held(self) -> dict:
        """Signals that were held: slot -> value."""
        return {self.m.head.held[i].slot: self.m.head.held[i].value for i in range(self.m.head.n_held)}

    def to_bytes(self) -> bytes:
        """The image as bytes, for `from_bytes` of an image of the same sizes."""
        return self._memory.tobytes()

    def from_bytes(self, data: bytes) -> None:
        """Inverse of to_bytes. ValueError when length or contents cannot be those of such a rig."""
        if len(data) != self._memory.size:
            raise ValueError(f"image of {len(data)} bytes, this rig needs {self._memory.size}")
        self._memory[:] = np.frombuffer(data, dtype=np.uint8)
        cdef int64_t i
        cdef image_head_t* h = self.m.head
        # numbers that are used as sizes and indices in a tick
        good = 0 <= h.tick < 1 << 53 and 0 <= h.n_held <= CTL_HELD
        for i in range(h.n_held if good else 0):
            good = good and 2 <= h.held[i].slot < self.m.n_sig and h.held[i].stage in (0, 1)
        for i in range(self.m.n_driver):
            good = good and self.m.hint[i] >= 0
        good = good and self._good_faults()
        if not good or not np.isfinite([self.m.sig[i] for i in range(self.m.n_sig)]).all():
            raise ValueError("the image holds values no rig can have")
        if not np.isfinite([self.m.x[i] for i in range(self.m.nx)]).all():
            raise ValueError("the image holds a state of the model that is not finite")

    def _good_faults(self):
        """Ticks and lengths of the faults and of the frames they hold back are such as a tick makes."""
        cdef fault_state_t* s
        cdef int64_t i
        good = 0 <= self.m.head.n_queued <= self.m.n_queue
        for i in range(self.m.n_fault):
            s = &self.m.fault[i]
            ticks = (s.begun, s.ended, s.windows, s.seen, s.acts, s.total, s.last_due)
            good = good and all(-1 <= tick < 1 << 53 for tick in ticks) and np.isfinite([s.held, s.last]).all()
        for i in range(self.m.head.n_queued if good else 0):
            good = good and self.m.queue[i].frame.dlc <= 64 and 0 <= self.m.queue[i].due < 1 << 53
        return bool(good)

    def check_hints(self, lengths: list) -> None:
        """ValueError unless the place in each driver table exists."""
        for k, n in enumerate(lengths):
            if self.m.hint[k] >= n:
                raise ValueError(f"the image stands at point {self.m.hint[k]} of driver table {k}, which has {n}")


cdef class Control:
    """The one transaction between a control thread and the tick."""

    def __cinit__(self):
        self.c.state = CTL_FREE
        self.c.at_tick = -1

    @property
    def free(self) -> bool:
        """A transaction may be posted; the one before has its answer."""
        return load_acquire_i32(&self.c.state) & CTL_WHO == CTL_FREE

    def post(self, writes: list, at_tick: int = -1, reference: int = 0, model: KernelModel = None,
             state: KernelState = None, gains=(), source: Image = None, links: bool = False,
             target: Image = None) -> None:
        """Post a transaction; ValueError if it is too long, RuntimeError if one is out already.

        writes: (slot, kind, value), kind one of SET, HOLD, RELEASE. at_tick: simulated tick it waits for; below 0: the
        next. model, state: the model to go on with and fresh memory for its state; gains: factors of the momentum then.
        source: image to go back to; links: counters of the bus and stamps of the vehicle as well. target: receives an
        image. reference: where a replay finds model and source.
        """
        if len(writes) > CTL_WRITES:
            raise ValueError(f"{len(writes)} writes: allowed at most {CTL_WRITES}")
        if not self.free:
            raise RuntimeError("a transaction is waiting already")
        for k, (slot, kind, value) in enumerate(writes):
            self.c.write[k].slot, self.c.write[k].kind, self.c.write[k].value = slot, kind, value
        store_relaxed_i64(&self.c.at_tick, at_tick)
        self.c.n_write, self.c.ref = len(writes), reference
        self.stage(model, state, gains, source, links)
        self.c.target = NULL
        self.target = target
        if target is not None:
            self.c.target = &target.m
            self.c.what |= CTL_IMAGE
        self.hand_over()

    def stage(self, model: KernelModel = None, state: KernelState = None, gains=(), source: Image = None,
              links: bool = False) -> None:
        """Model and image of the transaction; replay calls it for one that is in the record."""
        self.c.what = 0
        if model is not None:
            if state is None or state.model is not model:
                raise ValueError("the state does not belong to the model")
            if len(gains) > CTL_GAINS:
                raise ValueError(f"{len(gains)} factors of the momentum: allowed at most {CTL_GAINS}")
            self.c.what |= CTL_MODEL
            self.c.model, self.c.model_state = model.ptr, state.ptr
            self.c.n_gain = len(gains)
            for k, gain in enumerate(gains):
                self.c.gain[k] = gain
            # the tick uses those it has taken last until these have taken their place
            if self._staged is not None and self.c.result == CTL_OK:
                self._current = self._staged
            self._staged = (model, state)
        if source is not None:
            self.c.source = &source.m
            self.c.what |= CTL_RESTORE | (CTL_LINKS if links else 0)
            self._source = source

    def serve_references(self, function) -> None:
        """For replay: function(reference) stages, with stage(), the model or image a record refers to."""
        self._references = function

    cdef int post_record(self) except -1:
        """Post the transaction that rig_feed has taken from an input record."""
        if self.c.recorded & (CTL_MODEL | CTL_RESTORE):
            if self._references is None:
                raise ValueError(f"input record: nothing to find reference {self.c.ref} with")
            self._references(self.c.ref)
        if self.c.what != self.c.recorded:
            raise ValueError(f"input record: reference {self.c.ref} is not what was taken in the run")
        self.hand_over()
        return 0

    cdef void hand_over(self) noexcept:
        # a tick that looks for the transaction before may still be at it (and find another number): no plain read.
        # The number wraps around, beside the sign
        cdef int32_t number = (load_acquire_i32(&self.c.state) & ~CTL_WHO) + CTL_NEXT & 0x3FFFFFFF
        store_release_i32(&self.c.state, number | CTL_POSTED)

    def set_stored(self, outputs: list) -> None:
        """Outputs of the model (from 0) that are stored energy, J. Before arming."""
        if len(outputs) > CTL_STORED:
            raise ValueError(f"{len(outputs)} stored energies: allowed at most {CTL_STORED}")
        for k, index in enumerate(outputs):
            self.c.stored[k] = index
        self.c.n_stored = len(outputs)

    @property
    def work(self) -> float:
        """Work that changes of parameters have done: what the stored energy jumped by in them, J."""
        return self.c.work

    def cancel(self) -> bool:
        """Take a transaction back; False if a tick has it already."""
        cdef int32_t state = load_acquire_i32(&self.c.state)
        if state & CTL_WHO != CTL_POSTED or not swap_if_i32(&self.c.state, state, state & ~CTL_WHO | CTL_FREE):
            return False
        if self.c.what & CTL_MODEL:
            self._staged = None
        return True

    def answer(self) -> tuple:
        """(simulated tick in which the last transaction took effect, whether it did). It is refused in
        the safe state and while disarming, if it wants another model or image."""
        return self.c.done_tick, self.c.result == CTL_OK

    def held(self) -> dict:
        """Signals that are held: slot -> value. Exact while no transaction is out."""
        return {self.c.held[i].slot: self.c.held[i].value for i in range(self.c.n_held)}
