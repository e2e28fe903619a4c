"""Rules of the source tree: imports go one way, files stay small, nothing refers to the machine it was written on."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("torqueloop", "core", "cython_kernels", "hil", "configs", "rt_tests", "scripts", "docs")
ROOMS = ("core", "cython_kernels", "hil", "configs")
CYTHON = (".pyx", ".pxd", ".pxi")
#: written by the build, see setup.py
GENERATED = ROOT / "cython_kernels" / "step" / "topologies"

#: what each room may import of the package; hil -> core -> cython_kernels
MAY_IMPORT = {
    # hil: connect only, imported when it is first used
    "torqueloop": {"core", "hil"},
    "core": {"core", "configs"},
    "cython_kernels": {"cython_kernels"},
    "hil": {"hil", "core", "cython_kernels", "configs"},
    "configs": set(),
}
#: what each group of hil may import of the others; what lies above them (cli, check, scenario) is in none
HIL_GROUPS: dict[str, set[str]] = {
    "common": set(),
    "results": {"common"},
    "can": {"common", "results"},
    "link": {"common", "results"},
    "realtime": {"results"},
    "record": {"common", "results"},
    # what every drive is held to: from files, in the tick, over a recording
    "monitors": {"results"},
    # figures as data, the browser's plots
    "views": set(),
    "report": {"common", "monitors", "record", "results", "views"},
    "control": {"link", "results"},
    "ecu": {"can", "common", "link", "results"},
    "vehicle": {"common", "link", "results"},
    # trees of bodies from files; a peer of the rig
    "multibody": {"common", "ecu"},
    "io": {"ecu", "link"},
    # tables of rig files
    "rig/schema": {"can", "common", "ecu", "link", "monitors", "results"},
    # signal table, plan of a rig, and the kinds of devices: tables, signals, plan and part of the tick
    "rig/devices": {"can", "common", "ecu", "io", "link", "results", "rig/schema"},
    # names to slots; participants are made to check their files
    "rig/resolve": set("can common ecu link monitors results vehicle".split() + ["rig/schema", "rig/devices"]),
    "rig/assemble": set("can common ecu link monitors realtime results vehicle rig/schema rig/devices".split()),
    "rig/online": {"common", "control", "rig/schema", "rig/devices", "rig/resolve", "rig/assemble"},
    "rig/run": set(
        "can common control ecu io link realtime record report results vehicle".split()
        + "rig/schema rig/devices rig/resolve rig/assemble rig/online".split()
    ),
    "doctor": {"io", "link", "realtime", "rig/schema", "rig/devices", "rig/resolve"},
    "scenario": {"common", "record", "report", "results", "rig/schema", "rig/devices", "rig/resolve", "rig/run"},
    "study": {
        "common",
        "record",
        "report",
        "results",
        "rig/schema",
        "rig/devices",
        "rig/resolve",
        "rig/run",
        "scenario",
        "views",
    },
    # writes files; what checks them is above it
    "new": {"can", "common", "ecu", "vehicle"},
    "runs": {"common", "ecu", "record", "report", "results", "rig/run", "rig/assemble", "views"},
    # a page in the browser
    "watch": {"can", "control", "link", "record", "views"},
    # a run as a picture that turns
    "animate": {"record", "report", "runs", "rig/schema", "rig/devices", "rig/resolve", "views"},
    # a rig in the hands of a test
    "testing": {"common", "record", "report", "rig/schema", "rig/devices", "rig/resolve", "rig/run", "scenario"},
    # pages and schemas of the configuration files
    "catalogue": set(
        "can common ecu monitors multibody new rig/schema rig/devices rig/resolve scenario study vehicle".split()
    ),
    "cli": set(
        "animate can catalogue common control doctor ecu link multibody new record report results runs scenario".split()
        + "rig/schema rig/devices rig/resolve rig/assemble rig/run study vehicle views watch".split()
    ),
}
#: what each folder of core may import of the others (and of its own root: nothing is there). Imports for type checkers
#: only, and those inside functions, count like all others
CORE_GROUPS: dict[str, set[str]] = {
    # words, tables, parameters, what a component is, the graph, the builder, the reader of files
    "describe": set(),
    "signals": {"describe"},
    "components": {"describe", "signals"},
    # knows parts and forms, no kind of component
    "compile": {"describe"},
    "simulate": {"describe", "signals", "components", "compile"},
    "controls": {"describe", "signals", "simulate"},
    "analyse": {"describe", "components", "compile", "simulate"},
    "reference": {"describe", "signals", "components", "compile"},
    # trees of bodies on joints with drivelines on them; Pinocchio, when one is built
    "multibody": {"describe", "signals", "compile"},
}
#: what each folder of the kernels may import of the others
KERNEL_GROUPS: dict[str, set[str]] = {
    # structs of a model and a state, made from records; laws of rows
    "model": set(),
    # time, threads, atomics, histograms
    "clock": set(),
    "rings": {"clock"},
    # letter boxes and messages between the rig and a process it has started
    "link": {"clock", "rings"},
    # motion of the car beside the rig: a peer of a lockstep
    "vehicle": {"link"},
    "can": {"clock", "rings"},
    # matrices of who sticks, the boxed problem
    "locks": {"model"},
    "step": {"locks", "model"},
    # owners of a model and a state
    "kernel": {"clock", "locks", "model", "step"},
    # laws of controllers
    "controls": {"model"},
    "tick": {"can", "clock", "controls", "kernel", "model", "rings"},
    "probes": {"can", "clock", "kernel", "locks", "model", "rings", "tick"},
}
#: the only modules of core that know the kernels, and why
CORE_USES_KERNELS = {
    "core/simulate/offline.py": "runs the kernel: the offline simulation",
    "core/reference/case_trajectory.py": "runs reference cases in parts between events, below Simulation",
    "core/compile/specialise.py": "writes the source of precompiled steps; needs the signature they register under",
    "core/compile/readout_source.py": "writes the source of precompiled outputs from the arrays of a model",
    "core/compile/user_steps.py": "builds precompiled steps of a user's own drivelines, and says where they lie",
    "core/compile/record_sources.py": "writes what the kernels generate from their records",
    "core/compile/compiler.py": "ModelArrays: what the kernels take",
    "core/compile/element_arrays.py": "records of the kernels",
    "core/compile/thermal.py": "records of the kernels",
    "core/controls/base.py": "controllers whose laws are compiled, for a rig's tick and beside a simulation",
    "core/multibody/integrate.py": "the boxed problem of who sticks",
    "core/multibody/shafts.py": "the law of a shaft between joints",
}
#: a room where these turn up has left its task: core has no clocks, sockets, threads; a kernel module no I/O at all
IO = {
    "asyncio",
    "can",
    "cantools",
    "msgpack",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "threading",
    "time",
    "zmq",
}
FORBIDDEN = {"core": IO, "cython_kernels": IO | {"io", "logging", "os", "pathlib", "select"}}
LONGEST = 500
#: files that may be longer, and why
LONG_FILES = {f"cython_kernels/model/{name}.pxi": "generated" for name in ("records", "records_bind")}


@dataclass(frozen=True)
class Import:
    """One module that a file imports or cimports."""

    file: str
    line: int
    module: str


def python_imports(path: Path, name: str) -> list[Import]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(name, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: relative import"
            module = node.module or ""
            # `from torqueloop import core` imports torqueloop.core, and likewise modules out of folders
            folder = ROOT.joinpath(*module.split(".")[1:]) if module.startswith("torqueloop.") else ROOT
            inner = [a.name for a in node.names if (folder / a.name).is_dir() or (folder / f"{a.name}.py").is_file()]
            if module == "torqueloop" or (module.startswith("torqueloop.") and folder.is_dir() and inner):
                names = [a.name for a in node.names] if module == "torqueloop" else inner
                found += [Import(name, node.lineno, f"{module}.{n}") for n in names]
                if len(names) < len(node.names):
                    found.append(Import(name, node.lineno, module))
            else:
                found.append(Import(name, node.lineno, module))
    return found


CYTHON_IMPORT = re.compile(
    r"^\s*(?:from\s+(?P<from>[\w.]+)\s+c?import\s+(?P<names>.+)|c?import\s+(?P<plain>[\w.]+))", re.MULTILINE
)


def cython_imports(text: str, name: str) -> list[Import]:
    # docstrings are prose; the C text of `cdef extern` blocks is a docstring too
    text = re.sub(r'("""|\'\'\')(.*?)\1', lambda m: "\n" * m.group(0).count("\n"), text, flags=re.DOTALL)
    found = []
    for match in CYTHON_IMPORT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["from"] == "torqueloop":
            found += [Import(name, line, f"torqueloop.{n.split()[0]}") for n in match["names"].strip("()").split(",")]
        else:
            found.append(Import(name, line, match["from"] or match["plain"]))
    return found


