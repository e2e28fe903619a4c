"""Conditions on signals in the tick: expressions of hil/common/expression.py as code for a stack.

An operation takes its operands from the stack and puts its result there; a comparison gives 1 or 0. The condition holds
if the last result is not 0.
"""

from libc.stdint cimport int32_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks

cdef enum:
    STACK = 64                  # operands that wait at a time, at most

cdef struct code_t:
    int32_t op                  # index of OPERATIONS in conditions.pyx
    int32_t slot                # of "signal"
    double value                # of "number"

cdef struct condition_t:
    int32_t n                   # 0: no condition
    code_t* code

cdef bint holds(const condition_t* c, const double* sig) noexcept nogil
cdef int fill_condition(condition_t* c, Blocks owner, object code, int n_sig) except -1
