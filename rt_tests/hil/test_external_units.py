"""Control units from outside, in lockstep: a shared library behind the C ABI, any program over ZeroMQ, kinds of ours in
a process; what goes wrong with them has a name."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import msgpack
import pytest
import zmq
from rig_help import CONFIGS, DESK, own_endpoint, rig_file
from waiting import PATIENCE_MS, PATIENCE_S

import torqueloop.hil.ecu
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.c_code import c_code
from torqueloop.hil.ecu.control_unit import (
    Bus,
    EcuInputs,
    EcuSetup,
    Frame,
    Pin,
    make_unit,
    setup_from_json,
    setup_to_json,
)
from torqueloop.hil.ecu.external import ExternalUnit, Options, hosted
from torqueloop.hil.ecu.messages import decode_answer
from torqueloop.hil.ecu.shared_library import STRUCTS, LibraryUnit
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.messages import SchemaError
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

EXAMPLES = CONFIGS / "examples" / "external"
INCLUDE = Path(torqueloop.hil.ecu.__file__).parent / "include"
CC = shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler (cc)")
BUS = Bus("can", CONFIGS / "can" / "tcu_4hp22.dbc", "TCU", CanBusConfig())

#: a unit whose run() and exports a test fills in
SOURCE = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "torqueloop_ecu.h"
static int calls;
uint32_t tl_ecu_abi(void) {{ return {abi}; }}
void *{init}(const tl_ecu_setup *s, char *error, uint32_t n)
{{ (void)s; {init_body} return &calls; }}
int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{{ (void)ecu; (void)in; (void)out; calls++; {run} return 1; }}
void tl_ecu_fini(void *ecu) {{ (void)ecu; }}
{more}
"""


def generated(folder: Path) -> None:
    """What shift_controller.c includes, as `torqueloop new ecu` writes it."""
    code = c_code(BUS.database, BUS.node)
    (folder / f"{code.stem}.h").write_text(code.header)
    (folder / f"{code.stem}.c").write_text(code.source)


def compiled(folder: Path, text: str, name: str = "unit") -> Path:
    """The shared library of a C source, by the build line of the page."""
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    generated(folder)
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE)]
    subprocess.run([str(CC), *flags, str(source), "-o", str(library), "-lm"], check=True)
    return library


def library(folder: Path, run: str = "", *, abi: str = "TORQUELOOP_ECU_ABI", init: str = "tl_ecu_init", more: str = "",
            init_body: str = "(void)error; (void)n;") -> Path:  # fmt: skip
    return compiled(folder, SOURCE.format(run=run, abi=abi, init=init, more=more, init_body=init_body))


def setup(file: Path, **options: object) -> EcuSetup:
    return EcuSetup(
        "gearbox", 1e-3, file, (BUS,), (Pin("n", "rad/s"),), (Pin("p", "Pa"), Pin("q", "1")),
        {"period_s": 5e-3, "start_timeout_s": 60.0, **options}, "rig.toml", "ecu.gearbox", file.parent,
    )  # fmt: skip


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """shift_controller.so"""
    return compiled(
        tmp_path_factory.mktemp("example"), (EXAMPLES / "shift_controller.c").read_text(), "shift_controller"
    )


def c_rig(folder: Path, library: Path, *edits: str) -> Path:
    return rig_file(
        folder, 'ecu.tcu.kind = "library"', f'ecu.tcu.start = "{library}"', "ecu.tcu.options.period_s = 5e-3",
        "ecu.tcu.options.start_timeout_s = 60", *edits,
    )  # fmt: skip


# --- the worked examples --------------------------------------------------------------------------------------------
@needs_cc
@pytest.mark.parametrize("host", ["process", "rig"])
def test_the_c_example_shifts_through_all_gears_and_replays_without_it(
    tmp_path: Path, example: Path, host: str
) -> None:
    here = Path(shutil.copy(example, tmp_path))
    path = c_rig(tmp_path, here, f'ecu.tcu.options.host = "{host}"')
    result = run_rig(path, RunSpec("virtual", None, tmp_path / "run"))
    assert result.exit_status == 0 and next(iter(result.stats.buses.values())).rx_bad == 0
    assert result.stats.participants["tcu"].reported["steps"] == 5000
    if host == "process":
        assert "3 -> 4" in (result.out / "tcu.log").read_text()
        assert result.stats.participants["tcu"].exit_status == 0
    here.unlink()
    again = replay(result.out)
    assert again.passed and again.hash_equal and again.ticks == 25000