def sources(*folders: str, suffixes: tuple[str, ...] = (".py", ".pyi", *CYTHON)) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts
    )


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports_of_file(path: Path) -> list[Import]:
    """Of one source, read once for all tests."""
    if path.suffix in CYTHON:
        return cython_imports(path.read_text(encoding="utf-8"), relative(path))
    return python_imports(path, relative(path))


def imports(*folders: str) -> list[Import]:
    return [found for path in sources(*folders) for found in imports_of_file(path)]


def wrong_way(found: list[Import]) -> list[str]:
    """Imports of our own rooms that go against the arrows."""
    wrong = []
    for item in found:
        room = item.file.split("/")[0]
        parts = item.module.split(".")
        if parts[0] != "torqueloop" or len(parts) == 1:
            continue
        if parts[1] not in ROOMS:
            continue  # a name of the package's root
        if parts[1] in MAY_IMPORT[room]:
            continue
        if parts[1] == "cython_kernels" and item.file in CORE_USES_KERNELS:
            continue
        wrong.append(f"{item.file}:{item.line} imports {item.module}")
    return wrong


def test_imports_go_one_way() -> None:
    found = imports(*MAY_IMPORT)
    assert len(found) > 300, "the reader of imports finds them"
    assert any(i.file.endswith(".pyx") and i.module.startswith("torqueloop.cython_kernels") for i in found)
    assert wrong_way(found) == []


