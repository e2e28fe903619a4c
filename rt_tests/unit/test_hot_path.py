"""The check of the hot path sees what it is there for, and passes on the sources."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

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


def test_the_sources_pass() -> None:
    """As `python scripts/check_hot_path.py`: every kernel module translated anew, with all performance hints."""
    pytest.importorskip("Cython", reason="Cython is not installed: pip install cython")
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 problems" in done.stdout
