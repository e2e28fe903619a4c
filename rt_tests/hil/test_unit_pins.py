"""Sensors and actuators of control units that run as programs, on the real clock."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zmq
from io_help import patient_edits
from rig_help import CONFIGS, children, own_endpoint, rig_file, ticks_so_far
from waiting import PATIENCE_S, wait_for

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.ecu.control_unit import EcuOutputs, EcuSetup, Pin
from torqueloop.hil.ecu.messages import pack, pack_out, unpack
from torqueloop.hil.ecu.process import unit_loop
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig

#: three sensors come back as two actuators; the sum tells which one is which
ECHO = """#include <stdlib.h>
#include "torqueloop_ecu.h"
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }
void *tl_ecu_init(const tl_ecu_setup *s, char *error, uint32_t size)
{ (void)s; (void)error; (void)size; return malloc(1); }
int32_t tl_ecu_run(void *e, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{ (void)e; out->actuators[0] = in->sensors[0]; out->actuators[1] = 2.0 * in->sensors[1] - in->sensors[2]; return 1; }
void tl_ecu_fini(void *e) { free(e); }
"""
TABLE = """
[ecu.echo]
kind = "{kind}"
bus = []
{keys}
pins_timeout_s = {timeout_s}
sensors = {{ time = "rig.time", engine = "engine.w", turbine = "turbine.w" }}
actuators = {{ time = "s", speeds = "rad/s" }}

[ecu.echo.options]
period_s = 2e-3
{options}
"""


def echo_rig(folder: Path, *edits: str, kind: str = "library", options: str = "", timeout_s: float = 60.0) -> Path:
    """The desk rig with a second unit, which gives back what it is given."""
    (folder / "echo.c").write_text(ECHO)
    table = TABLE.format(kind=kind, keys='start = "echo.c"' if kind == "library" else "", options=options,
                         timeout_s=timeout_s)  # fmt: skip
    return rig_file(folder, "record.every = 1", *patient_edits(*edits), add=table)


def held_against_the_recording(result: RunResult) -> None:
    """Both actuators come from the sensors of one and the same tick, and not from an old one."""
    signals = tl.read_run(result.out)
    given, speeds = signals.signal("echo.time"), signals.signal("echo.speeds")
    begun = np.flatnonzero(given)
    assert len(begun) > 500
    tick = np.rint(given[begun] * 1e3).astype(int) - 1
    expected = 2.0 * signals.signal("engine.w")[tick] - signals.signal("turbine.w")[tick]
    assert np.ptp(expected) > 1.0
    np.testing.assert_array_equal(speeds[begun], expected)
    # how old they are at other times is the machine's
    age = begun - tick
    assert np.all(np.diff(given[begun]) >= 0.0) and 1 <= age.min() <= 20 and len(np.unique(tick)) > 20
    assert not result.stats.safe_state.latched and replay(result.out).hash_equal


@pytest.mark.usefixtures("multicast")
def test_actuators_are_those_of_the_sensors_of_one_tick(tmp_path: Path) -> None:
    held_against_the_recording(run_rig(echo_rig(tmp_path), RunSpec("real", 2.0, tmp_path / "run")))


@pytest.mark.usefixtures("multicast")
def test_a_unit_over_zeromq_has_its_pins_on_the_real_clock(tmp_path: Path) -> None:
    endpoint = own_endpoint()
    path = echo_rig(tmp_path, kind="zmq", options=f'endpoint = "{endpoint}"\nstart_timeout_s = 30.0')
    over = threading.Event()

    def unit() -> None:
        with zmq.Context.instance().socket(zmq.REP) as peer:
            peer.connect(endpoint)
            while not over.is_set():
                if not peer.poll(50):
                    continue
                body = unpack(peer.recv())
                if body["kind"] == "step":
                    t, engine, turbine = body["sensors"]
                    peer.send(pack_out(body["step"], EcuOutputs((), (t, 2.0 * engine - turbine))))
                else:
                    peer.send(pack("bye", counts={}) if body["kind"] == "stop" else pack("ready"))

    thread = threading.Thread(target=unit)
    thread.start()
    try:
        result = run_rig(path, RunSpec("real", 2.0, tmp_path / "run"))
    finally:
        over.set()
        thread.join()
    held_against_the_recording(result)


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize(("number", "timeout_s", "text"), [
    (signal.SIGSTOP, 3.0, "control unit echo: no new values at its actuators for more than 3 s"),
    (signal.SIGKILL, 60.0, "echo process"),
])  # fmt: skip
def test_a_unit_that_stands_still_or_dies_latches_by_name(
    tmp_path: Path, number: int, timeout_s: float, text: str
) -> None:
    path = echo_rig(tmp_path, "safe_state.stop_after_s = 0.2", timeout_s=timeout_s)
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(path), "--out", str(tmp_path / "run"),
               "--duration", "60"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: ticks_so_far(tmp_path / "run") >= 500, lambda: process.poll() is None)
            echo = [p for p in children(process.pid) if "echo.c" in Path(f"/proc/{p}/cmdline").read_text()]
            os.kill(echo[0], number)
            assert process.wait(PATIENCE_S) == 1
        finally:
            process.kill()
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.stats is not None and text in info.stats.safe_state.cause


@pytest.mark.usefixtures("multicast")
def test_a_unit_that_gives_no_value_does_not_let_the_rig_begin(tmp_path: Path) -> None:
    path = echo_rig(tmp_path)
    source = tmp_path / "echo.c"
    source.write_text(source.read_text().replace("(void)e; out", "for (;;) { } (void)e; out"))
    with pytest.raises(tl.TorqueloopError, match="control unit echo has given no values at its actuators within 2 s"):
        run_rig(path, RunSpec("real", 2.0, tmp_path / "run", overrides={"ecu.echo.start_timeout_s": 2.0}))


@pytest.mark.usefixtures("multicast")
def test_the_gearbox_with_solenoids_shifts_on_the_real_clock_as_on_the_virtual_one(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    patient = [p for p in patient_edits() if "powertrain" not in p and "ecu.tcu" not in p]
    rig = CONFIGS / "rigs" / "desk_mb_7226_solenoids.toml"
    lines = [f'extends = "{rig}"', *patient, "ecu.egs.pins_timeout_s = 60.0"]
    lines.append("bus.car.rx_timeout_s = { GS_218 = 60.0, GS_338 = 60.0 }")
    # nor does the control unit take a rig that is not run for one that is silent
    source = (CONFIGS / "examples" / "external" / "mb_7226.c").read_text()
    assert "#define SILENT_S 0.2\n" in source
    (tmp_path / "egs.c").write_text(source.replace("#define SILENT_S 0.2\n", "#define SILENT_S 60.0\n"))
    lines.append('ecu.egs.start = "egs.c"')
    path.write_text("\n".join(lines))
    began, late_s = {}, 0.0
    for clock in ("virtual", "real"):
        result = run_rig(path, RunSpec(clock, 6.5, tmp_path / clock))
        signals = tl.read_run(result.out)
        time_s = signals.signal("rig.time")
        began[clock] = [float(time_s[np.flatnonzero(signals.signal(f"egs.{pin}"))[0]]) for pin in ("y4", "y3")]
        assert not result.stats.safe_state.latched
        late_s += 1e-3 * result.stats.participants["egs"].reported.get("lateness", {}).get("max_ms", 0.0)
    # each solenoid is switched on for the first time: garage shift, 1-2; later by as much as the unit was not run
    np.testing.assert_allclose(began["real"], began["virtual"], atol=0.5 + late_s)
    assert began["virtual"] == sorted(began["virtual"])


def test_a_kind_that_needs_the_virtual_clock_is_refused_before_anything_starts(tmp_path: Path) -> None:
    rig = CONFIGS / "examples" / "external" / "flywheel_on_tree.toml"
    pytest.importorskip("mujoco")
    with pytest.raises(ConfigError, match="a tree of bodies runs on the virtual clock only"):
        run_rig(rig, RunSpec("real", 1.0, tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    assert check_file(rig).text.endswith("; --clock virtual only: a tree of bodies runs on the virtual clock only")
    assert "--clock" not in check_file(CONFIGS / "rigs" / "desk_mb_7226_solenoids.toml").text


def test_a_process_without_the_memory_of_its_pins_says_so() -> None:
    setup = EcuSetup("u", 1e-3, sensors=(Pin("a", "1"),))
    with pytest.raises(ConfigError, match="control unit 'u' has pins, and only a rig that starts its process"):
        unit_loop("soft_tcu", setup)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
def test_the_shift_controller_with_pins_drives_as_the_one_on_the_bus(tmp_path: Path) -> None:
    examples, rigs = CONFIGS / "examples" / "external", CONFIGS / "rigs"
    bus = {"ecu.tcu.kind": "library", "ecu.tcu.start": str(examples / "shift_controller.c"),
           "ecu.tcu.options.period_s": 5e-3}  # fmt: skip
    ways = {"bus": (rigs / "desk_4hp22_solenoids.toml", bus), "pins": (examples / "desk_4hp22_pins.toml", {})}
    shifts, drives = {}, {}
    for name, (rig, overrides) in ways.items():
        result = run_rig(rig, RunSpec("virtual", 20.0, tmp_path / name, overrides=overrides))
        log = (result.out / "tcu.log").read_text()
        found = re.findall(r"t = ([\d.]+) s: (\d -> \d)", log)
        shifts[name] = ([gears for _, gears in found], np.array([float(t) for t, _ in found]))
        drives[name] = tl.read_run(result.out)
        assert not result.stats.safe_state.latched
    assert shifts["pins"][0] == shifts["bus"][0] == ["0 -> 1", "1 -> 2", "2 -> 3", "3 -> 4"]
    # a frame is up to two cycles of 10 ms and 5 ms old, and a period of the unit is 5 ms
    np.testing.assert_allclose(shifts["pins"][1], shifts["bus"][1], atol=0.03)
    for what in ("car.v", "turbine.w"):
        pins, other = (drives[name].signal(what) for name in ("pins", "bus"))
        np.testing.assert_allclose(pins[-1], other[-1], rtol=2e-3)
