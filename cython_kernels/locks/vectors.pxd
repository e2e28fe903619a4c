"""Vector operations on ranges; results do not depend on who calls them."""

cdef extern from *:
    """
    #ifndef TL_VECTORS
    #define TL_VECTORS
    /* sum of a[i]*b[i], lo <= i < hi */
    static inline double tl_dot(const double* a, const double* b, int lo, int hi)
    {
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        int i = lo;
        for (; i + 4 <= hi; i += 4) {
            s0 += a[i] * b[i]; s1 += a[i + 1] * b[i + 1]; s2 += a[i + 2] * b[i + 2]; s3 += a[i + 3] * b[i + 3];
        }
        for (; i < hi; i++) s0 += a[i] * b[i];
        return (s0 + s1) + (s2 + s3);
    }
    /* y[i] += f*x[i], lo <= i < hi */
    static inline void tl_axpy(double f, const double* __restrict x, double* __restrict y, int lo, int hi)
    {
        int i;
        for (i = lo; i < hi; i++) y[i] += f * x[i];
    }
    #endif
    """
    double dot "tl_dot"(const double* a, const double* b, int lo, int hi) noexcept nogil
    void axpy "tl_axpy"(double f, const double* x, double* y, int lo, int hi) noexcept nogil
