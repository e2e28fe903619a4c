"""Time of every single step, for benchmarks."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from torqueloop.cython_kernels.clock.clock cimport monotonic_ns
from torqueloop.cython_kernels.clock.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.kernel.kernel cimport KernelModel, KernelState, tl_step

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
