"""A C file that makes code generated from Simulink a control unit of a rig (torqueloop_ecu.h)."""

from __future__ import annotations

import math
from collections import Counter

from cantools.database.can.c_source import camel_to_snake_case as snake

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.hil.can.database import CanDatabase

_TEXT = """/* {model}: code generated from Simulink, as a control unit of a torqueloop rig. Node {node} of {database}.
 *
 *     cc -shared -fPIC -O2 -I "$(torqueloop include)" {model}_ecu.c {model}.c -o {model}.so -lm
 *
 * Add the other generated .c files and their folders (-I) to this line. The model has the form of Embedded Coder with
 * global structures (code interface packaging "Nonreusable function"): {model}_initialize, {model}_step, {model}_U,
 * {model}_Y, {model}_DW. Its fixed step is PERIOD_S. This file is yours: connect other ports, change units, add
 * sensors.
 *
 * Root inports are named by the received signals, root outports by the sent ones; a name that two messages have is
 * MESSAGE_SIGNAL. Values are in the unit of the database. Counters and checksums are handled here, not in the model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "torqueloop_ecu.h"
#include "{stem}.c"
#include "{model}.h"

#define PERIOD_S {period_s!r}

/* All of the state beside that of the model. The model is global, so a process holds one unit. */
static struct {{
    {p}_state can;
    uint32_t steps, refused;
}} unit;

static double limited(double low, double x, double high) {{ return x >= low ? (x <= high ? x : high) : low; }}

static void receive(const tl_frame *f)
{{
    int result = {P}_OK;
    switch (f->id) {{
{received}    default:
        break;
    }}
    unit.refused += result != {P}_OK;
}}

static tl_frame *frame(tl_ecu_outputs *out, uint32_t id, uint8_t flags)
{{
    tl_frame *f = &out->frames[out->n_frames++];
    memset(f, 0, sizeof *f);
    f->id = id;
    f->flags = flags;
    return f;
}}

static void send(tl_ecu_outputs *out)
{{
    tl_frame *f;
    (void)f, (void)out;
{sent}}}

uint32_t tl_ecu_abi(void) {{ return TORQUELOOP_ECU_ABI; }}

void *tl_ecu_init(const tl_ecu_setup *setup, char *error, uint32_t error_size)
{{
    if (fabs(setup->period_s - PERIOD_S) > 1e-9) {{
        snprintf(error, error_size, "needs period_s = %g, was given %g", PERIOD_S, setup->period_s);
        return NULL;
    }}
    memset(&unit, 0, sizeof unit);
    {p}_state_init(&unit.can);
    {model}_initialize();
    return &unit;
}}

int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{{
    uint32_t k;
    (void)ecu;
    for (k = 0; k < in->n_frames; k++)
        receive(&in->frames[k]);
    {model}_step();
    send(out);
    unit.steps++;
    return 1;
}}

/* The state: this file's, then the model's inputs, outputs and states. Add {model}_X if it has continuous states. */
int64_t tl_ecu_save(void *ecu, void *data, int64_t room)
{{
    char *to = data;
    int64_t size = (int64_t)(sizeof unit + sizeof {model}_U + sizeof {model}_Y + sizeof {model}_DW);
    (void)ecu;
    if (room >= size) {{
        memcpy(to, &unit, sizeof unit);
        memcpy(to += sizeof unit, &{model}_U, sizeof {model}_U);
        memcpy(to += sizeof {model}_U, &{model}_Y, sizeof {model}_Y);
        memcpy(to + sizeof {model}_Y, &{model}_DW, sizeof {model}_DW);
    }}
    return size;
}}

int32_t tl_ecu_load(void *ecu, const void *data, int64_t size)
{{
    const char *from = data;
    (void)ecu;
    if (size != (int64_t)(sizeof unit + sizeof {model}_U + sizeof {model}_Y + sizeof {model}_DW))
        return 0;
    memcpy(&unit, from, sizeof unit);
    memcpy(&{model}_U, from += sizeof unit, sizeof {model}_U);
    memcpy(&{model}_Y, from += sizeof {model}_U, sizeof {model}_Y);
    memcpy(&{model}_DW, from + sizeof {model}_Y, sizeof {model}_DW);
    return 1;
}}

void tl_ecu_fini(void *ecu) {{ (void)ecu; }}
"""


def simulink_text(database: CanDatabase, model: str, prefix: str) -> str:
    """The adapter of a model for the messages of a database in its own units. ConfigError on a name that is no C."""
    if not model.isascii() or not model.isidentifier():
        raise ConfigError("{key} = {value}", key="simulink", value=model, allowed="the name of the model, as in C")
    # the longest step of which every cycle time is a multiple
    period_ns = math.gcd(*(m.cycle_ns for m in database.tx_messages)) or 10_000_000
    both = [s.name for m in database.messages for s in m.signals]
    twice = {name for name, n in Counter(both).items() if n > 1}

    def port(message: MessageSpec, signal: SignalSpec) -> str:
        return f"{message.name}_{signal.name}" if signal.name in twice else signal.name

    received = sent = ""
    for m in database.rx_messages:
        name = f"{prefix}_{snake(m.name)}"
        received += f"    case {_id(m, name)}: {{\n        struct {name}_t m;\n"
        received += (
            f"        if ((result = {name}_receive(&unit.can, &m, f->data, f->length)) != {prefix.upper()}_OK)\n"
        )
        received += "            break;\n"
        for s in m.signals:
            received += f"        {model}_U.{port(m, s)} = {name}_{snake(s.name)}_decode(m.{snake(s.name)});\n"
        received += "        break;\n    }\n"
    for m in database.tx_messages:
        name, every = f"{prefix}_{snake(m.name)}", max(1, m.cycle_ns // period_ns)
        sent += f"    if (unit.steps % {every} == 0) {{\n        struct {name}_t m;\n        memset(&m, 0, sizeof m);\n"
        for s in m.signals:
            low, high = _limits(s)
            value = f"limited({low!r}, {model}_Y.{port(m, s)}, {high!r})"
            sent += f"        m.{snake(s.name)} = {name}_{snake(s.name)}_encode({value});\n"
        flags = ("TL_FRAME_FD | TL_FRAME_BRS" if m.brs else "TL_FRAME_FD") if m.fd else "0"
        sent += f"        f = frame(out, {_id(m, name)}, {flags});\n"
        sent += f"        f->length = (uint8_t){name}_send(&unit.can, &m, f->data);\n    }}\n"
    return _TEXT.format(
        model=model, node=database.node, database=database.path.name, stem=f"{prefix}_can", p=prefix, P=prefix.upper(),
        period_s=period_ns * 1e-9, received=received, sent=sent,
    )  # fmt: skip


def _id(message: MessageSpec, name: str) -> str:
    return f"{name.upper()}_FRAME_ID" + (" | TL_FRAME_EXTENDED" if message.extended else "")


def _limits(signal: SignalSpec) -> tuple[float, float]:
    """The values that a signal can have: its limits, and what its bits hold."""
    if signal.is_float:
        low, high = -3.4e38, 3.4e38
    else:
        half = 1 << (signal.length - 1)
        raw = (-half, half - 1) if signal.signed else (0, 2 * half - 1)
        low, high = sorted(x * signal.scale + signal.offset for x in raw)
    return (
        max(low, low if signal.minimum is None else signal.minimum),
        min(high, high if signal.maximum is None else signal.maximum),
    )