@needs_cc
def test_host_process_and_rig_give_the_same_hash(tmp_path: Path, example: Path) -> None:
    hashes = set()
    for host in ("process", "rig"):
        (tmp_path / host).mkdir()
        path = c_rig(tmp_path / host, example, f'ecu.tcu.options.host = "{host}"')
        result = run_rig(path, RunSpec("virtual", 8.0, tmp_path / host / "run"))
        hashes.add(result.stats.hash)
    assert len(hashes) == 1


@pytest.mark.proof
def test_the_python_example_shifts_over_zeromq_and_replays_without_it(tmp_path: Path) -> None:
    endpoint = own_endpoint()
    path = rig_file(
        tmp_path, 'ecu.tcu.kind = "zmq"', "without ecu.tcu.start", f'ecu.tcu.options.endpoint = "{endpoint}"',
        "ecu.tcu.options.period_s = 5e-3", "ecu.tcu.options.start_timeout_s = 60",
    )  # fmt: skip
    program = subprocess.Popen([sys.executable, str(EXAMPLES / "shift_controller.py"), endpoint])
    try:
        result = run_rig(path, RunSpec("virtual", None, tmp_path / "run"))
        assert program.wait(PATIENCE_S) == 0, "it was told to stop"
    finally:
        program.kill()
    assert result.exit_status == 0 and next(iter(result.stats.buses.values())).rx_bad == 0
    reported = result.stats.participants["tcu"].reported
    assert (reported["steps"], reported["shifts"]) == (5000, 4)
    assert replay(result.out).hash_equal


def test_the_soft_tcu_in_a_process_gives_the_same_hash(tmp_path: Path) -> None:
    one = run_rig(DESK, RunSpec("virtual", 3.0, tmp_path / "a"))
    path = rig_file(tmp_path, "ecu.tcu.in_process = false", "ecu.tcu.start_timeout_s = 60")
    other = run_rig(path, RunSpec("virtual", 3.0, tmp_path / "b"))
    assert one.stats.hash == other.stats.hash
    assert other.stats.participants["tcu"].reported["mode"] == "normal" and (other.out / "tcu.log").exists()


# --- state ----------------------------------------------------------------------------------------------------------
@needs_cc
@pytest.mark.parametrize("host", ["process", "rig"])
def test_a_saved_library_unit_goes_on_as_the_first_one_did(example: Path, host: str) -> None:
    def frame(k: int) -> Frame:
        return Frame(0x300, bytes([k, 0, 0, 0, 0, 0, 0, 0]))

    s = EcuSetup("u", 1e-3, example, (BUS,), options={"period_s": 5e-3, "host": host, "start_timeout_s": 60.0})
    units = [make_unit("library", s) for _ in range(2)]
    try:
        for unit in units:
            unit.start()
        first, second = units
        for k in range(40):
            first.step(EcuInputs(5e-3 * k, (frame(k),)))
        state = first.save()
        assert state is not None
        second.load(msgpack.unpackb(msgpack.packb(state)))
        for k in range(40, 80):
            assert first.step(EcuInputs(5e-3 * k)) == second.step(EcuInputs(5e-3 * k))
        with pytest.raises((PeerError, ValueError), match="tl_ecu_load"):
            state.get("state", state)["data"] = b"short"
            second.load(state)
    finally:
        for unit in units:
            unit.stop()


@needs_cc
def test_a_library_that_cannot_save_says_none(tmp_path: Path) -> None:
    unit = make_unit("library", setup(library(tmp_path), host="rig"))
    unit.start()
    assert unit.save() is None


