/* bench_floor.c for W variants side by side in the lanes of vectors: the same smooth step, without events.
 *
 * All lanes share the driveline and its lock pattern and differ in state and inputs, which is the best case for lanes.
 * A look-up keeps the segment of each lane and looks for another only where a lane has left its own.
 */
#include "bench_floor.c"

#ifndef W
#define W 4
#endif
typedef double vd __attribute__((vector_size(8 * W)));
typedef long vl __attribute__((vector_size(8 * W)));

struct segments { vd lo, hi, x, y, slope; };

struct lanes {
    vd u[N], z[N], a[N], s1[N], p[NA], p_cmd[NA], pedal, xi, tau[NF];
    struct segments wot, drag, mp, mu, coast, mue[NF];
    vl broken;
};

static inline vd choose(vl mask, vd yes, vd no) { return (vd)(((vl)yes & mask) | ((vl)no & ~mask)); }
static inline vd all(double v) { return v - (vd){0}; }
static inline vd size(vd v) { return (vd)((vl)v & 0x7fffffffffffffffL); }
static inline int any(vl mask)
{
    long found = 0;
    for (int l = 0; l < W; l++) found |= mask[l];
    return found != 0;
}

static __attribute__((noinline)) void find(struct segments *s, const struct table *t, const vd *v)
{
    for (int l = 0; l < W; l++) {
        int i = 0, last = t->n - 1;
        double x = (*v)[l];
        if (x <= t->x[0] || x >= t->x[last]) {
            int high = x >= t->x[last];
            s->lo[l] = high ? t->x[last] : -HUGE_VAL;
            s->hi[l] = high ? HUGE_VAL : t->x[0];
            s->x[l] = 0;
            s->y[l] = t->y[high ? last : 0];
            s->slope[l] = 0;
            continue;
        }
        while (i < last - 1 && x >= t->x[i + 1]) i++;
        s->lo[l] = s->x[l] = t->x[i];
        s->hi[l] = t->x[i + 1];
        s->y[l] = t->y[i];
        s->slope[l] = (t->y[i + 1] - t->y[i]) / (t->x[i + 1] - t->x[i]);
    }
}

static inline vd look_up(struct segments *s, const struct table *t, vd v)
{
    if (any((v < s->lo) | (v > s->hi))) find(s, t, &v);
    return s->y + (v - s->x) * s->slope;
}

static inline void slips_of_lanes(const struct car *c, const vd *u, vd *r)
{
    r[0] = c->r1a * u[1] + c->r1b * u[2] - u[5];
    r[1] = u[1] - u[5];
    r[2] = r[3] = u[1];
    r[4] = r[8] = c->cr2a * u[1] + c->cr2b * u[2];
    r[5] = u[0] - u[2];
    r[6] = u[0];
    r[7] = u[2] - u[0];
    r[9] = u[5] - u[4];
    r[10] = u[3];
}

unsigned long lanes_size(void) { return sizeof(struct lanes); }
int lanes_count(void) { return W; }
double lane_speed(const struct lanes *s, int coordinate, int lane) { return s->u[coordinate][lane]; }
int lanes_broken(const struct lanes *s) { return any(s->broken); }

/* Lane 0 is the car; the others have a pedal that is 0.1 % less each. */
void lanes_fill(struct lanes *s, const struct car *c)
{
    int i, l;
    vd none = all(NAN);
    struct segments empty = {all(HUGE_VAL), all(-HUGE_VAL), none, none, none};
    for (i = 0; i < N; i++) {
        s->u[i] = all(c->u[i]);
        s->z[i] = all(c->z[i]);
        s->a[i] = all(c->a[i]);
        s->s1[i] = all(c->s1[i]);
    }
    for (i = 0; i < NA; i++) { s->p[i] = all(c->p[i]); s->p_cmd[i] = all(c->p_cmd[i]); }
    for (l = 0; l < W; l++) s->pedal[l] = c->pedal * (1 - 1e-3 * l);
    s->xi = all(c->xi);
    s->wot = s->drag = s->mp = s->mu = s->coast = empty;
    for (i = 0; i < NF; i++) s->mue[i] = empty;
    s->broken = (vl){0};
}

