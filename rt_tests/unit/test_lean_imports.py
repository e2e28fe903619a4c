"""asammdf and python-can stay out of our processes until they are needed, and work then; other programs see nothing of
it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import can
import pytest
from waiting import PATIENCE_S

pytest.importorskip("asammdf", reason="asammdf is not installed: there is nothing to put off")

ROOT = Path(__file__).resolve().parents[2]
PUT_OFF = "from torqueloop.hil.common.lean_imports import put_off_asammdf, with_asammdf; put_off_asammdf()\n"


def fresh(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_python_can_starts_without_it_and_reads_and_writes_mf4_when_asked(tmp_path: Path) -> None:
    code = PUT_OFF + (
        "import sys, can\n"
        "assert 'asammdf' not in sys.modules and 'pandas' not in sys.modules\n"
        "writer, reader = can.MF4Writer, can.MF4Reader\n"
        "assert with_asammdf() and 'asammdf' in sys.modules\n"
        "with writer(sys.argv[1]) as log:\n"
        "    log.on_message_received(can.Message(timestamp=1.0, arbitration_id=7, data=b'ab', is_extended_id=False))\n"
        "with can.LogReader(sys.argv[1]) as log:\n"
        "    print([m.arbitration_id for m in log])\n"
    )
    assert fresh(code, str(tmp_path / "bus.mf4")) == "[7]"


def test_others_find_it_as_ever() -> None:
    assert fresh(PUT_OFF + "import can, asammdf\nprint(asammdf.MDF.__name__)") == "MDF"
    assert fresh("import torqueloop, can, can.io.mf4 as m\nprint(m.asammdf is not None)") == "True"


#: a process that knows no CAN and no file has nothing to put off
PASSES_BYTES = {"torqueloop.hil.link.front"}


def started() -> list[str]:
    """Modules that a process is started from: the command, and what `Child` is given in any file of hil/."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "hil").rglob("*.py")))
    return ["torqueloop.hil.cli", *sorted(set(re.findall(r'Child\("([\w.]+)"', text)))]


def test_the_modules_of_all_processes_are_found() -> None:
    assert {"torqueloop.hil.rig.run.participants", "torqueloop.hil.ecu.host"} <= set(started())


@pytest.mark.proof
@pytest.mark.parametrize("module", started())
def test_processes_of_ours_put_it_off(module: str) -> None:
    code = (
        "import runpy, sys\n"
        f"sys.argv = [{module!r}, '--help']\n"
        f"try: runpy.run_module({module!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        + ("" if module in PASSES_BYTES else "import torqueloop.hil.ecu.soft_tcu\n")
        + "print('can' in sys.modules)\n"
        + ("" if module in PASSES_BYTES else "import can, cantools\nprint(cantools.tester.Tester.__name__)\n")
        + "print('asammdf' in sys.modules)"
    )
    told = ["False", "False"] if module in PASSES_BYTES else ["False", "Tester", "False"]
    assert fresh(code).splitlines()[-len(told) :] == told


def test_the_command_scans_a_bus_log_in_mf4(tmp_path: Path) -> None:
    log = tmp_path / "bus.mf4"
    with can.MF4Writer(str(log)) as writer:
        for k in range(20):
            message = can.Message(timestamp=1.0 + 0.01 * k, arbitration_id=0x7AB, is_extended_id=False)
            writer.on_message_received(message)
    done = subprocess.run(
        [sys.executable, "-m", "torqueloop.hil.cli", "bus", "scan", "--log", str(log)], capture_output=True, text=True
    )
    assert done.returncode == 0 and "7ab" in done.stdout.lower(), done.stdout + done.stderr
