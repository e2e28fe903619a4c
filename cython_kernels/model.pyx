"""Model and state of a driveline: owners of their memory, and the step.

`KernelModel` turns the arrays of a compiled driveline (see `torqueloop.core.compiler`) into the constant struct of
model.pxd and computes what depends on the step size. `KernelState` owns everything that changes.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from torqueloop.cython_kernels cimport generic
from torqueloop.cython_kernels.locks cimport pattern_of
from torqueloop.cython_kernels.model cimport tl_eval, tl_model, tl_pattern, tl_state, tl_table1, tl_table2

from cpython.pycapsule cimport PyCapsule_GetPointer

from torqueloop.cython_kernels import topologies
from torqueloop.cython_kernels.structure import PRECOMPILED, structure_signature

cnp.import_array()

#: counters of KernelState.counters, in the order of the C enum
COUNTER_NAMES = ("events", "splits_max", "fallbacks", "decisions", "pivots", "pivots_max", "relaxed", "evals")
#: stands for an unlimited torque; finite, so that interpolation stays finite (same value in forces.pxi)
UNLIMITED = 1e301
#: h/2 * slope * compliance above which the torque of a sliding element is found implicitly: explicit evaluation is stable
#: below 1 and still accurate at 0.2; larger values let clutches with steep mu(w) chatter around zero slip
STIFF = 0.2
#: bound on the memory of the lock-pattern cache of one state
CACHE_BYTES = 64 << 20

_I = ("row_ptr", "row_idx", "lin_row", "tq_row", "tq_in", "poly_row", "eng_row", "eng_pedal_in", "eng_wot_tab",
      "eng_drag_tab", "eng_map_tab2", "tc_row_p", "tc_row_t", "tc_mp_tab", "tc_mu_tab", "tc_coast_tab", "fr_row", "fr_src",
      "fr_src_idx", "fr_mu_tab", "fr_fwd", "fr_bwd", "act_in", "act_kind", "tab1_ptr", "tab1_extrap", "tab2_nx", "tab2_ny",
      "tab2_xptr", "tab2_yptr", "tab2_zptr", "out_kind", "out_idx")
_F = ("M", "row_val", "row_off", "lin_c", "lin_d", "lin_phi0", "tq_gain", "tq_const", "poly_k0", "poly_k1", "poly_k2",
      "poly_k3", "eng_w_idle", "eng_kp", "eng_ki", "eng_tau_idle_max", "tc_coast_ratio", "fr_gain", "fr_cgeo", "fr_peak",
      "fr_hold", "act_area", "act_p_return", "act_tau_rise", "act_tau_fall", "act_t_fill", "act_t_empty", "act_p_max",
      "tab1_x", "tab1_y", "tab2_x", "tab2_y", "tab2_z", "out_gain", "out_off", "u0", "z0")


cdef const int32_t* ints(KernelModel self, name) except? NULL:
    """Pointer to arrays[name] as int32, kept alive by the model; never of zero size."""
    arr = np.ascontiguousarray(self.arrays[name], dtype=np.int32)
    if arr.size == 0:
        arr = np.zeros(1, dtype=np.int32)
    self._keep.append(arr)
    return <const int32_t*>cnp.PyArray_DATA(arr)


cdef const double* floats(KernelModel self, value) except? NULL:
    """Pointer to value as float64, kept alive by the model."""
    arr = np.ascontiguousarray(value, dtype=np.float64)
    if arr.size == 0:
        arr = np.zeros(1)
    self._keep.append(arr)
    return <const double*>cnp.PyArray_DATA(arr)


cdef class KernelModel:
    """Constant model at a fixed step.

    arrays: dict of numpy arrays as produced by the compiler (int32 and float64, SI units); h: step in s, > 0;
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
        if not h > 0.0:
            raise ValueError(f"h must be positive, got {h} s")
        self.arrays = dict(arrays)
        self.h = h
        missing = [k for k in _I + _F if k not in arrays]
        if missing:
            raise ValueError(f"compiled arrays lack {missing}")
        a = {k: np.ascontiguousarray(arrays[k], dtype=np.int32) for k in _I}
        a.update({k: np.ascontiguousarray(arrays[k], dtype=np.float64) for k in _F})
        cdef tl_model* m = self.ptr
        cdef int i
        m.h = h
        m.inv_h = 1.0 / h
        m.n = len(a["u0"])
        m.nrow = len(a["row_off"])
        m.nhot = int(arrays["n_hot"])
        m.nin = int(arrays["nin"])
        m.nlin = len(a["lin_row"])
        m.ntq = len(a["tq_row"])
        m.npoly = len(a["poly_row"])
        m.neng = len(a["eng_row"])
        m.ntc = len(a["tc_row_p"])
        m.nport = m.ntq + m.npoly + m.neng + 2 * m.ntc
        m.nf = len(a["fr_row"])
        m.nact = len(a["act_in"])
        m.nout = len(a["out_kind"])
        m.order = int(arrays.get("order", 2))
        if m.order not in (2, 4):
            raise ValueError(f"order must be 2 or 4, got {m.order}")
        m.nkey = max(1, (m.nf + 63) // 64)
        m.beta = 0.25 if m.nlin else 1.0 / 6.0
        n, nf = m.n, m.nf
        if a["M"].shape != (n, n):
            raise ValueError(f"M has shape {a['M'].shape}, expected {(n, n)}")
        # kinematics as dense rows, for the matrices only
        R = np.zeros((m.nrow, n))
        ptr, idx, val = a["row_ptr"], a["row_idx"], a["row_val"]
        for k in range(m.nrow):
            for q in range(ptr[k], ptr[k + 1]):
                R[k, idx[q]] += val[q]
            if ptr[k] == ptr[k + 1] and k < m.nhot:
                raise ValueError(f"row {k} used by a force element is empty")
        Rl = R[a["lin_row"]]
        D = Rl.T @ (a["lin_d"][:, None] * Rl)
        G = Rl.T @ (a["lin_c"][:, None] * Rl)
        M = a["M"]
        S = M + 0.5 * h * D + 0.25 * h * h * G
        S = 0.5 * (S + S.T)
        Sinv = np.linalg.inv(S) if n else np.zeros((0, 0))
        Sinv = 0.5 * (Sinv + Sinv.T)
        B = R[a["fr_row"]]
        SinvBt = Sinv @ B.T
        W = B @ SinvBt
        m.M = floats(self, M)
        m.S = floats(self, S)
        m.D = floats(self, D)
        m.G = floats(self, G)
        m.Sinv = floats(self, Sinv)
        Minv = np.linalg.inv(M) if n else np.zeros((0, 0))
        Minv = 0.5 * (Minv + Minv.T)
        m.Minv = floats(self, Minv)
        W0 = B @ Minv @ B.T
        m.W0 = floats(self, 0.5 * (W0 + W0.T))
        m.SinvBt = floats(self, SinvBt.T)
        m.B = floats(self, B)
        m.W = floats(self, 0.5 * (W + W.T))
        # Lobatto IIIA weights of the middle and the end from the accelerations of the middle and the end
        A = np.array([[1.0 / 3.0, -1.0 / 24.0], [2.0 / 3.0, 1.0 / 6.0]])
        A2 = A @ A
        m.A4 = floats(self, np.kron(np.eye(2), M) + h * np.kron(A, D) + h * h * np.kron(A2, G))
        m.row_ptr = ints(self, "row_ptr")
        m.row_idx = ints(self, "row_idx")
        m.row_val = floats(self, a["row_val"])
        m.row_off = floats(self, a["row_off"])
        m.lin_row = ints(self, "lin_row")
        m.lin_c = floats(self, a["lin_c"])
        m.lin_d = floats(self, a["lin_d"])
        m.lin_phi0 = floats(self, a["lin_phi0"])
        m.tq_row = ints(self, "tq_row")
        m.tq_in = ints(self, "tq_in")
        m.tq_gain = floats(self, a["tq_gain"])
        m.tq_const = floats(self, a["tq_const"])
        m.poly_row = ints(self, "poly_row")
        m.poly_k = floats(self, np.stack([a["poly_k0"], a["poly_k1"], a["poly_k2"], a["poly_k3"]], axis=1))
        m.eng_row = ints(self, "eng_row")
        m.eng_pedal_in = ints(self, "eng_pedal_in")
        m.eng_wot = ints(self, "eng_wot_tab")
        m.eng_drag = ints(self, "eng_drag_tab")
        m.eng_map = ints(self, "eng_map_tab2")
        m.eng_w_idle = floats(self, a["eng_w_idle"])
        m.eng_kp = floats(self, a["eng_kp"])
        m.eng_ki = floats(self, a["eng_ki"])
        m.eng_tau_idle_max = floats(self, a["eng_tau_idle_max"])
        m.tc_row_p = ints(self, "tc_row_p")
        m.tc_row_t = ints(self, "tc_row_t")
        m.tc_mp = ints(self, "tc_mp_tab")
        m.tc_mu = ints(self, "tc_mu_tab")
        m.tc_coast = ints(self, "tc_coast_tab")
        m.tc_coast_ratio = floats(self, a["tc_coast_ratio"])
        m.fr_row = ints(self, "fr_row")
        m.fr_src = ints(self, "fr_src")
        m.fr_src_idx = ints(self, "fr_src_idx")
        m.fr_mu = ints(self, "fr_mu_tab")
        m.fr_fwd = ints(self, "fr_fwd")
        m.fr_bwd = ints(self, "fr_bwd")
        m.fr_gain = floats(self, a["fr_gain"])
        m.fr_cgeo = floats(self, a["fr_cgeo"])
        m.fr_peak = floats(self, a["fr_peak"])
        m.fr_hold = floats(self, a["fr_hold"])
        m.act_in = ints(self, "act_in")
        m.act_kind = ints(self, "act_kind")
        m.act_area = floats(self, a["act_area"])
        m.act_p_return = floats(self, a["act_p_return"])
        m.act_tau_rise = floats(self, np.maximum(a["act_tau_rise"], 1e-9))
        m.act_tau_fall = floats(self, np.maximum(a["act_tau_fall"], 1e-9))
        m.act_t_fill = floats(self, np.maximum(a["act_t_fill"], 1e-9))
        m.act_t_empty = floats(self, np.maximum(a["act_t_empty"], 1e-9))
        m.act_p_max = floats(self, a["act_p_max"])
        rise = np.maximum(a["act_tau_rise"], 1e-9)
        fall = np.maximum(a["act_tau_fall"], 1e-9)
        m.act_E = floats(self, np.stack([np.exp(-h / rise), np.exp(-0.5 * h / rise), np.exp(-h / fall),
                                         np.exp(-0.5 * h / fall)], axis=1) if m.nact else np.zeros((0, 4)))
        self.arrays["_port_row"] = np.concatenate([a["tq_row"], a["poly_row"], a["eng_row"], a["tc_row_p"],
                                                   a["tc_row_t"]]).astype(np.int32)
        m.port_row = ints(self, "_port_row")
        direct = np.zeros(m.nin, dtype=np.int32)
        direct[a["tq_in"][a["tq_in"] >= 0]] = 1
        direct[a["eng_pedal_in"]] = 1
        direct[a["fr_src_idx"][(a["fr_src"] == 1) | (a["fr_src"] == 3)]] = 1
        self.arrays["_in_direct"] = direct
        m.in_direct = ints(self, "_in_direct")
        in_act = np.full(m.nin, -1, dtype=np.int32)
        for i in range(m.nact):
            in_act[a["act_in"][i]] = i
        self.arrays["_in_act"] = in_act
        m.in_act = ints(self, "_in_act")
        m.act_simple = int(not a["act_kind"].any() and len(set(a["act_in"].tolist())) == m.nact)
        for name, ref, size in (("fr_row", a["fr_row"], m.nhot), ("lin_row", a["lin_row"], m.nhot),
                                ("port_row", self.arrays["_port_row"], m.nhot)):
            if ref.size and (ref.min() < 0 or ref.max() >= size):
                raise ValueError(f"{name} outside the {size} rows of force elements")
        # tables
        cdef int n1 = len(a["tab1_extrap"]), n2 = len(a["tab2_nx"])
        tabs1 = np.zeros(max(1, n1) * sizeof(tl_table1), dtype=np.uint8)
        tabs2 = np.zeros(max(1, n2) * sizeof(tl_table2), dtype=np.uint8)
        self._keep += [tabs1, tabs2]
        cdef tl_table1* t1 = <tl_table1*>cnp.PyArray_DATA(tabs1)
        cdef tl_table2* t2 = <tl_table2*>cnp.PyArray_DATA(tabs2)
        cdef const double* x1 = floats(self, a["tab1_x"])
        cdef const double* y1 = floats(self, a["tab1_y"])
        cdef const double* x2 = floats(self, a["tab2_x"])
        cdef const double* y2 = floats(self, a["tab2_y"])
        cdef const double* z2 = floats(self, a["tab2_z"])
        cdef int off
        mu0 = np.ones(nf)
        for i in range(n1):
            off = a["tab1_ptr"][i]
            t1[i].n = a["tab1_ptr"][i + 1] - off
            t1[i].linear = a["tab1_extrap"][i]
            t1[i].x = x1 + off
            t1[i].y = y1 + off
            dx = np.diff(a["tab1_x"][off:off + t1[i].n])
            t1[i].dy = floats(self, np.diff(a["tab1_y"][off:off + t1[i].n]) / np.where(dx == 0.0, 1.0, dx))
            if t1[i].n < 1 or np.any(np.diff(a["tab1_x"][off:off + t1[i].n]) <= 0):
                raise ValueError(f"1-D table {i}: x must increase strictly")
        for i in range(n2):
            t2[i].nx = a["tab2_nx"][i]
            t2[i].ny = a["tab2_ny"][i]
            off = a["tab2_xptr"][i]
            t2[i].x = x2 + off
            off = a["tab2_yptr"][i]
            t2[i].y = y2 + off
            off = a["tab2_zptr"][i]
            t2[i].z = z2 + off
            if t2[i].nx < 2 or t2[i].ny < 2:
                raise ValueError(f"2-D table {i} needs at least 2 x 2 points")
        m.tab1 = t1
        m.tab2 = t2
        for i in range(nf):
            k = int(a["fr_mu_tab"][i])
            if k >= 0:
                lo, hi = a["tab1_ptr"][k], a["tab1_ptr"][k + 1]
                mu0[i] = np.interp(0.0, a["tab1_x"][lo:hi], a["tab1_y"][lo:hi])
        m.fr_mu0 = floats(self, mu0)
        m.fr_cap0 = floats(self, a["fr_cgeo"] * mu0)
        m.fr_lim = floats(self, a["fr_peak"] * a["fr_cgeo"] * mu0)
        dmu, w_steep = np.zeros(nf), np.zeros(nf)
        for i in range(nf):
            k = int(a["fr_mu_tab"][i])
            lo, hi = (a["tab1_ptr"][k], a["tab1_ptr"][k + 1]) if k >= 0 else (0, 0)
            if hi - lo > 1:
                rise = np.diff(a["tab1_y"][lo:hi]) / np.diff(a["tab1_x"][lo:hi])
                dmu[i] = max(0.0, rise.max())
                if dmu[i] > 0.0:
                    w_steep[i] = a["tab1_x"][lo + 1 + np.flatnonzero(rise >= 0.1 * dmu[i])[-1]]
        m.fr_dmu = floats(self, dmu)
        m.fr_w_steep = floats(self, w_steep)
        m.fr_stiff = floats(self, 0.5 * h * np.diag(W) / STIFF)
        fixed = np.zeros(nf, dtype=np.int32)
        value = np.zeros((nf, 5))
        for i in range(nf):
            k = int(a["fr_mu_tab"][i])
            if a["fr_src"][i] == 0 and (k < 0 or a["tab1_ptr"][k + 1] - a["tab1_ptr"][k] == 1) and a["fr_gain"][i] > 0:
                cap = a["fr_gain"][i] * a["fr_cgeo"][i] * mu0[i]
                lim = cap * a["fr_peak"][i]
                none_, both_, free_ = (0.0, 0.0), (cap, lim), (0.0, UNLIMITED)
                f = (none_, both_, free_)[a["fr_fwd"][i]]
                b = (none_, both_, free_)[a["fr_bwd"][i]]
                fixed[i] = 1
                value[i] = (a["fr_gain"][i], f[0], b[0], f[1], b[1])
        self.arrays["_fr_fixed"] = fixed
        m.fr_fixed = ints(self, "_fr_fixed")
        m.fr_fixed_val = floats(self, value)
        self.arrays["_fr_both"] = ((a["fr_fwd"] == 1) & (a["fr_bwd"] == 1)).astype(np.int32)
        m.fr_both = ints(self, "_fr_both")
        of = np.where(a["fr_src"] == 2, a["fr_src_idx"], 0)
        pressed_by = (a["fr_src"] == 2) & (m.nact > 0)
        m.fr_ga = floats(self, np.where(pressed_by, a["fr_gain"] * a["act_area"][of], 0.0) if m.nact else np.zeros(nf))
        m.fr_pret = floats(self, np.where(pressed_by, a["act_p_return"][of], 0.0) if m.nact else np.zeros(nf))
        m.out_kind = ints(self, "out_kind")
        m.out_idx = ints(self, "out_idx")
        m.out_gain = floats(self, a["out_gain"])
        m.out_off = floats(self, a["out_off"])
        # lock patterns: all of them when they are few, else a direct-mapped cache
        per = 8 * (2 * n * n + 3 * n * nf + 4 * n * n + m.nkey + 8)
        if nf <= 12 and (1 << nf) * per <= CACHE_BYTES:
            m.ncache = 1 << nf
            m.direct_cache = 1
        else:
            m.ncache = 16
            while m.ncache < 4096 and 2 * m.ncache * per <= CACHE_BYTES:
                m.ncache *= 2
            m.direct_cache = 0
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
            elif kernel != "auto":
                known = sorted(name for name, _ in PRECOMPILED.values())
                raise ValueError(f"kernel {kernel!r} does not fit this driveline; precompiled here: {known}")
        self.ptr.step_fn = self.step_fn

    @property
    def sizes(self):
        """Sizes of the model: independent speeds, rows, inputs, friction elements, outputs ..."""
        cdef tl_model* m = self.ptr
        return {"n": m.n, "rows": m.nrow, "hot": m.nhot, "inputs": m.nin, "compliances": m.nlin, "ports": m.nport,
                "friction": m.nf, "actuators": m.nact, "outputs": m.nout, "order": m.order, "cache": m.ncache}

    def run(self, KernelState s not None, inputs, outputs=None, int every=1):
        """Advance s by K steps without the GIL.

        inputs: (K, nin) values held over each step, or (K, 3, nin) values at its start, middle and end;
        outputs: (ceil(K/every), nout) array to fill after every `every`-th step, or None.
        Returns the number of steps done; less than K when the state stopped being finite (s.status = 1).
        """
        arr = np.ascontiguousarray(inputs, dtype=np.float64)
        cdef tl_model* m = self.ptr
        cdef tl_state* st = s.ptr
        if arr.ndim not in (2, 3) or arr.shape[arr.ndim - 1] != m.nin or (arr.ndim == 3 and arr.shape[1] != 3):
            raise ValueError(f"inputs: shape {arr.shape}, expected (K, {m.nin}) or (K, 3, {m.nin})")
        cdef int64_t K = arr.shape[0], i, j, row = 0
        cdef int held = arr.ndim == 2, nin = m.nin, status = 0
        cdef const double* src = <const double*>cnp.PyArray_DATA(arr) if arr.size else NULL
        cdef double* dst = NULL
        if outputs is not None:
            if outputs.dtype != np.float64 or not outputs.flags.c_contiguous or outputs.ndim != 2 \
                    or outputs.shape[1] != m.nout or outputs.shape[0] * every < K:
                raise ValueError(f"outputs: need a contiguous float64 array ({-(-K // every)}, {m.nout})")
            dst = <double*>cnp.PyArray_DATA(outputs)
        with nogil:
            st.held = held
            for i in range(K):
                if held:
                    memcpy(st.inp, src + i * nin, nin * sizeof(double))
                else:
                    memcpy(st.inp, src + i * 3 * nin, 3 * nin * sizeof(double))
                status = tl_step(m, st)
                if status != 0:
                    break
                if dst != NULL and i % every == every - 1:
                    tl_outputs(m, st, dst + row * m.nout)
                    row += 1
        return i if status != 0 else K

    def advance(self, KernelState s not None, in3, double dt):
        """Advance s by dt <= h. in3: (3, nin) inputs at 0, h/2 and h after now, of the branch valid now (beyond dt it is
        only used for extrapolation). Returns the status."""
        arr = np.ascontiguousarray(in3, dtype=np.float64)
        if arr.shape != (3, self.ptr.nin):
            raise ValueError(f"in3: shape {arr.shape}, expected (3, {self.ptr.nin})")
        if not 0.0 < dt <= self.h * (1.0 + 1e-12):
            raise ValueError(f"dt = {dt} s, allowed 0 < dt <= h = {self.h} s")
        if dt > self.h:
            dt = self.h
        if arr.size:
            memcpy(s.ptr.inp, cnp.PyArray_DATA(arr), 3 * self.ptr.nin * sizeof(double))
        cdef int status
        s.ptr.held = 0
        with nogil:
            status = self.step_fn(self.ptr, s.ptr, dt)
        return status

    def outputs(self, KernelState s not None):
        """Output values now, (nout)."""
        out = np.zeros(self.ptr.nout)
        tl_outputs(self.ptr, s.ptr, <double*>cnp.PyArray_DATA(out))
        return out

    def mode_log(self, KernelState s not None):
        """Mode changes since the last call: structured array (step_no, time_s, element, mode); the ring is emptied."""
        cdef tl_state* st = s.ptr
        cdef int64_t first = st.log_n - st.log_size if st.log_n > st.log_size else 0, j
        out = np.zeros(st.log_n - first, dtype=[("step_no", "i8"), ("time_s", "f8"), ("element", "i4"), ("mode", "i4")])
        for row, i in enumerate(range(first, st.log_n)):
            j = i % st.log_size
            out[row] = (st.log_step[j], st.log_t[j], st.log_el[j], st.log_mode[j])
        st.log_n = 0
        return out


cdef void refresh(const tl_model* m, tl_state* s) noexcept:
    """Pointers that follow from the values (after the block was written as a whole)."""
    s.now = &s.ev[s.parity[0] & 1]
    s.end = &s.ev[1 - (s.parity[0] & 1)]
    s.pat = pattern_of(m, s)
    cdef int32_t i
    for i in range(m.nact):
        s.cmd[i] = s.in_last[m.act_in[i]]
        if not s.cmd[i] > 0.0:
            s.cmd[i] = 0.0
        elif s.cmd[i] > m.act_p_max[i]:
            s.cmd[i] = m.act_p_max[i]
    fixed_capacities(m, &s.ev[0])
    fixed_capacities(m, &s.ev[1])
    fixed_capacities(m, &s.em)


cdef void fixed_capacities(const tl_model* m, tl_eval* e) noexcept nogil:
    """Capacities that never change; eval_forces leaves them alone."""
    cdef int32_t i
    for i in range(m.nf):
        if m.fr_fixed[i]:
            e.raw[i] = m.fr_fixed_val[5 * i]
            e.cap_f[i] = m.fr_fixed_val[5 * i + 1]
            e.cap_b[i] = m.fr_fixed_val[5 * i + 2]
            e.lim_f[i] = m.fr_fixed_val[5 * i + 3]
            e.lim_b[i] = m.fr_fixed_val[5 * i + 4]
            e.steep[i] = 0.0


cdef double* _take(double** cursor, int64_t count) noexcept:
    cdef double* at = cursor[0]
    cursor[0] += count
    return at


cdef void* zeros(KernelState self, int64_t nbytes) except NULL:
    """Zeroed memory kept alive by the state."""
    arr = np.zeros(max(8, nbytes), dtype=np.uint8)
    self._keep.append(arr)
    return cnp.PyArray_DATA(arr)


cdef void eval_block(const tl_model* m, tl_eval* e, double* mem) noexcept:
    """Lay the vectors of one instant into mem."""
    cdef double* cur = mem
    e.u = _take(&cur, m.n)
    e.z = _take(&cur, m.n)
    e.a = _take(&cur, m.n)
    e.hs1 = _take(&cur, m.n)
    e.w = _take(&cur, m.nhot)
    e.port = _take(&cur, m.nport)
    e.tau = _take(&cur, m.nf)
    e.cap_f = _take(&cur, m.nf)
    e.cap_b = _take(&cur, m.nf)
    e.lim_f = _take(&cur, m.nf)
    e.lim_b = _take(&cur, m.nf)
    e.raw = _take(&cur, m.nf)
    e.steep = _take(&cur, m.nf)
    e.p = _take(&cur, m.nact)


cdef vector(const double* at, int64_t count):
    """Copy of a C vector as an array."""
    out = np.empty(count)
    if count:
        memcpy(cnp.PyArray_DATA(out), at, count * sizeof(double))
    return out


cdef class KernelState:
    """Everything that changes: speeds, angles, pressures, modes, energies (one block), and scratch memory."""

    def __cinit__(self):
        self.ptr = <tl_state*>calloc(1, sizeof(tl_state))
        if self.ptr == NULL:
            raise MemoryError()
        self._keep = []

    def __dealloc__(self):
        free(self.ptr)

    def __init__(self, KernelModel model not None):
        self.model = model
        cdef tl_model* m = model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t n = m.n, nf = m.nf, nm = 2 * m.n + m.nf + 4
        cdef double* cur
        # state proper
        s.nev = 4 * n + m.nhot + m.nport + 7 * nf + m.nact
        s.nfix = n + m.nport + nf + m.nact + m.neng + m.nin + m.nlin + 1
        s.nx = s.nfix + 2 * s.nev
        s.nk = 2 * nf + 4 + 8
        s.x = <double*>zeros(self, s.nx * sizeof(double))
        s.k = <int64_t*>zeros(self, s.nk * sizeof(int64_t))
        cur = s.x
        s.hs2 = _take(&cur, n)
        s.fill = _take(&cur, m.nact)
        s.xi = _take(&cur, m.neng)
        s.in_last = _take(&cur, m.nin)
        s.e_port = _take(&cur, m.nport)
        s.e_fr = _take(&cur, nf)
        s.e_lin = _take(&cur, m.nlin)
        s.t = _take(&cur, 1)
        eval_block(m, &s.ev[0], _take(&cur, s.nev))
        eval_block(m, &s.ev[1], _take(&cur, s.nev))
        s.mode = s.k
        s.pressed = s.k + nf
        s.step_no = s.k + 2 * nf
        s.fresh = s.step_no + 1
        s.hist = s.step_no + 2
        s.parity = s.step_no + 3
        s.counters = s.step_no + 4
        # scratch
        s.inp = <double*>zeros(self, 3 * m.nin * sizeof(double))
        s.in_c = <double*>zeros(self, 3 * m.nin * sizeof(double))
        eval_block(m, &s.em, <double*>zeros(self, s.nev * sizeof(double)))
        cur = <double*>zeros(self, (3 * n + m.neng + 2 * m.nact + 2 * m.nhot + 3 * nm) * sizeof(double))
        s.um = _take(&cur, n)
        s.am = _take(&cur, n)
        s.s2 = _take(&cur, n)
        s.xi1 = _take(&cur, m.neng)
        s.fill1 = _take(&cur, m.nact)
        s.F = _take(&cur, m.nhot)
        s.wa = _take(&cur, m.nhot)
        s.cmd = _take(&cur, m.nact)
        s.g = _take(&cur, nm)
        s.v1 = _take(&cur, nm)
        s.v2 = _take(&cur, nm)
        s.box_w = <double*>zeros(self, (8 * nf * nf + 16 * nf + 2 * n + 16) * sizeof(double))
        s.box_i = <int32_t*>zeros(self, (4 * nf + 4) * sizeof(int32_t))
        s.hint = <int32_t*>zeros(self, (2 * m.neng + 3 * m.ntc + nf + 4) * sizeof(int32_t))
        s.key = <uint64_t*>zeros(self, m.nkey * sizeof(uint64_t))
        s.stuck_list = <int32_t*>zeros(self, (nf + 1) * sizeof(int32_t))
        s.pat_work = <double*>zeros(self, (n * n + nf * n + n + 16 * n * n + 8 * n + nf * n + nf * nf + 64) * sizeof(double))
        s.log_size = 1 << 16
        s.log_step = <int64_t*>zeros(self, s.log_size * sizeof(int64_t))
        s.log_t = <double*>zeros(self, s.log_size * sizeof(double))
        s.log_el = <int32_t*>zeros(self, s.log_size * sizeof(int32_t))
        s.log_mode = <int32_t*>zeros(self, s.log_size * sizeof(int32_t))
        # lock patterns
        cdef int64_t two = m.nlin > 0, four = m.order == 4, i
        cdef int64_t per = n * n + n * nf + two * (n * n + n * nf) + four * 4 * n * n + n * nf
        s.cache = <tl_pattern*>zeros(self, m.ncache * sizeof(tl_pattern))
        cur = <double*>zeros(self, m.ncache * per * sizeof(double))
        cdef uint64_t* keys = <uint64_t*>zeros(self, m.ncache * m.nkey * sizeof(uint64_t))
        for i in range(m.ncache):
            s.cache[i].key = keys + i * m.nkey
            s.cache[i].P = _take(&cur, n * n)
            s.cache[i].T = _take(&cur, n * nf)
            s.cache[i].P0 = _take(&cur, n * n) if two else s.cache[i].P
            s.cache[i].T0 = _take(&cur, n * nf) if two else s.cache[i].T
            s.cache[i].P4 = _take(&cur, 4 * n * n) if four else NULL
            s.cache[i].Tn = _take(&cur, n * nf)
        self.reset()

    def reset(self):
        """Back to the initial values of the model, at time 0."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        memset(s.x, 0, s.nx * sizeof(double))
        memset(s.k, 0, s.nk * sizeof(int64_t))
        refresh(m, s)
        u0 = np.ascontiguousarray(self.model.arrays["u0"], dtype=np.float64)
        z0 = np.ascontiguousarray(self.model.arrays["z0"], dtype=np.float64)
        for i in range(m.n):
            s.now.u[i] = u0[i]
            s.now.z[i] = z0[i]
        for i in range(m.nf):
            s.mode[i] = 2
        s.fresh[0] = 1
        s.status = 0
        s.log_n = 0
        s.held = 0
        refresh(m, s)

    def warm(self):
        """Build every lock pattern now, so that none is built in a tick; only where all of them are kept."""
        cdef tl_model* m = self.model.ptr
        cdef tl_state* s = self.ptr
        cdef int64_t i, j
        if not m.direct_cache:
            return 0
        old = [s.mode[j] for j in range(m.nf)]
        for i in range(m.ncache):
            for j in range(m.nf):
                s.mode[j] = 0 if (i >> j) & 1 else 2
            pattern_of(m, s)
        for j in range(m.nf):
            s.mode[j] = old[j]
        s.pat = pattern_of(m, s)
        return m.ncache

    def lock_matrices(self):
        """Matrices of the present set of stuck elements: P (n, n), a = P g, and T (nf, n), tau = T g (see locks.pyx)."""
        n, nf = self.model.ptr.n, self.model.ptr.nf
        P = vector(self.ptr.pat.P, n * n).reshape(n, n).T
        T = vector(self.ptr.pat.T, n * nf).reshape(n, nf).T
        return P.copy(), T.copy()

    @property
    def slope(self):
        """Change of the acceleration over the last step (n), used by the predictor."""
        return vector(self.ptr.now.hs1, self.model.ptr.n)

    @property
    def idle_integral(self):
        """Integrator of each idle controller, N.m."""
        return vector(self.ptr.xi, self.model.ptr.neng)

    def copy(self):
        """An independent state of the same model with the same values."""
        other = KernelState(self.model)
        other.restore(self)
        return other

    def restore(self, KernelState other not None):
        """Take over the values of another state of the same model."""
        if other.ptr.nx != self.ptr.nx or other.ptr.nk != self.ptr.nk:
            raise ValueError("the states belong to models of different structure")
        memcpy(self.ptr.x, other.ptr.x, self.ptr.nx * sizeof(double))
        memcpy(self.ptr.k, other.ptr.k, self.ptr.nk * sizeof(int64_t))
        self.ptr.status = other.ptr.status
        refresh(self.model.ptr, self.ptr)

    def to_bytes(self):
        """The state proper as bytes (restore with from_bytes on the same model)."""
        return (<char*>self.ptr.x)[: self.ptr.nx * sizeof(double)] + (<char*>self.ptr.k)[: self.ptr.nk * sizeof(int64_t)]

    def from_bytes(self, bytes data not None):
        """Inverse of to_bytes; ValueError when the length does not fit the model."""
        cdef int64_t nx = self.ptr.nx * sizeof(double), nk = self.ptr.nk * sizeof(int64_t)
        if len(data) != nx + nk:
            raise ValueError(f"state of {len(data)} bytes, this model needs {nx + nk}")
        memcpy(self.ptr.x, <const char*>data, nx)
        memcpy(self.ptr.k, <const char*>data + nx, nk)
        refresh(self.model.ptr, self.ptr)

    def hash(self):
        """64-bit hash of the state proper (values and modes; not the work counters)."""
        return int(tl_state_hash(self.model.ptr, self.ptr))

    @property
    def u(self):
        """Independent speeds (n), rad/s or m/s."""
        return vector(self.ptr.now.u, self.model.ptr.n)

    @u.setter
    def u(self, value):
        v = np.ascontiguousarray(value, dtype=np.float64)
        if v.shape != (self.model.ptr.n,):
            raise ValueError(f"u: shape {v.shape}, expected ({self.model.ptr.n},)")
        memcpy(self.ptr.now.u, cnp.PyArray_DATA(v), v.nbytes)
        self.ptr.fresh[0] = 1
        self.ptr.hist[0] = 0

    @property
    def z(self):
        """Integrals of the independent speeds (n), rad or m."""
        return vector(self.ptr.now.z, self.model.ptr.n)

    @z.setter
    def z(self, value):
        v = np.ascontiguousarray(value, dtype=np.float64)
        if v.shape != (self.model.ptr.n,):
            raise ValueError(f"z: shape {v.shape}, expected ({self.model.ptr.n},)")
        memcpy(self.ptr.now.z, cnp.PyArray_DATA(v), v.nbytes)
        self.ptr.fresh[0] = 1
        self.ptr.hist[0] = 0

    @property
    def a(self):
        """Accelerations (n)."""
        return vector(self.ptr.now.a, self.model.ptr.n)

    @property
    def tau(self):
        """Friction forces along their rows (nf), N.m or N."""
        return vector(self.ptr.now.tau, self.model.ptr.nf)

    @property
    def capacity(self):
        """Sliding capacity against forward and backward motion (2, nf)."""
        return np.stack([vector(self.ptr.now.cap_f, self.model.ptr.nf), vector(self.ptr.now.cap_b, self.model.ptr.nf)])

    @property
    def p(self):
        """Actuator pressures (nact), Pa."""
        return vector(self.ptr.now.p, self.model.ptr.nact)

    @p.setter
    def p(self, value):
        v = np.ascontiguousarray(np.broadcast_to(value, (self.model.ptr.nact,)), dtype=np.float64)
        memcpy(self.ptr.now.p, cnp.PyArray_DATA(v), v.nbytes)
        for i in range(self.model.ptr.nact):
            self.ptr.fill[i] = 1.0 if v[i] > self.model.ptr.act_p_return[i] else 0.0
        self.ptr.fresh[0] = 1

    @property
    def modes(self):
        """Modes (nf): -1 backward, 0 stuck, 1 forward, 2 free."""
        return np.array([self.ptr.mode[i] for i in range(self.model.ptr.nf)], dtype=np.int64)

    @property
    def step_no(self):
        return self.ptr.step_no[0]

    @property
    def time(self):
        """Simulated time, s."""
        return self.ptr.t[0]

    @property
    def status(self):
        return self.ptr.status

    @property
    def counters(self):
        """Work counters since the start: events, most splits in a step, fallbacks, decisions, pivots, evaluations."""
        return {name: int(self.ptr.counters[i]) for i, name in enumerate(COUNTER_NAMES)}

    @property
    def energies(self):
        """Work and heat since the start, J: port work (torque sources, polynomials, engines, pumps, turbines; positive =
        into the driveline), friction heat, damper heat, kinetic and potential energy now."""
        cdef tl_model* m = self.model.ptr
        work = vector(self.ptr.e_port, m.nport)
        a, b, c, d = m.ntq, m.ntq + m.npoly, m.ntq + m.npoly + m.neng, m.ntq + m.npoly + m.neng + m.ntc
        return {"torque": work[:a], "poly": work[a:b], "engine": work[b:c], "pump": work[c:d], "turbine": work[d:],
                "friction": vector(self.ptr.e_fr, m.nf), "damper": vector(self.ptr.e_lin, m.nlin),
                "kinetic": kinetic(m, self.ptr), "potential": potential(m, self.ptr)}


cdef double kinetic(const tl_model* m, const tl_state* s) noexcept nogil:
    """1/2 u^T M u."""
    cdef int32_t i, j
    cdef double e = 0.0
    for i in range(m.n):
        for j in range(m.n):
            e += 0.5 * s.now.u[i] * m.M[i * m.n + j] * s.now.u[j]
    return e


cdef inline double row_value(const tl_model* m, int32_t k, const double* x) noexcept nogil:
    cdef int32_t q
    cdef double acc = 0.0
    for q in range(m.row_ptr[k], m.row_ptr[k + 1]):
        acc = acc + m.row_val[q] * x[m.row_idx[q]]
    return acc


cdef double potential(const tl_model* m, const tl_state* s) noexcept nogil:
    """sum 1/2 c (phi - phi0)^2."""
    cdef int32_t i, k
    cdef double e = 0.0, x
    for i in range(m.nlin):
        k = m.lin_row[i]
        x = row_value(m, k, s.now.z) + m.row_off[k] - m.lin_phi0[i]
        e += 0.5 * m.lin_c[i] * x * x
    return e


cdef int tl_step(const tl_model* m, tl_state* s) noexcept nogil:
    """One step of h with the inputs s.inp (3, nin). Real-time: yes."""
    return m.step_fn(m, s, m.h)


cdef void tl_outputs(const tl_model* m, tl_state* s, double* out) noexcept nogil:
    """All outputs now, in SI units. Real-time: yes."""
    cdef int32_t i, k, kind, r
    cdef double v
    cdef int32_t p_poly = m.ntq, p_eng = m.ntq + m.npoly, p_pump = p_eng + m.neng, p_turb = p_pump + m.ntc
    for i in range(m.nout):
        kind = m.out_kind[i]
        k = m.out_idx[i]
        v = 0.0
        if kind == 0:
            v = row_value(m, k, s.now.u)
        elif kind == 1:
            v = row_value(m, k, s.now.z) + m.row_off[k]
        elif kind == 2:
            v = row_value(m, k, s.now.a)
        elif kind == 3:
            v = s.now.tau[k]
        elif kind == 4:
            v = <double>s.mode[k]
        elif kind == 5:
            v = s.now.cap_f[k] if s.now.cap_f[k] >= s.now.cap_b[k] else s.now.cap_b[k]
        elif kind == 6:
            v = s.now.port[k]
        elif kind == 7:
            v = s.now.p[k]
        elif kind == 8:
            v = s.inp[k] if s.held else s.inp[2 * m.nin + k]
        elif kind == 9:
            r = m.lin_row[k]
            v = -(m.lin_c[k] * (row_value(m, r, s.now.z) + m.row_off[r] - m.lin_phi0[k]) + m.lin_d[k] * row_value(m, r, s.now.u))
        elif kind == 10:
            v = s.now.port[p_eng + k]
        elif kind == 11:
            v = -s.now.port[p_pump + k]
        elif kind == 12:
            v = s.now.port[p_turb + k]
        elif kind == 13:
            v = s.now.port[p_poly + k]
        elif kind == 14:
            v = s.e_fr[k]
        elif kind == 15:
            v = s.e_lin[k]
        elif kind == 16:
            v = s.e_port[k]
        elif kind == 17:
            v = s.e_port[p_poly + k]
        elif kind == 18:
            v = s.e_port[p_eng + k]
        elif kind == 19:
            v = -(s.e_port[p_pump + k] + s.e_port[p_turb + k])
        elif kind == 20:
            v = kinetic(m, s)
        elif kind == 21:
            v = potential(m, s)
        out[i] = m.out_gain[i] * v + m.out_off[i]


cdef inline uint64_t mix(uint64_t hsh, const void* data, int64_t words) noexcept nogil:
    """Take `words` 64-bit words into the hash."""
    cdef int64_t i
    cdef uint64_t word
    for i in range(words):
        memcpy(&word, <const char*>data + 8 * i, 8)
        hsh = (hsh ^ word) * <uint64_t>0x9E3779B97F4A7C15
        hsh ^= hsh >> 32
    return hsh


cdef uint64_t tl_state_hash(const tl_model* m, const tl_state* s) noexcept nogil:
    """Hash of all values, modes and the step number. Real-time: yes."""
    cdef uint64_t hsh = mix(<uint64_t>0xCBF29CE484222325, s.x, s.nfix)
    hsh = mix(hsh, s.now.u, s.nev)
    return mix(hsh, s.k, 2 * m.nf + 3)
