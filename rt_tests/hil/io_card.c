/* A card for tests behind torqueloop_io.h: it loops outputs to inputs, or does what `mode` says from `at_s` on.
 *
 * keys: mode = loop, fail_read, fail_write, nan, stale, hang, outside, below, last, still, often_stale, crash, pause,
 * pause_write (one call takes nap_s); at_s; nap_s; file: each write
 * appends process, beats and state of the watch word, time and values; only = 1: one process at a time opens the card
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "torqueloop_io.h"

typedef struct card {
    char mode[32], file[512];
    double at_s, nap_s, out[16];
    unsigned n_in, n_out, only;
    FILE *stream;
    const tl_io_watch *watch;
} card;

uint32_t tl_io_abi(void) { return TORQUELOOP_IO_ABI; }

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    card *c = calloc(1, sizeof *c);
    for (uint32_t k = 0; k < setup->n_keys; k++) {
        if (strcmp(setup->keys[k], "mode") == 0)
            snprintf(c->mode, sizeof c->mode, "%s", setup->values[k]);
        else if (strcmp(setup->keys[k], "file") == 0)
            snprintf(c->file, sizeof c->file, "%s", setup->values[k]);
        else if (strcmp(setup->keys[k], "at_s") == 0)
            c->at_s = atof(setup->values[k]);
        else if (strcmp(setup->keys[k], "nap_s") == 0)
            c->nap_s = atof(setup->values[k]);
        else if (strcmp(setup->keys[k], "only") == 0)
            c->only = 1;
        else {
            snprintf(error, error_size, "no key %s", setup->keys[k]);
            free(c);
            return NULL;
        }
    }
    for (uint32_t k = 0; k < setup->n_channels; k++)
        if (strcmp(setup->channels[k].pin, "missing") == 0) {
            snprintf(error, error_size, "channel %s: the card has no such pin", setup->channels[k].name);
            free(c);
            return NULL;
        }
    c->n_in = setup->n_inputs;
    c->n_out = setup->n_channels - setup->n_inputs;
    if (c->file[0])
        c->stream = fopen(c->file, "a");
    if (c->only && flock(fileno(c->stream), LOCK_EX | LOCK_NB)) {
        snprintf(error, error_size, "another process has the card");
        fclose(c->stream);
        free(c);
        return NULL;
    }
    c->watch = setup->watch;
    return c;
}

static int is(const card *c, const char *mode, double t_s) { return t_s >= c->at_s - 1e-9 && !strcmp(c->mode, mode); }

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&t, NULL);
}

static void nap_once(card *c, const char *mode, double t_s)
{
    if (!is(c, mode, t_s))
        return;
    c->mode[0] = 0;
    nap(c->nap_s);
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    card *c = io;
    for (unsigned k = 0; k < c->n_in; k++)
        inputs[k] = k < c->n_out ? c->out[k] : t_s;
    if (is(c, "nan", t_s))
        inputs[0] = NAN;
    if (is(c, "outside", t_s))
        inputs[0] = 1e9;
    if (is(c, "below", t_s))
        inputs[0] = -1e9;
    if (is(c, "last", t_s)) /* all but the last input stand still */
        for (unsigned k = 0; k < c->n_in; k++)
            inputs[k] = k + 1 < c->n_in ? 0.25 * k : fmod(t_s, 1.0);
    if (is(c, "still", t_s))
        for (unsigned k = 0; k < c->n_in; k++)
            inputs[k] = 0.25 * k;
    if (is(c, "often_stale", t_s) && (long)(t_s * 1e3 + 0.5) % 3 != 0)
        return TL_IO_STALE;
    nap_once(c, "pause", t_s);
    while (is(c, "hang", t_s))
        nap(0.03);
    if (is(c, "crash", t_s))
        abort();
    return is(c, "fail_read", t_s) ? TL_IO_FAILED : is(c, "stale", t_s) ? TL_IO_STALE : TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    card *c = io;
    memcpy(c->out, outputs, c->n_out * sizeof *outputs);
    if (c->stream) {
        fprintf(c->stream, "%d %llu %d %.6f", (int)getpid(), (unsigned long long)c->watch->beats, c->watch->state, t_s);
        for (unsigned k = 0; k < c->n_out; k++)
            fprintf(c->stream, " %.17g", outputs[k]);
        fprintf(c->stream, "\n");
        fflush(c->stream);
    }
    nap_once(c, "pause_write", t_s);
    return is(c, "fail_write", t_s) ? TL_IO_FAILED : TL_IO_OK;
}

void tl_io_close(void *io)
{
    card *c = io;
    if (c->stream)
        fclose(c->stream);
    free(c);
}
