"""Stretches of doubles, a few hundred in a tick: looked at, compared with limits, copied, copied to two places at once.

Whether all numbers are finite is seen from their sum: one that is finite has finite terms. The sum may leave the range
although each term is finite; then the terms are looked at one by one.

With AVX four doubles go at a time, else two. What is found does not depend on it: a sum is only asked whether it is finite,
and where it is not, the terms decide.
"""

cdef extern from *:
    """
    #ifndef TORQUELOOP_WORDS_H
    #define TORQUELOOP_WORDS_H
    #include <math.h>
    typedef double tl_quad __attribute__((vector_size(32), aligned(8)));
    /* of memory from calloc */
    typedef double tl_aligned_quad __attribute__((vector_size(32), aligned(16)));
    /* doubles that go in one turn of a loop */
    #define TL_BLOCK 32
    #define TL_BETWEEN_BLOCK 4
    #define TL_ALWAYS static inline __attribute__((always_inline))

    TL_ALWAYS int tl_find_not_finite(const double* x, int n)
    {
        const tl_aligned_quad* p = (const tl_aligned_quad*)x;
        tl_aligned_quad sum = {0.0, 0.0, 0.0, 0.0}, other = {0.0, 0.0, 0.0, 0.0};
        double total;
        int i;
        for (i = n; i > 0; i -= TL_BLOCK, p += TL_BLOCK / 4) {
            sum += p[0];
            other += p[1];
            sum += p[2];
            other += p[3];
            sum += p[4];
            other += p[5];
            sum += p[6];
            other += p[7];
        }
        sum += other;
        total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        if (total - total == 0.0)
            return -1;
        for (i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return i;
        return -1;
    }

    #define TL_QUAD(at, k) (*(tl_quad*)((at) + 4 * (k)))
    #define TL_FROM(k) (*(const tl_quad*)(from + 4 * (k)))

    TL_ALWAYS void tl_copy_stretch(const double* from, double* to, int n)
    {
        int blocks = n / TL_BLOCK;
        for (; blocks > 0; blocks--, from += TL_BLOCK, to += TL_BLOCK) {
            TL_QUAD(to, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_FROM(1);
            TL_QUAD(to, 2) = TL_FROM(2);
            TL_QUAD(to, 3) = TL_FROM(3);
            TL_QUAD(to, 4) = TL_FROM(4);
            TL_QUAD(to, 5) = TL_FROM(5);
            TL_QUAD(to, 6) = TL_FROM(6);
            TL_QUAD(to, 7) = TL_FROM(7);
        }
        if (n & 16) {
            TL_QUAD(to, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_FROM(1);
            TL_QUAD(to, 2) = TL_FROM(2);
            TL_QUAD(to, 3) = TL_FROM(3);
            from += 16, to += 16;
        }
        if (n & 8) {
            TL_QUAD(to, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_FROM(1);
            from += 8, to += 8;
        }
        if (n & 4) {
            TL_QUAD(to, 0) = TL_FROM(0);
            from += 4, to += 4;
        }
        if (n & 2) {
            to[0] = from[0];
            to[1] = from[1];
            from += 2, to += 2;
        }
        if (n & 1)
            to[0] = from[0];
    }

    TL_ALWAYS void tl_copy_stretch_twice(const double* from, double* to, double* too, int n)
    {
        int blocks = n / TL_BLOCK;
        for (; blocks > 0; blocks--, from += TL_BLOCK, to += TL_BLOCK, too += TL_BLOCK) {
            TL_QUAD(to, 0) = TL_QUAD(too, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_QUAD(too, 1) = TL_FROM(1);
            TL_QUAD(to, 2) = TL_QUAD(too, 2) = TL_FROM(2);
            TL_QUAD(to, 3) = TL_QUAD(too, 3) = TL_FROM(3);
            TL_QUAD(to, 4) = TL_QUAD(too, 4) = TL_FROM(4);
            TL_QUAD(to, 5) = TL_QUAD(too, 5) = TL_FROM(5);
            TL_QUAD(to, 6) = TL_QUAD(too, 6) = TL_FROM(6);
            TL_QUAD(to, 7) = TL_QUAD(too, 7) = TL_FROM(7);
        }
        if (n & 16) {
            TL_QUAD(to, 0) = TL_QUAD(too, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_QUAD(too, 1) = TL_FROM(1);
            TL_QUAD(to, 2) = TL_QUAD(too, 2) = TL_FROM(2);
            TL_QUAD(to, 3) = TL_QUAD(too, 3) = TL_FROM(3);
            from += 16, to += 16, too += 16;
        }
        if (n & 8) {
            TL_QUAD(to, 0) = TL_QUAD(too, 0) = TL_FROM(0);
            TL_QUAD(to, 1) = TL_QUAD(too, 1) = TL_FROM(1);
            from += 8, to += 8, too += 8;
        }
        if (n & 4) {
            TL_QUAD(to, 0) = TL_QUAD(too, 0) = TL_FROM(0);
            from += 4, to += 4, too += 4;
        }
        if (n & 2) {
            to[0] = too[0] = from[0];
            to[1] = too[1] = from[1];
            from += 2, to += 2, too += 2;
        }
        if (n & 1)
            to[0] = too[0] = from[0];
    }

    TL_ALWAYS int tl_find_between(const double* x, const double* lo, const double* hi, int n)
    {
        typedef long long tl_mask __attribute__((vector_size(32)));
        tl_mask all = {-1, -1, -1, -1};
        for (; n > 0; n -= TL_BETWEEN_BLOCK, x += TL_BETWEEN_BLOCK, lo += TL_BETWEEN_BLOCK, hi += TL_BETWEEN_BLOCK) {
            const tl_quad v = *(const tl_quad*)x;
            all &= v >= *(const tl_quad*)lo;
            all &= v <= *(const tl_quad*)hi;
        }
        return (all[0] & all[1] & all[2] & all[3]) != 0;
    }

    static int tl_not_finite_plain(const double* x, int n) { return tl_find_not_finite(x, n); }
    static void tl_copy_plain(const double* from, double* to, int n) { tl_copy_stretch(from, to, n); }
    static void tl_copy_twice_plain(const double* from, double* to, double* too, int n)
    { tl_copy_stretch_twice(from, to, too, n); }

    static int tl_between_plain(const double* x, const double* lo, const double* hi, int n)
    { return tl_find_between(x, lo, hi, n); }

    static int (*tl_between)(const double*, const double*, const double*, int) = tl_between_plain;
    static int (*tl_not_finite)(const double*, int) = tl_not_finite_plain;
    static void (*tl_copy)(const double*, double*, int) = tl_copy_plain;
    static void (*tl_copy_twice)(const double*, double*, double*, int) = tl_copy_twice_plain;

    #if defined(__x86_64__) && defined(__GNUC__)
    static __attribute__((target("avx"))) int tl_not_finite_avx(const double* x, int n) { return tl_find_not_finite(x, n); }
    static __attribute__((target("avx"))) int tl_between_avx(const double* x, const double* lo, const double* hi, int n)
    { return tl_find_between(x, lo, hi, n); }
    static __attribute__((target("avx"))) void tl_copy_avx(const double* from, double* to, int n)
    { tl_copy_stretch(from, to, n); }
    static __attribute__((target("avx"))) void tl_copy_twice_avx(const double* from, double* to, double* too, int n)
    { tl_copy_stretch_twice(from, to, too, n); }

    __attribute__((constructor)) static void tl_choose_words(void)
    {
        __builtin_cpu_init();
        if (!__builtin_cpu_supports("avx"))
            return;
        tl_not_finite = tl_not_finite_avx;
        tl_between = tl_between_avx;
        tl_copy = tl_copy_avx;
        tl_copy_twice = tl_copy_twice_avx;
    }
    #endif
    #endif
    """
    enum:
        WORDS_BLOCK "TL_BLOCK"
        BETWEEN_BLOCK "TL_BETWEEN_BLOCK"
    # index of the first number that is not finite, -1: none. x is aligned to 16 bytes (as memory from calloc is) and has room
    # for whole blocks of WORDS_BLOCK numbers; those behind n are 0
    int not_finite "tl_not_finite"(const double* x, int n) noexcept nogil
    # whether lo <= x <= hi for n numbers; not for NaN. Whole blocks of BETWEEN_BLOCK are looked at: lo, hi behind n decide as well
    bint all_between "tl_between"(const double* x, const double* lo, const double* hi, int n) noexcept nogil
    # n doubles to another place, to two others; none overlaps
    void copy "tl_copy"(const double* source, double* to, int n) noexcept nogil
    void copy_twice "tl_copy_twice"(const double* source, double* to, double* too, int n) noexcept nogil
    # what processors without AVX have (tests)
    int not_finite_plain "tl_not_finite_plain"(const double* x, int n) noexcept nogil
    bint all_between_plain "tl_between_plain"(const double* x, const double* lo, const double* hi, int n) noexcept nogil
    void copy_plain "tl_copy_plain"(const double* source, double* to, int n) noexcept nogil
    void copy_twice_plain "tl_copy_twice_plain"(const double* source, double* to, double* too, int n) noexcept nogil
