"""Whole rigs that are unusual: very many signals, numbers that bypass the buses, participants that cannot be had;
checkpoints with a control unit from outside."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from control_help import Running, SlowCar
from rig_help import CONFIGS, DESK, rig_file

import torqueloop as tl
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.online.checkpoint import CheckpointError
from torqueloop.hil.rig.run.live_run import StartError
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

EXAMPLE = CONFIGS / "examples" / "external" / "shift_controller.c"
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
HEAD = 'VERSION ""\n\nNS_ :\n\nBS_:\n\nBU_: HIL BODY\n'


def test_more_than_1024_signals_are_recorded_and_replayed(tmp_path: Path) -> None:
    signals = "".join(f' SG_ s{i} : {8 * i}|8@1+ (1,0) [0|255] "" HIL\n' for i in range(8))
    messages = [f"\nBO_ {0x100 + k} B{k}: 8 BODY\n{signals}" for k in range(150)]
    (tmp_path / "wide.dbc").write_text(HEAD + "".join(messages))
    path = rig_file(tmp_path, 'ecu.tcu.bus = "powertrain"', add='[bus.wide]\ndatabase = "wide.dbc"\n')
    run = tl.run(path, duration=0.2, out=tmp_path / "run", html=False)
    assert len(run) > 1024 + 200 and len(run["B149.s7"]) == 200 and np.isfinite(run["engine.w"]).all()
    assert replay(tmp_path / "run").passed


#: holds the engine at a speed with its pedal, without a bus: sensor in, actuator out, every 5 ms
GOVERNOR = """
#include <stdlib.h>
#include <string.h>
#include "torqueloop_ecu.h"
typedef struct { double w; } state;
uint32_t tl_ecu_abi(void) { return TORQUELOOP_ECU_ABI; }
void *tl_ecu_init(const tl_ecu_setup *s, char *error, uint32_t n) { (void)s; (void)error; (void)n; return calloc(1, sizeof(state)); }
int32_t tl_ecu_run(void *ecu, const tl_ecu_inputs *in, tl_ecu_outputs *out)
{ state *s = ecu; s->w = in->sensors[0]; out->actuators[0] = s->w < 200.0 ? 0.01 * (200.0 - s->w) : 0.0;
  if (out->actuators[0] > 1.0) out->actuators[0] = 1.0; return 1; }
int64_t tl_ecu_save(void *ecu, void *data, int64_t room) { if (room >= (int64_t)sizeof(state)) memcpy(data, ecu, sizeof(state)); return sizeof(state); }
int32_t tl_ecu_load(void *ecu, const void *data, int64_t size) { if (size != sizeof(state)) return 0; memcpy(ecu, data, sizeof(state)); return 1; }
void tl_ecu_fini(void *ecu) { free(ecu); }
"""  # noqa: E501


@pytest.fixture
def governed(tmp_path: Path) -> Path:
    (tmp_path / "governor.c").write_text(GOVERNOR)
    table = """
