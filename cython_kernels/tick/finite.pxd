"""Whether all numbers of an array are finite, at half an instruction each: a sum that is finite has finite terms.

The sum may leave the range although each term is finite; then the terms are looked at one by one.
"""

cdef extern from *:
    """
    #ifndef TORQUELOOP_FINITE_H
    #define TORQUELOOP_FINITE_H
    #include <math.h>
    static inline int tl_not_finite(const double* x, int n) {
        typedef double pair __attribute__((vector_size(16)));
        const pair* p = (const pair*)__builtin_assume_aligned(x, 16);
        const pair* end = p + (n & ~7) / 2;
        pair sum = {0.0, 0.0}, other = {0.0, 0.0};
        double total;
        int i;
        for (; p < end; p += 4) {
            sum += p[0];
            other += p[1];
            sum += p[2];
            other += p[3];
        }
        sum += other;
        total = sum[0] + sum[1];
        for (i = n & ~7; i < n; i++)
            total += x[i];
        if (total - total == 0.0)
            return -1;
        for (i = 0; i < n; i++)
            if (!isfinite(x[i]))
                return i;
        return -1;
    }
    #endif
    """
    # index of the first number that is not finite, -1: none. x is aligned to 16 bytes (as memory from calloc is)
    int not_finite "tl_not_finite"(const double* x, int n) noexcept nogil
