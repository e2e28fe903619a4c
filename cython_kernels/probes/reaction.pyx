"""The tick's way from a received frame to a sent one, without waiting for the grid: for measuring it."""

from libc.stdint cimport int64_t

from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t
from torqueloop.cython_kernels.can.codec cimport CODEC_OK, RxState, TxState, codec_decode, codec_encode, codec_t
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of
from torqueloop.cython_kernels.can.socketcan cimport (
    PORT_DATA,
    NativePort,
    canport_t,
    port_frame,
    port_received,
    port_send,
    port_wait,
)

from posix.fcntl cimport F_GETFL, F_SETFL, O_NONBLOCK, fcntl

cdef extern from "<sys/time.h>" nogil:
    cdef struct timeval:
        long tv_sec
        long tv_usec

cdef extern from "<sys/socket.h>" nogil:
    int setsockopt(int fd, int level, int option, const void* value, unsigned int size)
    int SOL_SOCKET, SO_RCVTIMEO


cdef int _blocking(int fd, bint on, int timeout_ms) except -1:
    """Whether reading waits, and for how long at most (0: for ever)."""
    cdef timeval limit
    cdef int flags = fcntl(fd, F_GETFL)
    limit.tv_sec, limit.tv_usec = timeout_ms // 1000, timeout_ms % 1000 * 1000
    if (flags < 0 or fcntl(fd, F_SETFL, flags & ~O_NONBLOCK if on else flags | O_NONBLOCK) < 0
            or setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0):
        raise OSError("the socket cannot be made to wait")
    return 0


def answer_frames(NativePort port not None, RxState rx not None, TxState tx not None, table not None,
                  int message, int copy_from, int copy_to, int64_t count, int timeout_ms=1000):
    """Answer `count` good frames: decoded into the table, one slot copied, message `message` encoded and sent.

    Waits in the read, as a C program would, without the GIL. Returns the answers sent; fewer than `count` if nothing
    came for timeout_ms. Every message takes the way it takes in a tick, our own frames that come back included.
    """
    cdef Py_buffer view
    cdef double* sig = doubles_of(table, &view, True)
    try:
        return _answer(port, rx, tx, sig, <int>(view.len // 8), message, copy_from, copy_to, count, timeout_ms)
    finally:
        PyBuffer_Release(&view)


cdef int64_t _answer(NativePort port, RxState rx, TxState tx, double* sig, int n_values, int message, int copy_from, int copy_to,
                     int64_t count, int timeout_ms) except -1:
    cdef int n_slots = rx.tables.n_slots
    if n_values < n_slots or not (0 <= copy_from < n_values and 0 <= copy_to < n_values):
        raise ValueError(f"table of {n_values} values, {n_slots} are needed; slots {copy_from}, {copy_to}")
    if not 0 <= message < len(tx.tables.messages):
        raise ValueError(f"message {message} of {len(tx.tables.messages)}")
    cdef canport_t* p = port.p
    cdef const codec_t* codec = rx.tables.ptr
    cdef can_frame_t frame
    cdef int64_t sent = 0
    cdef int n, errors = 0
    cdef int fd = port.listener()
    _blocking(fd, True, timeout_ms)
    with nogil:
        while sent < count:
            n = port_wait(p)
            errors = errors + 1 if n < 0 else 0
            if n == 0 or errors > 100:
                break
            if n < 0 or port_frame(p, 0, &frame) != PORT_DATA:
                continue
            if codec_decode(codec, &frame, sig, rx.ptr, p.read_ns) == CODEC_OK:
                sig[copy_to] = sig[copy_from]
                if codec_encode(codec, tx.ptr, message, sig, &frame) == CODEC_OK and port_send(p, &frame):
                    sent += 1
            port_received(p, p.read_ns)
    _blocking(fd, False, 0)
    return sent
