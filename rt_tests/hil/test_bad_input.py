"""Bad input as a user meets it, through the command line: a message that is enough to mend it, the right exit status,
nothing started, nothing lost.

The parts of the rig have tests of their own: detectors of the safe state in test_rig_faults.py, threads that die in
test_rig_threads.py, mistakes inside a rig file in test_rig_config.py, Ctrl-C and kill -9 of a real run in
test_rig_real.py, damaged recordings byte by byte in unit/test_recording.py.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from rig_help import CONFIGS, DESK, PROCESS, UNHURRIED, children, free_port, rig_file, ticks_so_far
from typer.testing import CliRunner
from waiting import PATIENCE_S, wait_for

from torqueloop.hil import cli
from torqueloop.hil.record import recorder
from torqueloop.hil.results.files import read_run_info

GEARBOX, DRIVE = "gearboxes/zf_4hp22.toml", "drives/drive_528i.toml"
RIG, TCU, VEHICLE = "rigs/desk_4hp22.toml", "tcu/soft_4hp22.toml", "vehicles/bmw_528i_e28.toml"
SCENARIO, DBC, ENGINE = "scenarios/wot_4hp22.toml", "can/tcu_4hp22.dbc", "engines/bmw_m30b28.csv"


def call(*arguments: str | Path) -> tuple[int, str]:
    """(exit status, everything printed); an exception that escapes fails the test."""
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result.exit_code, re.sub(r"\s+", " ", result.output)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A copy of all configurations to spoil."""
    shutil.copytree(CONFIGS, tmp_path / "configs", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "configs"


def spoil(configs: Path, name: str, old: str, new: str) -> None:
    path = configs / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {name}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


TWO_GEARS = """
[components.G1]
kind = "IdealGear"
ratio = 2.0
[components.G2]
kind = "IdealGear"
ratio = 3.0
[[connect]]
flanges = ["in.flange_a", "G1.flange_a", "G2.flange_a"]
[[connect]]
flanges = ["out.flange_a", "G1.flange_b", "G2.flange_b"]
[components.R1]
"""

#: what is wrong: (file, old, new), words of the message beside the file's name
MISTAKES = {
    "unknown component": (GEARBOX, 'kind = "LaminarClutch"', 'kind = "LaminarClutsh"',
                          ["LaminarClutsh", "[components.C4]", "did you mean 'LaminarClutch'"]),
    "misspelled key": (GEARBOX, "J_kgm2 = 0.020", "J_kgm = 0.020", ["'J_kgm'", "[components.in]", "'J_kgm2'"]),
    "missing value": (GEARBOX, "J_kgm2 = 0.020", "", ["J_kgm2 is missing", "[components.in]"]),
    "value without unit": (GEARBOX, "J_kgm2 = 0.020", "J = 0.020", ["J = 0.020 has no unit", "write J_kgm2"]),
    "value out of range": (GEARBOX, "J_kgm2 = 0.020", "J_kgm2 = -1", ["J_kgm2 = -1", "allowed: >= 0"]),
    "over-constrained loop": (GEARBOX, "[components.R1]\n", TWO_GEARS, ["over-constrained gear loop", "G1, G2"]),
    "floating shaft": (GEARBOX, '  ["S3.flange_a", "P3.sun"],\n', "", ["P3.sun", "joined to nothing"]),
    "non-monotone table": (ENGINE, "62.8319,150.2", "12.8319,150.2",
                           ["not strictly increasing at row 3", "12.8319 after 20.944", "[tables.engine_wot]"]),
    "DBC lacks the signal": (DBC, "SG_ p_C4 :", "SG_ p_C04 :", ["TCU_Pressure_1 has no signal 'p_C4'", "'p_C04'"]),
    "two owners": (DBC, "BO_ 530 TCU_Status: 8 TCU", "BO_ 272 TCU_Status: 8 TCU",
                   ["0x110 has two owners", "TCU_Status (TCU)", "HIL_Speeds (HIL)"]),
    "TCU key": (TCU, "kiss_bar", "kis_bar", ["'kis_bar'", "[elements.C4]", "did you mean 'kiss_bar'"]),
    "vehicle without unit": (VEHICLE, "mass_kg = 1500", "mass = 1500", ["'mass'", "[body]", "'mass_kg'"]),
    "two masses": (VEHICLE, "mass_kg = 1500", "mass_kg = 1600", ["1600", "1500"]),
    "no TCU file": (RIG, "soft_4hp22.toml", "soft.toml", ["[ecu.tcu]", "soft.toml", "no such file"]),
    "no number": (RIG, "[1.7, 1.0]]\nkick", "[1.7, nan]]\nkick", ["pedal[2][1] = nan", "[driver]", "finite"]),
    "gate on nothing": (RIG, "recording_lost == 0", "recording_lots == 0",
                        ["'recording_lots'", "[gates]", "did you mean 'recording_lost'"]),
    "gate that is none": (RIG, "recording_lost == 0", "recording_lost => 0", ["nothing_lost", "column 16"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_any_file_is_named_before_the_run_begins(configs: Path, tmp_path: Path, case: str) -> None:
    name, old, new, words = MISTAKES[case]
    spoil(configs, name, old, new)
    out = tmp_path / "run"
    status, text = call("run", configs / RIG, "--clock", "virtual", "--duration", "1", "--out", out)
    assert status == 2
    for word in [*words, Path(name).name]:
        assert word in text, text
    assert not out.exists() and not children(os.getpid())


@pytest.mark.parametrize("case", MISTAKES)
def test_check_of_the_rig_finds_what_a_run_would_find(configs: Path, case: str) -> None:
    name, old, new, words = MISTAKES[case]
    spoil(configs, name, old, new)
    status, text = call("check", configs / RIG)
    assert status == 2 and words[0] in text


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (DRIVE, "c_Nm_per_rad = 9000", "c = 9000", ["c = 9000 has no unit", "c_Nm_per_rad"]),
        (SCENARIO, "duration_s = 25.0", "duration = 25.0", ["'duration'", "[scenario]", "'duration_s'"]),
        (SCENARIO, "shifts == 3", "shifts = 3", ["[gates]", "column 8"]),
        (TCU, "period_s = 5e-3", "period_s = 5", ["period_s = 5", "[timing]", "<= 0.05"]),
        (VEHICLE, "mass_kg = 1500", "mass_kg = -1", ["mass_kg = -1", "[body]", "> 0"]),
        (DBC, "SG_ p_C4 : ", "SG_ p_C4 ; ", ["Invalid syntax at line"]),
        (DBC, "SG_ p_C4 : 16", "SG_ p_C4 : 20", ["p_C4", "overlapping", "TCU_Pressure_1"]),
    ],
)
def test_check_names_a_mistake_in_each_kind_of_file(
    configs: Path, name: str, old: str, new: str, words: list[str]
) -> None:
    spoil(configs, name, old, new)
    status, text = call("check", configs / name)
    assert status == 2
    for word in [*words, Path(name).name]:
        assert word in text, text


def test_check_of_what_is_no_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# notes")
    status, text = call("check", tmp_path, tmp_path / "notes.md", tmp_path / "nothing.toml")
    assert status == 2
    assert "folder" in text and "allowed: .toml, .dbc" in text and "no such file" in text


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "simulate"])
@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "1e9", "1e-5"])
def test_impossible_durations_are_refused(tmp_path: Path, command: str, value: str) -> None:
    status, text = call(command, "--duration", value, "--out", tmp_path / "run", "--quiet")
    assert status == 2 and "duration =" in text and "allowed: 0.001" in text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_unknown_kernel_is_named_with_those_there_are(tmp_path: Path, command: str) -> None:
    status, text = call(command, "--kernel", "zf_5hp", "--out", tmp_path / "run")
    assert status == 2 and "'zf_5hp'" in text and "auto, generic" in text
    assert not (tmp_path / "run").exists()


