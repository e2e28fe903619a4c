/* Converters of Linux' IIO and chips of hwmon behind torqueloop_io.h (docs/io.md).
 *
 *     [io.adc]
 *     library = "iio_hwmon"
 *     options = { device = "max11603" }           the text in the file `name` of the device, or the path of its folder
 *     [io.adc.inputs]
 *     current = { pin = "in_voltage0", unit = "V", high = 2.0 }
 *
 * A pin is the name of a file without _raw, _input or _output: in_voltage0, out_current1 of IIO; in1, temp1, pwm2 of hwmon.
 * Values are in SI: V, A, K, W, Pa, Ohm, Hz, or 1 (a pwm: duty 0 .. 1). Scale and offset are those of the kernel; a converter
 * whose scale it does not know has steps as its unit "1". A pwm that is an output is set to manual. Each channel takes one
 * system call in a tick. Sources: Documentation/ABI/testing/sysfs-bus-iio, Documentation/hwmon/sysfs-interface.rst.
 */
#include <ctype.h>
#include <glob.h>

#include "sysfs.h"

/* Kinds of pins: how the name begins, SI units per unit of the file, what is added to the number in that unit. */
static const struct { const char *begin; double si, add; const char *unit; } KINDS[] = {
    {"in_voltage", 1e-3, 0, "V"},  {"out_voltage", 1e-3, 0, "V"}, {"in_current", 1e-3, 0, "A"},
    {"out_current", 1e-3, 0, "A"}, {"in_temp", 1e-3, 273150, "K"}, {"in_power", 1e-3, 0, "W"},
    {"in_pressure", 1e3, 0, "Pa"}, {"in_resistance", 1, 0, "Ohm"}, {"in_", 1, 0, "1"}, {"out_", 1, 0, "1"},
    /* hwmon */
    {"in", 1e-3, 0, "V"}, {"out", 1e-3, 0, "V"}, {"curr", 1e-3, 0, "A"}, {"temp", 1e-3, 273150, "K"},
    {"power", 1e-6, 0, "W"}, {"freq", 1, 0, "Hz"}, {"pwm", 1.0 / 255, 0, "1"}, {"", 1, 0, "1"}};

/* A property of a pin, or of all pins of its kind: in_voltage0_scale, in_voltage_scale. */
static int property(const char *folder, const char *pin, const char *suffix, double *value)
{
    const char *whole = pin;
    char shared[128];
    size_t n = 0;
    for (; *pin && n < sizeof shared - 1; pin++)
        if (!isdigit((unsigned char)*pin))
            shared[n++] = *pin;
    shared[n] = 0;
    return get(folder, whole, suffix, value) || get(folder, shared, suffix, value);
}

static const char *prepare(line *l, const char *folder, const tl_io_channel *c, const tl_io_setup *setup)
{
    static const char *const SUFFIXES[] = {"_raw", "_input", "_output", ""};
    static char wrong[40];
    double scale = 1.0, offset = 0.0;
    unsigned s = 0, k = 0;
    (void)setup;
    while (s < 4 && (l->fd = open_file(folder, c->pin, SUFFIXES[s], c->output ? O_WRONLY : O_RDONLY)) < 0)
        s++;
    if (l->fd < 0)
        return "the device has no such pin of this direction";
    while (strncmp(c->pin, KINDS[k].begin, strlen(KINDS[k].begin)))
        k++;
    int known = s > 0 || property(folder, c->pin, "_scale", &scale), pwm = !strncmp(c->pin, "pwm", 3);
    property(folder, c->pin, "_offset", &offset);
    if (!known && strcmp(c->unit, "1"))
        return "the kernel does not know the scale of this pin: its unit is 1, a step";
    if (known && strcmp(c->unit, KINDS[k].unit))
        return snprintf(wrong, sizeof wrong, "its unit is %s", KINDS[k].unit), wrong;
    *l = known ? (line){l->fd, offset + KINDS[k].add / scale, KINDS[k].si * scale, pwm ? 0 : -1e9, pwm ? 255 : 1e9}
               : (line){l->fd, offset, 1.0, -1e9, 1e9};
    if (c->output && pwm)
        set(folder, c->pin, "_enable", 1.0);
    return NULL;
}

/* The one device that has this name, or the path itself; 0: there is none, or several have it. */
static int find(const char *device, char *folder, size_t size)
{
    glob_t all = {0};
    int found = *device == '/';
    snprintf(folder, size, "%s", device);
    glob("/sys/bus/iio/devices/*", 0, NULL, &all);
    glob("/sys/class/hwmon/*", GLOB_APPEND, NULL, &all);
    for (size_t k = 0; *device != '/' && k < all.gl_pathc; k++) {
        char name[128] = "";
        int fd = open_file(all.gl_pathv[k], "name", "", O_RDONLY);
        if (fd >= 0 && read(fd, name, sizeof name - 1) > 0 && !strcmp(strtok(name, "\n"), device) && ++found)
            snprintf(folder, size, "%s", all.gl_pathv[k]);
        if (fd >= 0)
            close(fd);
    }
    globfree(&all);
    return found == 1;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    const char *device = option(setup, "device", "");
    char folder[512];
    if (!opens(setup, " device ", error, error_size))
        return NULL;
    if (!find(device, folder, sizeof folder)) {
        snprintf(error, error_size, "no device, or several, with the name %s; device may be a path", device);
        return NULL;
    }
    return open_lines(setup, folder, error, error_size, prepare);
}
