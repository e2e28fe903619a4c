"""Denormal numbers off: results below 2.2e-308 become 0, and operands below it count as 0.

An operation on such a number costs some hundred cycles on many processors; a state that decays towards 0 would make
every step slow after a minute of standstill. The mode belongs to a thread and changes results (in the last place of
nothing anybody looks at), so it is in force wherever the kernel steps: loop, virtual clock, replay, offline. That keeps
state hashes equal.

    mode = denormals_off()          ... steps ...          denormals_restore(mode)

x86: FTZ and DAZ of MXCSR. aarch64: FZ of FPCR. Elsewhere nothing happens, DENORMALS_AVAILABLE is 0.
"""

cdef extern from *:
    """
    #ifndef TORQUELOOP_DENORMALS_H
    #define TORQUELOOP_DENORMALS_H
    #if defined(__x86_64__) || defined(__SSE2__)
      #include <xmmintrin.h>
      #define TL_DENORMALS_AVAILABLE 1
      #define TL_DENORMALS_BITS 0x8040u  /* FTZ | DAZ */
      static inline unsigned long long tl_denormals_mode(void) { return _mm_getcsr(); }
      static inline void tl_denormals_set(unsigned long long mode) { _mm_setcsr((unsigned)mode); }
    #elif defined(__aarch64__)
      #define TL_DENORMALS_AVAILABLE 1
      #define TL_DENORMALS_BITS (1ull << 24)  /* FZ */
      static inline unsigned long long tl_denormals_mode(void) {
        unsigned long long mode;
        __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
        return mode;
      }
      static inline void tl_denormals_set(unsigned long long mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
    #else
      #define TL_DENORMALS_AVAILABLE 0
      #define TL_DENORMALS_BITS 0
      static inline unsigned long long tl_denormals_mode(void) { return 0; }
      static inline void tl_denormals_set(unsigned long long mode) { (void)mode; }
    #endif
    static inline unsigned long long tl_denormals_off(void) {
      unsigned long long mode = tl_denormals_mode();
      tl_denormals_set(mode | TL_DENORMALS_BITS);
      __asm__ volatile("" ::: "memory");  /* no load or store of a step moves across the switch */
      return mode;
    }
    static inline void tl_denormals_restore(unsigned long long mode) {
      __asm__ volatile("" ::: "memory");
      tl_denormals_set(mode);
    }
    #endif
    """
    bint DENORMALS_AVAILABLE "TL_DENORMALS_AVAILABLE"
    # real-time: yes, both (a few cycles)
    unsigned long long denormals_off "tl_denormals_off"() noexcept nogil
    void denormals_restore "tl_denormals_restore"(unsigned long long mode) noexcept nogil
