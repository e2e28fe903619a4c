/* The floor: the full car with the ZF 4HP22 as an engineer would write it by hand for one purpose.
 *
 * Same size and same physics as the model the benchmark runs: 6 independent speeds, 11 friction elements, 8 pressure
 * actuators, converter and engine tables, elastic half shafts, trapezoidal step with predicted speeds, a warm active set
 * (the lock pattern does not change, its matrices are given), and the checks that it did not: torque of the stuck elements
 * within their limits, slips of the sliding ones not through zero. No generality, no energy books, no events.
 * The numbers come in through struct car; the benchmark compares the end state with the kernel's.
 */
#include <math.h>
#include <string.h>

#define N 6
#define NF 11
#define NA 8

struct table { int n; const double *x, *y; int at; };

struct car {
    double h;
    double P[N * N], T[N * NF];              /* columns */
    double u[N], z[N], a[N], s1[N], p[NA];
    double E_rise[NA], E_fall[NA], area[NA], p_return[NA], p_cmd[NA];
    double cgeo[NF], mu0[NF], peak[NF];
    int act[NF];                             /* actuator of each element, -1: free wheel, -2: rolling resistance */
    int mode[NF];
    double pedal, w_idle, kp, ki, idle_max, xi;
    double c, d, phi0, k3, roll;
    double r1a, r1b, cr2a, cr2b, hs0, hs2, hs3;  /* ratios of the rows */
    struct table wot, drag, mp, mu, coast, mue;
    double coast_ratio;
    double tau[NF];
    int broken;                              /* set when the active set would have changed */
};

static double lookup(struct table *t, double v)
{
    int i = t->at;
    if (v <= t->x[0]) return t->y[0];
    if (v >= t->x[t->n - 1]) return t->y[t->n - 1];
    while (i > 0 && v < t->x[i]) i--;
    while (i < t->n - 2 && v >= t->x[i + 1]) i++;
    t->at = i;
    return t->y[i] + (v - t->x[i]) * (t->y[i + 1] - t->y[i]) / (t->x[i + 1] - t->x[i]);
}

static void slips(const struct car *c, const double *u, double *r)
{
    r[0] = c->r1a * u[1] + c->r1b * u[2] - u[5];   /* C4: in - R1 */
    r[1] = u[1] - u[5];                            /* C5 */
    r[2] = u[1];                                   /* C6 */
    r[3] = u[1];                                   /* C7 + F16 */
    r[4] = c->cr2a * u[1] + c->cr2b * u[2];        /* C8 */
    r[5] = u[0] - u[2];                            /* C11 */
    r[6] = u[0];                                   /* C12 */
    r[7] = u[2] - u[0];                            /* F14 */
    r[8] = r[4];                                   /* F15 */
    r[9] = u[5] - u[4];                            /* lock-up */
    r[10] = u[3];                                  /* rolling */
}

void floor_run(struct car *c, long steps)
{
    const double h = c->h;
    double u1[N], r[NF], cap[NF], lim[NF], f[NF], g[N], a1[N], tau[NF];
    for (long k = 0; k < steps; k++) {
        int i, j;
        for (i = 0; i < NA; i++) {
            double cmd = c->p_cmd[i];
            c->p[i] = cmd + (c->p[i] - cmd) * (cmd > c->p[i] ? c->E_rise[i] : c->E_fall[i]);
        }
        c->xi += h * c->ki * (c->w_idle - c->u[4]);
        if (c->xi < 0) c->xi = 0;
        if (c->xi > c->idle_max) c->xi = c->idle_max;
        for (i = 0; i < N; i++) u1[i] = c->u[i] + h * (c->a[i] + 0.5 * c->s1[i]);
        slips(c, u1, r);
        double w = u1[4], lo = lookup(&c->drag, w), te = lo + c->pedal * (lookup(&c->wot, w) - lo);
        double idle = c->kp * (c->w_idle - w) + c->xi;
        if (idle > c->idle_max) idle = c->idle_max;
        if (idle > 0) te += idle;
        double wp = u1[4], wt = u1[5], tp, tt;
        if (wt <= wp) {
            double nu = wt > 0 && wp > 0 ? wt / wp : 0;
            tp = lookup(&c->mp, nu) * wp * fabs(wp);
            tt = lookup(&c->mu, nu) * tp;
        } else {
            tt = -lookup(&c->coast, wp / wt) * wt * fabs(wt);
            tp = c->coast_ratio * tt;
        }
        for (i = 0; i < NF; i++) {
            double fn = c->act[i] >= 0 ? c->area[c->act[i]] * (c->p[c->act[i]] - c->p_return[c->act[i]]) : 0;
            if (c->act[i] == -2) {
                cap[i] = lim[i] = c->roll;
            } else if (fn > 0) {
                lim[i] = c->peak[i] * c->mu0[i] * c->cgeo[i] * fn;
                cap[i] = c->cgeo[i] * fn * (c->mode[i] ? lookup(&c->mue, fabs(r[i])) : c->mu0[i]);
            } else {
                cap[i] = lim[i] = 0;
            }
            f[i] = c->mode[i] == 1 ? -cap[i] : c->mode[i] == -1 ? cap[i] : 0;
        }
        f[7] = f[8] = 0;                           /* free wheels transmit nothing while they overrun */
        if (c->mode[3] == 1) f[3] = 0;             /* C7 sits in series with one */
        double v3 = u1[3], e = 0, ed = 0;
        for (i = 0; i < N; i++) {
            double zk = c->z[i] + h * c->u[i] + 0.25 * h * h * c->a[i], uk = c->u[i] + 0.5 * h * c->a[i];
            double row = i == 0 ? c->hs0 : i == 2 ? c->hs2 : i == 3 ? c->hs3 : 0;
            e += row * zk;
            ed += row * uk;
        }
        double spring = -(c->c * (e - c->phi0) + c->d * ed), air = c->k3 * v3 * fabs(v3);
        g[0] = f[5] + f[6] - f[7] + c->hs0 * spring;
        g[1] = c->r1a * f[0] + f[1] + f[2] + f[3] + c->cr2a * (f[4] + f[8]);
        g[2] = c->r1b * f[0] - f[5] + f[7] + c->cr2b * (f[4] + f[8]) + c->hs2 * spring;
        g[3] = f[10] + air + c->hs3 * spring;
        g[4] = -f[9] + te - tp;
        g[5] = -f[0] - f[1] + f[9] + tt;
        memset(a1, 0, sizeof a1);
        memset(tau, 0, sizeof tau);
        for (j = 0; j < N; j++) for (i = 0; i < N; i++) a1[i] += c->P[j * N + i] * g[j];
        for (j = 0; j < N; j++) for (i = 0; i < NF; i++) tau[i] += c->T[j * NF + i] * g[j];
        for (i = 0; i < N; i++) {
            double u0 = c->u[i], un = u0 + 0.5 * h * (c->a[i] + a1[i]);
            c->z[i] += h * u0 + 0.25 * h * h * (c->a[i] + a1[i]);
            c->s1[i] = a1[i] - c->a[i];
            c->a[i] = a1[i];
            c->u[i] = un;
        }
        slips(c, c->u, r);
        for (i = 0; i < NF; i++) {
            if (c->mode[i] == 0) {
                if (c->act[i] >= 0 && fabs(tau[i]) > lim[i]) c->broken = 1;
                c->tau[i] = tau[i];
            } else {
                if (c->mode[i] != 2 && c->mode[i] * r[i] < 0) c->broken = 1;
                c->tau[i] = f[i];
            }
        }
    }
}
