/* Numbers in files of sysfs, for the drivers of this folder. */
#ifndef SYSFS_H
#define SYSFS_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "driver.h"

/* The file FOLDER/NAME+SUFFIX: a file descriptor, -1 if it cannot be opened. */
static inline int open_file(const char *folder, const char *name, const char *suffix, int flags)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    return open(path, flags | O_CLOEXEC);
}

/* One system call each, also in a tick; 1: done. A number that cannot be read leaves the value as it was. */
static inline int read_number(int fd, double *value)
{
    char text[64], *end;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    double number = strtod(text, &end);
    if (end != text)
        *value = number;
    return end != text;
}

static inline int write_number(int fd, double value)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", lround(value));
    return pwrite(fd, text, (size_t)n, 0) == n;
}

/* The same with a file that is opened for it. */
static inline int get(const char *folder, const char *name, const char *suffix, double *value)
{
    int fd = open_file(folder, name, suffix, O_RDONLY), done = fd >= 0 && read_number(fd, value);
    if (fd >= 0)
        close(fd);
    return done;
}

static inline int set(const char *folder, const char *name, const char *suffix, double value)
{
    int fd = open_file(folder, name, suffix, O_WRONLY), done = fd >= 0 && write_number(fd, value);
    if (fd >= 0)
        close(fd);
    return done;
}

/* Lines of a device: value = (number + offset) * step, numbers of outputs within low .. high. `prepare` opens the file of a
 * channel, and says why it cannot. */
typedef struct line { int fd; double offset, step, low, high; } line;
typedef struct card { unsigned n_in, n_out; line lines[]; } card;

static inline int write_line(const line *l, double value)
{
    return write_number(l->fd, fmax(l->low, fmin(l->high, value / l->step - l->offset)));
}

static inline void *open_lines(const tl_io_setup *setup, const char *folder, char *error, uint32_t error_size,
                               const char *(*prepare)(line *, const char *, const tl_io_channel *, const tl_io_setup *))
{
    card *c = calloc(1, sizeof *c + setup->n_channels * sizeof *c->lines);
    for (uint32_t k = 0; c && k < setup->n_channels; k++)
        c->lines[k].fd = -1;
    for (uint32_t k = 0; c && k < setup->n_channels; k++) {
        const tl_io_channel *channel = &setup->channels[k];
        const char *wrong = prepare(&c->lines[k], folder, channel, setup);
        *(channel->output ? &c->n_out : &c->n_in) += 1;
        if (!wrong && channel->output && !write_line(&c->lines[k], channel->safe))
            wrong = "it does not take the safe value";
        if (wrong) {
            tl_io_close(c);
            return refuse(channel, wrong, error, error_size);
        }
    }
    return c;
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    const card *c = io;
    (void)t_s;
    for (const line *l = c->lines; l < c->lines + c->n_in; l++, inputs++) {
        double number;
        if (!read_number(l->fd, &number))
            return TL_IO_FAILED;
        *inputs = (number + l->offset) * l->step;
    }
    return TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    const card *c = io;
    int done = 1;
    (void)t_s;
    for (const line *l = c->lines + c->n_in; l < c->lines + c->n_in + c->n_out; l++, outputs++)
        done &= write_line(l, *outputs);
    return done ? TL_IO_OK : TL_IO_FAILED;
}

void tl_io_close(void *io)
{
    const card *c = io;
    for (unsigned k = 0; k < c->n_in + c->n_out; k++)
        if (c->lines[k].fd >= 0)
            close(c->lines[k].fd);
    free(io);
}

#endif
