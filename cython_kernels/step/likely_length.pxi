# Where an event lies in a trial that ends there, before one is made: for models whose springs act along one direction z.
#
# The trial of the length t solves for a = P g(t) + bend(t) z (z.g(t)), see other_length.pxi. With the forces of ports and of
# what slides as straight lines between the ends of the trial there is, g is a parabola in t (springs: the trapezoidal rule),
# and so is its product with any vector. The margin of one element, v the row that its slip or torque takes from g, is then
#
#   slip:    w + t/2 (w' + v.g + bend(t) (row.z) (z.g))        torque: limit(t) - (v.g + change(t) (z.g))
#
# a function of one number, whose root costs less than a trial. Needs: other_length.pxi, trial.pxi (lin_force), lists.pxi.

#: of the trial: a secant that moves the length by less has squared its error
cdef double LIKELY = 1e-6
#: of the length there is: where the other point of the first secant lies, near enough for the slope there
cdef double SECANT_FROM = 0.999


cdef enum:
    SECANTS = 8            # at most; 2 to 4 are usual


cdef struct tl_margin:
    double[3] v            # v.g = v[0] + t v[1] + t^2 v[2]
    double[3] z            # z.g likewise
    double[3] size         # z.S z for the length t: size[0] + t size[1] + t^2 size[2]
    double[3] change       # and what is above it: (row.z, 0, 0) of a slip, Tn S z of a torque
    double whole           # change over size for the whole step
    double[2] rest         # what else the margin has: a straight line
    double sgn             # of v.g and what follows it
    int32_t slips          # 1: the slip, half of the time times an acceleration


cdef inline double span_of(const double* p, double t) noexcept nogil:
    """M, D and K parts for trials of the length t, with the factors of the rule."""
    return p[0] + t * (p[1] + t * p[2])


cdef inline double margin_at(const tl_margin* f, double t) noexcept nogil:
    """The margin in a trial of the length t."""
    cdef double z = f.z[0] + t * (f.z[1] + t * f.z[2])
    cdef double y = f.v[0] + t * (f.v[1] + t * f.v[2]) + (span_of(f.change, t) / span_of(f.size, t) - f.whole) * z
    return f.rest[0] + t * f.rest[1] + f.sgn * (0.5 * t * y if f.slips else y)


cdef inline void add_force(tl_margin* f, double v, double z, double now, double rate, double curve) noexcept nogil:
    """A force now + rate t + curve t^2 along a row whose products with v and z are given."""
    f.v[0] += v * now
    f.v[1] += v * rate
    f.v[2] += v * curve
    f.z[0] += z * now
    f.z[1] += z * rate
    f.z[2] += z * curve


cdef inline void lay_margin(const tl_model* m, tl_state* s, int32_t el, double sgn, tl_margin* f) noexcept nogil:
    """The margin of element `el` (event_margin, shortened.pxi) after a trial of the length s.h that has passed it."""
    cdef int32_t i, j, k, n = TL_N(m), nf = TL_NF(m), row = TL_FR_ROW(m, el)
    cdef double rate = 1.0 / s.h, b
    cdef tl_vec v = s.margin_v
    cdef tl_vec on_v = s.margin_on_v
    cdef tl_vec on_z = s.margin_on_z
    cdef tl_cvec spring = s.pat.spring
    memset(f, 0, sizeof(tl_margin))
    f.size[0] = spring[n]
    f.size[1] = 0.5 * spring[n + 1]
    f.size[2] = 0.25 * spring[n + 2]
    f.slips = s.mode[el] != MODE_STUCK
    if f.slips:
        for i in range(n):
            v[i] = 0.0
        for j in range(m.row_ptr[row], m.row_ptr[row + 1]):
            for i in range(n):
                v[i] += m.row_val[j] * s.pat.P[m.row_idx[j] * n + i]
        f.change[0] = row_dot(m, row, spring)
        f.rest[0] = sgn * s.now.w[row]
        f.rest[1] = sgn * 0.5 * s.wa[row]
        f.sgn = sgn
    else:
        for j in range(n):
            v[j] = s.pat.T[j * lanes(n + nf) + n + el]
        f.change[0] = spring[n + 3 + el]
        f.change[1] = 0.5 * spring[n + 3 + nf + el]
        f.change[2] = 0.25 * spring[n + 3 + 2 * nf + el]
        f.rest[0] = s.now.lim_b[el] if sgn > 0.0 else s.now.lim_f[el]
        f.rest[1] = rate * ((s.end.lim_b[el] if sgn > 0.0 else s.end.lim_f[el]) - f.rest[0])
        f.sgn = -sgn
    f.whole = span_of(f.change, m.h) / span_of(f.size, m.h)
    gather(m, v, on_v)
    gather(m, spring, on_z)
    for i in range(TL_NPORT(m)):
        k = TL_PORT_ROW(m, i)
        add_force(f, on_v[k], on_z[k], s.now.port[i], rate * (s.end.port[i] - s.now.port[i]), 0.0)
    for j in range(s.n_sliding):
        i = s.sliding[j]
        k = TL_FR_ROW(m, i)
        if s.end.steep[i]:
            # at its own event it has the capacity of standstill, whatever it had on the way
            b = -sgn * m.fr[i].cap0
            add_force(f, on_v[k], on_z[k], b * s.now.raw[i], rate * b * (s.end.raw[i] - s.now.raw[i]), 0.0)
        else:
            add_force(f, on_v[k], on_z[k], s.now.tau[i], rate * (s.end.tau[i] - s.now.tau[i]), 0.0)
    for i in range(TL_NLIN(m)):
        k = TL_LIN_ROW(m, i)
        b = 0.5 * m.lin[i].d
        add_force(f, on_v[k], on_z[k], -lin_force(m, i, s.now.z, s.now.u), -(m.lin[i].c * s.now.w[k] + b * s.wa[k]),
                  -m.lin[i].c * (0.5 - m.beta) * s.wa[k])


cdef inline double likely_length(const tl_model* m, tl_state* s, int32_t el, double sgn, double x, double* slope) noexcept nogil:
    """Fraction of the trial there is, of the length s.h, at which element `el` has its event in a trial that ends there, and
    how its margin changes with the fraction; x, and slope 0, where there is nothing better. Where trials are listed (list_rest)."""
    cdef tl_margin f
    cdef int32_t it
    cdef double t = x * s.h, old = SECANT_FROM * t, y, y_old, new
    slope[0] = 0.0
    if not (along_one(m) and s.listed and s.pat.rank == 1 and 0.0 < x < 1.0):
        return x
    for it in range(s.n_sliding):
        if s.end.steep[s.sliding[it]] and s.sliding[it] != el:
            return x                         # its torque is no straight line
    lay_margin(m, s, el, sgn, &f)
    y_old = margin_at(&f, old)
    for it in range(SECANTS):
        y = margin_at(&f, t)
        if y == y_old:
            break
        new = t - y * (t - old) / (y - y_old)
        if not 0.0 < new < s.h:
            return x
        if fabs(new - t) <= LIKELY * s.h:
            slope[0] = s.h * (y - y_old) / (t - old)
            return new / s.h
        old = t
        y_old = y
        t = new
    return x