# --- the ABI --------------------------------------------------------------------------------------------------------
@needs_cc
def test_the_structures_here_are_those_of_the_compiler(tmp_path: Path) -> None:
    lines = []
    for name, image in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        fields = [field[0] for field in image._fields_]
        lines += [f'printf("{name}.{f} %zu\\n", offsetof({name}, {f}));' for f in fields]
    head = '#include <stdio.h>\n#include <stddef.h>\n#include "torqueloop_ecu.h"\n'
    text = head + "int main(void) {" + "".join(lines) + "}"
    (tmp_path / "sizes.c").write_text(text)
    subprocess.run([str(CC), "-I", str(INCLUDE), str(tmp_path / "sizes.c"), "-o", str(tmp_path / "sizes")], check=True)
    told = subprocess.run([str(tmp_path / "sizes")], check=True, capture_output=True, text=True).stdout.splitlines()
    here = []
    for name, image in STRUCTS.items():
        here.append(f"{name} {ctypes.sizeof(image)}")
        here += [f"{name}.{f[0]} {getattr(image, f[0]).offset}" for f in image._fields_]
    assert told == here


@pytest.mark.parametrize(("compiler", "flags"), [("cc", ["-std=c99", "-pedantic"]), ("c++", ["-std=c++17"])])
def test_the_header_is_c99_and_cpp_and_the_sample_of_the_page_builds(
    tmp_path: Path, compiler: str, flags: list[str]
) -> None:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / "unit.c"
    source.write_text((EXAMPLES / "shift_controller.c").read_text())
    generated(tmp_path)
    if compiler == "c++":
        page = (Path(__file__).resolve().parents[2] / "docs" / "external_controllers.md").read_text()
        sample = page.split("keep your object behind the `void *`:\n", 1)[1].split("\n    c++ ", 1)[0]
        more = "Unit::Unit(const tl_ecu_setup &) {}\n"
        more += "void Unit::run(const tl_ecu_inputs &in, tl_ecu_outputs &) "
        more += "{ if (in.t_s > 0) throw std::exception(); }\n"
        source = tmp_path / "unit.cpp"
        source.write_text(sample + more)
    built = tmp_path / "unit.so"
    strict = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(INCLUDE)]
    subprocess.run([found, *flags, *strict, str(source), "-o", str(built), "-lm"], check=True)
    unit = make_unit("library", EcuSetup("u", 1e-3, built, (BUS,), options={"period_s": 5e-3, "host": "rig"}))
    unit.start()
    unit.step(EcuInputs(0.0))
    if compiler == "c++":
        with pytest.raises(PeerError, match="failed: std::exception"):
            unit.step(EcuInputs(5e-3))
    unit.stop()


@needs_cc
def test_sensors_frames_and_actuators_arrive_in_both_directions(tmp_path: Path) -> None:
    run = """
    out->actuators[0] = 2.0 * in->sensors[0]; out->actuators[1] += in->n_frames;
    for (uint32_t k = 0; k < in->n_frames; k++) {
        out->frames[k] = in->frames[k]; out->frames[k].id = 0x210; out->frames[k].data[0] = (uint8_t)(100 * in->t_s); }
    out->n_frames = in->n_frames;"""
    for host in ("rig", "process"):
        unit = make_unit("library", setup(library(tmp_path, run), host=host))
        unit.start()
        given = tuple(Frame(0x110, bytes([k] * 8)) for k in range(100))
        out = unit.step(EcuInputs(0.5, given, (3.5,)))
        assert out.actuators == (7.0, 100.0) and len(out.frames) == 100
        assert out.frames[7] == Frame(0x210, bytes([50] + [7] * 7))
        assert unit.step(EcuInputs(0.505, (), (1.0,))).actuators == (2.0, 100.0), "held from the last step"
        assert unit.stop().reported["steps"] == 2


# --- what goes wrong ------------------------------------------------------------------------------------------------
def failure(unit: object, steps: int = 1) -> str:
    """The text of the error that starting and stepping a unit ends with."""
    try:
        with pytest.raises(PeerError) as error:
            unit.start()  # type: ignore[attr-defined]
            for k in range(steps):
                unit.step(EcuInputs(5e-3 * k, (), (0.0,)))  # type: ignore[attr-defined]
    finally:
        unit.stop()  # type: ignore[attr-defined]
    return str(error.value)


