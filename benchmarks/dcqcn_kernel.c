/* Two DCQCN flows over one queue: the integrator of fluidcc.engines.fluid written out for this one problem.
 *
 * Heun on a fixed step, one lag of a whole number of steps, a ring of lagged queue and rates. What the lagged
 * marks do (feedback) is evaluated once per step and shared by the two stages that stand there. Equations (5)-(9)
 * and (11) of Zhu et al., SIGCOMM 2015; queue >= 0 and rates <= line rate by projection after each stage and step.
 * Units are bytes, seconds and bytes per second. The inner loops run over the points of a batch, and are vectorised
 * with the vector forms of exp, expm1 and log1p in libmvec.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS 2
#define ROWS (1 + FLOWS)

typedef struct {
    double capacity, line_rate, packet, kmin, kmax, pmax;
    double rate_ai, byte_counter, timer, cnp_interval, alpha_timer, fast_recovery_steps;
    double initial_alpha, initial_rate[FLOWS];
    double dt;
    long lag, depth, stride, samples; /* depth: a power of two, at least lag + 1 */
} problem;

typedef struct {
    double *cut, *recovery, *increase, *marked; /* FLOWS rows each */
} feedback;

/* (5), then every term of (7)-(9) that depends on the lagged marking and rate only. */
static void hear(const problem *c, long points, const double *restrict lagged, feedback out) {
    const double width = c->kmax - c->kmin, counter = c->byte_counter / c->packet;
    const double *restrict queue = lagged;
    for (int flow = 0; flow < FLOWS; flow++) {
        const double *restrict rate = lagged + (1 + flow) * points;
        double *restrict cut = out.cut + flow * points, *restrict recovery = out.recovery + flow * points;
        double *restrict increase = out.increase + flow * points, *restrict marked = out.marked + flow * points;
#pragma GCC ivdep
        for (long i = 0; i < points; i++) {
            double p = fmin(fmax((queue[i] - c->kmin) / width, 0.0), 1.0) * c->pmax;
            p = queue[i] > c->kmax ? 1.0 - 0x1p-53 : p;
            double packets = rate[i] / c->packet;
            double log = -log1p(-p);
            double per_log = packets * log;
            double per_mark = p > 0 ? p / log : 1.0;
            cut[i] = -expm1(-c->cnp_interval * per_log) / c->cnp_interval;
            marked[i] = -expm1(-c->alpha_timer * per_log);
            double bytes = fmin(counter * log, 700.0), time = fmin(c->timer * per_log, 700.0);
            double by_bytes = per_mark * packets / counter * (bytes > 0 ? bytes / expm1(bytes) : 1.0);
            double by_timer = per_mark / c->timer * (time > 0 ? time / expm1(time) : 1.0);
            recovery[i] = 0.5 * (by_bytes + by_timer);
            increase[i] = c->rate_ai * (exp(-c->fast_recovery_steps * bytes) * by_bytes
                                        + exp(-c->fast_recovery_steps * time) * by_timer);
        }
    }
}

/* Runs a batch; queue: (samples, points). Returns 0, or 1 if memory is short. */
int dcqcn_run(const problem *c, long points, const double *g, double *queue_out) {
    const size_t row = (size_t)points * sizeof(double);
    double *memory = malloc(row * (ROWS * c->depth + 1 + 3 * FLOWS + 8 * FLOWS));
    if (!memory) return 1;
    double *ring = memory, *queue = ring + ROWS * c->depth * points, *rate = queue + points;
    double *target = rate + FLOWS * points, *alpha = target + FLOWS * points, *rest = alpha + FLOWS * points;
    feedback now, ahead;
    double **parts[] = {&now.cut, &now.recovery, &now.increase, &now.marked,
                        &ahead.cut, &ahead.recovery, &ahead.increase, &ahead.marked};
    for (int k = 0; k < 8; k++) *parts[k] = rest + k * FLOWS * points;

    for (long i = 0; i < points; i++) {
        queue[i] = 0;
        for (int flow = 0; flow < FLOWS; flow++) {
            rate[flow * points + i] = target[flow * points + i] = c->initial_rate[flow];
            alpha[flow * points + i] = c->initial_alpha;
        }
    }
    for (long slot = 0; slot < c->depth; slot++) {
        memcpy(ring + slot * ROWS * points, queue, row);
        memcpy(ring + (slot * ROWS + 1) * points, rate, FLOWS * row);
    }
    hear(c, points, ring, now);

    const double dt = c->dt, half = 0.5 * c->dt;
    for (long n = 0; n < c->stride * (c->samples - 1) + 1; n++) {
        if (n % c->stride == 0) memcpy(queue_out + (n / c->stride) * points, queue, row);
        double *slot = ring + (n & (c->depth - 1)) * ROWS * points;
        memcpy(slot, queue, row);
        memcpy(slot + points, rate, FLOWS * row);
        hear(c, points, ring + ((n + 1 - c->lag) & (c->depth - 1)) * ROWS * points, ahead);
        /* (6), (11): both stages see the rates, which the flows' loops below overwrite. */
#pragma GCC ivdep
        for (long i = 0; i < points; i++) {
            double first = -c->capacity, second = -c->capacity;
            for (int flow = 0; flow < FLOWS; flow++) {
                long j = flow * points + i;
                double gap = target[j] - rate[j];
                double slope = gap * now.recovery[j] - 0.5 * rate[j] * alpha[j] * now.cut[j];
                first += rate[j];
                second += fmin(fmax(rate[j] + dt * slope, 0.0), c->line_rate);
            }
            queue[i] = fmax(queue[i] + half * (first + second), 0.0);
        }
        for (int flow = 0; flow < FLOWS; flow++) {
            double *restrict r = rate + flow * points, *restrict t = target + flow * points;
            double *restrict a = alpha + flow * points;
            const long o = flow * points;
#pragma GCC ivdep
            for (long i = 0; i < points; i++) {
                double gain = g[i] / c->alpha_timer;
                double gap = t[i] - r[i];
                double r1 = gap * now.recovery[o + i] - 0.5 * r[i] * a[i] * now.cut[o + i]; /* (9) */
                double t1 = now.increase[o + i] - gap * now.cut[o + i];                     /* (8) */
                double a1 = gain * (now.marked[o + i] - a[i]);                              /* (7) */
                double rs = fmin(fmax(r[i] + dt * r1, 0.0), c->line_rate);
                double ts = fmin(fmax(t[i] + dt * t1, 0.0), c->line_rate), as = a[i] + dt * a1;
                gap = ts - rs;
                double r2 = gap * ahead.recovery[o + i] - 0.5 * rs * as * ahead.cut[o + i];
                double t2 = ahead.increase[o + i] - gap * ahead.cut[o + i];
                double a2 = gain * (ahead.marked[o + i] - as);
                r[i] = fmin(fmax(r[i] + half * (r1 + r2), 0.0), c->line_rate);
                t[i] = fmin(fmax(t[i] + half * (t1 + t2), 0.0), c->line_rate);
                a[i] += half * (a1 + a2);
            }
        }
        feedback swap = now;
        now = ahead;
        ahead = swap;
    }
    free(memory);
    return 0;
}
