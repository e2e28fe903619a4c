/* What the drivers of this folder share: the keys of [io.NAME.options], and the refusal to open. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torqueloop_io.h"

uint32_t tl_io_abi(void) { return TORQUELOOP_IO_ABI; }

/* Value of a key, `otherwise` where the rig file does not give it. */
static inline const char *option(const tl_io_setup *setup, const char *key, const char *otherwise)
{
    for (uint32_t k = 0; k < setup->n_keys; k++)
        if (!strcmp(setup->keys[k], key))
            return setup->values[k];
    return otherwise;
}

/* Whether a driver of real hardware can be opened: 0, with the reason in `error`, on the virtual clock, and for a key that
 * is not in `allowed`, which has a blank around each key. */
static inline int opens(const tl_io_setup *setup, const char *allowed, char *error, uint32_t error_size)
{
    char word[80];
    if (setup->simulated)
        return snprintf(error, error_size, "needs the real clock"), 0;
    for (uint32_t k = 0; k < setup->n_keys; k++) {
        snprintf(word, sizeof word, " %s ", setup->keys[k]);
        if (strstr(allowed, word) == NULL)
            return snprintf(error, error_size, "unknown key %s; allowed:%s", setup->keys[k], allowed), 0;
    }
    return 1;
}

/* Text of a refusal that names a channel and its pin; always NULL, which tl_io_open returns. */
static inline void *refuse(const tl_io_channel *c, const char *why, char *error, uint32_t error_size)
{
    snprintf(error, error_size, "channel %s, pin %s: %s", c->name, c->pin, why);
    return NULL;
}

#endif
