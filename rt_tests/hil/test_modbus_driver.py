"""The driver of Modbus modules (configs/examples/io/modbus.c, slow.h); the module is a process on a pseudo-terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from io_help import patient_edits, real, started
from modbus_slave import SIZE
from rig_help import rig_file
from waiting import PATIENCE_S, wait_for

import torqueloop as tl
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.live_run import StartError
from torqueloop.hil.rig.run.session import RunSpec, run_rig

#: a round has seven requests of 4 ms; a pseudo-terminal has no parity
TABLE = """
[io.module]
library = "modbus"
limit_us = 0
stale_ticks = {stale_ticks}

[io.module.options]
device = "{device}"
baud = 115200
parity = "N"
unit = 7
timeout_ms = {timeout_ms}

[io.module.inputs]
back_a = {{ pin = "ai 3:0.001", unit = "V", high = 20.0 }}
back_b = {{ pin = "ai 4:0.01", unit = "1", low = -300.0, high = 300.0 }}
held_a = {{ pin = "hr 3:0.001", unit = "V", high = 20.0 }}
bit_x = {{ pin = "di 0" }}
bit_y = {{ pin = "di 9" }}

[io.module.outputs]
a = {{ pin = "ao 3:0.001", signal = "rig.time", gain = 5.0, unit = "V", high = 20.0, safe = 1.25 }}
b = {{ pin = "ao 4:0.01", signal = "rig.time", gain = -50.0, unit = "1", low = -300.0, high = 300.0, safe = -7.5 }}
x = {{ pin = "do 0", signal = "driver.brake_switch" }}
y = {{ pin = "do 9", signal = "driver.kickdown", safe = 1.0 }}
"""
#: what the module has in the safe state: coils 0 and 9, registers 3 and 4
SAFE = (0, 1, 1250, 65536 - 750)


@dataclass
class Slave:
    process: subprocess.Popen[bytes]
    folder: Path

    def outputs(self) -> list[tuple[int, ...]]:
        """Coils 0 and 9, registers 3 and 4, of each request that writes."""
        rows = [[int(w) for w in line.split()] for line in (self.folder / "log").read_text().split("\n")[:-1]]
        return [(row[0], row[9], row[SIZE + 3], row[SIZE + 4]) for row in rows]

    def works(self, rig: subprocess.Popen[bytes]) -> None:
        """Wait until the rig has written for a while; until it is armed, it writes safe values."""
        wait_for(
            lambda: sum(row != SAFE for row in self.outputs()) >= 150,
            lambda: rig.poll() is None and self.process.poll() is None,
        )

    def becomes_safe(self) -> None:
        """Wait for the safe values."""
        wait_for(lambda: self.outputs()[-1] == SAFE, lambda: self.process.poll() is None)


def latched(out: Path) -> bool:
    """The rig has gone into its safe state, as its run.json says."""
    info = read_run_info(out)
    return info is not None and info.stats is not None and info.stats.safe_state.latched


@pytest.fixture
def slave(tmp_path: Path) -> Iterator[Slave]:
    words = [sys.executable, str(Path(__file__).with_name("modbus_slave.py"))]
    with subprocess.Popen([*words, str(tmp_path / "line"), str(tmp_path / "log")]) as process:
        try:
            wait_for((tmp_path / "line").exists, lambda: process.poll() is None)
            yield Slave(process, tmp_path)
        finally:
            process.kill()


def module_rig(
    folder: Path, *edits: str, stale_ticks: int = 50_000, timeout_ms: int = 1000, old: str = "", new: str = ""
) -> Path:
    """The desk rig with the module; one that a busy machine keeps from answering for a second has not failed."""
    edits = patient_edits("clock.grace_s = 0.0", *edits)
    table = TABLE.format(device=folder / "line", stale_ticks=stale_ticks, timeout_ms=timeout_ms)
    assert old in table
    return rig_file(folder, "record.every = 1", *edits, add=table.replace(old, new, 1))


@pytest.mark.usefixtures("multicast")
def test_values_go_to_the_module_and_come_back_in_their_places(tmp_path: Path, slave: Slave) -> None:
    result = real(module_rig(tmp_path), 2.5)
    assert not result.stats.safe_state.latched and not result.stats.degraded
    signals = tl.read_run(result.out)
    t, a, b, held, x, y = (
        signals.signal(name)[500:]
        for name in ("rig.time", "io.module.back_a", "io.module.back_b", "io.module.held_a", "io.module.bit_x",
                     "io.module.bit_y")
    )  # fmt: skip
    # it is some rounds old, never new, and the two registers of one request are of one time
    assert np.all(np.diff(a) >= 0.0) and np.all(a < 5.0 * t) and a[-1] > 5.0 * t[0]
    np.testing.assert_allclose(b, -10.0 * a, atol=0.011)
    assert np.all(np.abs(held - a) <= 20.0) and np.all(np.diff(held) >= 0.0) and held[-1] > 5.0 * t[0]
    brake, kick = (signals.signal(f"driver.{name}")[500:] for name in ("brake_switch", "kickdown"))
    assert x[0] == brake[0] == 1.0 and x[-1] == brake[-1] == 0.0 and y[0] == kick[0] == 0.0 and y[-1] == kick[-1] == 1.0
    io = result.stats.io["module"]
    assert io.failed == 0 and 0 < io.stale_ticks < io.reads
    slave.becomes_safe()
    rows = slave.outputs()
    # a round writes three times; safe values come before the first tick and after the last one, and at no time between
    running = [k for k, row in enumerate(rows) if row != SAFE and k > 2]
    assert rows[2] == rows[-1] == SAFE and SAFE not in rows[running[0] : running[-1]] and len(running) > 30


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize(("number", "stale_ticks", "timeout_ms", "cause"), [
    (signal.SIGKILL, 50_000, 1000, "module: (reading|writing) has failed"),
    (signal.SIGSTOP, 50_000, 1000, "module: (reading|writing) has failed"),
    (signal.SIGSTOP, 1500, 1000, "module: its values are old"),
    (signal.SIGUSR1, 50_000, 500, "module: (reading|writing) has failed"),
], ids=["killed", "frozen", "frozen, few stale ticks", "too slow"])  # fmt: skip
def test_a_module_that_does_not_answer_latches_by_name(
    tmp_path: Path, slave: Slave, number: int, stale_ticks: int, timeout_ms: int, cause: str
) -> None:
    rig = module_rig(tmp_path, "safe_state.stop_after_s = 1.0", stale_ticks=stale_ticks, timeout_ms=timeout_ms)
    with started(rig) as process:
        slave.works(process)
        slave.process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.stats is not None and process.returncode == 1
    assert info.stats.safe_state.kind == "io" and re.search(cause, info.stats.safe_state.cause)
    signals = tl.read_run(tmp_path / "run")
    assert [signals.signal(f"io.module.{name}")[-1] for name in "xyab"] == [0.0, 1.0, 1.25, -7.5]
    if number != signal.SIGKILL:
        # a module that is slow takes them, though the rig does not hear its answers; a frozen one, when it goes on
        slave.process.send_signal(signal.SIGCONT)
        slave.becomes_safe()


@pytest.mark.usefixtures("multicast")
def test_a_frozen_module_that_goes_on_gets_the_safe_values(tmp_path: Path, slave: Slave) -> None:
    with started(module_rig(tmp_path, "safe_state.stop_after_s = -1.0", stale_ticks=1500)) as process:
        slave.works(process)
        slave.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: latched(tmp_path / "run"), lambda: process.poll() is None)
        assert slave.outputs()[-1] != SAFE
        slave.process.send_signal(signal.SIGCONT)
        slave.becomes_safe()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.stats is not None and info.stats.safe_state.kind == "io"
    assert slave.outputs()[-1] == SAFE


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rig_that_dies_or_stands_still_leaves_safe_values(tmp_path: Path, slave: Slave, number: int) -> None:
    # a machine that withholds its processors for a second is not taken for a rig that stands still
    with started(module_rig(tmp_path, "safe_state.watchdog_s = 2.0")) as process:
        slave.works(process)
        assert slave.outputs()[-1] != SAFE
        os.kill(process.pid, number)
        # the line belongs to one process: the guardian kills the one that stands still
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        said = process.communicate()[0].decode()
    assert "I/O device module: the rig has died, its outputs are safe" in said
    assert slave.outputs()[-1] == SAFE


@pytest.mark.parametrize(("old", "new", "text"), [
    ("unit = 7", "unit = 8", "unit 8 on .*: no answer"),
    ("ai 3:0.001", "ai 32:0.001", "the module refuses a pin"),
    ("ai 3:0.001", "ai 3", "channel back_a, pin ai 3: inputs: di 3"),
    ("ai 3:0.001", "ao 3:0.001", "channel back_a, pin ao 3:0.001: inputs: di 3"),
    ("high = 20.0", "high = 70.0", "channel back_a, .*: low .. high is more than its register has"),
    ("baud = 115200", "baud = 115201", "baud is 9600 to 115200"),
    ("unit = 7", "node = 7", "unknown key node"),
], ids=lambda word: str(word)[:14])  # fmt: skip
def test_what_the_module_has_not_is_refused(tmp_path: Path, slave: Slave, old: str, new: str, text: str) -> None:
    with pytest.raises(StartError, match=text):
        real(module_rig(tmp_path, timeout_ms=100, old=old, new=new))


def test_it_refuses_the_virtual_clock(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="needs the real clock"):
        run_rig(module_rig(tmp_path), RunSpec("virtual", 0.1, tmp_path / "run"))
