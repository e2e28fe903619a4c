"""Rules of the source tree: imports go one way, files stay small, nothing refers to the machine it was written on."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("package", "core", "cython_kernels", "hil", "configs", "rt_tests", "scripts", "docs")
ROOMS = ("core", "cython_kernels", "hil", "configs")
CYTHON = (".pyx", ".pxd", ".pxi")
#: written by the build, see setup.py
GENERATED = ROOT / "cython_kernels" / "topologies"

#: what each room may import of the package; hil -> core -> cython_kernels
MAY_IMPORT = {
    # hil: connect only, imported when it is first used
    "package": {"core", "hil"},
    "core": {"core", "configs"},
    "cython_kernels": {"cython_kernels"},
    "hil": {"hil", "core", "cython_kernels", "configs"},
    "configs": set(),
}
#: what each group of hil may import of the others; what lies above them (cli, check, scenario) is in none
HIL_GROUPS: dict[str, set[str]] = {
    "can": set(),
    "control": {"link"},
    "doctor": {"realtime", "rig"},
    "link": set(),
    "realtime": set(),
    "record": set(),
    "report": {"record"},
    "rig": {"can", "control", "link", "realtime", "record", "report", "tcu", "vehicle"},
    "tcu": {"can", "link"},
    "vehicle": {"link"},
}
#: modules beside the groups that any of them may use
HIL_COMMON = {"config_file", "gates", "stop_flag"}
#: the only modules of core that know the kernels, and why
CORE_USES_KERNELS = {
    "core/offline.py": "runs the kernel: the offline simulation",
    "core/case_trajectory.py": "runs reference cases in parts between their events, below the level of Simulation",
    "core/specialise.py": "writes the source of precompiled steps; needs the signature they register under",
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
#: (file, module) that are allowed all the same, and why
ALLOWED = {
    ("cython_kernels/codec.pyx", "time"): "benchmark_ns measures the codec from outside, it is no part of a tick"
}
LONGEST = 500
#: files that may be longer, and why
LONG_FILES: dict[str, str] = {}


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
            # `from torqueloop import core` imports torqueloop.core
            if module == "torqueloop":
                found += [Import(name, node.lineno, f"torqueloop.{alias.name}") for alias in node.names]
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


def imports(*folders: str) -> list[Import]:
    found = []
    for path in sources(*folders):
        if path.suffix in CYTHON:
            found += cython_imports(path.read_text(encoding="utf-8"), relative(path))
        else:
            found += python_imports(path, relative(path))
    return found


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
    assert set(HIL_GROUPS) == {p.parent.name for p in (ROOT / "hil").glob("*/__init__.py")}
    wrong = []
    for group, others in HIL_GROUPS.items():
        for item in imports(f"hil/{group}"):
            parts = item.module.split(".")
            if parts[:2] == ["torqueloop", "hil"] and not {*parts[2:3]} & {group, *others, *HIL_COMMON}:
                wrong.append(f"{item.file}:{item.line} imports {item.module}")
    assert wrong == []


def test_every_folder_of_modules_is_in_the_wheel() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    for room in ROOMS:
        folders = {p.parent.relative_to(ROOT) for p in sources(room, suffixes=(".py",))}
        assert {"torqueloop." + ".".join(f.parts) for f in folders} <= set(packages)


def test_the_list_of_core_modules_that_use_the_kernels_is_the_actual_one() -> None:
    used = {i.file for i in imports("core") if i.module.startswith("torqueloop.cython_kernels")}
    assert used == set(CORE_USES_KERNELS)


def test_core_and_kernels_keep_away_from_clocks_sockets_and_threads() -> None:
    wrong = [
        f"{i.file}:{i.line} imports {i.module}"
        for room, names in FORBIDDEN.items()
        for i in imports(room)
        if i.module.split(".")[0] in names and (i.file, i.module) not in ALLOWED
    ]
    assert wrong == []


def test_nothing_is_imported_under_the_name_of_a_folder() -> None:
    """`import core` works by accident in the checkout and loads modules twice."""
    wrong = [
        f"{i.file}:{i.line} imports {i.module}"
        for i in imports("package", *ROOMS, "scripts", "rt_tests")
        if i.module.split(".")[0] in {*ROOMS, "package"}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/x.py", "from torqueloop.hil.cli import main\n"),
        ("core/x.py", "from torqueloop.cython_kernels.model import KernelModel\n"),
        ("core/x.py", "import torqueloop.hil\n"),
        ("core/x.py", "from torqueloop import hil\n"),
        ("cython_kernels/x.pyx", "from torqueloop.core.errors import ConfigError\n"),
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
    files = [
        *sources(*FOLDERS, suffixes=(".py", ".pyi", ".c", *CYTHON)),
        *(p for p in (ROOT / "scripts").iterdir() if p.is_file() and not p.suffix),
        ROOT / "setup.py",
    ]
    long = {}
    for path in files:
        if GENERATED in path.parents:
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST:
            long[relative(path)] = lines
    assert set(long) - set(LONG_FILES) == set(), long
    assert set(LONG_FILES) <= set(long), "an exception that is not needed any more"


#: put together from parts, so that this file does not find itself
MACHINE = re.compile(
    "|".join(
        [
            "/" + r"work/",
            "/" + r"tmp/plan",
            "/" + r"home/\w+/",
            "/" + r"Users/\w+/",
            "/" + r"root\b",
            r"\bshared" + r"/(?:DESIGN|STYLE|data|papers|reference|tools)",
            r"\." + "library",
            r"\bissue" + r" #?\d+",
        ]
    )
)


def text_files() -> list[Path]:
    found = [p for p in ROOT.iterdir() if p.is_file() and p.suffix in {".py", ".toml", ".md", ".in", ""}]
    for folder in (*FOLDERS, ".ci"):
        for path in (ROOT / folder).rglob("*"):
            binary = path.suffix in {".so", ".pyc", ".pyd", ".png", ".svg", ".c", ".html"}
            cache = any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT / folder).parts)
            if path.is_file() and not binary and not cache:
                found.append(path)
    return sorted(found)


def test_nothing_names_a_path_of_the_machine_it_was_written_on() -> None:
    files = text_files()
    assert len(files) > 100
    wrong = []
    for path in files:
        if path.name == ".git":
            continue  # of a linked work tree: names where the repository lies
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE.search(line):
                wrong.append(f"{relative(path)}:{number}: {line.strip()[:100]}")
    assert wrong == []


@pytest.mark.parametrize("bad", ["/" + "work/main", "/" + "tmp/plan", "see " + "issue" + " 12", "/" + "home/me/x"])
def test_a_path_of_the_machine_is_seen(bad: str) -> None:
    assert MACHINE.search(f"x = {bad!r}")


def stubs() -> list[str]:
    return [p.stem for p in sorted((ROOT / "cython_kernels").glob("*.pyx"))]


@pytest.mark.parametrize("name", stubs())
def test_every_kernel_module_has_a_stub_with_the_names_it_has(name: str) -> None:
    stub = ROOT / "cython_kernels" / f"{name}.pyi"
    assert stub.exists(), f"{name}.pyx has no {name}.pyi"
    module = importlib.import_module(f"torqueloop.cython_kernels.{name}")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(module, node.name))
        elif isinstance(node, ast.ClassDef):
            kind = getattr(module, node.name)
            members = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            assert members <= set(dir(kind)), f"{name}.{node.name} lacks {sorted(members - set(dir(kind)))}"
            public = {n for n in vars(kind) if not n.startswith("_")}
            assert public <= members, f"the stub of {name}.{node.name} lacks {sorted(public - members)}"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert hasattr(module, node.target.id)
    declared = {n.name for n in ast.parse(stub.read_text(encoding="utf-8")).body if hasattr(n, "name")}
    own = {
        n
        for n, value in vars(module).items()
        if not n.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    }
    assert own <= declared, f"the stub of {name} lacks {sorted(own - declared)}"
