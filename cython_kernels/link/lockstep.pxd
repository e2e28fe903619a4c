from torqueloop.cython_kernels.link.coupling cimport CouplingSums
from torqueloop.cython_kernels.link.form cimport Form
from torqueloop.cython_kernels.link.mailbox cimport Mailbox
from torqueloop.cython_kernels.rings.ring cimport LatestSlot

cdef enum:
    ASKED = 7                 # numbers of a step: step, t, F_wheel, I_wheel, speed, s, brake
    ANSWERED = 8                  # of a state: step, own_step, t, speed, a, F, F_hold, grade

cdef class StepPeer:
    cdef int answer(self, const double* asked, double* answered) except -1

cdef class BoxedPeer(StepPeer):
    cdef Mailbox _box
    cdef Form _asks, _tells
    cdef double _patience_s
    cdef readonly double wait_max_s

cdef class SlotExchange:
    cdef LatestSlot _rig, _vehicle
    cdef StepPeer _peer
    cdef CouplingSums _sums
    cdef double[ASKED] _asked
    cdef double[ANSWERED] _answered
