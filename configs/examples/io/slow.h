/* For hardware whose values take longer than a tick: a thread of the driver exchanges them, round after round.
 *
 * A tick takes what the last round has read, and leaves what the next round writes. It never waits for the thread, nor the
 * thread for it. Reading is TL_IO_STALE until the next round is done, so stale_ticks has to be longer than a round. A round
 * that fails is TL_IO_FAILED of reading and writing. The thread looks at setup->watch: when the rig makes no tick any more,
 * the outputs get their safe values in the next round, and the rig latches that if it continues.
 */
#ifndef SLOW_H
#define SLOW_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "driver.h"

enum { SLOW_MOST = 64, SLOW_STANDS_MS = 100 }; /* channels; the rig stands still when it has made no tick for so long */

/* Write the outputs, then read the inputs, both in the order of the rig file; it may wait. inputs is NULL in the last round,
 * which only writes. 0: done. */
typedef int (*slow_round)(void *hardware, const double *outputs, double *inputs);

typedef struct slow {
    const tl_io_setup *setup;
    slow_round round;
    void *hardware;
    unsigned seen; /* rounds that the tick has taken */
    atomic_uint rounds;
    atomic_int failed, stop;
    _Atomic double value[SLOW_MOST]; /* of the channels */
    pthread_t thread;
} slow;

static void *slow_work(void *of)
{
    slow *s = of;
    const tl_io_watch *watch = s->setup->watch;
    unsigned n = s->setup->n_channels, n_in = s->setup->n_inputs;
    uint64_t beats = 0;
    int64_t beat_ms = 0;
    double value[SLOW_MOST];
    for (int last = 0, stands = 0; !last;) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        int64_t now_ms = t.tv_sec * 1000 + t.tv_nsec / 1000000;
        if (watch->beats != beats || watch->state != TL_IO_RUNS)
            beats = watch->beats, beat_ms = now_ms;
        stands |= now_ms - beat_ms > SLOW_STANDS_MS || watch->taken;
        last = s->stop; /* before the values are taken: those of the last write go out */
        for (unsigned k = 0; k < n; k++)
            value[k] = stands && k >= n_in ? s->setup->channels[k].safe : s->value[k];
        int failed = s->round(s->hardware, value + n_in, last ? NULL : value);
        for (unsigned k = 0; k < n_in && !failed; k++)
            s->value[k] = value[k];
        s->failed = failed || stands;
        s->rounds++;
    }
    return NULL;
}

/* The first round, with the safe values, and then the thread. NULL: done; "": the round has failed, and knows why. */
static inline const char *slow_begin(slow *s, const tl_io_setup *setup, slow_round round, void *hardware)
{
    double value[SLOW_MOST] = {0};
    sigset_t all, before;
    if (setup->n_channels > SLOW_MOST)
        return "it has more than 64 channels";
    s->setup = setup, s->round = round, s->hardware = hardware;
    for (unsigned k = 0; k < setup->n_channels; k++)
        value[k] = setup->channels[k].safe;
    if (round(hardware, value + setup->n_inputs, value))
        return "";
    for (unsigned k = 0; k < setup->n_channels; k++)
        s->value[k] = value[k];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the rig */
    int failed = pthread_create(&s->thread, NULL, slow_work, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? "no thread" : NULL;
}

static inline int32_t slow_read(slow *s, double *inputs)
{
    unsigned rounds = s->rounds, stale = rounds == s->seen;
    s->seen = rounds;
    for (unsigned k = 0; k < s->setup->n_inputs; k++)
        inputs[k] = s->value[k];
    return s->failed ? TL_IO_FAILED : stale ? TL_IO_STALE : TL_IO_OK;
}

static inline int32_t slow_write(slow *s, const double *outputs)
{
    for (unsigned k = s->setup->n_inputs; k < s->setup->n_channels; k++)
        s->value[k] = outputs[k - s->setup->n_inputs];
    return s->failed ? TL_IO_FAILED : TL_IO_OK;
}

/* The last round writes what was written last; then the thread has ended. */
static inline void slow_end(slow *s)
{
    s->stop = 1;
    pthread_join(s->thread, NULL);
}

#endif
