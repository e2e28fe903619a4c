"""A tick asks for no memory, gives none back and takes no page fault: counted, on every way a tick can run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rig_help import rig_file

HERE = Path(__file__).resolve().parent
KINDS = ("malloc", "calloc", "realloc", "free", "aligned", "mmap", "munmap", "brk")
#: nobody may be missed when nobody is there, and the engine is left idling
ALONE = (
    "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 60.0",
    "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 60.0",
    "vehicle.age_limit_s = 60.0",
    "driver.pedal = [[0.0, 0.0], [1.5, 0.0], [1.7, 0.0]]",
)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """malloc_counter.c, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc) to compile the malloc counter with")
    if not sys.platform.startswith("linux") or "glibc" not in " ".join(
        map(str, os.confstr("CS_GNU_LIBC_VERSION").split())
    ):
        pytest.skip("the malloc counter needs LD_PRELOAD and glibc")
    made = tmp_path_factory.mktemp("malloc") / "malloc_counter.so"
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Werror"]
    subprocess.run([compiler, *flags, "-o", made, HERE / "malloc_counter.c", "-ldl"], check=True)
    return made


def probe(counter: Path, rig: Path, what: str, seconds: float) -> dict[str, Any]:
    """What malloc_probe.py prints."""
    command = [sys.executable, str(HERE / "malloc_probe.py"), str(rig), str(rig.parent / what), what, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": str(counter)})
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def none(found: dict[str, Any]) -> dict[str, int]:
    """Only what was counted, so that a failure names it."""
    return {kind: found["counts"][kind] for kind in KINDS if found["counts"][kind]}


def test_the_counter_sees_what_is_planted(counter: Path, tmp_path: Path) -> None:
    counts = probe(counter, rig_file(tmp_path), "planted", 0)["counts"]
    assert {k: n for k, n in counts.items() if n} == {
        "malloc": 1,
        "calloc": 1,
        "realloc": 1,
        "free": 1,
        "brk": 1,
        "marks": 2,
    }


@pytest.mark.proof
def test_many_ticks_in_one_call_allocate_nothing_and_take_no_fault(counter: Path, tmp_path: Path) -> None:
    """10 000 ticks of the virtual clock with no Python in between. A fault that a tick takes comes in each of the runs;
    one that the kernel causes, which moves a page, does not."""
    faults = []
    for attempt in range(8):
        (tmp_path / str(attempt)).mkdir()
        found = probe(counter, rig_file(tmp_path / str(attempt), *ALONE), "virtual", 10.0)
        assert found["ticks"] == 10_000 and found["counts"]["marks"] > 5 * found["ticks"]
        assert none(found) == {}
        faults.append(found["faults"])
        if faults[-1] == 0:
            break
    assert min(faults) == 0, faults


@pytest.mark.proof
def test_every_tick_of_a_drive_allocates_nothing(counter: Path, tmp_path: Path) -> None:
    """Replay of 12 s with standing start, two shifts, frames and vehicle values."""
    found = probe(counter, rig_file(tmp_path), "replay", 12.0)
    assert found["ticks"] == 12_000 and found["events"] > 10 and found["rx_frames"] > 4000
    assert none(found) == {}


@pytest.mark.proof
def test_the_loop_on_the_real_clock_allocates_nothing(counter: Path, tmp_path: Path, multicast: None) -> None:
    """The desk rig with its participants; one mark per wake at least."""
    found = probe(counter, rig_file(tmp_path, own_bus=True), "real", 4.0)
    assert found["state"] == "ended" and found["ticks"] > 1000, found
    assert found["counts"]["marks"] > 1000
    assert none(found) == {}
