/* Lines of a GPIO chip of Linux behind torqueloop_io.h (docs/io.md), by version 2 of its character device.
 *
 *     [io.lines]
 *     library = "gpio"
 *     options = { device = "pca9555" }                          a path, or the label or name of the chip (`gpiodetect`)
 *     [io.lines.inputs]
 *     valve = { pin = "4 pull-up active-low" }                  line 4; values are 0 and 1
 *     [io.lines.outputs]
 *     contact = { pin = "LEVER_D open-drain", signal = "..." }  the line that has this name
 *
 * Words behind a line: active-low, pull-up, pull-down, no-bias (inputs), open-drain, open-source (outputs). All inputs are
 * read by one system call, and all outputs are set by one. Outputs have their safe values from the moment they are
 * outputs. The lines belong to the rig alone while it runs. Source: linux/gpio.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/gpio.h>

#include "driver.h"

typedef struct card {
    int fd[2]; /* of the lines that are inputs, outputs; -1: none */
    unsigned n[2];
} card;

/* The chip with this path, label or name: a file descriptor, -1 if there is none. */
static int open_chip(const char *wanted)
{
    struct gpiochip_info info;
    glob_t all;
    int fd = -1;
    glob("/dev/gpiochip*", 0, NULL, &all);
    for (size_t k = 0; fd < 0 && k < all.gl_pathc; k++) {
        fd = open(all.gl_pathv[k], O_RDWR | O_CLOEXEC);
        if (fd >= 0 && (ioctl(fd, GPIO_GET_CHIPINFO_IOCTL, &info)
                        || (strcmp(all.gl_pathv[k], wanted) && strcmp(info.label, wanted) && strcmp(info.name, wanted)))) {
            close(fd);
            fd = -1;
        }
    }
    globfree(&all);
    return fd;
}

/* Number of the line that a pin names, -1 if the chip has none. */
static long line_number(int chip, const char *line)
{
    struct gpio_v2_line_info about = {0};
    char *end;
    unsigned long number = strtoul(line, &end, 10);
    int named = *end != 0;
    for (about.offset = named ? 0 : (uint32_t)number; !ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &about); about.offset++)
        if (!named || !strcmp(about.name, line))
            return about.offset;
    return -1;
}

/* Flags of the words behind the line of a pin; 0: a word is unknown, or not for this direction. */
static uint64_t line_flags(const char *pin, int output)
{
    static const struct { const char *word; int only_output; uint64_t flag; } KNOWN[] = {
        {" active-low", 0, GPIO_V2_LINE_FLAG_ACTIVE_LOW},    {" pull-up", 0, GPIO_V2_LINE_FLAG_BIAS_PULL_UP},
        {" pull-down", 0, GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN}, {" no-bias", 0, GPIO_V2_LINE_FLAG_BIAS_DISABLED},
        {" open-drain", 1, GPIO_V2_LINE_FLAG_OPEN_DRAIN},    {" open-source", 1, GPIO_V2_LINE_FLAG_OPEN_SOURCE}};
    uint64_t flags = output ? GPIO_V2_LINE_FLAG_OUTPUT : GPIO_V2_LINE_FLAG_INPUT;
    while ((pin = strchr(pin, ' ')) != NULL) {
        size_t n = 1 + strcspn(pin + 1, " "), k = 0;
        while (k < 6 && (strlen(KNOWN[k].word) != n || strncmp(pin, KNOWN[k].word, n) || KNOWN[k].only_output > output))
            k++;
        if (k == 6)
            return 0;
        flags |= KNOWN[k].flag;
        pin += n;
    }
    return flags;
}

/* Ask the kernel for the `n` lines of one direction: their file descriptor, -1 with a text in `error`. */
static int request(int chip, const tl_io_channel *c, unsigned n, char *error, uint32_t error_size)
{
    struct gpio_v2_line_request ask = {.num_lines = n, .consumer = "torqueloop"};
    struct gpio_v2_line_config_attribute *attrs = ask.config.attrs, safe = {0};
    uint32_t *n_attrs = &ask.config.num_attrs;
    ask.config.flags = c->output ? GPIO_V2_LINE_FLAG_OUTPUT : GPIO_V2_LINE_FLAG_INPUT;
    safe.attr.id = GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES;
    for (unsigned k = 0; k < n; k++) {
        char name[64] = "";
        unsigned a = 0;
        sscanf(c[k].pin, "%63s", name);
        long line = line_number(chip, name);
        uint64_t flags = line_flags(c[k].pin, c->output);
        if (k >= GPIO_V2_LINES_MAX || line < 0)
            return refuse(&c[k], line < 0 ? "the chip has no such line" : "more than 64 lines", error, error_size), -1;
        if (!flags)
            return refuse(&c[k], "unknown word behind the line", error, error_size), -1;
        while (a < *n_attrs && attrs[a].attr.flags != flags)
            a++;
        if (a == *n_attrs && ++*n_attrs == GPIO_V2_LINE_NUM_ATTRS_MAX) /* one is left for the safe values */
            return refuse(&c[k], "too many different words behind lines", error, error_size), -1;
        attrs[a].attr.id = GPIO_V2_LINE_ATTR_ID_FLAGS;
        attrs[a].attr.flags = flags;
        attrs[a].mask |= 1ull << k;
        ask.offsets[k] = (uint32_t)line;
        safe.mask |= 1ull << k;
        safe.attr.values |= (uint64_t)(c[k].safe >= 0.5) << k;
    }
    if (c->output)
        attrs[(*n_attrs)++] = safe;
    if (ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &ask))
        return refuse(c, errno == EBUSY ? "a line of this direction is in use" : strerror(errno), error, error_size), -1;
    return ask.fd;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    const char *device = option(setup, "device", "/dev/gpiochip0");
    card *c = opens(setup, " device ", error, error_size) ? calloc(1, sizeof *c) : NULL;
    if (c == NULL)
        return NULL;
    int chip = open_chip(device), fails = chip < 0;
    *c = (card){{-1, -1}, {setup->n_inputs, setup->n_channels - setup->n_inputs}};
    if (fails)
        snprintf(error, error_size, "no GPIO chip %s", device);
    for (int k = 0; !fails && k < 2; k++)
        fails = c->n[k] && (c->fd[k] = request(chip, setup->channels + k * c->n[0], c->n[k], error, error_size)) < 0;
    close(chip);
    if (!fails)
        return c;
    tl_io_close(c);
    return NULL;
}

int32_t tl_io_read(void *io, double t_s, double *inputs)
{
    card *c = io;
    struct gpio_v2_line_values lines = {.mask = ~0ull};
    (void)t_s;
    if (c->n[0] && ioctl(c->fd[0], GPIO_V2_LINE_GET_VALUES_IOCTL, &lines))
        return TL_IO_FAILED;
    for (unsigned k = 0; k < c->n[0]; k++)
        inputs[k] = (double)(lines.bits >> k & 1);
    return TL_IO_OK;
}

int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    card *c = io;
    struct gpio_v2_line_values lines = {.mask = ~0ull};
    (void)t_s;
    for (unsigned k = 0; k < c->n[1]; k++)
        lines.bits |= (uint64_t)(outputs[k] >= 0.5) << k;
    return c->n[1] && ioctl(c->fd[1], GPIO_V2_LINE_SET_VALUES_IOCTL, &lines) ? TL_IO_FAILED : TL_IO_OK;
}

void tl_io_close(void *io)
{
    card *c = io;
    for (int k = 0; k < 2; k++)
        if (c->fd[k] >= 0)
            close(c->fd[k]);
    free(c);
}