def test_the_groups_of_hil_import_one_way() -> None:
    folders = {p.parent.relative_to(ROOT / "hil").as_posix() for p in (ROOT / "hil").glob("**/__init__.py")}
    assert set(HIL_GROUPS) == folders - {".", "rig"}
    assert [f.name for f in (ROOT / "hil").glob("*.py")] == ["__init__.py"]
    assert against_the_arrows_of_hil(imports("hil")) == []


def against_the_arrows_of_the_kernels(found: list[Import]) -> list[str]:
    """Imports between folders of the kernels that their graph does not have."""
    wrong = []
    for item in found:
        group, parts = item.file.split("/")[1], item.module.split(".")
        if parts[:2] == ["torqueloop", "cython_kernels"] and len(parts) > 2 and item.file.count("/") > 1:
            if parts[2] not in {group, *KERNEL_GROUPS.get(group, set())}:
                wrong.append(f"{item.file}:{item.line} imports {item.module}")
    return wrong


def test_the_folders_of_the_kernels_import_one_way() -> None:
    assert set(KERNEL_GROUPS) == {p.parent.name for p in (ROOT / "cython_kernels").glob("*/__init__.py")}
    found = imports("cython_kernels")
    assert len(found) > 100, "the reader of imports finds them"
    assert against_the_arrows_of_the_kernels(found) == []


def test_an_import_against_the_arrows_of_the_kernels_is_seen() -> None:
    text = "from torqueloop.cython_kernels.step.generic cimport advance\n"
    for place, wrong in (("locks/x.pyx", 1), ("model/x.pxd", 1), ("kernel/x.pyx", 0), ("step/topologies/x.pyx", 0)):
        assert len(against_the_arrows_of_the_kernels(cython_imports(text, f"cython_kernels/{place}"))) == wrong


