"""C source for the messages of a node: pack and unpack by cantools, alive counter, checksum and ranges by our rules.

    code = c_code("configs/can/tcu_4hp22.dbc", "TCU")
    code.header, code.source                    tcu_4hp22_can.h, tcu_4hp22_can.c: C99, no other files, no allocation

cantools writes a struct of raw numbers for each message, with `_pack`, `_unpack` and, for each signal, `_encode` and
`_decode` between raw numbers and values in the unit of the database. What this module adds for each message:

    int P_MESSAGE_send(P_state *state, const struct P_MESSAGE_t *message, uint8_t *data)
    int P_MESSAGE_receive(P_state *state, struct P_MESSAGE_t *message, const uint8_t *data, size_t size)

`send` packs, then writes the next counter and the checksum. `receive` tests as the codec does and in its order: length,
checksum, counter, ranges. P is the prefix, by default the name of the database.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cantools.database.can import Database, c_source

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can.bits import Split, bits, parts, width
from torqueloop.cython_kernels.can.codec_spec import (
    RAW_FLOAT32,
    RAW_FLOAT64,
    RAW_SIGNED,
    CounterFields,
    MessageSpec,
    SignalSpec,
    message_fields,
    signal_fields,
)  # fmt: skip
from torqueloop.cython_kernels.can.protection import (
    BITS,
    CRC,
    CRC8,
    FOLD,
    FOLD_NIBBLE,
    J1939,
    NEGATE,
    NIBBLES,
    XOR,
    Protection,
    header_fields,
)  # fmt: skip
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.load import read_database

#: what `receive` returns, by the numbers of the codec's status
RESULTS = {"OK": 0, "LENGTH": 2, "CHECKSUM": 3, "REPEAT": 4, "JUMP": 5, "RANGE": 6}

_CRC = """
/* One more byte of a CRC. `poly` without its highest power, with its bits in reverse order if `reflected`. */
static uint64_t {p}_crc(uint64_t r, uint8_t byte, unsigned width, uint64_t poly, int reflected)
{{
    uint64_t top = (uint64_t)1 << (width - 1);
    int bit;
    r ^= reflected ? (uint64_t)byte : (uint64_t)byte << (width - 8);
    for (bit = 0; bit < 8; bit++) {{
        if (reflected)
            r = r & 1 ? r >> 1 ^ poly : r >> 1;
        else
            r = r & top ? r << 1 ^ poly : r << 1;
    }}
    return r & ((top - 1) | top);
}}
"""

_STEP = """
/* Whether the step of an alive counter is allowed; `place`: how many of its n values come before this one. */
static int {p}_step({p}_received *r, uint32_t counter, uint32_t place, uint32_t earlier, uint64_t n, uint32_t most)
{{
    uint64_t delta = (place + n - earlier) % n;
    if (!r->seen)
        return {P}_OK;
    if (delta == 0)
        return {P}_REPEAT;
    if (delta > (uint64_t)most + r->rejected) {{
        r->counter = counter;
        r->rejected = 0;
        return {P}_JUMP;
    }}
    return {P}_OK;
}}
"""

_HEADER = """
#ifdef __cplusplus
extern "C" {{
#endif

/* What a function `_receive` returns; every number but {P}_OK leaves the message as it was. */
enum {{ {results} }};

/* Alive counter of a received message. Set `seen` to 0 after the message was silent: any counter is allowed then. */
typedef struct {{
    uint32_t counter;  /* of the last frame */
    uint32_t rejected; /* frames refused since then */
    uint32_t seen;     /* a frame was accepted */
}} {p}_received;

/* Everything that changes from frame to frame. It may be copied, saved and restored as it is. */
typedef struct {{
{members}
}} {p}_state;

/* The state before the first frame. */
void {p}_state_init({p}_state *state);
{prototypes}
#ifdef __cplusplus
}}
#endif
"""


@dataclass(frozen=True)
class CCode:
    """Generated C."""

    #: begins all names
    prefix: str
    header: str
    source: str
    #: messages without a counter or a checksum, by what they lack: "counter", "checksum", "counter and no checksum"
    unprotected: dict[str, str]

    @property
    def stem(self) -> str:
        """Name of both files without their ending."""
        return f"{self.prefix}_can"


def code_stem(database: Path) -> str:
    """Name of the generated files for a database, without their ending."""
    return f"{c_source.camel_to_snake_case(database.stem)}_can"


def c_code(path: str | Path, node: str, prefix: str | None = None) -> CCode:
    """C for the messages that `node` sends and receives. ConfigError on a database that does not fit."""
    path = Path(path)
    spec = CanDatabase.load(path, node, timeouts_s={"*": 0.0}, units="database", whole=True).messages
    wanted = {m.name for m in spec}
    messages = [m for m in read_database(path).messages if m.name in wanted]
    for names in ([m.name for m in messages], *([s.name for s in m.signals] for m in messages)):
        twice = [name for name, n in Counter(map(c_source.camel_to_snake_case, names)).items() if n > 1]
        if twice:
            raise ConfigError("two names become {value} in C", file=str(path), value=twice[0], allowed="other names")
    return c_of(spec, messages, prefix or c_source.camel_to_snake_case(path.stem))


def c_of(spec: Sequence[MessageSpec], messages: Sequence[Any], p: str) -> CCode:
    """C for messages as the codec has them (in the unit of the database) and as cantools has them."""
    writers = [_Message(p, m) for m in spec]
    _without_comments(messages)
    files = f"{p}_can.h", f"{p}_can.c", ""
    header, source, _, _ = c_source.generate(Database(list(messages)), p, *files, use_round=True)
    results = ", ".join(f"{p.upper()}_{name} = {value}" for name, value in RESULTS.items())
    more = _HEADER.format(
        p=p, P=p.upper(), results=results, members="\n".join(w.member for w in writers) or "    uint8_t unused;",
        prototypes="".join(w.prototype for w in writers),
    )  # fmt: skip
    end = header.rindex("#endif")
    crc = any(w.protection is not None and w.protection.crc is not None for w in writers)
    step = any(w.spec.receive and w.counter.places for w in writers)
    body = (_CRC.format(p=p) if crc else "") + (_STEP.format(p=p, P=p.upper()) if step else "")
    starts = "".join(f"    state->{w.name} = {w.counter.low}u;\n" for w in writers if not w.spec.receive)
    body += f"\nvoid {p}_state_init({p}_state *state)\n{{\n    memset(state, 0, sizeof *state);\n{starts}}}\n"
    body += "".join(w.functions for w in writers)
    lacking = {w.spec.name: w.lacks for w in writers if w.lacks}
    return CCode(p, header[:end] + more.lstrip("\n") + "\n" + header[end:], source + body, lacking)


def _without_comments(messages: Sequence[Any]) -> None:
    """Text of a database stands in comments of the C source: none that could end a comment goes there."""
    for thing in (*messages, *(signal for message in messages for signal in message.signals)):
        thing.comment = None
    for signal in (signal for message in messages for signal in message.signals):
        if signal.unit is not None and not re.fullmatch(r"[\w °%/.^-]*", signal.unit):
            signal.unit = None


def _runs(field: Split) -> Iterator[tuple[int, int, int, int]]:
    """(byte, its lowest bit, number of bits, shift in the value) of the stretches of a field, the lowest bits first."""
    ordered = [bit for part in parts(field) for bit in (reversed(list(bits(part))) if part[2] else bits(part))]
    first = 0
    for k in range(1, len(ordered) + 1):
        if k == len(ordered) or ordered[k] != ordered[k - 1] + 1 or ordered[k] % 8 == 0:
            yield ordered[first] // 8, ordered[first] % 8, k - first, first
            first = k


def _put(field: Split, value: str) -> str:
    """Statements that write a value into a field of `data`."""
    text = ""
    for byte, low, n, shift in _runs(field):
        mask = ((1 << n) - 1) << low
        part = f"(uint8_t)({value} >> {shift}u << {low}u & 0x{mask:02X}u)"
        text += f"    data[{byte}] = (uint8_t)((data[{byte}] & 0x{0xFF & ~mask:02X}u) | {part});\n"
    return text


def _get(field: Split) -> str:
    """Expression of the value of a field of `data`."""
    found = [f"(uint64_t)(data[{byte}] >> {low}u & 0x{(1 << n) - 1:02X}u) << {shift}u"
             for byte, low, n, shift in _runs(field)]  # fmt: skip
    return " | ".join(f"({x})" for x in found)


def _number(value: float) -> str:
    """A whole number as C has it."""
    whole = int(value)
    if whole == -(1 << 63):
        return "(-0x7FFFFFFFFFFFFFFFLL - 1)"
    return f"{whole}LL" if whole < 0 or whole < 1 << 31 else f"{whole}ULL"


class _Message:
    """Writes the C of one message."""

    def __init__(self, p: str, spec: MessageSpec) -> None:
        fields = message_fields(spec)
        self.spec, self.p, self.P = spec, p, p.upper()
        self.name = c_source.camel_to_snake_case(spec.name)
        self.counter: CounterFields = fields.counter
        self.protection = fields.protection
        checksum, counter, _ = header_fields(spec)
        self._checksum: Split | None = spec.crc_bits if checksum is None else checksum
        self._counter: Split | None = spec.counter if checksum is None else counter

    @property
    def lacks(self) -> str:
        lost = ["counter"] * (not self.counter.places) + ["checksum"] * (self.protection is None)
        return " and no ".join(lost)

    @property
    def member(self) -> str:
        if self.spec.receive:
            return f"    {self.p}_received {self.name};"
        return f"    uint32_t {self.name}; /* counter of the next frame */"

    @property
    def _struct(self) -> str:
        return f"struct {self.p}_{self.name}_t"

    @property
    def _head(self) -> str:
        if self.spec.receive:
            return (
                f"int {self.p}_{self.name}_receive({self.p}_state *state, {self._struct} *message,\n"
                f"    const uint8_t *data, size_t size)"
            )
        return f"int {self.p}_{self.name}_send({self.p}_state *state, const {self._struct} *message, uint8_t *data)"

    @property
    def prototype(self) -> str:
        spec = self.spec
        rule = spec.e2e if self.protection else "no checksum"
        what = f"{self.name}, 0x{bus_id(spec) & 0x1FFFFFFF:X}, {spec.length} bytes, {rule}"
        done = f"tests and unpacks a frame; {self.P}_OK or why it was refused" if spec.receive else (
            f"packs the next frame into {spec.length} bytes; returns their number")  # fmt: skip
        return f"\n/* {what}: {done}. */\n{self._head};\n"

    @property
    def functions(self) -> str:
        made = "" if self.protection is None else self._checksum_function(self.protection)
        return made + (self._receive() if self.spec.receive else self._send())

    def _send(self) -> str:
        n, rule = self.spec.length, self.protection
        text = f"\n{self._head}\n{{\n"
        text += f"    if ({self.p}_{self.name}_pack(data, message, {n}) != {n})\n        return -1;\n"
        if self._counter is not None:
            text += _put(self._counter, f"state->{self.name}")
        else:
            text += "    (void)state;\n"
        if rule is not None:
            assert self._checksum is not None
            for byte, mask, value in rule.fixed:
                text += f"    data[{byte}] = (uint8_t)((data[{byte}] & 0x{0xFF & ~mask:02X}u) | 0x{value:02X}u);\n"
            given = f"state->{self.name}" if self._counter is not None else "0"
            text += f"    {{\n        uint64_t checksum = {self.p}_{self.name}_checksum(data, {given});\n"
            text += _put(self._checksum, "checksum").replace("    data", "        data") + "    }\n"
        if self._counter is not None:
            text += self._next()
        return text + f"    return {n};\n}}\n"

    def _next(self) -> str:
        value, run = f"state->{self.name}", self.counter
        text = f"    {value} = {value} < {run.high}u ? {value} + 1 : {run.low}u;\n"
        return text + "".join(f"    {value} += {value} == {skip}u;\n" for skip in run.skips)

    def _receive(self) -> str:
        spec, rule, n = self.spec, self.protection, self.spec.length
        text = f"\n{self._head}\n{{\n    {self.p}_received *r = &state->{self.name};\n    {self._struct} found;\n"
        if self._counter is not None:
            text += "    uint32_t counter;\n"
        refused = "{ r->rejected++; return %s; }"
        text += f"    if (size != {n}) {refused % f'{self.P}_LENGTH'}\n"
        if self._counter is not None:
            text += f"    counter = (uint32_t)({_get(self._counter)});\n"
        if rule is not None:
            assert self._checksum is not None
            given = "counter" if self._counter is not None else "0"
            wrong = [f"(data[{byte}] & 0x{mask:02X}u) != 0x{value:02X}u" for byte, mask, value in rule.fixed]
            wrong.append(f"({_get(self._checksum)}) != {self.p}_{self.name}_checksum(data, {given})")
            text += f"    if ({' || '.join(wrong)}) {refused % f'{self.P}_CHECKSUM'}\n"
        if self._counter is not None:
            text += self._counter_tests(refused)
        text += f"    if ({self.p}_{self.name}_unpack(&found, data, {n}) != 0)\n        return {self.P}_LENGTH;\n"
        tests = [test for signal in spec.signals if (test := self._outside(signal))]
        if tests:
            known = "r->counter = counter; r->rejected = 0;" if self._counter is not None else "r->rejected++;"
            text += "    if (" + "\n        || ".join(tests) + f") {{\n        {known}\n"
            text += f"        return {self.P}_RANGE;\n    }}\n"
        text += "    r->counter = counter;\n" if self._counter is not None else ""
        return text + f"    r->rejected = 0;\n    r->seen = 1;\n    *message = found;\n    return {self.P}_OK;\n}}\n"

    def _counter_tests(self, refused: str) -> str:
        run, bits_of = self.counter, (1 << width(self._counter)) - 1 if self._counter else 0
        wrong = [f"counter < {run.low}u"] * (run.low > 0) + [f"counter > {run.high}u"] * (run.high < bits_of)
        wrong += [f"counter == {skip}u" for skip in run.skips]
        text = f"    if ({' || '.join(wrong)}) {refused % f'{self.P}_JUMP'}\n" if wrong else ""

        def place(value: str) -> str:
            return f"{value} - {run.low}u" + "".join(f" - ({value} > {skip}u)" for skip in run.skips)

        n = run.high - run.low + 1 - len(run.skips)
        step = f"{self.p}_step(r, counter, {place('counter')}, {place('r->counter')}, {n}ull, {self.spec.max_delta}u)"
        return text + f"    {{\n        int result = {step};\n        if (result != {self.P}_OK)\n" \
                      "            return result;\n    }\n"  # fmt: skip

    def _outside(self, signal: SignalSpec) -> str:
        """Condition under which a received signal is out of range; "" if that cannot be."""
        fields = signal_fields(self.spec, signal)
        if not fields["check"]:
            return ""
        value, low, high = f"found.{self._member(signal.name)}", fields["raw_lo"], fields["raw_hi"]
        if fields["kind"] in (RAW_FLOAT32, RAW_FLOAT64):
            tests = [f"!({value} >= {low!r} && {value} <= {high!r})"]
        else:
            signed = fields["kind"] == RAW_SIGNED
            lowest = -(1 << (signal.length - 1)) if signed else 0
            highest = (1 << (signal.length - signed)) - 1
            tests = [f"{value} < {_number(low)}"] * (low > lowest) + [f"{value} > {_number(high)}"] * (high < highest)
        if not tests:
            return ""
        unless = [f"{value} != {x - (1 << signal.length) if signal.signed and x >> (signal.length - 1) else x}"
                  for x in signal.invalid]  # fmt: skip
        there = [" || ".join(_between(f"found.{self._member(name)}", lo, hi) for lo, hi in ranges)
                 for name, ranges in signal.when]  # fmt: skip
        conditions = [f"({x})" for x in (*there, *unless, " || ".join(tests))]
        return f"({' && '.join(conditions)})" if len(conditions) > 1 else conditions[0]

    def _member(self, signal: str) -> str:
        return str(c_source.camel_to_snake_case(signal))

    def _checksum_function(self, rule: Protection) -> str:
        head = f"\n/* {self.spec.e2e} */\nstatic uint64_t {self.p}_{self.name}_checksum(const uint8_t *data, "
        head += "uint32_t counter)\n"
        if rule.kind in (CRC8, CRC):
            return head + self._crc(rule)
        keep = ", ".join(f"0x{x:02X}" for x in rule.keep[rule.first : rule.last])
        start = 0 if rule.finish == NEGATE else rule.init
        body = {XOR: "s ^= byte;", NIBBLES: "s += (byte & 0xFu) + (byte >> 4u);",
                BITS: "for (; byte; byte &= byte - 1) s++;"}.get(rule.kind, "s += byte;")  # fmt: skip
        end = {NEGATE: f"0x{rule.init:X}u - s", J1939: "((s >> 6 & 3) + (s >> 3) + s) & 7", FOLD: "s",
               FOLD_NIBBLE: "(s & 0xF) + (s >> 4)"}.get(rule.finish, f"s ^ 0x{rule.xorout:X}u")  # fmt: skip
        fold = "    s = ((s & 0xFF) + (s >> 8)) & 0xFF;\n" if rule.finish in (FOLD, FOLD_NIBBLE) else ""
        return head + (
            f"{{\n    static const uint8_t keep[] = {{{keep}}};\n"
            f"    uint32_t s = 0x{start:X}u;\n    unsigned byte, k;\n"
            f"    (void)counter;\n    for (k = 0; k < sizeof keep; k++) {{\n"
            f"        byte = data[k + {rule.first}u] & keep[k];\n        {body}\n    }}\n{fold}"
            f"    return ({end}) & 0x{rule.mask:X}u;\n}}\n"
        )

    def _crc(self, rule: Protection) -> str:
        assert rule.crc is not None
        wide, poly, _, _, reflected = rule.crc
        mirrored = int(f"{poly:0{wide}b}"[::-1], 2) if reflected else poly

        def byte(value: str) -> str:
            return f"r = {self.p}_crc(r, {value}, {wide}, 0x{mirrored:X}ull, {int(reflected)});"

        text = "{\n"
        if rule.alternating:
            text += f"    static const uint8_t ids[] = {{{', '.join(map(str, rule.prefix))}}};\n"
        if rule.listed_ids:
            text += f"    static const uint8_t ids[] = {{{', '.join(map(str, rule.listed_ids))}}};\n"
        text += f"    uint64_t r = 0x{rule.init:X}ull;\n    unsigned k;\n    (void)counter;\n"
        before = ["ids[counter & 1]"] if rule.alternating else [f"0x{x:02X}" for x in rule.prefix]
        after = ["ids[counter & 15]"] if rule.listed_ids else [f"0x{x:02X}" for x in rule.suffix]
        text += "".join(f"    {byte(x)}\n" for x in before)
        if rule.backwards:
            text += (
                f"    for (k = {rule.last}; k-- > {rule.first};)\n        if (k < {rule.skip} || k >= {rule.resume})\n"
            )
            text += f"            {byte('data[k]')}\n"
        else:
            for low, high in ((rule.first, rule.skip), (rule.resume, rule.last)):
                text += f"    for (k = {low}; k < {high}; k++)\n        {byte('data[k]')}\n" if low < high else ""
        text += "".join(f"    {byte(x)}\n" for x in after)
        return text + f"    return (r ^ 0x{rule.xorout:X}ull) & 0x{rule.mask:X}ull;\n}}\n"


def _between(value: str, low: int, high: int) -> str:
    return f"{value} == {low}" if low == high else f"({value} >= {low} && {value} <= {high})"
