"""Fresh memory is mapped page by page at its first write: done when it is made, not in some tick."""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #ifndef TORQUELOOP_PAGES_H
    #define TORQUELOOP_PAGES_H
    /* volatile: compilers make calloc of malloc and memset, and calloc maps nothing */
    static inline void tl_touch_pages(void* p, unsigned long long n) {
      volatile unsigned char* at = (volatile unsigned char*)p;
      unsigned long long i;
      for (i = 0; i < n; i += 4096) at[i] = 0;
      if (n > 0) at[n - 1] = 0;
    }
    #endif
    """
    # zeroed memory of n bytes; it stays zero
    void tl_touch_pages(void* p, uint64_t n) noexcept nogil
