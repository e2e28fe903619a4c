# cython: cdivision=True
"""Conditions on signals: their code, checked when it is taken over, and one function that evaluates it."""

from libc.math cimport fabs, fmax, fmin

cdef enum:
    NUMBER
    SIGNAL
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE
    NEGATIVE
    ABSOLUTE
    LEAST
    MOST
    LESS
    AT_MOST
    MORE
    AT_LEAST
    EQUAL
    UNEQUAL
    AND
    OR
    NOT

#: names of the operations, in the order of their numbers
OPERATIONS = ("number", "signal", "+", "-", "*", "/", "negative", "abs", "min", "max", "<", "<=", ">", ">=", "==", "!=",
              "and", "or", "not")
assert OPERATIONS[NOT] == "not" and OPERATIONS[LESS] == "<"
#: those that take one operand
UNARY = ("negative", "abs", "not")
#: numbers are equal within this part of the larger of 1 and the second one: values of CAN signals are rounded
EQUAL_WITHIN = 1e-9
DEPTH = STACK
cdef double TOLERANCE = EQUAL_WITHIN


cdef bint holds(const condition_t* c, const double* sig) noexcept nogil:
    """Whether the condition holds; one without code does. real-time: yes."""
    cdef double stack[STACK]
    cdef double* top = stack
    cdef const code_t* code = c.code
    cdef const code_t* end = code + c.n
    cdef double b
    cdef int32_t op
    if c.n == 0:
        return True
    # `top` points behind the last operand
    while code < end:
        op = code.op
        if op <= SIGNAL:
            top[0] = code.value if op == NUMBER else sig[code.slot]
            top += 1
        elif op == NEGATIVE:
            top[-1] = -top[-1]
        elif op == ABSOLUTE:
            top[-1] = fabs(top[-1])
        elif op == NOT:
            top[-1] = top[-1] == 0.0
        else:
            top -= 1
            top[-1] = _combined(op, top[-1], top[0])
        code += 1
    return stack[0] != 0.0


cdef inline double _combined(int32_t op, double a, double b) noexcept nogil:
    if op == LESS:
        return a < b
    if op == AT_MOST:
        return a <= b
    if op == MORE:
        return a > b
    if op == AT_LEAST:
        return a >= b
    if op == EQUAL or op == UNEQUAL:
        return (fabs(a - b) <= TOLERANCE * fmax(1.0, fabs(b))) == (op == EQUAL)
    if op == AND:
        return a != 0.0 and b != 0.0
    if op == OR:
        return a != 0.0 or b != 0.0
    if op == ADD:
        return a + b
    if op == SUBTRACT:
        return a - b
    if op == MULTIPLY:
        return a * b
    if op == DIVIDE:
        return a / b
    return fmin(a, b) if op == LEAST else fmax(a, b)


cdef int fill_condition(condition_t* c, Blocks owner, object code, int n_sig) except -1:
    """Take over code, (operation, slot, value) each, into memory of its owner. IndexError and ValueError for code that
    reads elsewhere, needs too deep a stack, or leaves not one result."""
    depth = 0
    c.n = len(code)
    c.code = <code_t*>owner.block(len(code) * sizeof(code_t))
    for k, (operation, slot, value) in enumerate(code):
        op = OPERATIONS.index(operation)
        if op == SIGNAL and not 0 <= slot < n_sig:
            raise IndexError(f"condition, operation {k}: slot {slot}; allowed 0..{n_sig - 1}")
        if depth < (0 if op <= SIGNAL else 1 if operation in UNARY else 2):
            raise ValueError(f"condition, operation {k}: {operation} has too few operands")
        depth += 1 if op <= SIGNAL else 0 if operation in UNARY else -1
        if depth > STACK:
            raise ValueError(f"condition: more than {STACK} operands wait at a time")
        c.code[<int>k].op, c.code[<int>k].slot, c.code[<int>k].value = op, slot, value
    if len(code) and depth != 1:
        raise ValueError(f"condition: {depth} results; allowed: one")
    return 0


cdef class Watched(Blocks):
    """A condition on a table of `n_sig` signals, outside of a tick."""

    cdef condition_t c
    cdef int n_sig

    def __cinit__(self, n_sig: int, code: tuple):
        self.n_sig = n_sig
        fill_condition(&self.c, self, code, n_sig)

    def holds(self, const double[::1] signals not None) -> bool:
        """Whether it holds for these values."""
        if signals.shape[0] != self.n_sig:
            raise IndexError(f"{signals.shape[0]} signals: allowed {self.n_sig}")
        return holds(&self.c, &signals[0])