def test_gate_on_an_unknown_metric_costs_nothing(tmp_path: Path) -> None:
    status, text = call("run", "--clock", "virtual", "--out", tmp_path / "run", "--gate", "mised == 0")
    assert (
        status == 2
        and "command line: gate 'mised == 0': there is no metric 'mised' in [gates]; did you mean 'missed'" in text
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["run", "simulate"])
def test_directories_that_cannot_be_used_are_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").write_text("precious")
    for name, words in (("file", "no directory"), ("file/below", "cannot be made"), ("used", "nothing is overwritten")):
        status, text = call(command, "--duration", "0.1", "--out", tmp_path / name, "--quiet")
        assert status == 2 and words in text and str(tmp_path / name) in text, text
    assert (tmp_path / "file").read_text() == (tmp_path / "used" / "x").read_text() == "precious"


def test_quiet_run_that_fails_says_why(tmp_path: Path) -> None:
    status, text = call(
        "run",
        DESK,
        "--clock",
        "virtual",
        "--duration",
        "0.5",
        "--out",
        tmp_path / "run",
        "--quiet",
        "--no-html",
        "--gate",
        "shifts >= 3",
    )
    assert status == 1 and "failed: shifts >= 3: shifts = 0" in text


# --- participants that do not do their part -------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_vehicle_that_never_answers_leaves_a_failed_run_and_nothing_else(tmp_path: Path, clock: str) -> None:
    rig = rig_file(tmp_path, "vehicle.start_timeout_s = 0.3\nwithout vehicle.start", own_bus=True)
    status, text = call("run", rig, "--clock", clock, "--duration", "1", "--out", tmp_path / "run")
    assert status == 2 and "vehicle" in text and "has not answered" in text
    assert sorted(p.name for p in (tmp_path / "run").iterdir() if p.suffix != ".log") == ["config", "run.json"]
    assert read_run_info(tmp_path / "run").state == "failed" and not children(os.getpid())
    # and the report of it is a report, not an error
    status, text = call("report", tmp_path / "run", "--no-html")
    assert status == 1 and "has not answered" in text


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_port_in_use_is_named_with_the_key_that_sets_it(tmp_path: Path, clock: str) -> None:
    with zmq.Context().socket(zmq.PAIR) as other:
        port = other.bind_to_random_port("tcp://127.0.0.1")
        rig = rig_file(tmp_path, f'vehicle.endpoint = "tcp://127.0.0.1:{port}"', PROCESS, own_bus=True)
        # on the virtual clock a process that the rig starts needs no port
        participants = "--no-participants" if clock == "virtual" else "--participants"
        status, text = call("run", rig, participants, "--clock", clock, "--duration", "1", "--out", tmp_path / "run")
    assert status == 2 and f"127.0.0.1:{port}" in text and "[vehicle] endpoint" in text and "in use" in text
    assert not children(os.getpid())