@pytest.mark.proof
@needs_cc
@pytest.mark.parametrize("host", ["rig", "process"])
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"abi": "7"}, "unit.so was built for ABI version 7; this program has 1"),
        ({"init": "tl_ecu_initialise"}, "unit.so does not export tl_ecu_init"),
        ({"more": "int32_t tl_ecu_load(void *e, const void *d, int64_t s) { (void)e; (void)d; (void)s; return 1; }"},
         "exports tl_ecu_load alone"),
        ({"init_body": 'snprintf(error, n, "no licence"); return NULL;'}, "tl_ecu_init made no unit: no licence"),
        ({"run": 'if (calls == 3) { snprintf(out->error, out->error_size, "division by 0"); return 0; }'},
         "tl_ecu_run(t = 0.01 s) failed: division by 0"),
        ({"run": "out->n_frames = 1; memset(out->frames, 0, sizeof *out->frames); out->frames->id = 0x210; "
                 "out->frames->length = 7;"},
         "sent TCU_Pressure_1 (0x210) with 7 bytes; node TCU of tcu_4hp22.dbc says 8"),
        ({"run": "out->n_frames = 1; memset(out->frames, 0, sizeof *out->frames); out->frames->id = 0x210; "
                 "out->frames->length = 8; out->frames->flags = TL_FRAME_FD;"},
         "sent TCU_Pressure_1 (0x210) as a CAN FD frame; node TCU of tcu_4hp22.dbc has it as classic"),
        ({"run": "out->n_frames = 1; memset(out->frames, 0, sizeof *out->frames); out->frames->length = 65;"},
         "frame 0x0 of length 65; allowed: 0 .. 8, 12"),
        ({"run": "out->n_frames = 1; memset(out->frames, 0, sizeof *out->frames); out->frames->bus = 3;"},
         "sent a frame on bus 3; allowed: 0 .. 0 (can)"),
        ({"run": "out->n_frames = 1000;"}, "n_frames = 1000; allowed: max_frames = 256"),
        ({"run": "out->actuators[1] = NAN;"}, "actuators that are no finite numbers: q"),
    ],
)  # fmt: skip
def test_what_a_library_does_wrong_is_named(tmp_path: Path, changes: dict[str, str], text: str, host: str) -> None:
    unit = make_unit("library", setup(library(tmp_path, **changes), host=host))
    assert isinstance(unit, LibraryUnit if host == "rig" else ExternalUnit)
    assert text in failure(unit, 4)


@needs_cc
@pytest.mark.parametrize("host", ["rig", "process"])
def test_a_frame_that_is_not_declared_is_sent_and_counted(tmp_path: Path, host: str) -> None:
    """As the answer to a diagnostic request, 0x7E8, which no database of ours has."""
    run = (
        "out->n_frames = 1; memset(out->frames, 0, sizeof *out->frames); "
        "out->frames->id = 0x7E8; out->frames->length = 8;"
    )
    unit = make_unit("library", setup(library(tmp_path, run), host=host))
    unit.start()
    sent = [unit.step(EcuInputs(5e-3 * k, (), (0.0,))).frames for k in range(4)]
    stats = unit.stop()
    assert [[f.can_id for f in frames] for frames in sent] == [[0x7E8]] * 4
    assert stats.undeclared == {"0x7E8 on can": 4}
    assert ParticipantStats.of("process", stats.counts()).undeclared == stats.undeclared


@needs_cc
def test_a_run_with_frames_that_are_not_declared_says_so(tmp_path: Path, example: Path) -> None:
    text = (EXAMPLES / "shift_controller.c").read_text()
    before = "    choose_gear(u);\n"
    more = (
        "    { tl_frame *f = &out->frames[out->n_frames++]; memset(f, 0, sizeof *f); f->id = 0x7E8; f->length = 8; }\n"
    )
    assert before in text
    unit = compiled(tmp_path, text.replace(before, more + before))
    result = run_rig(c_rig(tmp_path, unit), RunSpec("virtual", 0.5, tmp_path / "run"))
    report = result.report
    assert report is not None
    found = [c for c in report.checks if c.name.endswith("sends only frames of its database")]
    assert [c.passed for c in found] == [False] and not found[0].counts
    assert "0x7E8 on powertrain 100" in found[0].text


