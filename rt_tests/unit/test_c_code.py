"""C generated from a CAN database, compiled, against our codec, against code of others and against recorded frames."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest
from cantools.database.conversion import BaseConversion
from test_can_frames import PROTECTED
from test_can_frames import spec_of as recorded_spec

from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.can import codec as k
from torqueloop.cython_kernels.can.bits import bits, parts
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.can.codec_spec import MessageSpec, SignalSpec
from torqueloop.cython_kernels.can.protection import header_fields
from torqueloop.hil.can.c_code import CCode, c_code, c_of
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.load import read_database

sys.path.append(str(Path(__file__).resolve().parents[1] / "judges"))

CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")
FD = 4
#: databases with little-endian and big-endian signals, CAN FD, multiplexing, split checksums, ranges below the bits
QUICK = (("tcu_4hp22", "TCU"), ("tcu_4hp22", "HIL"), ("cruise_fd", "SLC"), ("vw_mqb", "TCU"), ("mb_egs52", "TCU"))
#: as the generated functions take it: room for any struct, for any state
ROOM = 1 << 14


class Compiled:
    """The functions of generated C, and one state of its counters."""

    def __init__(self, code: CCode, folder: Path) -> None:
        (folder / f"{code.stem}.h").write_text(code.header)
        source = folder / f"{code.stem}.c"
        source.write_text(code.source)
        strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
        flags = [*strict, "-fsanitize=undefined", "-fno-sanitize-recover", "-shared", "-fPIC", "-O0"]
        built = source.with_suffix(".so")
        subprocess.run([str(CC), *flags, str(source), "-o", str(built)], check=True)
        self.p, self.loaded = code.prefix, ctypes.CDLL(str(built))
        self.state = ctypes.create_string_buffer(ROOM)
        self.call("state_init", self.state)

    def call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.loaded, f"{self.p}_{name}")(*arguments) or 0)

    def unpack(self, message: str, data: bytes) -> Any:
        struct = ctypes.create_string_buffer(ROOM)
        assert self.call(f"{snake(message)}_unpack", struct, data, ctypes.c_size_t(len(data))) == 0
        return struct

    def send(self, message: str, struct: Any, length: int) -> bytes:
        data = ctypes.create_string_buffer(64)
        assert self.call(f"{snake(message)}_send", self.state, struct, data) == length
        return data.raw[:length]

    def receive(self, message: str, data: bytes) -> tuple[int, bytes]:
        """(result, the values packed again without counter and checksum of their own)."""
        struct = ctypes.create_string_buffer(b"\xa5" * ROOM, ROOM)
        result = self.call(f"{snake(message)}_receive", self.state, struct, data, ctypes.c_size_t(len(data)))
        again = ctypes.create_string_buffer(64)
        if result:
            assert struct.raw == b"\xa5" * ROOM, "a refused frame changes the message"
            return result, b""
        self.call(f"{snake(message)}_pack", again, struct, ctypes.c_size_t(64))
        return result, again.raw[: len(data)]


def snake(name: str) -> str:
    return str(cantools.database.can.c_source.camel_to_snake_case(name))


def described(spec: MessageSpec) -> Any:
    """A message as cantools has it, with the signals of a spec and nothing else."""
    signals = [
        cantools.database.can.Signal(
            s.name, s.start, s.length, "big_endian" if s.big_endian else "little_endian", s.signed,
            conversion=BaseConversion.factory(),
        )
        for s in spec.signals
    ]  # fmt: skip
    return cantools.database.can.Message(
        spec.can_id, spec.name, spec.length, signals, is_extended_frame=spec.extended, is_fd=spec.fd, strict=False
    )


def table(rng: np.random.Generator, spec: MessageSpec, slots: int) -> np.ndarray:
    """Values of the signals inside their limits, their ends among them, and a few beyond (which the codec limits)."""
    values = np.zeros(slots)
    for s in spec.signals:
        if s.is_float:
            low, high = (-1e3 if x is None else x for x in (s.minimum, s.maximum))
        else:
            raw = (-(1 << (s.length - 1)), (1 << (s.length - 1)) - 1) if s.signed else (0, (1 << s.length) - 1)
            low, high = sorted(x * s.scale + s.offset for x in raw)
        pick = rng.integers(0, 6)
        values[s.slot] = low if pick == 0 else high if pick == 1 else rng.uniform(low, high)
    return values


def nodes_of(name: str) -> list[str]:
    return [str(n.name) for n in read_database(installed("can")[name]).nodes]


def every_frame(path: Path, node: str, folder: Path, seed: int, n: int) -> Counter[tuple[str, int]]:
    """Compare the codec and generated C for all messages of a node: the frames that they send, and their judgement of
    received frames, right and spoiled ones. Returns how often each result occurred."""
    found: Counter[tuple[str, int]] = Counter()
    rng = np.random.default_rng(seed)
    ours = CanDatabase.load(path, node, timeouts_s={"*": 0.0}, units="database", whole=True)
    compiled = Compiled(c_code(path, node, f"n_{snake(node)}"), folder)
    sender, slots = TxState(ours.tables), len(ours.signals)
    for spec in ours.tx_messages:
        for _ in range(n):
            status, _, data = sender.encode(table(rng, spec, slots), ours.message_index(spec.name))
            assert status == k.OK
            assert compiled.send(spec.name, compiled.unpack(spec.name, data), spec.length) == data, spec.name
            found["sent", 0] += 1
    receiver, values = RxState(ours.tables), np.zeros(slots)
    for spec in ours.rx_messages:
        # a sender that keeps to no limits
        free = tuple(replace(s, minimum=None, maximum=None) for s in spec.signals)
        other = TxState(CodecTables([replace(spec, receive=False, signals=free)], slots))
        frames = [other.encode(table(rng, spec, slots) if rng.integers(4) else np.zeros(slots), 0)[2] for _ in range(n)]
        for data in spoiled(rng, frames):
            expected = receiver.decode(values, bus_id(spec), data, 0, FD * spec.fd)
            result, _ = compiled.receive(spec.name, data)
            assert result == expected, f"{spec.name} {data.hex()}"
            found["received", result] += 1
    return found


def spoiled(rng: np.random.Generator, frames: list[bytes]) -> list[bytes]:
    """The frames in order; some are lost, repeated, cut, have a bit flipped, or are followed by random bytes."""
    out: list[bytes] = []
    for data in frames:
        what = rng.integers(0, 12)
        bad = bytearray(data)
        if what == 0:
            continue
        out.append(data)
        if what == 1:
            out.append(data)
        elif what == 2 and data:
            out.append(data[:-1])
        elif what in (3, 4) and data:
            bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
            out.append(bytes(bad))
        elif what == 5:
            out.append(rng.bytes(len(data)))
    return out


@pytest.mark.parametrize(("name", "node"), QUICK)
def test_generated_c_sends_and_judges_as_the_codec_does(name: str, node: str, tmp_path: Path) -> None:
    found = every_frame(installed("can")[name], node, tmp_path, 1, 60)
    assert found["sent", 0] and found["received", k.OK] and found["received", k.LENGTH]


#: a counter from 1 to 13 without 5 and 6; signals whose ranges leave numbers of their bits out at one or both ends, of
#: which the lowest or the highest means invalid; one of big-endian bits over a byte border, a short one, a float
NARROW = """VERSION ""
BU_: A B
BO_ 100 One: 8 A
 SG_ Sum : 0|8@1+ (1,0) [0|255] "" B
 SG_ Count : 8|4@1+ (1,0) [0|15] "" B
 SG_ S : 12|9@1- (0.5,-3) [-60|70] "" B
 SG_ U : 22|10@1+ (1,0) [3|900] "" B
 SG_ W : 38|11@0+ (2,0) [0|4000] "" B
 SG_ T : 48|5@1- (1,0) [-16|3] "" B
 SG_ V : 56|8@1+ (1,0) [7|255] "" B
