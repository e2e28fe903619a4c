/* torqueloop_io.h: an I/O device in the tick of a torqueloop rig. ABI version 1.
 *
 * A driver is a shared library, or one C source file, that exports the functions declared at the end, with C linkage:
 *
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" my_card.c -o libmy_card.so
 *
 * Lifetime   tl_io_abi, tl_io_open, tl_io_write with the safe values; then in every tick tl_io_read before the step and
 *            tl_io_write after it; at the end tl_io_write with the safe values, tl_io_close. All pointers of the set-up
 *            are valid until tl_io_close returns.
 * Threads    tl_io_open, tl_io_close and the safe values around them are called by the thread of the session;
 *            tl_io_read and tl_io_write in a tick by that of the loop. Two of them never run at the same time.
 * Real time  tl_io_read and tl_io_write may not allocate, wait, lock, print, or call Python. The rig measures each call; a
 *            call that takes longer than limit_us of the rig file latches the safe state.
 * Units      Values are doubles in the unit of their channel: V, A, Ohm, Hz, 1 ... The rig file scales them.
 * Clocks     setup->simulated is 1 on the virtual clock: there are no deadlines, and no hardware may be touched. A driver
 *            either simulates its hardware as a function of t_s and the values written, or refuses to open.
 * Safe state In the safe state, while disarming and at every end of a run, tl_io_write gets the safe value of each channel.
 *            If the process of the rig dies or stands still, a second process opens the device anew, writes the safe values
 *            and closes it. If tl_io_open refuses this while a process that stands still has the device, that is killed first.
 *            A device with a processor or a process of its own can act sooner: it watches setup->watch.
 * Errors     Return NULL from tl_io_open and write a text into `error`. No C++ exception may leave a function.
 */
#ifndef TORQUELOOP_IO_H
#define TORQUELOOP_IO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TORQUELOOP_IO_ABI 1u

/* What tl_io_read and tl_io_write return. */
#define TL_IO_OK 0     /* done */
#define TL_IO_STALE 1  /* tl_io_read: nothing new since the last call; stale_ticks of them in a row latch the safe state */
#define TL_IO_FAILED 2 /* latches the safe state; the calls go on */

/* One channel, 64 bytes. The names are those of the rig file; the pin says what the driver connects. */
typedef struct tl_io_channel {
    const char *name; /* in the rig file */
    const char *pin;  /* the driver's name for it: "line 4", "ao1" ...; the name where the rig file gives none */
    const char *unit; /* of its value */
    double low;       /* range: tl_io_write gets nothing outside; the rig limits what tl_io_read gives */
    double high;
    double safe;      /* of outputs */
    int32_t output;   /* 0: from the device into the rig; 1: from the rig to the device */
    int32_t reserved;
    int64_t reserved_too;
} tl_io_channel;

/* tl_io_watch.state */
#define TL_IO_IDLE 0 /* no tick yet, or none any more: outputs are safe */
#define TL_IO_RUNS 1
#define TL_IO_SAFE 2 /* the rig is in the safe state, and writes safe values */

/* A word in memory that processes share: the rig changes it in every tick. It stands still for longer than some periods:
 * the rig hangs or is dead, and the device makes its outputs safe by itself. */
typedef struct tl_io_watch {
    volatile uint64_t beats;   /* ticks so far */
    volatile int64_t tick_ns;  /* period of a tick */
    volatile int32_t state;    /* TL_IO_IDLE ... */
    volatile int32_t pid;      /* process of the rig */
    volatile int32_t taken;    /* 1: the rig has stood still, and its guardian has written the safe values */
    int32_t reserved;
} tl_io_watch;

typedef struct tl_io_setup {
    double tick_s;                 /* tick of the rig [s] */
    const char *name;              /* of the device in the rig file */
    const char *folder;            /* folder of the rig file */
    const tl_io_channel *channels; /* n_channels of them: all inputs, then all outputs, in the order of the rig file */
    const char *const *keys;       /* n_keys keys of [io.NAME.options], and their values as text */
    const char *const *values;
    const tl_io_watch *watch;
    const char *watch_file;        /* the same for another process, which maps this file */
    void (*log)(const char *text); /* not from tl_io_read and tl_io_write */
    uint32_t n_channels;
    uint32_t n_inputs;             /* the first n_inputs channels */
    uint32_t n_keys;
    int32_t simulated;             /* 1: virtual clock */
} tl_io_setup;

#if defined(_WIN32)
#define TL_IO_EXPORT __declspec(dllexport)
#else
#define TL_IO_EXPORT __attribute__((visibility("default")))
#endif

TL_IO_EXPORT uint32_t tl_io_abi(void); /* returns TORQUELOOP_IO_ABI */
/* Make the device ready with all outputs at their safe values, and check channels and keys; NULL: error says why not. */
TL_IO_EXPORT void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size);
/* Put the values of all inputs at simulated time t_s into `inputs`, which holds those of the last call. TL_IO_OK ... */
TL_IO_EXPORT int32_t tl_io_read(void *io, double t_s, double *inputs);
/* Take the values of all outputs at simulated time t_s. TL_IO_OK or TL_IO_FAILED. */
TL_IO_EXPORT int32_t tl_io_write(void *io, double t_s, const double *outputs);
/* Free the device; its outputs stay as they were written last where the hardware can do so. */
TL_IO_EXPORT void tl_io_close(void *io);

#ifdef __cplusplus
}
#endif
#endif
