"""Exchanges of a lockstep without a Python object on the way, where the messages are of the usual form.

    SlotExchange    rig's slot -> StepPeer -> vehicle's slot          one a tick
    StepPeer        a model in this process, or
    BoxedPeer       one behind a mailbox: numbers -> bytes -> box  - - >  serve(): box -> numbers -> StepPeer -> ... back

Whatever is unusual (another form of the message, a number out of its range, no room in a box, no answer for a while) is
left as it is, in the box, and said: hil/link/lockstep.py then does it the long way, which names what is wrong. The bytes
are the same on both ways.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from cpython.bytes cimport PyBytes_FromStringAndSize

from torqueloop.cython_kernels.clock.clock cimport monotonic_ns
from torqueloop.cython_kernels.link.coupling cimport CouplingSums
from torqueloop.cython_kernels.link.form cimport BYTES_MAX, Form
from torqueloop.cython_kernels.link.mailbox cimport Mailbox
from torqueloop.cython_kernels.rings.ring cimport LatestSlot, slot_read, slot_write

#: what became of an exchange (SlotExchange.run): there is a new state; the step is the one that was asked last; no answer
#: of the usual form, the question has been sent; nothing has been sent
DONE, AGAIN, UNANSWERED, UNSENT = 1, 0, 2, 3

cdef enum:
    C_UNSENT = 3
    C_UNANSWERED = 2
    C_DONE = 1
    C_AGAIN = 0


@cython.auto_pickle(False)
cdef class StepPeer:
    """What is asked a step and answers with a state, as numbers in the order of the messages. real-time: no."""

    cdef int answer(self, const double* asked, double* answered) except -1:
        """ASKED numbers to ANSWERED numbers; DONE, UNANSWERED or UNSENT."""
        return C_UNSENT

    def asked_by_numbers(self) -> bool:
        """These numbers say all there is in a message to it and of it; False: whoever asks calls its `step`."""
        return False


@cython.auto_pickle(False)
cdef class BoxedPeer(StepPeer):
    """A peer at the other side of a mailbox."""

    def __init__(self, Mailbox box not None, Form asks not None, Form tells not None, double patience_s):
        """asks, tells: forms of a step and a state. patience_s: after it the wait is left to somebody who also looks
        whether the peer is still alive."""
        if asks.n != ASKED or tells.n != ANSWERED:
            raise ValueError(f"forms of {asks.n} and {tells.n} numbers, allowed: {<int>ASKED} and {<int>ANSWERED}")
        self._box, self._asks, self._tells, self._patience_s = box, asks, tells, patience_s

    def asked_by_numbers(self) -> bool:
        return True

    cdef int answer(self, const double* asked, double* answered) except -1:
        cdef uint8_t[BYTES_MAX] space
        cdef int64_t began_ns = monotonic_ns()
        cdef int size = self._asks.pack_numbers(asked, space)
        cdef Py_ssize_t got
        cdef bint there
        # an answer that lies there already is to a question before this one, and not of this way
        if size == 0 or self._box.waits() or not self._box.put(space, size):
            return C_UNSENT
        with nogil:
            there = self._box.wait(began_ns + <int64_t>(1e9 * self._patience_s))
        if not there:
            return C_UNANSWERED
        got = self._box.look(space, sizeof(space))
        if got < 0 or not self._tells.unpack_numbers(space, got, answered) or answered[0] != asked[0]:
            return C_UNANSWERED
        self._box.drop()
        self.wait_max_s = max(self.wait_max_s, 1e-9 * (monotonic_ns() - began_ns))
        return C_DONE


@cython.auto_pickle(False)
cdef class SlotExchange:
    """Asks a peer at the state of the rig that is in one slot, and lays its answer into the other. real-time: no."""

    def __init__(self, LatestSlot rig not None, LatestSlot vehicle not None, StepPeer peer not None,
                 CouplingSums sums not None):
        """`sums`: books of the difference of both motions."""
        if rig.s.n != ASKED or vehicle.s.n != ANSWERED:
            raise ValueError(f"slots of {rig.s.n} and {vehicle.s.n} numbers, allowed: {<int>ASKED} and {<int>ANSWERED}")
        self._rig, self._vehicle, self._peer, self._sums = rig, vehicle, peer, sums
        self.forget()

    def forget(self) -> None:
        """The next step is asked, whatever was asked last."""
        self._asked[0] = -1.0

    @property
    def step(self) -> int:
        """The step that was asked last."""
        return <int64_t>self._asked[0]

    def run(self, int64_t now_ns) -> int:
        """One exchange; now_ns: stamp of the answer. DONE, AGAIN (nothing asked), UNANSWERED or UNSENT."""
        cdef int64_t stamp = 0
        cdef double before = self._asked[0]
        cdef int how
        # a slot that nobody has written yet holds zeros
        if slot_read(&self._rig.s, self._asked, &stamp) == 0:
            self._asked[0] = before
            return C_UNSENT
        if self._asked[0] == before:
            return C_AGAIN
        how = self._peer.answer(self._asked, self._answered)
        if how == C_DONE:
            self._sums.note(<int64_t>self._asked[0], self._asked[4], self._asked[3], self._answered[3])
            slot_write(&self._vehicle.s, self._answered, now_ns)
        return how


def serve(Mailbox box not None, Form asks not None, Form tells not None, StepPeer peer not None, double timeout_s,
          int most) -> tuple:
    """Let `peer` answer the steps of the usual form that come, until one is not, none comes within timeout_s, or there
    were `most` of them. How many there were, and the last answer if there was no room for it in the box, else None. A
    message of another form stays in the box. An exception of the peer's passes."""
    cdef uint8_t[BYTES_MAX] space
    cdef double[ASKED] asked
    cdef double[ANSWERED] answered
    cdef Py_ssize_t size
    cdef int n
    cdef bint there
    if asks.n != ASKED or tells.n != ANSWERED:
        raise ValueError(f"forms of {asks.n} and {tells.n} numbers, allowed: {<int>ASKED} and {<int>ANSWERED}")
    for n in range(most):
        if not box.waits():
            with nogil:
                there = box.wait(monotonic_ns() + <int64_t>(1e9 * timeout_s))
            if not there:
                return n, None
        size = box.look(space, sizeof(space))
        if size < 0 or not asks.unpack_numbers(space, size, asked):
            return n, None
        box.drop()
        if peer.answer(asked, answered) != C_DONE:
            raise ValueError("a peer behind a box must answer by itself")
        size = tells.pack_numbers(answered, space)
        if size == 0:
            raise ValueError(f"state of step {answered[0]}, own step {answered[1]}: allowed: whole numbers below 2^53")
        if not box.put(space, size):
            return n + 1, PyBytes_FromStringAndSize(<char*>space, size)
    return most, None