@pytest.mark.parametrize("groups", [HIL_GROUPS, KERNEL_GROUPS], ids=["hil", "kernels"])
def test_the_arrows_make_no_circle(groups: dict[str, set[str]]) -> None:
    left = {group: set(others) for group, others in groups.items()}
    while left:
        free = {group for group, others in left.items() if not others & set(left)}
        assert free, f"a circle among {sorted(left)}"
        left = {group: others for group, others in left.items() if group not in free}


def group_of_hil(path: str) -> str:
    """Group of a file or module of hil, given with slashes."""
    parts = path.split("/")[1:]
    return "/".join(parts[:2]) if parts[:1] == ["rig"] else parts[0] if parts else ""


def against_the_arrows_of_hil(found: list[Import]) -> list[str]:
    """Imports between groups of hil that its graph does not have."""
    wrong = []
    for item in found:
        parts = item.module.split(".")
        if item.file == "hil/__init__.py" or parts[:2] != ["torqueloop", "hil"]:
            continue
        source, target = group_of_hil(item.file), group_of_hil("/".join(parts[1:]))
        if target not in {source, *HIL_GROUPS.get(source, set())}:
            wrong.append(f"{item.file}:{item.line} imports {item.module}")
    return wrong


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("hil/rig/resolve/x.py", "from torqueloop.hil.rig.run.session import run_rig\n"),
        ("hil/rig/online/x.py", "def f():\n    from torqueloop.hil.rig.run.session import run_rig\n"),
        ("hil/results/x.py", "from torqueloop.hil.report.report import Report\n"),
        ("hil/common/x.py", "from torqueloop.hil.can import bus\n"),
    ],
)
def test_an_import_against_the_arrows_of_hil_is_seen(file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(text, encoding="utf-8")
    assert len(against_the_arrows_of_hil(python_imports(path, file))) == 1


def against_the_arrows_of_core(found: list[Import]) -> list[str]:
    """Imports between folders of core that its graph does not have."""
    wrong = []
    for item in found:
        room, group, *_ = item.file.split("/")
        parts = item.module.split(".")
        if room == "core" and parts[:2] == ["torqueloop", "core"] and {*parts[2:3]} != {group}:
            if group not in CORE_GROUPS or not {*parts[2:3]} & CORE_GROUPS[group]:
                wrong.append(f"{item.file}:{item.line} imports {item.module}")
    return wrong


def test_the_folders_of_core_import_one_way() -> None:
    assert set(CORE_GROUPS) == {p.parent.name for p in (ROOT / "core").glob("*/__init__.py")}
    assert [f.name for f in (ROOT / "core").glob("*.py")] == ["__init__.py"]
    found = imports("core")
    assert len(found) > 200, "the reader of imports finds them"
    assert against_the_arrows_of_core(found) == []


def test_the_arrows_of_core_make_no_circle() -> None:
    left = {group: set(others) for group, others in CORE_GROUPS.items()}
    while ready := [group for group, others in left.items() if not others & set(left)]:
        for group in ready:
            del left[group]
    assert left == {}, "these import each other"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/describe/x.py", "from torqueloop.core.components import Clutch\n"),
        ("core/describe/x.py", "if TYPE_CHECKING:\n    from torqueloop.core.signals import Signal\n"),
        ("core/describe/x.py", "def f():\n    from torqueloop.core.compile.compiler import compile_driveline\n"),
        ("core/compile/x.py", "from torqueloop.core.components.gears import IdealGear\n"),
        ("core/compile/x.py", "from torqueloop import core\n"),
        ("core/compile/x.py", "from torqueloop.core import signals\n"),
        ("core/compile/x.py", "from torqueloop.core.components import files\n"),
        ("core/simulate/x.py", "import torqueloop.core.analyse.analysis\n"),
    ],
)
def test_an_import_against_the_arrows_of_core_is_seen(file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(text, encoding="utf-8")
    assert len(against_the_arrows_of_core(python_imports(path, file))) == 1


def module_of(file: str) -> str:
    """Name of the module a Python file of the package is."""
    return "torqueloop." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules on a circle of imports, the first again at the end; empty when there is none."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for other in sorted(edges.get(module, ())):
            if found := visit(other, [*path, module]):
                return found
        done.add(module)
        return []

    for module in sorted(edges):
        if found := visit(module, []):
            return found
    return []


def import_graph(found: list[Import]) -> dict[str, set[str]]:
    """module -> modules it imports, among the modules the imports come from."""
    edges: dict[str, set[str]] = {}
    for item in found:
        edges.setdefault(module_of(item.file), set()).add(item.module)
    return edges


@pytest.mark.parametrize("room", ["core", "hil"])
def test_no_two_modules_import_each_other(room: str) -> None:
    edges = import_graph(imports(room))
    assert len(edges) > 50
    assert circle(edges) == []


def test_a_circle_of_imports_is_seen() -> None:
    found = [Import("core/a/x.py", 1, "torqueloop.core.b"), Import("core/b/__init__.py", 1, "torqueloop.core.a.x")]
    assert circle(import_graph(found)) == ["torqueloop.core.a.x", "torqueloop.core.b", "torqueloop.core.a.x"]
    assert circle(import_graph(found[:1])) == []


def test_every_folder_of_modules_is_in_the_wheel() -> None:
    """Those without an __init__.py would be left out."""
    for room in ROOMS[:3]:
        folders = {p.parent for p in sources(room, suffixes=(".py", *CYTHON))}
        assert [relative(f) for f in sorted(folders) if not (f / "__init__.py").exists()] == []
    assert {p.name for p in (ROOT / "torqueloop").iterdir() if p.is_symlink()} == {*ROOMS, "docs"}


def test_the_list_of_core_modules_that_use_the_kernels_is_the_actual_one() -> None:
    used = {i.file for i in imports("core") if i.module.startswith("torqueloop.cython_kernels")}
    assert used == set(CORE_USES_KERNELS)


def test_core_and_kernels_keep_away_from_clocks_sockets_and_threads() -> None:
    wrong = [
        f"{i.file}:{i.line} imports {i.module}"
        for room, names in FORBIDDEN.items()
        for i in imports(room)
        if i.module.split(".")[0] in names
    ]
    assert wrong == []


def test_nothing_is_imported_under_the_name_of_a_folder() -> None:
    """`import core` works by accident in the checkout and loads modules twice."""
    wrong = [
        f"{i.file}:{i.line} imports {i.module}"
        for i in imports("torqueloop", *ROOMS, "scripts", "rt_tests")
        if i.module.split(".")[0] in set(ROOMS)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/x.py", "from torqueloop.hil.cli import main\n"),
        ("core/x.py", "from torqueloop.cython_kernels.kernel.kernel import KernelModel\n"),
        ("core/x.py", "import torqueloop.hil\n"),
        ("core/x.py", "from torqueloop import hil\n"),
        ("cython_kernels/x.pyx", "from torqueloop.core.describe.errors import ConfigError\n"),
        ("cython_kernels/x.pyx", "    from torqueloop.hil.ring cimport ring_t\n"),
        ("cython_kernels/x.pxi", "cimport torqueloop.core.model\n"),
        ("configs/x.py", "from torqueloop.core import units\n"),
    ],
)
def test_an_import_against_the_arrows_is_seen(file: str, text: str, tmp_path: Path) -> None:
    if file.endswith(".py"):
        path = tmp_path / "x.py"
        path.write_text(text, encoding="utf-8")
        found = python_imports(path, file)
    else:
        found = cython_imports('"""from torqueloop.hil import prose"""\n' + text, file)
    assert len(wrong_way(found)) == 1


def test_no_source_file_is_longer_than_it_should_be() -> None:
    scripts = [p for p in (ROOT / "scripts").iterdir() if p.is_file() and not p.suffix]
    files = [*sources(*FOLDERS, suffixes=(".py", ".pyi", ".c", *CYTHON)), *scripts, ROOT / "setup.py"]
    long = {}
    for path in files:
        if GENERATED in path.parents:
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST:
            long[relative(path)] = lines
    assert set(long) - set(LONG_FILES) == set(), long
    assert set(LONG_FILES) <= set(long), "an exception that is not needed any more"
