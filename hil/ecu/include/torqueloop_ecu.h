/* torqueloop_ecu.h: a control unit compiled for the PC, in lockstep with a torqueloop rig. ABI version 1.
 *
 * Build a shared library that exports the functions declared at the end, with C linkage:
 *
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" my_unit.c -o my_unit.so
 *
 * Lifetime   tl_ecu_abi, tl_ecu_init, tl_ecu_run (again and again), tl_ecu_fini. All pointers of a set-up, of inputs
 *            and of outputs belong to the rig; those of inputs and outputs are valid during the call only.
 * Time       tl_ecu_run(t) means: run your tasks until t, then answer. The first call has t = 0, the next ones come
 *            period_s apart, in simulated seconds. What is sent reaches the rig's tick at t. Do not look at any clock.
 * Threads    All functions are called by one thread. Do not return while a thread of yours still works on the step.
 * Units      SI: rad/s, Pa, m/s, N, Nm, K, 1. Frames carry raw bytes; how signals lie in them says the CAN database.
 * Repeatable Equal inputs must give equal outputs: no time of day, no unseeded random numbers, no uninitialised memory.
 * Errors     Return 0 (NULL from tl_ecu_init) and write a text into `error`. No C++ exception may leave a function.
 */
#ifndef TORQUELOOP_ECU_H
#define TORQUELOOP_ECU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TORQUELOOP_ECU_ABI 1u

#define TL_FRAME_EXTENDED 0x80000000u /* bit 31 of an identifier: it is 29 bit long */
#define TL_FRAME_FD 4u                /* flags: CAN FD frame */
#define TL_FRAME_BRS 8u               /* flags: CAN FD, data at the second bit rate */

/* One CAN data frame, 72 bytes. */
typedef struct tl_frame {
    uint32_t id;       /* identifier, TL_FRAME_EXTENDED set for 29 bit */
    uint8_t bus;       /* which of tl_ecu_setup.buses, from 0 */
    uint8_t flags;     /* TL_FRAME_FD, TL_FRAME_BRS; 0: classic */
    uint8_t length;    /* number of data bytes: 0..8; FD also 12, 16, 20, 24, 32, 48, 64 */
    uint8_t reserved;  /* 0 */
    uint8_t data[64];
} tl_frame;

/* What the unit is told once. */
typedef struct tl_ecu_setup {
    double tick_s;             /* tick of the rig [s] */
    double period_s;           /* distance of two calls of tl_ecu_run [s], a whole number of ticks */
    const char *name;          /* of the unit in the rig file */
    const char *config;        /* text from the rig file, "" without; a path is relative to the folder given in `folder` */
    const char *folder;        /* folder of the rig file */
    uint32_t n_buses;
    uint32_t n_sensors;
    uint32_t n_actuators;
    uint32_t reserved;
    const char *const *buses;          /* names */
    const char *const *sensors;        /* names */
    const char *const *sensor_units;   /* SI symbols */
    const char *const *actuators;      /* names */
    const char *const *actuator_units; /* SI symbols */
    void (*log)(const char *text);     /* writes a line into the unit's log in the run directory */
} tl_ecu_setup;

typedef struct tl_ecu_inputs {
    double t_s;              /* run until here */
    const double *sensors;   /* n_sensors numbers at t_s */
    const tl_frame *frames;  /* sent by others since the last call, in order */
    uint32_t n_frames;
    uint32_t reserved;
} tl_ecu_inputs;

typedef struct tl_ecu_outputs {
    double *actuators;       /* n_actuators numbers; on entry what was last written, 0 at first */
    tl_frame *frames;        /* room for max_frames; sent in this order */
    uint32_t max_frames;
    uint32_t n_frames;       /* set this; 0 on entry */
    char *error;             /* room for error_size bytes, for a text that ends with 0 */
    uint32_t error_size;
    uint32_t reserved;
} tl_ecu_outputs;

#if defined(_WIN32)
#define TL_EXPORT __declspec(dllexport)
#else
#define TL_EXPORT __attribute__((visibility("default")))
#endif

/* --- needed */
TL_EXPORT uint32_t tl_ecu_abi(void); /* returns TORQUELOOP_ECU_ABI */
/* A new unit, NULL if it cannot be made. More than one may exist at a time. */
TL_EXPORT void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size);
/* Run until in->t_s. 1: done; 0: cannot go on, out->error says why. */
TL_EXPORT int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out);
TL_EXPORT void tl_ecu_fini(void *ecu);

/* --- optional, both or none: checkpoints */
/* Number of bytes of the state; written to `data` if `room` is enough. Negative: it cannot be saved now. */
TL_EXPORT int64_t tl_ecu_save(void *ecu, void *data, int64_t room);
/* Back to a saved state of the same unit. 1: done; 0: it is none. */
TL_EXPORT int32_t tl_ecu_load(void *ecu, const void *data, int64_t size);

#ifdef __cplusplus
}
#endif
#endif
