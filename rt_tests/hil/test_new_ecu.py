"""`torqueloop new ecu`: code from a CAN database, in C, in Python, around a model of Simulink; compiled and driven."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rig_help import CONFIGS, rig_file
from test_bad_input import call
from test_external_units import INCLUDE

import torqueloop as tl
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.frame import Frame
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

DATABASE = CONFIGS / "can" / "tcu_4hp22.dbc"
MODEL = Path(__file__).resolve().parent / "simulink_model"
CC = shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler (cc)")


def made(folder: Path, *arguments: str) -> str:
    code, out = call("new", "ecu", *arguments, "--out", str(folder))
    assert code == 0, out
    return out


@needs_cc
def test_a_rig_generates_what_a_c_unit_includes(tmp_path: Path) -> None:
    """The example of the package includes the generated file; nothing of it is in the repository."""
    spec = RunSpec("virtual", 0.2, tmp_path / "run")
    result = run_rig(CONFIGS / "examples/external/desk_4hp22_c.toml", spec)
    assert (tmp_path / "run" / "tcu_generated" / "tcu_4hp22_can.c").is_file()
    assert (
        result.stats.participants["tcu"].reported["steps"] == 40 and next(iter(result.stats.buses.values())).rx_bad == 0
    )


@needs_cc
def test_a_unit_that_includes_the_header_alone_is_compiled_with_the_other_file(tmp_path: Path) -> None:
    """With the generated one; one of this name beside the source comes first."""
    text = (CONFIGS / "examples/external/shift_controller.c").read_text()
    assert text.count('#include "tcu_4hp22_can.c"') == 1
    source = tmp_path / "unit.c"
    source.write_text(text.replace('"tcu_4hp22_can.c"', '"tcu_4hp22_can.h"'))
    overrides = {"ecu.tcu.start": str(source)}

    def run(name: str) -> str:
        spec = RunSpec("virtual", 0.2, tmp_path / name, overrides=overrides)
        return run_rig(CONFIGS / "examples/external/desk_4hp22_c.toml", spec).stats.hash

    spec = RunSpec("virtual", 0.2, tmp_path / "whole")
    assert run("generated") == run_rig(CONFIGS / "examples/external/desk_4hp22_c.toml", spec).stats.hash
    (tmp_path / "tcu_4hp22_can.c").write_text("#error mine\n")
    with pytest.raises(tl.ConfigError, match="error mine"):
        run("beside")


@needs_cc
def test_a_model_in_the_form_of_simulink_drives_the_desk_rig_through_its_gears(tmp_path: Path) -> None:
    made(tmp_path, "tcu_4hp22", "--node", "TCU", "--simulink", "shift_model")
    library = tmp_path / "shift_model.so"
    sources = [str(tmp_path / "shift_model_ecu.c"), str(MODEL / "shift_model.c")]
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-I{MODEL}"]
    subprocess.run([str(CC), *flags, *sources, "-o", str(library), "-lm"], check=True)
    path = rig_file(tmp_path, 'ecu.tcu.kind = "library"', f'ecu.tcu.start = "{library}"',
                    "ecu.tcu.options.period_s = 5e-3", "ecu.tcu.options.start_timeout_s = 60")  # fmt: skip
    result = run_rig(path, RunSpec("virtual", 20.0, tmp_path / "run"))
    bus = next(iter(result.stats.buses.values()))
    assert bus.rx_bad == 0 and not result.stats.safe_state.latched
    run = tl.read_run(tmp_path / "run")
    gears = run["TCU_Status.gear_actual"]
    assert list(dict.fromkeys(gears[gears > 0])) == [1.0, 2.0, 3.0, 4.0]
    # the port that the model drives beyond its range is sent at the end of it
    assert run["TCU_Status.tau_limit"][-1] == 1200.0
    assert replay(tmp_path / "run").hash_equal


def test_a_model_that_is_no_name_in_c_is_refused(tmp_path: Path) -> None:
    code, err = call("new", "ecu", "tcu_4hp22", "--node", "TCU", "--simulink", "shift model", "--out", str(tmp_path))
    assert code == 2 and "the name of the model, as in C" in err


def test_a_node_that_the_database_does_not_have_is_refused_with_the_closest(tmp_path: Path) -> None:
    code, err = call("new", "ecu", "tcu_4hp22", "--node", "TUC", "--c", "--out", str(tmp_path))
    assert code == 2 and "TUC" in err and "TCU, HIL" in err and "did you mean 'TCU'?" in err


def test_an_interface_names_database_and_node_and_what_is_not_protected_is_said(tmp_path: Path) -> None:
    out = made(tmp_path, "egs_bmw_e9x", "--c")
    assert (tmp_path / "bmw_e9x_can.h").is_file()
    assert "bmw_e9x.dbc declares no checksum for EngineData" in out


def test_the_python_classes_exchange_frames_with_the_codec(tmp_path: Path) -> None:
    made(tmp_path, "tcu_4hp22", "--node", "TCU", "--python")
    module = imported(tmp_path / "tcu_4hp22_can.py")
    unit, rig = module.Bus(), CanDatabase.load(DATABASE, "HIL").codec()
    rng = np.random.default_rng(1)
    for k in range(20):
        bar = 1e5 * rng.uniform(0.0, 20.0)
        frame = unit.frame(module.TCUPressure1(p_C4=bar, Mode_1=1.0))
        status, values = rig.decode(frame.can_id, frame.data, 0.005 * k)
        assert status == "ok" and values["p_C4"] == pytest.approx(bar, abs=251.0) and values["p_C5"] == 0.0
        w = rng.uniform(-800.0, 800.0)
        data = rig.encode("HIL_Speeds", {"n_output": w})
        message = unit.receive(Frame(rig.can_id("HIL_Speeds"), data), 0.005 * k)
        assert isinstance(message, module.HILSpeeds) and message.n_output == pytest.approx(w, abs=0.014)
        spoiled = bytes([data[0] ^ 1, *data[1:]])
        assert unit.receive(Frame(rig.can_id("HIL_Speeds"), spoiled)) is None and unit.status == "crc"
    saved = unit.save()
    again = module.Bus()
    again.load(saved)
    assert again.frame(module.TCUPressure1()).data == unit.frame(module.TCUPressure1()).data


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("generated_messages", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generated_messages"] = module
    spec.loader.exec_module(module)
    return module
