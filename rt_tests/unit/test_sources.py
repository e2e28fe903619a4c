"""What holds for every file: no path of the machine it was written on; a stub for every kernel module."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from test_structure import FOLDERS, GENERATED, ROOT, relative

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
            r"(?:^|[\s/\"'`(])\." + "library",
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


@pytest.mark.parametrize(
    "bad", ["/" + "work/main", "/" + "tmp/plan", "see " + "issue" + " 12", "/" + "home/me/x", ".." + "/." + "library/x"]
)
def test_a_path_of_the_machine_is_seen(bad: str) -> None:
    assert MACHINE.search(f"x = {bad!r}")


def stubs() -> list[str]:
    found = (p for p in sorted((ROOT / "cython_kernels").rglob("*.pyx")) if GENERATED not in p.parents)
    return [p.relative_to(ROOT / "cython_kernels").with_suffix("").as_posix() for p in found]


@pytest.mark.parametrize("name", stubs())
def test_every_kernel_module_has_a_stub_with_the_names_it_has(name: str) -> None:
    stub = ROOT / "cython_kernels" / f"{name}.pyi"
    assert stub.exists(), f"{name}.pyx has no {name}.pyi"
    module = importlib.import_module(f"torqueloop.cython_kernels.{name.replace('/', '.')}")
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


def test_processes_of_the_package_are_started_by_one_function() -> None:
    """`start_module` keeps the working directory off the search path. The service of setup-host is a text with -P."""
    named = {
        relative(p)
        for room in ("core", "hil")
        for p in (ROOT / room).rglob("*.py")
        if "sys.executable" in p.read_text()
    }
    assert named == {"hil/link/child.py", "hil/doctor/host_files.py"}
    assert '"{python}" -P -m' in (ROOT / "hil/doctor/host_files.py").read_text()