BO_ 2147483748 Two: 12 B
 SG_ F : 0|32@1- (1,0) [-50|90] "" A
 SG_ Tally : 36|8@1+ (1,0) [0|255] "" A
 SG_ X : 64|4@1+ (1,0) [0|14] "" A
SIG_VALTYPE_ 2147483748 F : 1;
VAL_ 100 S -256 "bad" ;
VAL_ 100 U 1023 "bad" 2 "low" ;
BA_DEF_ BO_ "E2EProfile" STRING ;
BA_DEF_ BO_ "E2ECrcSignal" STRING ;
BA_DEF_ BO_ "E2ECounterSignal" STRING ;
BA_DEF_ BO_ "E2ECounterSkips" STRING ;
BA_DEF_ BO_ "E2ECounterMin" INT 0 255;
BA_DEF_ BO_ "E2ECounterMax" INT 0 255;
BA_DEF_ BO_ "E2EMaxDelta" INT 0 255;
BA_DEF_DEF_ "E2EProfile" "NONE";
BA_DEF_DEF_ "E2ECrcSignal" "";
BA_DEF_DEF_ "E2ECounterSignal" "";
BA_DEF_DEF_ "E2ECounterSkips" "";
BA_DEF_DEF_ "E2ECounterMin" 0;
BA_DEF_DEF_ "E2ECounterMax" 255;
BA_DEF_DEF_ "E2EMaxDelta" 2;
BA_ "E2EProfile" BO_ 100 "HYUNDAI_SUM6";
BA_ "E2ECrcSignal" BO_ 100 "Sum";
BA_ "E2ECounterSignal" BO_ 100 "Count";
BA_ "E2ECounterSkips" BO_ 100 "5 6";
BA_ "E2ECounterMin" BO_ 100 1;
BA_ "E2ECounterMax" BO_ 100 13;
BA_ "E2EMaxDelta" BO_ 100 1;
BA_ "E2ECounterSignal" BO_ 2147483748 "Tally";
BA_ "E2ECounterMin" BO_ 2147483748 3;
BA_ "E2ECounterMax" BO_ 2147483748 9;
"""


def test_counters_and_ranges_that_leave_numbers_out_are_the_same_in_c(tmp_path: Path) -> None:
    path = tmp_path / "narrow.dbc"
    path.write_text(NARROW)
    found: Counter[tuple[str, int]] = Counter()
    for node in "AB":
        (tmp_path / node).mkdir()
        found += every_frame(path, node, tmp_path / node, 4, 400)
        told = c_code(path, node).header
        assert "/* one, 0x64, 8 bytes, HYUNDAI_SUM6:" in told and "/* two, 0x64, 12 bytes, no checksum:" in told
        assert "packs the next frame into 8 bytes" in told or "packs the next frame into 12 bytes" in told
    for result in (k.OK, k.LENGTH, k.CRC, k.REPEAT, k.JUMP, k.RANGE):
        assert found["received", result] > 20, found


@pytest.mark.long
def test_generated_c_of_every_database_sends_and_judges_as_the_codec_does(tmp_path: Path) -> None:
    found: Counter[tuple[str, int]] = Counter()
    for name, path in installed("can").items():
        for node in nodes_of(name):
            folder = tmp_path / name / node
            folder.mkdir(parents=True)
            found += every_frame(path, node, folder, 2, 40)
    for result in (k.OK, k.LENGTH, k.CRC, k.REPEAT, k.JUMP, k.RANGE):
        assert found["received", result] > 20, found


def test_every_rule_of_protection_in_c_is_that_of_code_of_others(tmp_path: Path) -> None:
    pytest.importorskip("e2e", reason="autosar-e2e is not installed")
    pytest.importorskip("opendbc.can", reason="opendbc is not installed")
    from judgetools.rules import RULES
    from test_protection import spec_of

    names, rules = list(RULES), list(RULES.values())
    heard = [in_bytes(replace(spec_of(rule), name=f"R{n}")) for n, rule in enumerate(rules)]
    sent = [replace(spec, receive=False) for spec in heard]
    sender, receiver = (
        Compiled(c_of(specs, [described(s) for s in specs], prefix), tmp_path)
        for specs, prefix in ((sent, "sent"), (heard, "heard"))
    )
    rng = np.random.default_rng(3)
    for name, rule, spec in zip(names, rules, heard, strict=True):
        for _ in range(20):
            data = sender.send(spec.name, sender.unpack(spec.name, rng.bytes(spec.length)), spec.length)
            assert rule.right(data) and rule.protect(data) == data, f"{name}: {data.hex()}"
            bad = flipped(data, spec)
            assert not rule.right(bad) and receiver.receive(spec.name, bad)[0] == k.CRC, f"{name}: {bad.hex()}"
            assert receiver.receive(spec.name, data)[0] == k.OK, f"{name}: {data.hex()}"


def in_bytes(spec: MessageSpec) -> MessageSpec:
    """The message with a signal for each stretch of bits in a byte, instead of one for each bit."""
    found: list[SignalSpec] = []
    for bit in (s.start for s in spec.signals):
        if found and bit % 8 and bit == found[-1].start + found[-1].length:
            found[-1] = replace(found[-1], length=found[-1].length + 1)
        else:
            found.append(SignalSpec(f"b{bit}", bit, 1, slot=len(found)))
    return replace(spec, signals=tuple(found))


def flipped(data: bytes, spec: MessageSpec) -> bytes:
    """The frame with the first bit of its checksum changed."""
    field = spec.crc_bits if spec.crc_bits is not None else header_fields(spec)[0]
    bit = next(bits(parts(field)[0]))
    return bytes(byte ^ (1 << bit % 8 if k == bit // 8 else 0) for k, byte in enumerate(data))


@pytest.mark.parametrize("frame", PROTECTED, ids=lambda f: f"{f['message']} {f['data']}")
def test_recorded_frames_are_right_for_generated_c(frame: dict[str, Any], tmp_path: Path) -> None:
    spec, data = in_bytes(replace(recorded_spec(frame), name="M")), bytes.fromhex(frame["data"])
    compiled = Compiled(c_of([spec], [described(spec)], "real"), tmp_path)
    result, again = compiled.receive("M", data)
    assert result == k.OK
    mask = sum(((1 << s.length) - 1) << s.start for s in spec.signals)
    assert int.from_bytes(again, "little") == int.from_bytes(data, "little") & mask, "its values"
    assert compiled.receive("M", flipped(data, spec))[0] == k.CRC


def test_refused_frames_widen_the_step_of_the_counter_and_lost_ones_do_not(tmp_path: Path) -> None:
    path = installed("can")["tcu_4hp22"]
    ours = CanDatabase.load(path, "HIL", timeouts_s={"*": 0.0}, units="database", whole=True)
    spec = ours.message("HIL_Speeds")
    sender, compiled = TxState(ours.tables), Compiled(c_code(path, "TCU", "w"), tmp_path)
    frames = [sender.encode(np.zeros(len(ours.signals)), ours.message_index(spec.name))[2] for _ in range(12)]
    spoilt = [flipped(data, spec) if n in (1, 2, 3) else data for n, data in enumerate(frames)]
    assert [compiled.receive(spec.name, data)[0] for data in spoilt[:5]] == [k.OK, k.CRC, k.CRC, k.CRC, k.OK]
    assert [compiled.receive(spec.name, frames[n])[0] for n in (8, 9, 9, 11)] == [k.JUMP, k.OK, k.REPEAT, k.OK]


def test_values_in_the_unit_of_the_database_are_rounded(tmp_path: Path) -> None:
    """cantools alone would cut 12.345 bar in steps of 0.005 to 2468."""
    compiled = Compiled(c_code(installed("can")["tcu_4hp22"], "TCU", "u"), tmp_path)
    encode = compiled.loaded.u_tcu_pressure_1_p_c4_encode
    encode.argtypes, encode.restype = [ctypes.c_double], ctypes.c_uint16
    assert [encode(x) for x in (12.345, 0.8, 0.0049, 0.0)] == [2469, 160, 1, 0]
    decode = compiled.loaded.u_hil_speeds_n_output_decode
    decode.argtypes, decode.restype = [ctypes.c_int16], ctypes.c_double
    assert decode(-6) == -1.5


def test_a_comment_of_a_database_is_never_code(tmp_path: Path) -> None:
    text = installed("can")["tcu_4hp22"].read_text()
    evil = 'CM_ SG_ 528 p_C4 "*/ int foreign(void) { return 1; } /*";\nCM_ BO_ 528 "*/ int foreign(void);";\n'
    path = tmp_path / "evil.dbc"
    path.write_text(text.replace('"bar"', '"*/ int foreign; /*"') + evil)
    code = c_code(path, "TCU")
    assert "foreign" not in code.header + code.source


def test_a_checksum_of_a_byte_is_written_by_one_statement() -> None:
    assert "data[0] = (uint8_t)((data[0] & 0x00u) | " in c_code(installed("can")["tcu_4hp22"], "TCU").source


def test_names_that_become_one_in_c_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "twice.dbc"
    path.write_text(installed("can")["tcu_4hp22"].read_text().replace(" p_C5 ", " P_C4 "))
    with pytest.raises(ConfigError, match="two names become 'p_c4' in C"):
        c_code(path, "TCU")


def test_messages_without_counter_or_checksum_are_named() -> None:
    code = c_code(installed("can")["tcu_4hp22"], "TCU")
    assert code.unprotected == {}
    found = {name: c_code(path, nodes_of(name)[0]).unprotected for name, path in installed("can").items()}
    assert "counter and no checksum" in {lack for lacks in found.values() for lack in lacks.values()}
