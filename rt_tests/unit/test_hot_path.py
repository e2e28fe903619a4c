"""The check of the hot path sees what it is there for. On the sources themselves it runs in `scripts/test`, before
the tests."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_hot_path.py"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script as a module; files in tmp_path stand for the checkout."""
    spec = importlib.util.spec_from_file_location("check_hot_path", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def planted(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "planted.pyx"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "line",
    [
        "cdef double f() nogil:",
        "cdef double f(double x, const tl_model* m) nogil:",
        "cdef inline int step(tl_state* s) nogil:",
        "    cdef void tick(self) nogil:",
        "cdef void f() nogil",
        "cdef void f(double x,\n           double y) nogil:",
    ],
)
def test_a_nogil_function_that_may_raise_is_found(check: ModuleType, tmp_path: Path, line: str) -> None:
    found = check.declared_wrong(
        planted(tmp_path, f"cdef int good() noexcept nogil:\n    return 0\n\n{line}\n    pass\n")
    )
    assert len(found) == 1
    assert "planted.pyx:4" in found[0] and " ".join(line.split()) in found[0]


@pytest.mark.parametrize(
    "line",
    [
        "cdef double f() noexcept nogil:",
        "cdef int f(double x) except -1 nogil:",
        "cdef list names(self):",
        "def run(self):",
        "    with nogil:",
    ],
)
def test_functions_that_say_what_they_do_on_errors_are_not_found(check: ModuleType, tmp_path: Path, line: str) -> None:
    assert check.declared_wrong(planted(tmp_path, f"{line}\n    pass\n")) == []


C_TEXT = """
static double __pyx_f_10torqueloop_4good(double __pyx_v_x) {
  double __pyx_r;
  __pyx_r = __pyx_v_x;
  return __pyx_r;
}

static double __pyx_f_10torqueloop_3bad(double __pyx_v_x) {
  double __pyx_r;
  PyGILState_STATE __pyx_gilstate_save = __Pyx_PyGILState_Ensure();
  __pyx_r = __pyx_v_x;
  return __pyx_r;
}

static CYTHON_INLINE int __pyx_f_10torqueloop_5worse(struct __pyx_t_model const *__pyx_v_m, double *__pyx_v_s) {
  PyGILState_STATE __pyx_gilstate_save = PyGILState_Ensure();
  return 0;
}

static PyObject *__pyx_f_10torqueloop_6python(PyObject *__pyx_v_o) {
  PyGILState_STATE __pyx_gilstate_save = PyGILState_Ensure();
  return __pyx_v_o;
}

static PyObject *__pyx_pw_10torqueloop_1run(PyObject *__pyx_self) {
  PyGILState_STATE __pyx_gilstate_save = PyGILState_Ensure();
  return __pyx_self;
}
"""


def test_a_c_function_that_takes_the_gil_is_found_by_name(check: ModuleType) -> None:
    assert check.gil_in_functions(C_TEXT) == ["__pyx_f_10torqueloop_3bad", "__pyx_f_10torqueloop_5worse"]


def test_the_check_sees_what_cython_makes_of_a_function_that_may_take_the_gil(
    check: ModuleType, tmp_path: Path
) -> None:
    """Through Cython itself: a planted nogil function with a possible exception, and one without."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    source = planted(
        tmp_path,
        "cdef double good(double x) noexcept nogil:\n    return 2.0 * x\n\n"
        "cdef double bad(double x) noexcept nogil:\n    with gil:\n        print(x)\n    return x\n\n"
        "def call(double x):\n    return good(x) + bad(x)\n",
    )
    out = tmp_path / "planted.c"
    subprocess.run([sys.executable, "-m", "cython", "-3", "-o", str(out), str(source)], check=True, capture_output=True)
    found = check.gil_in_functions(out.read_text(encoding="utf-8"))
    assert len(found) == 1 and found[0].endswith("bad")


def test_what_a_hint_hints_at_is_found_in_the_c_that_the_build_left(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The C of the build stands for a second translation only while it is of the sources as they are."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    (tmp_path / "cython_kernels").mkdir()
    source = tmp_path / "cython_kernels" / "tick.pyx"
    source.write_text(
        "cdef double g(double x) except? -1 nogil:\n    if x < 0.0:\n        with gil:\n            raise ValueError\n"
        "    return x\n\ncdef double f(double x) noexcept nogil:\n    return g(x)\n\n"
        "def run(double x):\n    return f(x)\n"
    )
    made = tmp_path / "build" / "cython" / "torqueloop" / "cython_kernels" / "tick.c"
    made.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "cython", "-3", "-o", str(made), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    build = ModuleType("setup")
    fresh = True
    build.DIRECTIVES = {"language_level": "3"}  # type: ignore[attr-defined]
    build.write_topologies = lambda: None  # type: ignore[attr-defined]
    extension = SimpleNamespace(sources=["torqueloop/cython_kernels/tick.pyx"])
    build.extensions = lambda: [extension]  # type: ignore[attr-defined]
    build.is_built = lambda extension: fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "setup", build)
    assert check.main() == 1
    printed = capsys.readouterr().out
    assert "_f takes the GIL to look for an exception" in printed and "1 as built, 0 translated" in printed, printed
    fresh = False
    assert check.main() == 1 and "0 as built, 1 translated" in capsys.readouterr().out


def test_calls_that_have_no_place_in_a_tick_are_found(check: ModuleType, tmp_path: Path) -> None:
    """Allocation and output in a function that is noexcept nogil; the same in one that is not is nobody's business."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    source = planted(
        tmp_path,
        "from libc.stdlib cimport malloc\nfrom libc.stdio cimport printf\n\n"
        "cdef void* greedy(int n) noexcept nogil:\n    return malloc(n)\n\n"
        "cdef void chatty() noexcept nogil:\n    printf(b'tick')\n\n"
        "cdef double good(double x) noexcept nogil:\n    # malloc(1) would be wrong here\n    return 2.0 * x\n\n"
        "cdef void* build(int n) except NULL:\n    return malloc(n)\n\n"
        "def call(double x):\n    chatty()\n    return good(x) + <size_t>greedy(1) + <size_t>build(2)\n",
    )
    out = tmp_path / "planted.c"
    subprocess.run([sys.executable, "-m", "cython", "-3", "-o", str(out), str(source)], check=True, capture_output=True)
    names = check.hot_names([source.read_text()])
    assert names == {"greedy", "chatty", "good"}
    found = check.never_called(out.read_text(encoding="utf-8"), names)
    assert sorted(line.split("planted_")[-1] for line in found) == ["chatty calls printf", "greedy calls malloc"]


