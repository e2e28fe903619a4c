/* The shift controller of shift_controller.c with pins instead of a bus, as a unit that drives its solenoids itself
 * (desk_4hp22_pins.toml). Sensors: position of the lever, pedal 0..1, speed of the output shaft [rad/s]. Actuators: currents
 * of the solenoids [A] in the order of its shift elements, 1 A for 10 bar.
 */
#define WITHOUT_BUS
#include "shift_controller.c"

#define A_PER_BAR 0.1
#define RPM_PER_RAD_S 9.549296585513721 /* 30 / pi */

uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{
    unit *u = NULL;
    if (setup->n_sensors != 3 || setup->n_actuators != N_ELEMENTS)
        snprintf(error, error_size, "needs 3 sensors and %d actuators, was given %u and %u", N_ELEMENTS, setup->n_sensors,
                 setup->n_actuators);
    else if (fabs(setup->period_s - PERIOD_S) > 1e-9)
        snprintf(error, error_size, "needs period_s = %g, was given %g", PERIOD_S, setup->period_s);
    else if ((u = calloc(1, sizeof *u)) == NULL)
        snprintf(error, error_size, "no memory");
    else
        u->log = setup->log;
    return u;
}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{
    unit *u = ecu;
    u->s.t_s = in->t_s;
    u->s.lever = (int32_t)lround(in->sensors[0]);
    u->s.pedal = in->sensors[1];
    u->s.w_out_rpm = RPM_PER_RAD_S * in->sensors[2];
    choose_gear(u);
    move_pressures(&u->s);
    for (int e = 0; e < N_ELEMENTS; e++)
        out->actuators[e] = A_PER_BAR * u->s.bar[e];
    return 1;
}

void tl_ecu_fini(void *ecu) { free(ecu); }
