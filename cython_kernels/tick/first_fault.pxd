"""Ring in memory of the last ticks, frozen when the safe state has been latched. See first_fault.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef struct first_fault_t:
    uint8_t* data
    int64_t n                   # records it holds
    int64_t n_bytes             # of one record
    int64_t after               # ticks kept behind the one that latched
    int64_t written             # records written since arming; the last n of them are there
    int32_t frozen              # complete: the tick writes no more
    int32_t held                # asked for by another thread: the tick is to write no more

cdef void* first_fault_place(first_fault_t* f) noexcept nogil
cdef void first_fault_keep(first_fault_t* f) noexcept nogil

cdef class FirstFault:
    cdef first_fault_t f
    cdef readonly int n_signals
