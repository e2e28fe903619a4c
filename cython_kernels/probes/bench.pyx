"""Time of every single step, and of the codec, for benchmarks."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from torqueloop.cython_kernels.can.codec cimport CodecTables, RxState, TxState, codec_decode, codec_encode
from torqueloop.cython_kernels.clock.clock cimport monotonic_ns
from torqueloop.cython_kernels.clock.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.kernel.kernel cimport KernelModel, KernelState, tl_step
from torqueloop.cython_kernels.rings.buffer cimport PyBuffer_Release, doubles_of
from torqueloop.cython_kernels.rings.can_frame cimport can_frame_t

cnp.import_array()


def time_steps(KernelModel model not None, KernelState state not None, inputs):
    """Run K steps with inputs (K, nin) held over each step; returns the ns that each step took (K), clock included."""
    arr = np.ascontiguousarray(inputs, dtype=np.float64)
    if arr.ndim != 2 or arr.shape[1] != model.ptr.nin:
        raise ValueError(f"inputs: shape {arr.shape}, expected (K, {model.ptr.nin})")
    cdef int64_t K = arr.shape[0], i, t0, t1
    cdef int nin = model.ptr.nin
    out = np.zeros(K, dtype=np.int64)
    cdef int64_t* ns = <int64_t*>cnp.PyArray_DATA(out)
    cdef const double* src = <const double*>cnp.PyArray_DATA(arr)
    cdef unsigned long long mode
    state.ptr.held = 1
    with nogil:
        mode = denormals_off()
        t0 = monotonic_ns()
        for i in range(K):
            memcpy(state.ptr.inp, src + i * nin, nin * sizeof(double))
            tl_step(model.ptr, state.ptr)
            t1 = monotonic_ns()
            ns[i] = t1 - t0
            t0 = t1
        denormals_restore(mode)
    return out


def benchmark_ns(CodecTables sender not None, CodecTables receiver not None, table not None, int n):
    """(ns per encode, ns per decode) of the messages that `sender` sends and `receiver` receives, n frames of each.

    The frames are decoded in the order of sending, so that all of them pass all checks; RuntimeError if one does not.
    ValueError for more than 64 messages.
    """
    tx = TxState(sender)
    rx = RxState(receiver)
    indices = [i for i, m in enumerate(sender.messages) if not m.receive]
    cdef int[64] order
    cdef int k = len(indices)
    cdef int i, j
    cdef int bad = 0
    if k > 64:
        raise ValueError(f"{k} sent messages: allowed 1..64")
    frame_bytes = np.zeros(n * k * sizeof(can_frame_t), dtype=np.uint8)
    received = np.zeros(max(sender.c.n_slots, receiver.c.n_slots))
    cdef can_frame_t* frames = <can_frame_t*>cnp.PyArray_DATA(frame_bytes)
    cdef double* values = <double*>cnp.PyArray_DATA(received)
    cdef Py_buffer view
    cdef const double* sig = doubles_of(table, &view, False)
    for i in range(k):
        order[i] = indices[i]
    try:
        t0 = monotonic_ns()
        with nogil:
            for i in range(n):
                for j in range(k):
                    bad += codec_encode(&sender.c, tx.ptr, order[j], sig, &frames[i * k + j])
        t1 = monotonic_ns()
        with nogil:
            for i in range(n * k):
                bad += codec_decode(&receiver.c, &frames[i], values, rx.ptr, i)
        t2 = monotonic_ns()
    finally:
        PyBuffer_Release(&view)
    if bad:
        raise RuntimeError(f"benchmark: a frame was refused: {rx.counters()} {tx.counters()}")
    return (t1 - t0) / (n * k), (t2 - t1) / (n * k)
