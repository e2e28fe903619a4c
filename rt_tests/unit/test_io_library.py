"""What a driver of an I/O device is given when it is opened, and when its guardian acts."""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.hil.ecu.compiled import compiled
from torqueloop.hil.io import guardian
from torqueloop.hil.io.guardian import Beats, looks_of
from torqueloop.hil.io.library import IDLE, RUNS, Channel, CWatch, IoSetup, OpenDevice
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.run import io_devices

#: writes down what it is told and what is written to its pins
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "torqueloop_io.h"
static FILE *file;
static uint32_t n_out;
uint32_t tl_io_abi(void) { return TORQUELOOP_IO_ABI; }
void *tl_io_open(const tl_io_setup *s, char *error, uint32_t size)
{
    file = fopen(getenv("TOLD"), "w");
    n_out = s->n_channels - s->n_inputs;
    fprintf(file, "%s %s %g %u %u %u %d\n", s->name, s->folder, s->tick_s, s->n_channels, s->n_inputs, s->n_keys,
            s->simulated);
    for (uint32_t k = 0; k < s->n_channels; k++) {
        const tl_io_channel *c = &s->channels[k];
        fprintf(file, "%s %s %s %g %g %g %d\n", c->name, c->pin, c->unit, c->low, c->high, c->safe, c->output);
    }
    for (uint32_t k = 0; k < s->n_keys; k++)
        fprintf(file, "%s=%s\n", s->keys[k], s->values[k]);
    fprintf(file, "%lld\n", (long long)s->watch->tick_ns);
    return file;
}
int32_t tl_io_read(void *io, double t_s, double *inputs) { return TL_IO_OK; }
int32_t tl_io_write(void *io, double t_s, const double *outputs)
{
    for (uint32_t k = 0; k < n_out; k++)
        fprintf(file, "%g;", outputs[k]);
    fprintf(file, "at %g\n", t_s);
    return TL_IO_OK;
}
void tl_io_close(void *io) { fprintf(file, "closed\n"); fclose(file); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    return compiled(folder / "driver.c", folder / "driver.so", {"file": "r.toml", "table": "io.card", "key": "library"})


INPUTS = (Channel("volts", "ai0", "V", -2.0, 5.0), Channel("t", "ai1", "K", 250.0, 400.0))
OUTPUTS = (Channel("a", "ao0", "V", -10.0, 15.0, 0.125), Channel("b", "ao1", "Pa", 1.0, 9.0, 3.0),
           Channel("c", "ao2", "1", 0.0, 1.0, 0.5))  # fmt: skip


@pytest.mark.parametrize("n", [(2, 3), (1, 0), (0, 1)])
def test_a_driver_is_told_its_channels_and_writes_its_safe_values(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: tuple[int, int]
) -> None:
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    inputs, outputs = INPUTS[: n[0]], OUTPUTS[: n[1]]
    options = {} if n == (0, 1) else {"rate": "0.1", "mode": "x"}
    opened = OpenDevice(IoSetup("card", str(library), 0.002, "/folder", inputs, outputs, options, True))
    assert opened.close() and opened.close(), "again: nothing"
    rows = (tmp_path / "told").read_text().splitlines()
    safe = ["".join(f"{c.safe:g};" for c in outputs) + "at 0"] * 2 if outputs else []
    assert rows == [
        f"card /folder 0.002 {len(inputs) + len(outputs)} {len(inputs)} {len(options)} 1",
        *(f"{c.name} {c.pin} {c.unit} {c.low:g} {c.high:g} 0 0" for c in inputs),
        *(f"{c.name} {c.pin} {c.unit} {c.low:g} {c.high:g} {c.safe:g} 1" for c in outputs),
        *(f"{key}={value}" for key, value in options.items()),
        # 2 ms; safe values when it is opened and when it is closed
        "2000000", *safe, "closed",
    ]  # fmt: skip


def test_a_loop_stands_still_in_as_many_looks_as_no_count_has_changed(tmp_path: Path) -> None:
    words = []
    for k in range(2):
        file = tmp_path / str(k)
        file.write_bytes(b"\0" * mmap.PAGESIZE)
        with open(file, "r+b") as stream:
            words.append(CWatch.from_buffer(mmap.mmap(stream.fileno(), mmap.PAGESIZE)))
    beats = Beats([str(tmp_path / "0"), str(tmp_path / "1")])
    seen = []
    # (beats of the two, state of the first)
    for one, two, state in [(5, 5, RUNS), (5, 5, RUNS), (5, 5, RUNS), (5, 6, RUNS), (5, 6, RUNS), (5, 6, RUNS),
                            (5, 6, IDLE), (5, 6, RUNS)]:  # fmt: skip
        words[0].beats, words[1].beats, words[0].state = one, two, state
        seen.append(beats.stand_still())
    assert seen == [0, 1, 2, 0, 1, 2, 0, 1]
    assert not beats.taken
    beats.take()
    assert beats.taken and words[0].taken == words[1].taken == 1


def test_a_guardian_looks_as_often_as_its_time_has_looks_but_three_times_at_least() -> None:
    assert [looks_of(k * guardian.LOOK_S) for k in (0.0, 2.0, 7.0, 40.0)] == [3, 3, 7, 40]


@pytest.mark.parametrize(("real", "limit_s"), [(True, 250e-6), (False, 0.0)])
def test_a_call_has_its_limit_on_the_real_clock_and_the_guardian_waits_two_watchdogs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, real: bool, limit_s: float
) -> None:
    told: dict[str, Any] = {}

    class Opened:
        def __init__(self, setup: IoSetup) -> None:
            self.setup, self.watch_file, self.device, self.watch, self.functions = setup, "w", 1, b"", {}

    def guarded(setups: list[IoSetup], still_s: float) -> Any:
        told["still_s"] = still_s
        return SimpleNamespace(watch=lambda files: told.update(files=files))

    monkeypatch.setattr(io_devices, "OpenDevice", Opened)
    monkeypatch.setattr(io_devices, "Guardian", guarded)
    setup = IoSetup("card", "x.so", 1e-3, str(tmp_path), (), OUTPUTS, {}, not real)
    cards = SimpleNamespace(
        given=SimpleNamespace(io={"card": SimpleNamespace(limit_us=250.0)}),
        setups=lambda folder, simulated: {"card": setup},
    )
    safe_state = SimpleNamespace(watchdog_s=0.4)
    plan = SimpleNamespace(device=lambda _: cards, config=SimpleNamespace(safe_state=safe_state), path="r.toml")
    made = SimpleNamespace(connect=lambda k, **values: told.update(values))
    run = SimpleNamespace(plan=plan, parts=SimpleNamespace(made={IoCards: made}), real=real,
                          folder=SimpleNamespace(path=tmp_path))  # fmt: skip
    io_devices.open_io(SimpleNamespace(callback=lambda *_: None), run)  # type: ignore[arg-type]
    assert told["limit_s"] == pytest.approx(limit_s)
    assert told.get("still_s") == (0.8 if real else None) and told.get("files") == (["w"] if real else None)
