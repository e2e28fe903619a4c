"""Steps one by one from Python: a tick is one call into C while its inputs are prepared.

`Stepper.step()` takes inputs that lie ready for a stretch of steps and asks for more with `_further()` where they end: what a
call costs beside the step of the kernel is the call. Inputs are prepared in one of three forms: numbers that hold, samples of
every step, or formulas in time, which are evaluated step by step.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from torqueloop.cython_kernels.clock.denormals cimport denormals_off, denormals_restore
from torqueloop.cython_kernels.kernel.kernel cimport KernelModel, KernelState, claim, ended, tl_outputs
from torqueloop.cython_kernels.model.model cimport tl_model, tl_state

cnp.import_array()


cdef enum:
    DEPTH = 12             # most values that a formula may hold at a time
    VALUES = 8             # most numbers of an operation

#: operations of a formula: y is the value it leaves, a and b are those before it (b the later one)
cdef enum tl_operation:
    CONSTANT               # y = p0
    SINE                   # y = p0 + p1*sin(p2*(t - p3) + p4)
    RAMP                   # y = p0 + p1*min(max((t - p2)/p3, 0), 1)
    LINE                   # y = p0 + p1*((t - p2)/p3)
    POLYNOMIAL             # y = p1 + p2*x + p3*x^2 + ..., x = t - p0
    OFFSET                 # y = p0 + b
    SCALE                  # y = p0*b
    ADD                    # y = a + b
    SUBTRACT               # y = a - b
    MULTIPLY               # y = a*b

cdef struct tl_op:
    int32_t code
    int32_t count          # how many numbers
    double[VALUES] p

#: name in core/signals -> operation, by how much it changes the number of values held, fewest and most numbers
OPERATIONS = {
    "constant": (CONSTANT, 1, 1, 1), "sine": (SINE, 1, 5, 5), "ramp": (RAMP, 1, 4, 4), "line": (LINE, 1, 4, 4),
    "polynomial": (POLYNOMIAL, 1, 2, VALUES), "offset": (OFFSET, 0, 1, 1), "scale": (SCALE, 0, 1, 1),
    "add": (ADD, -1, 0, 0), "subtract": (SUBTRACT, -1, 0, 0), "multiply": (MULTIPLY, -1, 0, 0),
}

ctypedef void (*tl_loop)(char** where, cnp.npy_intp* count, cnp.npy_intp* strides, void* data) noexcept nogil

#: the sine of NumPy for doubles: a formula has the bits of the same signal sampled as an array. NumPy calls it without the GIL
cdef tl_loop sine_loop = NULL
cdef void* sine_data = NULL


cdef int find_sine() except -1:
    global sine_loop, sine_data
    cdef cnp.ufunc sine = <cnp.ufunc>np.sin
    # the texts that Python sees: the field `types` of the struct is not declared by NumPy 2.5
    cdef int i = (<object>np.sin.types).index("d->d")
    sine_loop = <tl_loop>sine.functions[i]
    sine_data = sine.data[i] if sine.data != NULL else NULL
    return 0


find_sine()


cdef inline void sines(double* x, cnp.npy_intp count) noexcept nogil:
    """x <- its sines."""
    cdef char *where[2]
    cdef cnp.npy_intp strides[2]
    where[0] = where[1] = <char*>x
    strides[0] = strides[1] = sizeof(double)
    sine_loop(where, &count, strides, sine_data)


cdef inline double clipped(double x) noexcept nogil:
    x = x if x > 0.0 else 0.0
    return x if x < 1.0 else 1.0


cdef inline double polynomial(const tl_op* o, double t) noexcept nogil:
    cdef double y = 0.0, x = t - o.p[0]
    cdef int32_t i
    for i in range(o.count - 1, 0, -1):
        y = y * x + o.p[i]
    return y


cdef void evaluate(const tl_op* o, const tl_op* end, const double* t, double* out) noexcept nogil:
    """Values of a formula at the two times t, in the order of operations of the signal it is made of."""
    cdef double[DEPTH][2] stack
    cdef int32_t top = -1
    cdef double* y
    cdef const double* p
    while o != end:
        p = o.p
        if o.code <= POLYNOMIAL:
            top += 1
        elif o.code >= ADD:
            top -= 1
        y = &stack[0][0] + 2 * top
        if o.code == SINE:
            y[0] = p[2] * (t[0] - p[3]) + p[4]
            y[1] = p[2] * (t[1] - p[3]) + p[4]
            sines(y, 2)
            y[0] = p[0] + p[1] * y[0]
            y[1] = p[0] + p[1] * y[1]
        elif o.code == CONSTANT:
            y[0] = y[1] = p[0]
        elif o.code == RAMP:
            y[0] = p[0] + p[1] * clipped((t[0] - p[2]) / p[3])
            y[1] = p[0] + p[1] * clipped((t[1] - p[2]) / p[3])
        elif o.code == LINE:
            y[0] = p[0] + p[1] * ((t[0] - p[2]) / p[3])
            y[1] = p[0] + p[1] * ((t[1] - p[2]) / p[3])
        elif o.code == POLYNOMIAL:
            y[0] = polynomial(o, t[0])
            y[1] = polynomial(o, t[1])
        elif o.code == OFFSET:
            y[0] = p[0] + y[0]
            y[1] = p[0] + y[1]
        elif o.code == SCALE:
            y[0] = p[0] * y[0]
            y[1] = p[0] * y[1]
        elif o.code == ADD:
            y[0] = y[0] + y[2]
            y[1] = y[1] + y[3]
        elif o.code == SUBTRACT:
            y[0] = y[0] - y[2]
            y[1] = y[1] - y[3]
        else:
            y[0] = y[0] * y[2]
            y[1] = y[1] * y[3]
        o += 1
    out[0] = stack[0][0]
    out[1] = stack[0][1]


def is_other(item):
    """False for a formula that is nothing but a sine: these come first."""
    return len(item[1]) != 1 or item[1][0][0] != "sine"


cdef inline bint same(const double* a, const double* b, int64_t count) noexcept nogil:
    """Whether count numbers are the same, to the bit."""
    cdef int64_t i
    for i in range(count):
        if (<const uint64_t*>a)[i] != (<const uint64_t*>b)[i]:
            return False
    return True


@cython.auto_pickle(False)
cdef class Stepper:
    """Base of what steps a state: `step()` with the inputs that are prepared, `_further()` (of the subclass) where none are.

    Pickle leaves all of it out: a subclass names its values in __getstate__ and begins with _begin in __setstate__.
    """

    cdef KernelModel _model
    cdef KernelState _state
    #: steps of a tick
    cdef int64_t _count
    #: inputs are prepared for the steps first .. behind - 1
    cdef int64_t _first
    cdef int64_t _behind
    #: samples (or numbers that hold) and doubles from one step to the next, 0: the same for all
    cdef object _keep
    cdef const double* _samples
    cdef int64_t _stride
    #: formulas: input and operations of each, the first of them nothing but a sine, and their arguments; begin of the first
    #: step and end of the last; inputs at start, middle and end of the last step, and its number
    cdef bint _following
    cdef int64_t _sines
    cdef int64_t _formulas
    cdef int32_t* _input
    cdef tl_op** _op
    cdef double* _angles
    cdef double _begins
    cdef double _ends
    cdef double* _rows
    cdef int64_t _last

    def _begin(self, KernelState state not None, int64_t count):
        """Step this state, count steps a tick. Nothing is prepared."""
        self._model = state.model
        self._state = state
        self._count = count
        self._forget()

    @property
    def state(self):
        """The state that is stepped: u, z, modes, copy() ... Another state of the same model may take its place."""
        return self._state

    @state.setter
    def state(self, KernelState value not None):
        if value.model is not self._model:
            raise ValueError("state: it belongs to another model (take its values over: state.restore, state.from_bytes)")
        self._state = value

    def _forget(self):
        """What is prepared holds no more."""
        self._keep = None
        self._samples = NULL
        self._following = False
        self._first = self._behind = 0

    @property
    def _prepared(self):
        """Steps, from the present one on, that inputs are prepared for."""
        cdef int64_t at = self._state.ptr.step_no[0]
        return max(0, self._behind - at) if at >= self._first else 0

    def _hold(self, cnp.ndarray inputs not None):
        """The same inputs (nin) for all steps to come."""
        self._take(inputs, 1, 0, INT64_MAX)
        self._stride = 0

    def _ahead(self, cnp.ndarray inputs not None, int64_t first):
        """Inputs (K, 3, nin) at start, middle and end of the steps from number first on."""
        self._take(inputs, 3, first, first + inputs.shape[0])
        self._stride = 3 * self._model.ptr.nin

    def _take(self, cnp.ndarray inputs, int ndim, int64_t first, int64_t behind):
        cdef int nin = self._model.ptr.nin
        self._forget()
        if inputs.dtype != np.float64 or not inputs.flags.c_contiguous or inputs.ndim != ndim \
                or inputs.shape[ndim - 1] != nin or (ndim == 3 and inputs.shape[1] != 3):
            raise ValueError(f"inputs: a contiguous float64 array is needed, its last size {nin}")
        self._keep = inputs
        self._samples = <const double*>cnp.PyArray_DATA(inputs)
        self._first, self._behind = first, behind

    def _follow(self, formulas, cnp.ndarray levels not None, int64_t first, int64_t behind, double begins, double ends):
        """Formulas in time for the steps first .. behind - 1, which begin and end at these times.

        formulas: input -> operations (name, numbers) as of core/signals; levels: (nin) what the other inputs are. False:
        nothing is prepared, for one of them holds too many values, or NumPy's sine is not found.
        """
        cdef int64_t nin = self._model.ptr.nin, total = sum(len(each) for each in formulas.values()), k, n
        cdef int64_t held, change, least, most, code
        self._forget()
        if levels.dtype != np.float64 or not levels.flags.c_contiguous or levels.ndim != 1 or levels.shape[0] != nin:
            raise ValueError(f"levels: a contiguous float64 array ({nin},) is needed")
        ops = np.zeros(max(1, total) * sizeof(tl_op), dtype=np.uint8)
        ends_of = np.zeros(len(formulas) + 1, dtype=np.uint64)
        inputs = np.zeros(len(formulas) + 1, dtype=np.int32)
        angles = np.zeros(2 * len(formulas) + 1)
        rows = np.tile(levels, 3)
        cdef tl_op* o = <tl_op*>cnp.PyArray_DATA(ops)
        cdef tl_op** end = <tl_op**>cnp.PyArray_DATA(ends_of)
        cdef int32_t* of = <int32_t*>cnp.PyArray_DATA(inputs)
        cdef double* row = <double*>cnp.PyArray_DATA(rows)
        end[0] = o
        k = self._sines = 0
        for number, formula in sorted(formulas.items(), key=is_other):
            if not 0 <= number < nin:
                raise ValueError(f"input {number}, allowed: 0 .. {nin - 1}")
            held = code = 0
            for name, numbers in formula:
                code, change, least, most = OPERATIONS[name]
                held += change
                if held > DEPTH or len(numbers) > VALUES or (code == SINE and sine_loop == NULL):
                    return False
                if not least <= len(numbers) <= most or held < 1:
                    raise ValueError(f"input {number}: {name} of {len(numbers)} numbers, {held} values are left")
                o.code, o.count = code, len(numbers)
                for n in range(o.count):
                    o.p[n] = numbers[n]
                o += 1
            if held != 1:
                raise ValueError(f"input {number}: its formula leaves {held} values")
            if len(formula) == 1 and code == CONSTANT:
                o -= 1
                row[number] = row[nin + number] = row[2 * nin + number] = o.p[0]
                continue
            self._sines += len(formula) == 1 and code == SINE
            of[k] = number
            k += 1
            end[k] = o
        self._keep = (ops, ends_of, inputs, angles, rows)
        self._input, self._op, self._rows, self._angles = of, end, row, <double*>cnp.PyArray_DATA(angles)
        self._begins, self._ends, self._last = begins, ends, -1
        self._following, self._formulas, self._first, self._behind = True, k, first, behind
        return True

    cdef inline void values(self, const double* t, double* first, double* second) noexcept nogil:
        """Values of all formulas at two times into two rows of inputs."""
        cdef int64_t j
        cdef const double* p
        cdef double* x = self._angles
        cdef double[2] y
        for j in range(self._sines):
            p = self._op[j].p
            x[2 * j] = p[2] * (t[0] - p[3]) + p[4]
            x[2 * j + 1] = p[2] * (t[1] - p[3]) + p[4]
        if self._sines > 0:
            sines(x, 2 * self._sines)
        for j in range(self._sines):
            p = self._op[j].p
            first[self._input[j]] = p[0] + p[1] * x[2 * j]
            second[self._input[j]] = p[0] + p[1] * x[2 * j + 1]
        for j in range(self._sines, self._formulas):
            evaluate(self._op[j], self._op[j + 1], t, y)
            first[self._input[j]] = y[0]
            second[self._input[j]] = y[1]

    cdef void follow(self, const tl_model* m, int64_t at) noexcept nogil:
        """Rows of inputs of step number at, from the formulas."""
        cdef int64_t nin = m.nin, j
        cdef double* start = self._rows
        cdef double h = m.h
        cdef double[2] t
        # as the grid of a run: step number times h, but for ends that lie on an event
        cdef double begins = self._begins if at == self._first else <double>at * h
        if self._last + 1 == at and at != self._first:
            for j in range(self._formulas):
                start[self._input[j]] = start[2 * nin + self._input[j]]
        else:
            t[0] = t[1] = begins
            self.values(t, start, start)
        t[1] = self._ends if at + 1 == self._behind else <double>(at + 1) * h
        t[0] = 0.5 * (begins + t[1])
        self.values(t, start + nin, start + 2 * nin)
        self._last = at

    cdef bint tick(self, const tl_model* m, tl_state* s) noexcept nogil:
        """See _tick; m, s: model and state that are stepped."""
        cdef int64_t at = s.step_no[0], behind = at + self._count, nin = m.nin
        cdef const double* now
        cdef int status
        cdef unsigned long long mode
        if at < self._first or behind > self._behind or s.fraction[0] != 0.0:
            return False
        while at < behind:
            if self._following:
                self.follow(m, at)
                now = self._rows
            else:
                now = self._samples + (at - self._first) * self._stride
            s.held = self._samples != NULL and self._stride == 0 or (same(now, now + nin, nin) and same(now, now + 2 * nin, nin))
            memcpy(s.inp, now, (nin if s.held else 3 * nin) * sizeof(double))
            mode = denormals_off()
            status = m.step_fn(m, s, m.h)
            denormals_restore(mode)
            if status != 0:
                return False
            at += 1
        return True

    def _tick(self):
        """One tick with the inputs that are prepared. False: there are none and nothing was done, or the state stopped being
        finite: only the steps before the one that failed were done."""
        return self.tick(self._model.ptr, self._state.ptr)

    def _ticks(self, cnp.ndarray out not None):
        """Ticks with the inputs that are prepared, without the GIL: as many as `out` has rows (ticks, nout) at most, each row
        the outputs after its tick. How many were made: fewer where inputs end, or the state stopped being finite."""
        cdef const tl_model* m = self._model.ptr
        cdef tl_state* s = self._state.ptr
        if out.dtype != np.float64 or not out.flags.c_contiguous or out.ndim != 2 or out.shape[1] != m.nout:
            raise ValueError(f"out: a contiguous float64 array (ticks, {m.nout}) is needed")
        cdef int64_t count = out.shape[0], made = 0
        cdef double* row = <double*>cnp.PyArray_DATA(out)
        cdef unsigned long long mode
        claim(s, True)
        with nogil:
            while made < count and self.tick(m, s):
                mode = denormals_off()
                tl_outputs(m, s, row + made * m.nout)
                denormals_restore(mode)
                made += 1
        s.busy = 0
        ended(s)
        return made

    def step(self):
        """One tick. What it costs beside the step of the kernel is the call, and sampling the signals: those known
        beforehand some hundred ticks at a time, functions of Python at every tick."""
        if self._state is None:
            raise RuntimeError("a Stepper without a state")
        if self._state.ptr.busy:
            raise RuntimeError("another thread steps this state: give each thread a state of its own (KernelState.copy)")
        # at the very first step accelerations are unknown
        if self._state.ptr.step_no[0] == 0 or not self.tick(self._model.ptr, self._state.ptr):
            self._further()

    def _further(self):
        """Make the tick for which nothing is prepared."""
        raise NotImplementedError