def test_every_kind_of_hint_fails_the_check(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkout with one module that includes a file: the hint and the missing noexcept are in the included file."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    folder = tmp_path / "cython_kernels"
    folder.mkdir()
    (folder / "tick.pyx").write_text('include "part.pxi"\n\ndef run(double x):\n    return f(x)\n')
    (folder / "part.pxi").write_text(
        "cdef void g(double* x) nogil:\n    x[0] = 1.0 / x[0]\n\n"
        "cdef double f(double x) noexcept nogil:\n    g(&x)\n    return x\n"
    )
    build = ModuleType("setup")
    build.DIRECTIVES = {"language_level": "3"}  # type: ignore[attr-defined]
    build.write_topologies = lambda: None  # type: ignore[attr-defined]
    build.extensions = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "setup", build)
    assert check.main() == 1
    printed = capsys.readouterr().out
    assert "part.pxi:1: nogil without noexcept" in printed and "performance hint" in printed.lower(), printed


@pytest.mark.parametrize(
    "c_name, name",
    [
        ("__pyx_f_10torqueloop_14cython_kernels_4tick_rig_tick", "rig_tick"),
        ("__pyx_f_10torqueloop_14cython_kernels_7vehicle_4road_10RoadMotion__holds", "_holds"),
        ("__pyx_f_5clock_8RtThread_step", "step"),
        ("__pyx_f_5model_table1_slope", "table1_slope"),
    ],
)
def test_a_function_is_known_by_its_own_name(check: ModuleType, c_name: str, name: str) -> None:
    """A method `_holds` that calls Python is another function than a `holds` of the tick."""
    assert check.own_name(c_name) == name
