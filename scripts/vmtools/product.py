"""The files of the project and of what it uses, for a machine that sees nothing else."""

from __future__ import annotations

import compileall
import subprocess
import sys
from pathlib import Path

from vmtools.errors import Unavailable
from vmtools.packages import find
from vmtools.preload import program_files, python_files

ROOT = Path(__file__).resolve().parents[2]
#: a run on the virtual clock imports what a run on the real one imports, also late
#: asammdf: python-can imports it if it is there, which is half of all start-up; the machine does not get it
_PROBE = """
import sys, tempfile
sys.path[:0] = {folders!r}
sys.modules["asammdf"] = None
import stages.inside, rich._emoji_codes, torqueloop.hil.cli.watch, torqueloop.hil.watch.server
import can.interfaces.socketcan, torqueloop.hil.ecu.soft_tcu, torqueloop.hil.vehicle.model
from torqueloop.hil.ecu.soft_tcu import soft_tcu
from torqueloop.hil.rig.run.replay import replay
import torqueloop.hil.io.guardian
from pathlib import Path
from stages.rigs import write_rig
with tempfile.TemporaryDirectory() as t:
    rig = write_rig(Path(t), stages.inside.CONFIGS, ecu=True)
    unit = soft_tcu(stages.inside.TCU, stages.inside.CONFIGS / "can" / "tcu_4hp22.dbc")
    stages.inside.run_rig(rig, stages.inside.RunSpec("virtual", 0.02, Path(t) / "r", ecus=dict(tcu=unit)))
    replay(Path(t) / "r")
{more}
"""
_DATA = {".py", ".pyc", ".so", ".toml", ".dbc", ".csv", ".json", ".h", ".html", ".js", ".css"}
PROGRAMS = (
    "env",
    "sh",
    "ip",
    "cyclictest",
    "candump",
    "cansend",
    "cangen",
    "canplayer",
    "isotpsend",
    "isotprecv",
    "tc",
)


def installed() -> Path:
    """Folder of the package that the running Python imports."""
    code = "import torqueloop; print(list(torqueloop.__path__)[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "scripts")
    if done.returncode != 0:
        raise Unavailable(f"torqueloop is not installed for {sys.executable}")
    return Path(done.stdout.strip())


def files(more: str = "") -> list[Path]:
    """Everything needed to run rigs, with clients on the bus. more: code whose imports are needed as well."""
    package = installed()
    compileall.compile_dir(package, quiet=2)
    inside = [ROOT / "rt_tests" / name for name in ("vm", "judges")]
    for folder in inside:
        compileall.compile_dir(folder, quiet=2)
    found = python_files(_PROBE.format(folders=[str(p) for p in inside], more=more))
    for folder in [package, *(p for p in package.iterdir() if p.is_dir()), *inside]:
        found += [p for p in folder.rglob("*") if p.suffix in _DATA]
    found += program_files(list(PROGRAMS))
    return found


def c_programs(folder: Path) -> Path:
    """The C programs of rt_tests/vm, compiled."""
    compiler = find("cc") or find("gcc")
    if compiler is None:
        raise Unavailable("no C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    inside, examples = ROOT / "rt_tests" / "vm", ROOT / "configs" / "examples"
    programs = [inside / f"{name}.c" for name in ("can_echo", "can_probe", "canopen_module", "io_driver")]
    libraries = [*(examples / "io").glob("*.c"), inside / "i2c_pins.c"]
    libraries.append(examples / "external" / "shift_controller_pins.c")
    headers = ROOT / "hil" / "ecu" / "include"
    for source in (*programs, *libraries):
        shared = ["-shared", "-fPIC"] if source in libraries else []
        target = folder / (source.stem + (".so" if shared else ""))
        words = [compiler, "-O2", *shared, f"-I{headers}", "-o", str(target), str(source), "-lm", "-ldl"]
        subprocess.run(words, check=True)
    return folder
