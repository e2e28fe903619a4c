/* A PWM chip of Linux behind torqueloop_io.h (docs/io.md).
 *
 *     [io.pwm]
 *     library = "pwm"
 *     options = { device = "/sys/class/pwm/pwmchip0", period_us = 1000 }
 *     [io.pwm.outputs]
 *     heater = { pin = "3", signal = "..." }      line 3; the value is the duty 0 .. 1
 *
 * There are no inputs: the kernel's PWM lines are outputs. A line is enabled while it belongs to the rig, and keeps what was
 * written last. Each channel takes one system call in a tick. Source: Documentation/ABI/testing/sysfs-class-pwm.
 */
#include "sysfs.h"

static const char *prepare(line *l, const char *folder, const tl_io_channel *c, const tl_io_setup *setup)
{
    double number, period_ns = 1e3 * atof(option(setup, "period_us", "1000"));
    char place[540], *end;
    number = (double)strtoul(c->pin, &end, 10);
    snprintf(place, sizeof place, "%s/pwm%.0f", folder, number);
    if (!c->output)
        return "a PWM line is an output";
    if (!*c->pin || *end || (access(place, F_OK) && !set(folder, "export", "", number)))
        return "the chip has no such line, or it is in use";
    set(place, "duty_cycle", "", 0.0); /* it may not be longer than the period that comes */
    if (!set(place, "period", "", period_ns) || !set(place, "duty_cycle", "", period_ns * fmax(0.0, fmin(1.0, c->safe)))
        || !set(place, "enable", "", 1.0) || (l->fd = open_file(place, "duty_cycle", "", O_WRONLY)) < 0)
        return "it does not take period_us";
    *l = (line){l->fd, 0.0, 1.0 / period_ns, 0.0, period_ns};
    return NULL;
}

void *tl_io_open(const tl_io_setup *setup, char *error, uint32_t error_size)
{
    if (!opens(setup, " device period_us ", error, error_size))
        return NULL;
    return open_lines(setup, option(setup, "device", "/sys/class/pwm/pwmchip0"), error, error_size, prepare);
}