[ecu.tcu]
bus = "powertrain"
[ecu.governor]
kind = "library"
start = "governor.c"
bus = []
sensors = { w = "engine.w" }
actuators = { pedal = "1" }
[ecu.governor.options]
period_s = 5e-3
host = "rig"
[inputs]
"engine.pedal" = "governor.pedal"
"lockup.p" = { signal = "turbine.w", gain = 100.0 }
"""
    return rig_file(tmp_path, add=table)


@needs_cc
def test_pins_and_a_model_output_that_feeds_a_model_input_in_a_whole_rig(governed: Path, tmp_path: Path) -> None:
    run = tl.run(governed, duration=2.0, out=tmp_path / "run", html=False)
    assert not run.stats.safe_state.latched and run.stats.participants["governor"].reported["steps"] == 400
    w, pedal = run["engine.w"], run["governor.pedal"]
    # every 5 ms from the speed at the end of the tick before, held in between, and the model gets it in the same tick
    given = np.repeat(np.clip(0.01 * (200.0 - w[4:-1:5]), 0.0, 1.0), 5)
    assert pedal[5:] == pytest.approx(given, abs=1e-12) and (run["input.engine.pedal"] == pedal).all()
    assert 100.0 < w[-1] < 200.0 and 0.0 < pedal[-1] < 1.0, "it governs"
    # a model output arrives at the model's input one tick later
    p, turbine = run["input.lockup.p"], run["turbine.w"]
    assert p[1:] == pytest.approx(100.0 * turbine[:-1], rel=1e-12) and abs(p[-1]) > 1000.0
    assert replay(tmp_path / "run").passed


@pytest.mark.proof
@needs_cc
def test_a_checkpoint_with_control_units_from_outside_goes_on_as_the_run_did(governed: Path, tmp_path: Path) -> None:
    """Taken between two of their steps: what they hold at their pins goes back as well."""
    more = f'ecu.tcu.kind = "library"\necu.tcu.start = "{EXAMPLE}"\necu.tcu.options.period_s = 5e-3\n'
    more += "ecu.tcu.options.start_timeout_s = 60\necu.tcu.options.timeout_s = 60\n"
    path = tmp_path / "outside.toml"
    path.write_text(f'extends = "{governed}"\n{more}')
    going = Running(path, tmp_path / "run", 1.5, vehicle=SlowCar(before=(1102,)), ecus={})
    with going.client() as client:
        assert client.checkpoint("here", at=1102)["tick"] == 1102
    first = going.join()
    again = run_rig(
        path, RunSpec("virtual", 0.398, tmp_path / "again", start_from=tmp_path / "run" / "control" / "here.tlc")
    )
    assert not any("checkpoint" in text for text in again.stats.degraded), again.stats.degraded
    assert again.stats.hash == first.stats.hash
    # another kind of unit cannot take that state: the run does not begin somewhere else without a word
    other = tmp_path / "other.toml"
    other.write_text(f'extends = "{governed}"\n')
    with pytest.raises(CheckpointError, match="cannot begin at its checkpoint: .*: its participants are not those"):
        run_rig(
            other, RunSpec("virtual", 0.1, tmp_path / "other", start_from=tmp_path / "run" / "control" / "here.tlc")
        )


@pytest.mark.proof
@needs_cc
def test_a_unit_that_cannot_save_is_named_in_a_run_from_a_checkpoint(governed: Path, tmp_path: Path) -> None:
    source = tmp_path / "governor.c"
    source.write_text("\n".join(line for line in GOVERNOR.splitlines() if "_save" not in line and "_load" not in line))
    going = Running(governed, tmp_path / "run", 0.3, vehicle=SlowCar(before=(150,)), ecus={})
    with going.client() as client:
        client.checkpoint("here", at=150)
    going.join()
    again = run_rig(
        governed, RunSpec("virtual", 0.1, tmp_path / "again", start_from=tmp_path / "run" / "control" / "here.tlc")
    )
    assert [text for text in again.stats.degraded if "governor" in text] == [
        "governor has not gone back to the checkpoint: it cannot"
    ]


@pytest.mark.parametrize("edit", ['ecu.tcu.kind = "hardware"\nwithout ecu.tcu.start', "without ecu.tcu"])
def test_an_own_control_unit_on_the_virtual_clock_is_refused_and_leaves_the_way_free(tmp_path: Path, edit: str) -> None:
    out = tmp_path / "run"
    with pytest.raises(StartError, match="outside the rig cannot run|it cannot run on the virtual clock, which waits"):
        tl.run(rig_file(tmp_path, edit), duration=0.1, out=out, html=False)
    info = read_run_info(out)
    assert info is not None and (info.state, info.armed) == ("failed", False)
    # nothing ran: the same --out is taken by the next run
    assert tl.run(DESK, duration=0.1, out=out, html=False).info.state == "ended"


def test_nobody_heard_on_the_loopback_bus_tells_where_python_can_sends(tmp_path: Path, multicast: None) -> None:
    edits = ("ecu.tcu.start_timeout_s = 0.2", 'ecu.tcu.kind = "hardware"\nwithout ecu.tcu.start', "without vehicle")
    gone = 'without inputs."road.F"\nwithout inputs."road.F_hold"'
    add = "[inputs]\n'road.F' = 0.0\n'road.F_hold' = 0.0\n"
    rig = rig_file(tmp_path, *edits, gone, add=add, own_bus=True)
    with pytest.raises(StartError, match=r'the rig receives it with local_address = "0.0.0.0" in \[bus.powertrain\]'):
        run_rig(rig, RunSpec("real", 0.1, tmp_path / "run"))