def test_vehicle_that_dies_in_mid_run_latches_and_the_recording_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed = threading.Event()

    def kill() -> None:
        while not killed.is_set():
            if any((out / "signals").glob("*.tlc")) and (out / "signals" / "000001.tlc").stat().st_size > 20_000:
                for pid in children(os.getpid()):
                    os.kill(pid, signal.SIGKILL)
                    killed.set()
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    rig = rig_file(tmp_path, PROCESS)
    status, text = call("run", rig, "--clock", "virtual", "--duration", "60", "--out", out, "-q", "--no-html")
    killed_in_time = killed.is_set()
    killed.set()
    thread.join()
    assert killed_in_time and status == 1 and "vehicle" in text and "SIGKILL" in text
    assert read_run_info(out).stats.safe_state.kind == "vehicle_data"
    assert call("replay", out)[0] == 0


def test_tcu_process_that_cannot_start_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multicast: None
) -> None:
    python = tmp_path / "python"
    fails = 'case "$*" in *" ecu "*) echo no hydraulics; exit 7;; esac'
    python.write_text(f'#!/bin/sh\n{fails}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    status, text = call(
        "run", rig_file(tmp_path, own_bus=True), "--duration", "1", "--out", tmp_path / "run", "-q", "--no-html"
    )
    assert status == 2 and "process of control unit tcu has ended with status 7" in text
    assert "no hydraulics" in text
    assert read_run_info(tmp_path / "run").state == "failed" and not children(os.getpid())
    assert "torqueloop-tick" not in [t.name for t in threading.enumerate()], "the loop must not go on"


