"""The tick's way from a received frame to a sent one, without waiting for the grid: for measuring it."""

from libc.stdint cimport int64_t

from torqueloop.cython_kernels.can_frame cimport can_frame_t
from torqueloop.cython_kernels.clock cimport monotonic_ns
from torqueloop.cython_kernels.codec cimport CODEC_OK, RxState, TxState, codec_decode, codec_encode, codec_t
from torqueloop.cython_kernels.socketcan cimport (
    PORT_BATCH,
    PORT_DATA,
    NativePort,
    canport_t,
    port_frame,
    port_receive,
    port_received,
    port_send,
)

cdef extern from "<poll.h>" nogil:
    cdef struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* fds, unsigned long n, int timeout_ms)
    short POLLIN


def answer_frames(NativePort port not None, RxState rx not None, TxState tx not None, double[::1] table not None,
                  int message, int copy_from, int copy_to, int64_t count, int timeout_ms=1000):
    """Answer `count` good frames: decoded into the table, one slot copied, message `message` encoded and sent.

    Blocks without the GIL between them. Returns the answers sent; fewer than `count` if nothing came for timeout_ms.
    """
    cdef int n_slots = rx.tables.n_slots
    if table.shape[0] < n_slots or not (0 <= copy_from < table.shape[0] and 0 <= copy_to < table.shape[0]):
        raise ValueError(f"table of {table.shape[0]} values, {n_slots} are needed; slots {copy_from}, {copy_to}")
    if not 0 <= message < len(tx.tables.messages):
        raise ValueError(f"message {message} of {len(tx.tables.messages)}")
    cdef canport_t* p = port.p
    cdef const codec_t* codec = rx.tables.ptr
    cdef double* sig = &table[0]
    cdef pollfd wait
    cdef can_frame_t frame
    cdef int64_t sent = 0, now
    cdef int n, i
    wait.fd = port.listener()
    wait.events = POLLIN
    with nogil:
        while sent < count:
            if poll(&wait, 1, timeout_ms) <= 0:
                break
            now = monotonic_ns()
            n = port_receive(p, PORT_BATCH, now)
            for i in range(max(0, n)):
                if port_frame(p, i, &frame) != PORT_DATA:
                    continue
                if codec_decode(codec, &frame, sig, rx.ptr, now) != CODEC_OK:
                    continue
                sig[copy_to] = sig[copy_from]
                if codec_encode(codec, tx.ptr, message, sig, &frame) == CODEC_OK and port_send(p, &frame):
                    sent += 1
            port_received(p, now)
    return sent
