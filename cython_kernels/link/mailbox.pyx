"""Letter boxes in memory that two processes share: one message there, then one back, as a lockstep needs it.

    side 0  --box 0-->  side 1        a box holds one message; its word `posted` counts them, and whoever waits for the
    side 0  <--box 1--  side 1        next one sleeps on it (futex(2))

A message is taken before the next one is posted. With both sides on one processor a message costs one system call to
wake the reader and one to sleep until its answer. Looking at the word instead of sleeping is faster where both sides
have a processor of their own to burn, and three times slower where a third process wants one of them. The order of
posting and going to sleep is Dekker's: each side writes its word, a full fence, then reads the other's.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from torqueloop.cython_kernels.clock.atomic cimport (
    TL_FENCE_ALL,
    load_acquire_u32,
    store_relaxed_u32,
    store_release_u32,
)
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns

cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    #ifdef __linux__
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static void tl_word_wait(uint32_t *word, uint32_t value, int64_t ns) {
        struct timespec t = {ns / 1000000000, ns % 1000000000};
        syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
    }
    static void tl_word_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }
    #else
    /* no futex: looked at every 50 us */
    static void tl_word_wait(uint32_t *word, uint32_t value, int64_t ns) {
        struct timespec t = {0, ns < 50000 ? ns : 50000};
        nanosleep(&t, NULL);
    }
    static void tl_word_wake(uint32_t *word) { (void)word; }
    #endif
    """
    void tl_word_wait(uint32_t* word, uint32_t value, int64_t ns) noexcept nogil
    void tl_word_wake(uint32_t* word) noexcept nogil


#: bytes of memory a pair of boxes takes; longest message
MAILBOX_BYTES = sizeof(box_t) * 2
ROOM = BOX_BYTES - 16


cdef void doze(box_t* box, uint32_t seen, int64_t until_ns) noexcept nogil:
    """Sleep until there is a message beyond `seen`, or until_ns."""
    cdef int64_t rest
    store_relaxed_u32(&box.sleeping, 1)
    TL_FENCE_ALL()
    while load_acquire_u32(&box.posted) == seen:
        rest = until_ns - monotonic_ns()
        if rest <= 0:
            break
        tl_word_wait(&box.posted, seen, rest)
    store_relaxed_u32(&box.sleeping, 0)


@cython.auto_pickle(False)
cdef class Mailbox:
    """One side of a pair of boxes in `memory` (writable buffer of MAILBOX_BYTES, zeros at first). real-time: no."""

    def __cinit__(self, memory, int side):
        """side: 0 asks first, 1 answers."""
        if side not in (0, 1):
            raise ValueError(f"side = {side}, allowed: 0, 1")
        PyObject_GetBuffer(memory, &self._view, PyBUF_WRITABLE)
        if self._view.len < 2 * <Py_ssize_t>sizeof(box_t):
            raise ValueError(f"memory of {self._view.len} bytes, allowed: at least {MAILBOX_BYTES}")
        self._out = <box_t*>self._view.buf + side
        self._in = <box_t*>self._view.buf + (1 - side)

    def __dealloc__(self):
        if self._view.buf != NULL:
            PyBuffer_Release(&self._view)

    cdef bint put(self, const void* message, size_t size) noexcept nogil:
        """Post a message; False where the last one is still there, or this one has no room."""
        cdef uint32_t n = self._out.posted
        if size > sizeof(self._out.data) or load_acquire_u32(&self._out.taken) != n:
            return False
        memcpy(self._out.data, message, size)
        self._out.length = <uint32_t>size
        store_release_u32(&self._out.posted, n + 1)
        TL_FENCE_ALL()
        if load_acquire_u32(&self._out.sleeping):
            tl_word_wake(&self._out.posted)
        return True

    cdef bint waits(self) noexcept nogil:
        """There is a message."""
        return load_acquire_u32(&self._in.posted) != self._in.taken

    cdef bint wait(self, int64_t until_ns) noexcept nogil:
        """Sleep until there is a message, or until_ns; whether there is one."""
        if not self.waits():
            doze(self._in, self._in.taken, until_ns)
        return self.waits()

    cdef Py_ssize_t look(self, void* to, size_t room) noexcept nogil:
        """Copy the message that waits, which stays; its size, -1 where it is longer than `room`. A copy is judged: the
        other side can still write to the box."""
        cdef size_t size = self._in.length
        if size > room or size > sizeof(self._in.data):
            return -1
        memcpy(to, self._in.data, size)
        return <Py_ssize_t>size

    cdef void drop(self) noexcept nogil:
        """The message that waits has been taken."""
        store_release_u32(&self._in.taken, self._in.taken + 1)

    def post(self, bytes message) -> bool:
        """Put a message into the box; False where the last one is still there, or this one has no room."""
        return self.put(PyBytes_AS_STRING(message), <size_t>len(message))

    def take(self, double timeout_s):
        """The next message, None when there is none in time."""
        cdef uint32_t size
        cdef int64_t until_ns
        if not self.waits():
            until_ns = monotonic_ns() + <int64_t>(1e9 * timeout_s)
            with nogil:
                self.wait(until_ns)
            if not self.waits():
                return None
        size = self._in.length
        if size > sizeof(self._in.data):
            raise ValueError(f"message of {size} bytes in a box of {ROOM}")
        message = PyBytes_FromStringAndSize(<char*>self._in.data, size)
        self.drop()
        return message