@needs_cc
@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("if (calls == 2) *(volatile int *)0 = 1;", "step 1 (t = 0.005 s): its process was ended by SIGSEGV"),
        ("if (calls == 2) abort();", "step 1 (t = 0.005 s): its process was ended by SIGABRT"),
        ("if (calls == 2) exit(3);", "step 1 (t = 0.005 s): its process has ended with status 3"),
        ("if (calls == 2) for (;;) sleep(1);", "step 1 (t = 0.005 s): no answer within 0.5 s: it hangs"),
    ],
)
def test_a_library_that_crashes_or_hangs_is_named_with_the_step(tmp_path: Path, run: str, text: str) -> None:
    # a process that ends is seen at once, unless the machine does not run it
    timeout_s = 0.5 if "sleep" in run else 10.0
    assert text in failure(make_unit("library", setup(library(tmp_path, run), timeout_s=timeout_s)), 3)


@needs_cc
def test_a_crash_in_mid_run_latches_and_the_run_replays(tmp_path: Path, example: Path) -> None:
    text = (EXAMPLES / "shift_controller.c").read_text()
    before = "    choose_gear(u);\n"
    crash = text.replace(before, "    if (s->t_s > 2.0) *(volatile int *)0 = 1;\n" + before)
    assert crash != text
    result = run_rig(c_rig(tmp_path, compiled(tmp_path, crash)), RunSpec("virtual", 4.0, tmp_path / "run"))
    safe = result.stats.safe_state
    assert safe.kind == "thread" and "step 401 (t = 2.005 s): its process was ended by SIGSEGV" in safe.cause
    assert result.exit_status == 1 and replay(result.out).hash_equal


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        (['ecu.tcu.start = "nowhere.so"'], "no such file"),
        (["without ecu.tcu.start"], "needs its file"),
        (['ecu.tcu.options.hots = "rig"'], "unknown key 'hots' in [ecu.tcu.options]"),
        (["ecu.tcu.options.period_s = -1"], "period_s"),
        (["ecu.tcu.options.period_s = 1.5e-3"], "a whole number of ticks"),
        (['ecu.tcu.node = "TUC"'], "TUC"),
        (['ecu.tcu.kind = "libary"'], "allowed: soft_tcu, recording, library, zmq"),
    ],
)
def test_a_wrong_rig_file_is_refused_before_anything_runs(tmp_path: Path, edits: list[str], text: str) -> None:
    (tmp_path / "unit.so").touch()
    given = " ".join(edits)
    if "ecu.tcu.kind" not in given:
        edits = [*edits, 'ecu.tcu.kind = "library"']
    if "ecu.tcu.start" not in given:
        edits = [*edits, f'ecu.tcu.start = "{tmp_path / "unit.so"}"']
    path = rig_file(tmp_path, *edits)
    with pytest.raises(ConfigError) as error:
        run_rig(path, RunSpec("virtual", 1.0, tmp_path / "run"))
    assert text in str(error.value)


# --- messages -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "reason", "text"),
    [
        (b"\xff\xff", "malformed", "not a msgpack map"),
        ({"kind": "ready"}, "version", "key v = None"),
        ({"v": 2, "kind": "ready"}, "version", "key v = 2"),
        ({"v": 1, "kind": "nothing"}, "kind", "'nothing'"),
        ({"v": 1, "kind": "out", "step": 0, "frames": []}, "keys", "missing key(s) actuators"),
        ({"v": 1, "kind": "ready", "x": 1}, "keys", "unknown key(s) x"),
        ({"v": 1, "kind": "out", "step": "0", "frames": [], "actuators": []}, "type", "key step"),
        ({"v": 1, "kind": "out", "step": 0, "frames": {}, "actuators": []}, "type", "key frames"),
        ({"v": 1, "kind": "out", "step": 0, "frames": [[0, 1, 0, "x"]], "actuators": []}, "type", "frames[0]"),
        ({"v": 1, "kind": "out", "step": 0, "frames": [[0, 1, 0, b"1" * 9]], "actuators": []}, "range", "9 data bytes"),
        ({"v": 1, "kind": "out", "step": 0, "frames": [[0, 1 << 32, 0, b""]], "actuators": []}, "range", "id 0x1"),
        ({"v": 1, "kind": "out", "step": 0, "frames": [], "actuators": ["x"]}, "type", "key actuators"),
        ({"v": 1, "kind": "out", "step": 0, "frames": [], "actuators": [float("inf")]}, "not_finite", "key actuators"),
        ({"v": 1, "kind": "bye", "counts": {1: 2}}, "malformed", "int"),
    ],
)  # fmt: skip
def test_an_answer_against_the_schema_is_refused_with_the_key(message: object, reason: str, text: str) -> None:
    data = message if isinstance(message, bytes) else msgpack.packb(message)
    with pytest.raises(SchemaError) as error:
        decode_answer(data)
    assert error.value.reason == reason and text in str(error.value)


