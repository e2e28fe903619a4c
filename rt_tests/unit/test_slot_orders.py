"""Latest-value slots under every order of loads and stores that C11 allows, not only those of this processor: the
translated functions of the product in a small model checker (slot_orders.c).

ThreadSanitizer sees nothing here: all that is shared is atomic, and fences are beyond it.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from torqueloop.core.compile.user_steps import DIRECTIVES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: by its package, as setup.py has it
RING = "torqueloop/cython_kernels/rings/ring.pyx"
#: what is left out -> its number in slot_orders.c
WEAK = {"store of the number": 1, "load of the number": 2, "fence of the writer": 3, "fence of the reader": 4}


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of ring.pyx with atomic operations that are choices."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("orders")
    ring_c = folder / "ring.c"
    options = [f"-X{name}={value}" for name, value in DIRECTIVES.items()]
    command = [sys.executable, "-m", "cython", *options, "-I", ".", RING, "-o", str(ring_c)]
    subprocess.run(command, check=True, cwd=ROOT)
    text = ring_c.read_text(encoding="utf-8")
    names = []
    for name in ("slot_t", "slot_write", "slot_read"):
        (translated,) = set(re.findall(rf"\b__pyx_[ft]_\w*_{name}\b", text))
        names.append(f"-D{name.upper()}={translated}")
    library = folder / "orders.so"
    subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}",
                    f'-DRING_C="{ring_c}"', *names, str(HERE / "slot_orders.c"), "-o", str(library)],
                   check=True)  # fmt: skip
    return ctypes.CDLL(str(library))


def explore(checker: ctypes.CDLL, writes: int, reads: int, attempts: int, weak: int = 0) -> dict[str, int]:
    found = (ctypes.c_int64 * 5)()
    checker.explore(writes, reads, attempts, weak, found)
    return dict(zip(("executions", "torn", "backward", "none", "newest"), found, strict=True))


@pytest.mark.proof
@pytest.mark.parametrize(("writes", "reads", "attempts"), [(2, 1, 3), (2, 2, 2), (3, 2, 1), (3, 1, 3), (4, 1, 2)])
def test_what_a_reader_sees_is_whole_and_never_goes_back(
    checker: ctypes.CDLL, writes: int, reads: int, attempts: int
) -> None:
    found = explore(checker, writes, reads, attempts)
    assert found["torn"] == found["backward"] == 0, found
    assert found["executions"] > 15 and found["newest"] > 0 and found["none"] > 0, found


def test_one_write_can_be_seen_in_as_many_ways_as_one_can_count(checker: ctypes.CDLL) -> None:
    """Three looks at the number: 0; 2; 1 and 2; 1, 1 and 2; 1, 1 and 1 (which would go on). All else follows."""
    assert explore(checker, 1, 1, 3) == {"executions": 5, "torn": 0, "backward": 0, "none": 1, "newest": 3}


@pytest.mark.parametrize("weak", WEAK)
def test_each_of_the_four_orders_is_needed(checker: ctypes.CDLL, weak: str) -> None:
    assert explore(checker, 2, 1, 2, WEAK[weak])["torn"] > 0
