/* One driver behind torqueloop_io.h without a rig: opens it with the channels and keys that a script says, makes the calls of
 * the script, and prints what comes back.
 *
 *     io_driver LIBRARY SCRIPT
 *
 *     key NAME VALUE                      a key of the driver
 *     in|out NAME PIN UNIT LOW HIGH SAFE  a channel; blanks in a pin are written +
 *     open                                tl_io_open; prints "open" or "refused: TEXT"
 *     write V1 V2 ...                     prints "wrote STATE"
 *     read                                prints "read STATE V1 V2 ..."
 *     sleep US
 *     run COMMAND                         a shell command, which prints for itself
 *     time N                              N calls of tl_io_read and tl_io_write; prints p50 and the largest in ns
 *     priority P                          SCHED_FIFO, memory locked
 *     loop N                              N ticks of 1 ms on an absolute grid: read, output 0 = input 0, write; prints
 *                                         "loop MISSED"
 *     edges N PAUSE_US                    N times: a new value at output 0, then reads until input 0 has it; between two
 *                                         PAUSE_US and a part of it that changes, so that all phases of a cyclic loop are
 *                                         met; prints "edges SEEN P50 P99 LARGEST" in ns
 *     close
 */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "torqueloop_io.h"

#define MOST 64

static tl_io_channel inputs[MOST], outputs[MOST], channels[2 * MOST];
static const char *keys[MOST], *values[MOST];
static double in[MOST], out[MOST];

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

static void say_times(const char *what, long *ns, int n)
{
    qsort(ns, n, sizeof *ns, rising);
    printf("time %s %ld %ld\n", what, ns[n / 2], ns[n - 1]);
}

static int32_t (*tl_read)(void *, double, double *);
static int32_t (*tl_write)(void *, double, const double *);

/* The least that a loop between two pins can be. */
static void loop(void *io, long n)
{
    struct timespec at;
    long missed = 0, ns;
    clock_gettime(CLOCK_MONOTONIC, &at);
    for (long k = 0; k < n; k++) {
        ns = at.tv_nsec + 1000000;
        at = (struct timespec){at.tv_sec + ns / 1000000000, ns % 1000000000};
        missed += now_ns() > at.tv_sec * 1000000000L + at.tv_nsec;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        tl_read(io, 0.0, in);
        out[0] = in[0];
        tl_write(io, 0.0, out);
    }
    printf("loop %ld\n", missed);
}

/* Time from a new value at output 0 until input 0 has it, through whatever lies between. */
static void edges(void *io, int n, long pause_us)
{
    static long took[10000];
    uint32_t random = 12345;
    int seen = 0;
    for (int k = 0; k < n && k < 10000; k++) {
        random = random * 1664525 + 1013904223;
        usleep(pause_us + (long)((uint64_t)random * pause_us >> 32));
        out[0] = k % 2 ? 0.0 : 1.0;
        long begin = now_ns(), now = begin;
        tl_write(io, 0.0, out);
        do {
            tl_read(io, 0.0, in);
            now = now_ns();
        } while (fabs(in[0] - out[0]) > 0.1 && now - begin < 50000000);
        if (now - begin < 50000000)
            took[seen++] = now - begin;
    }
    qsort(took, seen, sizeof *took, rising);
    printf("edges %d %ld %ld %ld\n", seen, took[seen / 2], took[seen * 99 / 100], seen ? took[seen - 1] : 0);
}

int main(int argc, char **argv)
{
    static tl_io_watch watch;
    static long reads[100000], writes[100000];
    tl_io_setup setup = {.tick_s = 1e-3, .name = "card", .folder = ".", .channels = channels, .keys = keys,
                         .values = values, .watch = &watch, .watch_file = ""};
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL, *io = NULL;
    FILE *script = argc > 2 ? fopen(argv[2], "r") : NULL;
    char line[512], word[6][80], error[256] = "";
    if (library == NULL || script == NULL) {
        printf("no library or no script: %s\n", library == NULL ? dlerror() : argv[2]);
        return 1;
    }
    void *(*tl_open)(const tl_io_setup *, char *, uint32_t) = dlsym(library, "tl_io_open");
    tl_read = dlsym(library, "tl_io_read");
    tl_write = dlsym(library, "tl_io_write");
    void (*tl_close)(void *) = dlsym(library, "tl_io_close");
    uint32_t n_out = 0;
    long n, pause_us;
    while (fgets(line, sizeof line, script)) {
        tl_io_channel c = {0};
        if (sscanf(line, "key %79s %79s", word[0], word[1]) == 2) {
            keys[setup.n_keys] = strdup(word[0]);
            values[setup.n_keys++] = strdup(word[1]);
        } else if (sscanf(line, "%79s %79s %79s %79s %lf %lf %lf", word[0], word[1], word[2], word[3], &c.low, &c.high,
                          &c.safe) == 7) {
            for (char *p = word[2]; *p; p++)
                *p = *p == '+' ? ' ' : *p;
            c.output = word[0][0] == 'o';
            c.name = strdup(word[1]);
            c.pin = strdup(word[2]);
            c.unit = strdup(word[3]);
            *(c.output ? &outputs[n_out++] : &inputs[setup.n_inputs++]) = c;
        } else if (strncmp(line, "open", 4) == 0) {
            memcpy(channels, inputs, setup.n_inputs * sizeof *inputs);
            memcpy(channels + setup.n_inputs, outputs, n_out * sizeof *outputs);
            setup.n_channels = setup.n_inputs + n_out;
            if ((io = tl_open(&setup, error, sizeof error)) == NULL) {
                printf("refused: %s\n", error);
                return 0;
            }
            printf("open\n");
        } else if (strncmp(line, "write", 5) == 0) {
            char *p = line + 5;
            for (uint32_t k = 0; k < n_out; k++)
                out[k] = strtod(p, &p);
            printf("wrote %d\n", tl_write(io, 0.0, out));
        } else if (strncmp(line, "read", 4) == 0) {
            printf("read %d", tl_read(io, 0.0, in));
            for (uint32_t k = 0; k < setup.n_inputs; k++)
                printf(" %.17g", in[k]);
            printf("\n");
        } else if (strncmp(line, "sleep", 5) == 0)
            usleep(atoi(line + 5));
        else if (strncmp(line, "run ", 4) == 0) {
            if (system(line + 4) != 0)
                printf("failed: %s", line + 4);
        } else if (sscanf(line, "priority %ld", &n) == 1) {
            struct sched_param priority = {.sched_priority = (int)n};
            if (mlockall(MCL_CURRENT | MCL_FUTURE) || sched_setscheduler(0, SCHED_FIFO, &priority))
                printf("no real-time rights\n");
        } else if (sscanf(line, "loop %ld", &n) == 1)
            loop(io, n);
        else if (sscanf(line, "edges %ld %ld", &n, &pause_us) == 2)
            edges(io, (int)n, pause_us);
        else if (strncmp(line, "time", 4) == 0) {
            n = atoi(line + 4);
            for (long k = 0; k < n; k++) {
                long begin = now_ns(), between;
                tl_read(io, 0.0, in);
                between = now_ns();
                tl_write(io, 0.0, out);
                reads[k] = between - begin;
                writes[k] = now_ns() - between;
            }
            say_times("read", reads, n);
            say_times("write", writes, n);
        } else if (strncmp(line, "close", 5) == 0)
            tl_close(io);
        fflush(stdout);
    }
    printf("end\n");
    return 0;
}