def test_a_zeromq_unit_that_sends_what_is_not_declared_is_counted_by_the_rig() -> None:
    """Its own counts say nothing of it: the rig looks at each answer."""
    options = {"endpoint": (endpoint := own_endpoint()), "start_timeout_s": PATIENCE_S}
    unit = make_unit("zmq", EcuSetup("u", 1e-3, None, (BUS,), options=options))
    frame = (0, 0x7E8, 0, bytes(8))
    answers = [
        {"kind": "ready"},
        *({"kind": "out", "step": k, "frames": [frame] * (k + 1), "actuators": []} for k in range(2)),
        {"kind": "bye", "counts": {}},
    ]
    with zmq.Context.instance().socket(zmq.REP) as peer:
        peer.connect(endpoint)

        def answer() -> None:
            for message in answers:
                if peer.poll(PATIENCE_MS):
                    peer.recv()
                    peer.send(msgpack.packb({"v": 1, **message}))

        thread = threading.Thread(target=answer)
        thread.start()
        unit.start()
        for k in range(2):
            unit.step(EcuInputs(1e-3 * k))
        assert unit.stop().undeclared == {"0x7E8 on can": 3}
        thread.join()


def test_a_zeromq_unit_that_is_not_there_or_answers_nonsense_is_named() -> None:
    context = zmq.Context.instance()
    endpoint = own_endpoint()
    options = {"endpoint": endpoint, "start_timeout_s": 0.2, "timeout_s": 0.2}
    unit = make_unit("zmq", EcuSetup("u", 1e-3, None, (BUS,), options=options))
    assert failure(unit) == "init: no answer within 0.2 s: is it started?"
    with context.socket(zmq.REP) as peer:
        peer.connect(endpoint)
        unit = make_unit("zmq", EcuSetup("u", 1e-3, None, (BUS,), options={**options, "start_timeout_s": PATIENCE_S}))

        def answer() -> None:
            for text in ({"v": 1, "kind": "ready"}, {"v": 1, "kind": "out", "step": 9, "frames": [], "actuators": []}):
                if peer.poll(PATIENCE_MS):
                    peer.recv()
                    peer.send(msgpack.packb(text))
            if peer.poll(PATIENCE_MS):
                peer.recv()
                peer.send(msgpack.packb({"v": 1, "kind": "error", "text": "I am confused"}))

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            unit.start()
            with pytest.raises(PeerError, match="step 0 .* answered step 9; allowed: the step it was asked"):
                unit.step(EcuInputs(0.0))
            assert "it says: I am confused" in unit.stop().reported["stop"]
        finally:
            thread.join()
    with pytest.raises(ConfigError, match="loopback"):
        make_unit("zmq", EcuSetup("u", 1e-3, None, (BUS,), options={"endpoint": "tcp://0.0.0.0:5"}))


def test_a_setup_goes_to_another_process_and_back() -> None:
    s = setup(Path("/a/unit.so"), config="x")
    assert setup_from_json(setup_to_json(s)) == s


def test_a_hosted_unit_whose_process_cannot_start_says_why(tmp_path: Path) -> None:
    setup = EcuSetup("u", 1e-3, tmp_path / "none.toml", (BUS,), folder=tmp_path)
    unit = hosted("soft_tcu", setup, 5e-3, Options(start_timeout_s=60.0))
    assert "file not found" in failure(unit)
