"""Scratch memory of a state, as a stack: a function marks where it stands, takes what it needs, and gives all of it back to
the mark before it returns. What is taken holds anything. Real-time: yes.

    cdef int64_t here = mark(s)
    cdef double* A = scratch(s, n * n)
    ...
    release(s, here)

`arena_size` (kernel/state_memory.pxi) reserves what all of them may take together; how much was taken at most is kept, and a test
holds the two against each other. (The idea is that of MuJoCo's mj_markStack, mj_stackAlloc, mj_freeStack.)
"""

from libc.stdint cimport int32_t, int64_t

from torqueloop.cython_kernels.model.model cimport tl_state


cdef inline int64_t mark(const tl_state* s) noexcept nogil:
    return s.arena.used


cdef inline void release(tl_state* s, int64_t here) noexcept nogil:
    s.arena.used = here


cdef inline double* scratch(tl_state* s, int64_t count) noexcept nogil:
    """Room for so many doubles. Where too little was reserved (a mistake) the room of others, never memory outside: the step
    then ends with status 2 (advance.pxi)."""
    cdef double* at = s.arena.memory + s.arena.used
    s.arena.used += count
    if s.arena.used > s.arena.most:
        s.arena.most = s.arena.used
    return at if s.arena.used <= s.arena.size else s.arena.memory


cdef inline int32_t* scratch_ints(tl_state* s, int64_t count) noexcept nogil:
    """Room for so many whole numbers."""
    return <int32_t*>scratch(s, (count + 1) // 2)


cdef inline double* next_doubles(double** block, int64_t count) noexcept nogil:
    """The next so many doubles of a block that was taken as a whole: for vectors whose sizes a precompiled step knows."""
    cdef double* at = block[0]
    block[0] += count
    return at


cdef inline int32_t* next_ints(double** block, int64_t count) noexcept nogil:
    """The next so many whole numbers of it."""
    return <int32_t*>next_doubles(block, (count + 1) // 2)
