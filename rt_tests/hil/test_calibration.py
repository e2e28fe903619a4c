"""Outputs wired to inputs: `torqueloop doctor --calibrate` finds the errors of a card, and a run is free of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from rig_help import rig_file
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.commands import app
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.doctor import loops
from torqueloop.hil.rig.resolve.pin_list import pin_list
from torqueloop.hil.rig.resolve.plan import load_plan

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
#: two analogue loops and a digital one; each with a gain, an offset, a noise and a delay in s
CARD = """
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "torqueloop_io.h"
static double out[3], held[3], since[3];
static unsigned long calls;
static double now(void)
{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
uint32_t tl_io_abi(void) { return TORQUELOOP_IO_ABI; }
void *tl_io_open(const tl_io_setup *s, char *error, uint32_t size)
{ (void)s; (void)error; (void)size; memset(out, 0, sizeof out); return malloc(1); }
int32_t tl_io_write(void *io, double t, const double *y)
{
    (void)io; (void)t;
    for (int k = 0; k < 3; k++) {
        if (y[k] != out[k]) { held[k] = out[k]; since[k] = now(); }
        out[k] = y[k];
    }
    return TL_IO_OK;
}
int32_t tl_io_read(void *io, double t, double *x)
{
    static const int order[3] = {ORDER};
    double y[3];
    (void)io; (void)t; calls++;
    for (int k = 0; k < 3; k++) y[k] = now() - since[k] >= DELAY ? out[k] : held[k];
    x[0] = 1.02 * y[order[0]] + 0.05 + (calls % 2 ? 0.01 : -0.01);
    x[1] = 0.97 * y[order[1]] - 0.02;
    x[2] = y[order[2]] > 0.5;
    return TL_IO_OK;
}
void tl_io_close(void *io) { free(io); }
"""
TABLE = """
[io.card]
library = "card.c"
[io.card.inputs]
a = { unit = "V", low = -0.5, high = 11.0, loop = "card.u" }
b = { unit = "A", low = -0.5, high = 5.0, loop = "card.i" }
d = { loop = "card.s" }
[io.card.outputs]
u = { signal = "engine.w", gain = 0.01, unit = "V", high = 10.0, safe = 1.0 }
i = { signal = "rig.time", gain = 1.0, unit = "A", high = 4.0 }
s = { signal = "driver.kickdown" }
"""


def rig(folder: Path, order: str = "0, 1, 2", delay: float = 0.0, table: str = TABLE) -> Path:
    (folder / "card.c").write_text(CARD.replace("ORDER", order).replace("DELAY", str(delay)))
    return rig_file(folder, "record.every = 1", add=table)


def doctor(path: Path, *more: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit status and findings by name."""
    arguments = ["doctor", "--rig", str(path), "--calibrate", str(path.parent / "calibrated.toml"), "--json", *more]
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, {f["name"]: f for f in json.loads(done.output)["findings"]}


def test_the_errors_of_a_card_are_found_and_a_run_is_free_of_them(tmp_path: Path) -> None:
    path = rig(tmp_path)
    status, found = doctor(path)
    assert status == 0, found
    a, b = (found[f"loop card.{out} -> card.{name}"]["values"] for out, name in (("u", "a"), ("i", "b")))
    # written = gain * read + offset, of what the card does; the mean of an odd number of readings keeps some noise
    assert a["gain"] == pytest.approx(1.0 / 1.02, abs=2e-4) and a["offset"] == pytest.approx(-0.05 / 1.02, abs=1e-3)
    assert b["gain"] == pytest.approx(1.0 / 0.97, rel=1e-9) and b["offset"] == pytest.approx(0.02 / 0.97, rel=1e-6)
    assert a["noise"] == pytest.approx(0.01, rel=0.01) and b["noise"] < 1e-12 and b["nonlinearity"] < 1e-12
    assert 0.0 < b["latency_p50_s"] <= b["latency_max_s"] < 0.5
    assert "gain" not in found["loop card.s -> card.d"]["values"]
    whole = tmp_path / "calibrated.toml"
    assert check_file(whole).ok
    pins = {row.signal: row.pin for row in pin_list(load_plan(whole))}
    assert pins["io.card.b"] == "1.03093 · b + 0.0206186" and pins["io.card.d"] == "d"
    run = tl.run(whole, clock="virtual", duration=0.3, out=tmp_path / "run", html=False)
    # a tick reads before it writes
    wanted, seen = run["io.card.i"], run["io.card.b"]
    assert seen[50:] == pytest.approx(wanted[49:-1], abs=1e-9)
    raw = tl.run(path, clock="virtual", duration=0.3, out=tmp_path / "raw", html=False)
    assert raw["io.card.b"][200] == pytest.approx(0.97 * wanted[199] - 0.02, abs=1e-9)


def test_the_delay_of_a_card_is_in_its_latency(tmp_path: Path) -> None:
    status, found = doctor(rig(tmp_path, delay=0.02))
    values = found["loop card.i -> card.b"]["values"]
    assert status == 0 and values["latency_max_s"] >= values["latency_p50_s"] >= 0.02


@pytest.mark.parametrize("order", ["1, 0, 2", "0, 1, 0"])
def test_exchanged_pins_are_named_and_nothing_is_corrected_by_them(tmp_path: Path, order: str) -> None:
    status, found = doctor(rig(tmp_path, order))
    bad = {name for name, f in found.items() if f["level"] == "fail"}
    assert status == 1
    assert bad == ({"loop card.u -> card.a", "loop card.i -> card.b"} if order[0] == "1" else {"loop card.s -> card.d"})
    text = (tmp_path / "calibrated.toml").read_text()
    assert ("inputs.a]" in text) == (order[0] == "0")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("card.u", "card.v", r"loop.*card\.v.*card\.u"),
        ("low = -0.5, high = 11.0", "low = 10.5, high = 11.0", r"loop.*ranges.*do not overlap"),
    ],
)
def test_mistakes_in_loops_are_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_plan(rig(tmp_path, table=TABLE.replace(old, new)))


def test_a_rig_without_loops_and_one_that_would_be_overwritten(tmp_path: Path) -> None:
    path = rig(tmp_path, table=re.sub(r', loop = "card.."|loop = "card.s"', "", TABLE))
    status, found = doctor(path)
    assert status == 0 and found["loops"]["level"] == "note" and not (tmp_path / "calibrated.toml").exists()
    done = CliRunner().invoke(app, ["doctor", "--rig", str(path), "--calibrate", str(path)])
    assert done.exit_code == 2 and "extends" in path.read_text()


class Wire(loops.Loops):
    """An input that reads what its output was given last."""

    def __init__(self) -> None:
        self.written: list[float] = []

    def write(self, output: str, value: float) -> None:
        self.written.append(value)

    def read(self, card: str, name: str, after_s: float = 0.0) -> float:
        return self.written[-1]


def test_changes_up_and_down_are_timed_behind_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "SETTLE_S", 0.0)
    wire = Wire()
    found = wire.delays("card", "x", "card.y", (-1.0, 1.0), (-1.0, 1.0))
    assert len(found) == loops.CHANGES and wire.written == [-1.0, *[1.0, -1.0] * (loops.CHANGES // 2)]