# --- a recording that suffered --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("short") / "run"
    with pytest.MonkeyPatch.context() as patch:
        # a run on the virtual clock takes less than a second: several chunks of each stream all the same
        patch.setattr(recorder, "CHUNK_S", 0.1)
        call("run", DESK, "--clock", "virtual", "--duration", "25", "--out", out, "--quiet", "--no-html")
    return out


@pytest.fixture
def recording(short_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(short_run, tmp_path / "copy"))


@pytest.mark.proof
@pytest.mark.parametrize("stream", ["signals", "inputs"])
def test_damage_in_the_middle_is_named_and_the_rest_is_used(recording: Path, stream: str) -> None:
    file = recording / stream / "000001.tlc"
    data = bytearray(file.read_bytes())
    assert data.count(b"TLCK") >= 3, "one chunk only: the test proves nothing"
    data[data.rindex(b"TLCK", 0, data.rindex(b"TLCK")) + 40] ^= 0xFF
    file.write_bytes(data)
    status, text = call("report", recording, "--no-html")
    assert status == 1 and "wrong checksum" in text and f"{stream}: " in text
    status, text = call("replay", recording)
    assert status == 0 if stream == "signals" else "could be replayed" in text
    assert "Traceback" not in text


def test_recording_cut_off_anywhere_is_still_read(recording: Path) -> None:
    for stream in ("signals", "inputs", "bus"):
        file = recording / stream / "000001.tlc"
        file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    (recording / "run.json").write_text('{"rig": "desk')
    status, text = call("report", recording, "--no-html")
    assert status == 1 and "run.json" in text and "no end mark" in text
    status, text = call("replay", recording)
    assert status == 2 and "run.json" in text


