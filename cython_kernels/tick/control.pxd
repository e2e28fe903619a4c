from torqueloop.cython_kernels.tick.transaction cimport ctl_t, image_t

cdef class Image:
    """Owner of an image_t."""
    cdef image_t m
    cdef object _memory
    cdef readonly tuple sizes

cdef class Control:
    """Owner of a ctl_t."""
    cdef ctl_t c
    cdef readonly object target
    cdef object _current    # model and state the tick goes on with, those posted last, image posted last
    cdef object _staged
    cdef object _source
    cdef object _references
    cdef int post_record(self) except -1
    cdef void hand_over(self) noexcept
