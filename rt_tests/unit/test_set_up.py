"""Libraries are set up by uv, and by pip where uv cannot be had or does not find what pip finds (scripts/_venv.sh)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
#: notes its name and arguments; the text of a program on its input goes to the Python of this test
PROGRAM = """#!/bin/sh
echo "{name} $*" >> "{log}"
case "$1" in -) exec "{python}" "$@" ;; esac
{end}
"""

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed: apt-get install bash"),
]


class SetUp:
    """A repository with the script, and an environment whose programs only say what they are asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "log"
        (root / "scripts").mkdir()
        (root / ".venv" / "bin").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "_venv.sh", root / "scripts")
        shutil.copy(ROOT / "pyproject.toml", root)

    def program(self, name: str, end: str) -> None:
        path = self.root / ".venv" / "bin" / name
        path.write_text(PROGRAM.format(name=name, log=self.log, python=sys.executable, end=end))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def install(self, what: str) -> tuple[int, list[str]]:
        """Status, and what was asked for in this order."""
        command = ["bash", "-c", f"source scripts/_venv.sh; install_listed {what}"]
        # nothing of this computer's settings of pip; no network is needed, as nothing here is a real pip or uv
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
        done = subprocess.run(command, cwd=self.root, env=clean, capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, self.log.read_text().splitlines()


@pytest.fixture
def set_up(tmp_path: Path) -> SetUp:
    return SetUp(tmp_path)


def installs(asked: list[str]) -> list[str]:
    """Programs that were asked to install the list of the build."""
    return [line.split()[0] for line in asked if line.endswith("-r .venv/build.txt")]


def test_uv_that_finds_everything_leaves_nothing_to_pip(set_up: SetUp) -> None:
    set_up.program("python", "exit 0")
    set_up.program("uv", "exit 0")
    status, asked = set_up.install("build")
    assert status == 0 and installs(asked) == ["uv"]
    listed = (set_up.root / ".venv" / "build.txt").read_text()
    assert "cython" in listed.lower() and "pytest" not in listed


def test_pip_stands_in_where_uv_fails(set_up: SetUp) -> None:
    set_up.program("python", "exit 0")
    set_up.program("uv", "echo 'no such index' >&2; exit 2")
    status, asked = set_up.install("build")
    assert status == 0 and installs(asked) == ["uv", "python"]
    assert "-m pip install" in asked[-1]
    assert "no such index" in (set_up.root / ".venv" / "uv.log").read_text()


def test_pip_stands_in_where_uv_cannot_be_had(set_up: SetUp) -> None:
    """pip does not find uv; what it does find is installed all the same."""
    set_up.program("python", 'case "$*" in *" uv") exit 1 ;; esac; exit 0')
    status, asked = set_up.install("build")
    assert status == 0 and installs(asked) == ["python"]
    assert any(line.endswith(" uv") for line in asked)


def test_a_list_that_neither_installs_is_an_error(set_up: SetUp) -> None:
    set_up.program("python", 'case "$*" in *pip*install*) exit 1 ;; esac; exit 0')
    set_up.program("uv", "exit 2")
    status, asked = set_up.install("dev")
    assert status != 0 and [line.split()[0] for line in asked if line.endswith("-r .venv/dev.txt")] == ["uv", "python"]
    assert "pytest" in (set_up.root / ".venv" / "dev.txt").read_text()


def test_the_index_of_pip_is_that_of_uv(set_up: SetUp) -> None:
    index = "https://index.example/simple"
    set_up.program("python", f'case "$*" in *"config get global.index-url") echo {index} ;; esac; exit 0')
    set_up.program("uv", "exit 0")
    _, asked = set_up.install("build")
    assert any(line.startswith("uv ") and f"--index-url {index}" in line for line in asked)


#: what `scripts/run` starts, and what came of it: machine in time, status of the run -> commands, status
RUNS = [
    ([], True, 0, ["run desk_4hp22"], 0),
    ([], False, 0, ["run desk_4hp22 --clock virtual"], 0),
    ([], True, 3, ["run desk_4hp22", "run desk_4hp22 --clock virtual"], 0),
    ([], True, 1, ["run desk_4hp22"], 1),
    (["--duration", "2"], True, 3, ["run desk_4hp22 --duration 2", "run desk_4hp22 --clock virtual --duration 2"], 0),
    (["--out", "x"], True, 3, ["run desk_4hp22 --out x"], 3),
    (["--clock", "real"], False, 3, ["run desk_4hp22 --clock real"], 3),
]


@pytest.mark.parametrize(("given", "in_time", "status", "started", "ended"), RUNS)
def test_the_first_command_ends_well_where_the_machine_withholds_its_processors(
    given: list[str], in_time: bool, status: int, started: list[str], ended: int, tmp_path: Path
) -> None:
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "run", tmp_path / "scripts")
    (tmp_path / "scripts" / "_venv.sh").write_text('cd "$(dirname "${BASH_SOURCE[0]}")/.."; set -euo pipefail\n'
                                                   "ensure_venv() { :; }\n")  # fmt: skip
    (tools / "python").write_text(f"#!/bin/sh\nexit {0 if in_time else 1}\n")
    (tools / "torqueloop").write_text(
        f'#!/bin/sh\necho "$*" >> log\ncase "$*" in *"--clock virtual"*) exit 0 ;; esac\nexit {status}\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    done = subprocess.run(
        ["bash", str(tmp_path / "scripts" / "run"), *given], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (tmp_path / "log").read_text().splitlines() == started
    assert done.returncode == ended
    assert ("virtual clock" in done.stderr) == ("--clock virtual" in started[-1])
