"""GCC/Clang atomic builtins on 32- and 64-bit words, for what two threads share."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_ATOMIC_H
    #define TORQUELOOP_ATOMIC_H
    #define TL_LOAD_ACQUIRE(p)      __atomic_load_n((p), __ATOMIC_ACQUIRE)
    #define TL_LOAD_RELAXED(p)      __atomic_load_n((p), __ATOMIC_RELAXED)
    #define TL_STORE_RELEASE(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define TL_STORE_RELAXED(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELAXED)
    #define TL_FETCH_OR(p, v)       __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
    #define TL_FETCH_AND(p, v)      __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
    #define TL_FENCE_ACQUIRE()      __atomic_thread_fence(__ATOMIC_ACQUIRE)
    #define TL_FENCE_RELEASE()      __atomic_thread_fence(__ATOMIC_RELEASE)
    #define TL_FENCE_ALL()          __atomic_thread_fence(__ATOMIC_SEQ_CST)
    /* *p: expected -> desired; 1 if it was done */
    #define TL_SWAP_IF(p, expected, desired) __sync_bool_compare_and_swap((p), (expected), (desired))
    #endif
    """
    uint64_t TL_LOAD_ACQUIRE(uint64_t* p) noexcept nogil
    uint64_t TL_LOAD_RELAXED(const uint64_t* p) noexcept nogil
    void TL_STORE_RELEASE(uint64_t* p, uint64_t v) noexcept nogil
    void TL_STORE_RELAXED(uint64_t* p, uint64_t v) noexcept nogil
    int64_t load_relaxed_i64 "TL_LOAD_RELAXED"(const int64_t* p) noexcept nogil
    void store_relaxed_i64 "TL_STORE_RELAXED"(int64_t* p, int64_t v) noexcept nogil
    void store_release_i64 "TL_STORE_RELEASE"(int64_t* p, int64_t v) noexcept nogil
    int32_t load_acquire_i32 "TL_LOAD_ACQUIRE"(const int32_t* p) noexcept nogil
    void store_release_i32 "TL_STORE_RELEASE"(int32_t* p, int32_t v) noexcept nogil
    uint32_t load_acquire_u32 "TL_LOAD_ACQUIRE"(const uint32_t* p) noexcept nogil
    void store_release_u32 "TL_STORE_RELEASE"(uint32_t* p, uint32_t v) noexcept nogil
    void store_relaxed_u32 "TL_STORE_RELAXED"(uint32_t* p, uint32_t v) noexcept nogil
    uint32_t fetch_or_u32 "TL_FETCH_OR"(uint32_t* p, uint32_t v) noexcept nogil
    uint32_t fetch_and_u32 "TL_FETCH_AND"(uint32_t* p, uint32_t v) noexcept nogil
    bint swap_if_i32 "TL_SWAP_IF"(int32_t* p, int32_t expected, int32_t desired) noexcept nogil
    void TL_FENCE_ACQUIRE() noexcept nogil
    void TL_FENCE_RELEASE() noexcept nogil
    void TL_FENCE_ALL() noexcept nogil
