"""Processes of ours use one thread for linear algebra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from torqueloop.hil.common.blas_threads import ONE_THREAD, with_one_thread
from torqueloop.hil.link.child import Child

THREADS = "import os, numpy; numpy.linalg.eigvalsh(numpy.eye(300)); print(len(os.listdir('/proc/self/task')))"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads of a process are listed under /proc only")
def test_the_command_line_sets_it_before_numpy_is_imported() -> None:
    code = f"import torqueloop.hil.cli; {THREADS}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, env=_without()).stdout  # fmt: skip
    assert done.strip() == "1"


def test_what_the_user_has_set_stays() -> None:
    assert with_one_thread({"OPENBLAS_NUM_THREADS": "7", "A": "b"}) == {
        **ONE_THREAD,
        "OPENBLAS_NUM_THREADS": "7",
        "A": "b",
    }


def test_processes_of_a_rig_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tells_threads.py").write_text("import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ONE_THREAD:
        monkeypatch.delenv(name, raising=False)
    child = Child("tells_threads", [], tmp_path / "log")
    child.process.wait(PATIENCE_S)
    assert child.lines() == ["1"]
    child.end(3.0)


def _without() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