void lanes_run(const struct car *c, struct lanes *s, long steps)
{
    const double h = c->h;
    const vd zero = {0};
    vd u1[N], r[NF], cap[NF], lim[NF], f[NF], g[N], a1[N], tau[NF];
    for (long k = 0; k < steps; k++) {
        int i, j;
        for (i = 0; i < NA; i++) {
            vd cmd = s->p_cmd[i];
            s->p[i] = cmd + (s->p[i] - cmd) * choose(cmd > s->p[i], all(c->E_rise[i]), all(c->E_fall[i]));
        }
        vd xi = s->xi + h * c->ki * (c->w_idle - s->u[4]);
        xi = choose(xi < 0, zero, xi);
        s->xi = xi = choose(xi > c->idle_max, all(c->idle_max), xi);
        for (i = 0; i < N; i++) u1[i] = s->u[i] + h * (s->a[i] + 0.5 * s->s1[i]);
        slips_of_lanes(c, u1, r);
        vd w = u1[4], lo = look_up(&s->drag, &c->drag, w), te = lo + s->pedal * (look_up(&s->wot, &c->wot, w) - lo);
        vd idle = c->kp * (c->w_idle - w) + xi;
        idle = choose(idle > c->idle_max, all(c->idle_max), idle);
        te += choose(idle > 0, idle, zero);
        vd wp = u1[4], wt = u1[5], tp = zero, tt = zero;
        vl drives = wt <= wp;
        if (any(drives)) {
            vd nu = choose((wt > 0) & (wp > 0), wt / wp, zero);
            tp = look_up(&s->mp, &c->mp, nu) * wp * size(wp);
            tt = look_up(&s->mu, &c->mu, nu) * tp;
        }
        if (any(~drives)) {
            vd back = -look_up(&s->coast, &c->coast, wp / wt) * wt * size(wt);
            tt = choose(drives, tt, back);
            tp = choose(drives, tp, c->coast_ratio * back);
        }
        for (i = 0; i < NF; i++) {
            if (c->act[i] == -2) {
                cap[i] = lim[i] = all(c->roll);
            } else if (c->act[i] < 0) {
                cap[i] = lim[i] = zero;
            } else {
                vd fn = c->area[c->act[i]] * (s->p[c->act[i]] - c->p_return[c->act[i]]);
                vl open = fn <= 0;
                lim[i] = choose(open, zero, c->peak[i] * c->mu0[i] * c->cgeo[i] * fn);
                cap[i] = zero;
                if (any(~open)) {
                    vd mu = c->mode[i] ? look_up(&s->mue[i], &c->mue, size(r[i])) : all(c->mu0[i]);
                    cap[i] = choose(open, zero, c->cgeo[i] * fn * mu);
                }
            }
            f[i] = c->mode[i] == 1 ? -cap[i] : c->mode[i] == -1 ? cap[i] : zero;
        }
        f[7] = f[8] = zero;
        if (c->mode[3] == 1) f[3] = zero;
        vd v3 = u1[3], e = zero, ed = zero;
        for (i = 0; i < N; i++) {
            double row = i == 0 ? c->hs0 : i == 2 ? c->hs2 : i == 3 ? c->hs3 : 0;
            if (i != 0 && i != 2 && i != 3) continue;
            e += row * (s->z[i] + h * s->u[i] + 0.25 * h * h * s->a[i]);
            ed += row * (s->u[i] + 0.5 * h * s->a[i]);
        }
        vd spring = -(c->c * (e - c->phi0) + c->d * ed), air = c->k3 * v3 * size(v3);
        g[0] = f[5] + f[6] - f[7] + c->hs0 * spring;
        g[1] = c->r1a * f[0] + f[1] + f[2] + f[3] + c->cr2a * (f[4] + f[8]);
        g[2] = c->r1b * f[0] - f[5] + f[7] + c->cr2b * (f[4] + f[8]) + c->hs2 * spring;
        g[3] = f[10] + air + c->hs3 * spring;
        g[4] = -f[9] + te - tp;
        g[5] = -f[0] - f[1] + f[9] + tt;
        for (i = 0; i < N; i++) {
            a1[i] = zero;
            for (j = 0; j < N; j++) a1[i] += c->P[j * N + i] * g[j];
        }
        for (i = 0; i < NF; i++) {
            tau[i] = zero;
            for (j = 0; j < N; j++) tau[i] += c->T[j * NF + i] * g[j];
        }
        for (i = 0; i < N; i++) {
            vd u0 = s->u[i];
            s->z[i] += h * u0 + 0.25 * h * h * (s->a[i] + a1[i]);
            s->u[i] = u0 + 0.5 * h * (s->a[i] + a1[i]);
            s->s1[i] = a1[i] - s->a[i];
            s->a[i] = a1[i];
        }
        slips_of_lanes(c, s->u, r);
        for (i = 0; i < NF; i++) {
            if (c->mode[i] == 0) {
                if (c->act[i] >= 0) s->broken |= size(tau[i]) > lim[i];
                s->tau[i] = tau[i];
            } else {
                if (c->mode[i] != 2) s->broken |= c->mode[i] * r[i] < 0;
                s->tau[i] = f[i];
            }
        }
    }
}
