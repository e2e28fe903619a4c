"""What the kernels take they give back: the buffer of an array once they have read it, the memory of their tables."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torqueloop.configs
from torqueloop.cython_kernels.can.codec import CodecTables, RxState, TxState
from torqueloop.cython_kernels.tick.engine_control import EngineControl
from torqueloop.cython_kernels.tick.hydraulics import Hydraulics
from torqueloop.cython_kernels.tick.sensors import Sensors
from torqueloop.hil.can.database import CanDatabase

DATABASE = CanDatabase.load(Path(torqueloop.configs.__path__[0]) / "can" / "j1939_transmission.dbc", "TCU")


class _Mallinfo(ctypes.Structure):
    """mallinfo2 of glibc 2.33."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def _taken() -> int:
    """Bytes that malloc has given and not got back."""
    found = ctypes.CDLL(None).mallinfo2
    found.restype = _Mallinfo
    return int(found().uordblks + found().hblkhd)


def _engine() -> EngineControl:
    made = EngineControl(40, 10, 1e-3)
    made.set_torque([(0.0, 1.0, 0.0), (1.0, 2.0, 0.0)])
    made.set_paths(pedal=2, speed=3, air_s=0.05, spark_least=0.3, least=10.0)
    return made


@pytest.mark.parametrize("make", [lambda: Sensors(40, 0, 1e-3).tick, lambda: _engine().tick], ids=["sensors", "engine"])
def test_an_array_is_let_go_of_once_it_was_read(make: Callable[[], Callable[[object], None]]) -> None:
    tick, sig = make(), np.zeros(40)
    before = sys.getrefcount(sig)
    tick(sig)
    assert sys.getrefcount(sig) == before
    with pytest.raises(ValueError, match="allowed 40"):
        tick(short := np.zeros(3))
    assert sys.getrefcount(short) == before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library has no mallinfo2")
@pytest.mark.parametrize("make", [
    lambda: CodecTables(DATABASE.messages, 4096),
    lambda: RxState(DATABASE.tables),
    lambda: TxState(DATABASE.tables),
    lambda: Hydraulics(80, 10, 1, 1, 1),
    _engine,
], ids=["CodecTables", "RxState", "TxState", "Hydraulics", "EngineControl"])  # fmt: skip
def test_tables_give_their_memory_back(make: Callable[[], object]) -> None:
    """Two hundred of them leave less behind than the smallest block of malloc for each."""
    for _ in range(20):
        make()
    gc.collect()
    before = _taken()
    for _ in range(200):
        make()
    gc.collect()
    assert _taken() - before < 200 * 32
