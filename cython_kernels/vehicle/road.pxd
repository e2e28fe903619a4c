from torqueloop.cython_kernels.link.lockstep cimport ASKED, StepPeer

cdef class RoadMotion(StepPeer):
    cdef public double speed      # [m/s]
    cdef public double distance   # [m]
    cdef public long long own_step, restarts
    cdef double _mass, _half_rho_cdA, _head_wind, _rolling, _brake_max, _step_s
    cdef int _points
    cdef double* _at              # [m], then the slopes there [%]
    cdef bint _begun
    cdef double[ASKED] _before    # the message before
    cpdef double angle(self, double s)
    cpdef double _active(self, double speed, double slope) except? -1.0
    cpdef double _holds(self, double slope, double brake) except? -1.0
    cdef double _acceleration(self, double force, double hold)
    cpdef object _proceed(self, double tractive, double brake, double duration)
