"""Model and state of a driveline: owners of their memory, and the step.

`KernelModel` turns the arrays of a compiled driveline (see `torqueloop.core.compile.compiler`) into the constant struct of
model.pxd and computes what depends on the step size. `KernelState` owns everything that changes.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport NAN, atan2, cos, sin, sqrt, tan
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from torqueloop.cython_kernels.step cimport generic
from torqueloop.cython_kernels.clock.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.model.excess cimport excess_now
from torqueloop.cython_kernels.model.fingerprint cimport fingerprint
from torqueloop.cython_kernels.model.joints cimport TL_JOINT_OUTPUTS, bend, bent, tl_bend
from torqueloop.cython_kernels.model.poses cimport (
    TL_POSE_STATE, cross3, dot3, place_shaft, place_side, posed_bend, posed_wrench, tl_shaft, unwrapped,
)
from torqueloop.cython_kernels.model.laws cimport (
    contact_deflection,
    contact_force,
    contact_loss,
    damper_power,
    kinetic_energy,
    larger,
    potential,
    row_angle,
    rigid_offsets,
    turn_back,
    turned_angle,
    row_dot,
    stop_limits,
    shown_mode,
    spring_force,
)
from torqueloop.cython_kernels.locks.locks cimport build_scratch, pattern_of, set_ratio_rows
# all of it: a new record is bound without being named here
from torqueloop.cython_kernels.model.model cimport *

from cpython.pycapsule cimport PyCapsule_GetPointer

from torqueloop.cython_kernels.step import topologies
from torqueloop.cython_kernels.model.derive import complete, fast_modes
from torqueloop.cython_kernels.model.model_arrays import check_layout
from torqueloop.cython_kernels.model.structure import PRECOMPILED, READERS, outputs_signature, structure_signature

cnp.import_array()

#: of h: how much longer than a step its part may be, by rounding
cdef double STEP_ROUNDING = 1e-12
#: counters of KernelState.counters, in the order of the C enum
COUNTER_NAMES = ("events", "splits_max", "fallbacks", "decisions", "pivots", "pivots_max", "relaxed", "evals",
                 "steep_unsolved", "refused", "negative_heat", "beyond_standstill", "joint_parts")


cdef int claim(tl_state* s, bint taken) except -1:
    """Before a state is stepped (taken: and the GIL given back), read or written: RuntimeError while another thread steps it."""
    if s.busy:
        raise RuntimeError("another thread steps this state: give each thread a state of its own (KernelState.copy)")
    s.busy = taken
    return 0


cdef int ended(const tl_state* s) except -1:
    """After steps: RuntimeError where they ran out of scratch memory."""
    if s.arena.most > s.arena.size:
        raise RuntimeError(f"the step took {s.arena.most} doubles of scratch memory, {s.arena.size} are reserved: arena_size in "
                           "state_memory.pxi counts too few for this driveline. Please report it with the driveline file")
    return 0


include "kernel_bind.pxi"


cdef class KernelModel:
    """Constant model at a fixed step.

    arrays: ModelArrays as produced by the compiler (SI units); h: step in s, > 0;
    kernel: "auto" takes a precompiled step when one fits the structure, "generic" never does, a name insists on it.
    Raises ValueError for wrong shapes or an unknown kernel.
    """

    def __cinit__(self):
        self.ptr = <tl_model*>calloc(1, sizeof(tl_model))
        if self.ptr == NULL:
            raise MemoryError()
        self._keep = []

    def __dealloc__(self):
        free(self.ptr)

    def __init__(self, arrays, double h, kernel="auto"):
        self.arrays = arrays
        self.h = h
        done = complete(arrays, h)
        bind(self, done)
        bind_tables(self, arrays, done.tab1_dy)
        self._select(kernel)

    def _select(self, kernel):
        self.step_fn = generic.advance
        self.kernel_name = "generic"
        if kernel != "generic":
            topologies.import_all()
            found = PRECOMPILED.get(structure_signature(self.arrays))
            if found is not None and kernel in ("auto", found[0]):
                self.kernel_name = found[0]
                self.step_fn = <tl_step_fn>PyCapsule_GetPointer(found[1], "torqueloop.step")
                reader = READERS.get(outputs_signature(self.arrays))
                if reader is not None:
                    self.ptr.read_fn = <tl_read_fn>PyCapsule_GetPointer(reader, "torqueloop.outputs")
            elif kernel != "auto":
                known = sorted(name for name, _ in PRECOMPILED.values())
                raise ValueError(f"kernel {kernel!r} does not fit this driveline; precompiled here: {known}")
        self.ptr.step_fn = self.step_fn

    @property
    def sizes(self):
        """Sizes of the model: independent speeds, rows, inputs, friction elements, outputs ..."""
        cdef tl_model* m = self.ptr
        return {"n": m.n, "rows": m.nrow, "hot": m.nhot, "inputs": m.nin, "compliances": m.nlin, "ports": m.nport,
                "losses": m.nls, "contacts": m.ncon, "driven": m.nd, "variable_gears": m.nvg, "thermal_nodes": m.nth,
                "friction": m.nf, "actuators": m.nact, "outputs": m.nout, "order": m.order, "cache": m.ncache}

    def run(self, KernelState s not None, inputs, outputs=None, int every=1):
        """Advance s by K steps without the GIL.

        inputs: (K, nin) values held over each step, or (K, 3, nin) values at its start, middle and end (held where these
        three are the same: a polynomial through them would have a slope of rounding);
        outputs: (ceil(K/every), nout) array to fill after every `every`-th step, or None.
        Returns the number of steps done; less than K when the state stopped being finite (s.status = 1).
        """
        arr = np.ascontiguousarray(inputs, dtype=np.float64)
        cdef tl_model* m = self.ptr
        cdef tl_state* st = s.ptr
        if every < 1:
            raise ValueError(f"every = {every}, allowed: every >= 1")
        if arr.ndim not in (2, 3) or arr.shape[arr.ndim - 1] != m.nin or (arr.ndim == 3 and arr.shape[1] != 3):
            raise ValueError(f"inputs: shape {arr.shape}, expected (K, {m.nin}) or (K, 3, {m.nin})")
        cdef int64_t K = arr.shape[0], i, j, row = 0
        cdef int held = arr.ndim == 2, nin = m.nin, status = 0
        cdef const double* src = <const double*>cnp.PyArray_DATA(arr) if arr.size else NULL
        cdef const double* at
        cdef double* dst = NULL
        cdef unsigned long long mode
        if outputs is not None:
            if outputs.dtype != np.float64 or not outputs.flags.c_contiguous or outputs.ndim != 2 \
                    or outputs.shape[1] != m.nout or outputs.shape[0] * every < K:
                raise ValueError(f"outputs: need a contiguous float64 array ({-(-K // every)}, {m.nout})")
            dst = <double*>cnp.PyArray_DATA(outputs)
        claim(st, True)
        with nogil:
            mode = denormals_off()
            for i in range(K):
                at = src + i * (nin if held else 3 * nin)
                st.held = held or (memcmp(at, at + nin, nin * sizeof(double)) == 0
                                   and memcmp(at, at + 2 * nin, nin * sizeof(double)) == 0)
                memcpy(st.inp, at, (nin if st.held else 3 * nin) * sizeof(double))
                status = tl_step(m, st)
                if status != 0:
                    break
                if dst != NULL and i % every == every - 1:
                    tl_outputs(m, st, dst + row * m.nout)
                    row += 1
            denormals_restore(mode)
        st.busy = 0
        ended(st)
        return i if status != 0 else K

    def advance(self, KernelState s not None, in3, double dt):
        """Advance s by dt <= h. in3: (3, nin) inputs at 0, h/2 and h after now, of the branch valid now (beyond dt it is
        only used for extrapolation). dt = 0 finds accelerations, modes and torques of the present instant only. Returns the
        status."""
        arr = np.ascontiguousarray(in3, dtype=np.float64)
        if arr.shape != (3, self.ptr.nin):
            raise ValueError(f"in3: shape {arr.shape}, expected (3, {self.ptr.nin})")
        if not 0.0 <= dt <= self.h * (1.0 + STEP_ROUNDING):
            raise ValueError(f"dt = {dt} s, allowed 0 <= dt <= h = {self.h} s")
        if dt > self.h:
            dt = self.h
        claim(s.ptr, True)
        if arr.size:
            memcpy(s.ptr.inp, cnp.PyArray_DATA(arr), 3 * self.ptr.nin * sizeof(double))
        cdef int status
        cdef unsigned long long mode
        cdef const double* first = s.ptr.inp
        cdef size_t row = self.ptr.nin * sizeof(double)
        s.ptr.held = memcmp(first, first + self.ptr.nin, row) == 0 and memcmp(first, first + 2 * self.ptr.nin, row) == 0
        with nogil:
            mode = denormals_off()
            status = self.step_fn(self.ptr, s.ptr, dt)
            if dt < self.h and not s.ptr.held:
                show_inputs(self.ptr, s.ptr, dt / self.h)
            denormals_restore(mode)
        s.ptr.busy = 0
        ended(s.ptr)
        return status

    def outputs(self, KernelState s not None):
        """Output values now, (nout)."""
        claim(s.ptr, False)
        out = np.zeros(self.ptr.nout)
        cdef unsigned long long mode = denormals_off()
        tl_outputs(self.ptr, s.ptr, <double*>cnp.PyArray_DATA(out))
        denormals_restore(mode)
        return out

    def mode_log(self, KernelState s not None):
        """Mode changes since the last call: structured array (step_no, time_s, element, mode); the ring is emptied."""
        cdef tl_state* st = s.ptr
        cdef int64_t first = st.log.n - st.log.size if st.log.n > st.log.size else 0, j
        out = np.zeros(st.log.n - first, dtype=[("step_no", "i8"), ("time_s", "f8"), ("element", "i4"), ("mode", "i4")])
        for row, i in enumerate(range(first, st.log.n)):
            j = i % st.log.size
            out[row] = (st.log.step[j], st.log.t[j], st.log.element[j], st.log.mode[j])
        st.log.n = 0
        return out


include "state_memory.pxi"
include "kernel_state.pxi"
include "kernel_outputs.pxi"
include "readout.pxi"
