"""Messages that are not only sent by the clock: on a change of their signals, on an event. Words: hil/can/sending.py,
docs/can.md; the code of the tick: tick_send.pxi."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from torqueloop.cython_kernels.tick.blocks cimport Blocks
from torqueloop.cython_kernels.tick.conditions cimport condition_t

# Constant.
cdef struct sending_t:
    int32_t message             # index in the codec
    int32_t period              # ticks; 0: not cyclic
    int32_t offset              # 0 <= offset < period
    int32_t first               # nothing is sent before this tick
    int32_t first_signal        # signals whose change sends it, in sendings_t.signal
    int32_t n_signal
    condition_t when            # sends it each time it comes true
    int32_t gap                 # ticks between two frames that are not cyclic, at least; 1: none
    int32_t repeats             # frames more after a change or event

# All of it that changes: part of an image of the rig.
cdef struct sending_state_t:
    int64_t last                # tick of its last frame; -1: none
    int32_t pending             # a frame is to be sent
    int32_t left                # repetitions behind it
    int32_t was                 # the condition held in the tick before
    int32_t pad

# Those of one bus.
cdef struct sendings_t:
    int32_t n
    int32_t n_signal
    sending_t* row
    sending_state_t* state
    int32_t* signal             # numbers in the codec
    uint64_t* raw               # what they were last

cdef class Sendings(Blocks):
    cdef sendings_t s
    cdef readonly int n_sig