@pytest.mark.proof
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_is_closed_in_order_and_says_so(tmp_path: Path, number: int) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(DESK), "--clock", "virtual", "--duration", "600"]
    process = subprocess.Popen(
        [*command, "--out", str(out), "-q", "--no-html"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for(lambda: ticks_so_far(out), lambda: process.poll() is None)
    process.send_signal(number)
    text = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 128 + number and "interrupted" in text and "Traceback" not in text
    info = read_run_info(out)
    assert info.state == "interrupted" and info.ended and not children(process.pid)
    assert not list(out.rglob("*.new"))
    assert call("report", out, "--no-html")[0] == 1, "an interrupted run has not passed"
    assert call("replay", out)[0] == 0


@pytest.mark.parametrize("kind", ["tcu", "vehicle"])
def test_participant_ends_however_many_signals_it_gets(tmp_path: Path, multicast: None, kind: str) -> None:
    """A killed rig sends its children a signal for each of its threads: a second one must not keep them alive."""
    words = [str(CONFIGS / VEHICLE)]
    if kind == "tcu":
        words = [str(CONFIGS / TCU), "--port", str(free_port())]
    # a pipe, to which Python writes late unless it is told: the line is to come at once all the same
    late = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-m", "torqueloop.hil.cli", kind, *words], stdout=subprocess.PIPE, text=True, env=late
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_S)[0], "no line"
    assert process.stdout.readline(), "its first line says that it runs"
    try:
        for _ in range(300):
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip("cannot mount a small file system here (needs root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk_stops_the_recording_and_not_the_run(small_disk: Path) -> None:
    out = small_disk / "run"
    status, text = call("run", DESK, "--clock", "virtual", "--duration", "4", "--out", out, "-q", "--no-html")
    assert status in (1, 2) and "No space left on device" in text
    # whether run.json found room at the end or not: what is there can be read; the report needs some room
    shutil.rmtree(out / "bus")
    status, text = call("report", out, "--no-html")
    assert status in (1, 2) and "Traceback" not in text
    info = read_run_info(out)
    assert not list(out.rglob("*.new"))
    if info.ended:
        assert info.stats.clock.ticks == 4000, "the run goes on without its recording"


# --- the real bus ---------------------------------------------------------------------------------------------------


def test_second_rig_is_refused_and_names_the_bus(tmp_path: Path, multicast: None) -> None:
    rig = rig_file(tmp_path, own_bus=True)
    with sending(rig, [(0x110, bytes(8))]):
        status, text = call("run", rig, "--duration", "1", "--out", tmp_path / "run", "-q", "--no-html")
    assert status == 2 and "another rig is on the bus" in text and "HIL_Speeds (0x110)" in text
    assert "[bus.powertrain]" in text
    assert not children(os.getpid()) and not (tmp_path / "run" / "tcu.log").exists(), "nothing was started"


@pytest.mark.proof
def test_two_rigs_that_start_their_own_units_run_side_by_side(tmp_path: Path, multicast: None) -> None:
    rig = rig_file(tmp_path, *UNHURRIED)
    program = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(rig), "--duration", "6", "-q", "--no-html"]
    runs = [
        subprocess.Popen([*program, "--out", str(tmp_path / name)], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    said = [run.communicate()[1] for run in runs]
    assert all(run.returncode in (0, 1, 3) for run in runs), said  # 1, 3: the machine did not run it in time
    ports = re.findall(r"bus powertrain: UDP port (\d+), as another rig", "".join(said))
    assert len(ports) == 1 and int(ports[0]) > 43113, said
    for name in ("one", "two"):
        clock = read_run_info(tmp_path / name).stats.clock
        assert clock.ticks + clock.dropped >= 6000


def test_second_control_unit_is_refused(tmp_path: Path, multicast: None) -> None:
    rig = rig_file(tmp_path, own_bus=True)
    with sending(rig, [(0x210, bytes(8))]):
        status, text = call("run", rig, "--duration", "1", "--out", tmp_path / "run", "-q", "--no-html")
    assert status == 2 and "a control unit is on the bus already" in text and "TCU_Pressure_1" in text


@pytest.mark.proof
def test_wrong_frames_on_the_real_bus_are_counted_named_and_change_nothing(tmp_path: Path, multicast: None) -> None:
    from torqueloop.hil.can.database import CanDatabase

    rig = rig_file(tmp_path, "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 2.0", own_bus=True)
    # right checksum, counter that stands still: what a repeated frame looks like
    stuck = CanDatabase.load(CONFIGS / DBC, "TCU").codec().encode("TCU_Pressure_2", {})
    frames = [(0x210, b"\1\2\3\4\5\6\7\x08"), (0x210, bytes(3)), (0x211, stuck), (0x212, bytes(8)), (0x111, bytes(8))]
    with sending(rig, frames, when=tmp_path / "run" / "tcu.log", delay_s=0.8):
        status, text = call("run", rig, "--duration", "2.5", "--out", tmp_path / "run", "-q", "--no-html")
    stats = read_run_info(tmp_path / "run").stats
    rx = stats.buses["powertrain"].rx
    assert rx["TCU_Pressure_1"].crc > 5 and rx["TCU_Pressure_1"].length > 5
    assert rx["TCU_Pressure_2"].repeat + rx["TCU_Pressure_2"].jump > 0
    assert rx["TCU_Pressure_1"].ok > 50, "the good frames between them are taken"
    assert status == 1 and "frames of another sender, first HIL_Driver (0x111)" in text
    status, text = call("report", tmp_path / "run", "--no-html")
    assert "TCU_Pressure_1 length" in text and "TCU_Status crc" in text
    assert call("replay", tmp_path / "run")[0] == 0, "refused frames belong to the recording as well"


class sending:
    """Somebody else on the bus of a rig: these frames every 20 ms, from the time on when a file is there."""

    def __init__(
        self, rig: Path, frames: list[tuple[int, bytes]], when: Path | None = None, delay_s: float = 0.0
    ) -> None:
        from torqueloop.hil.can.bus import open_bus
        from torqueloop.hil.rig.devices.registry import load_rig_config

        can = load_rig_config(rig).bus["powertrain"]
        assert can is not None
        self._port, self._frames, self._when, self._delay_s = open_bus(can.bus()), frames, when, delay_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self._when is not None and not self._when.exists() and not self._stop.wait(0.01):
            pass
        self._stop.wait(self._delay_s)
        while not self._stop.wait(0.02):
            for can_id, data in self._frames:
                self._port.send(can_id, data)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._port.close()
