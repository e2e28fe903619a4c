"""Inputs of offline scenarios: units of every dimension, derivatives of exact motions from the signal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.describe.errors import MissingValueError, UnknownKeyError, UnknownNameError
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.scenario.offline import compiled, simulate
from torqueloop.hil.scenario.scenario_tables import load_scenario

DRIVELINE = """
name = "moved"
connections = [
  ["x.flange", "J.flange_a"], ["J.flange_b", "c.flange_a"], ["c.flange_b", "K.flange_a"],
  ["T.port", "G.port_a"], ["G.port_b", "H.port"],
]
[components]
x = { kind = "Position", exact = true }
J = { kind = "Inertia", J_kgm2 = 0.5 }
K = { kind = "Inertia", J_kgm2 = 1.5 }
c = { kind = "Spring", c_Nm_per_rad = 100 }
T = { kind = "PrescribedTemperature" }
G = { kind = "ThermalConductor", G_W_per_K = 1 }
H = { kind = "HeatCapacitor", C_J_per_K = 10 }
"""


def scenario(folder: Path, inputs: str) -> Path:
    (folder / "moved.toml").write_text(DRIVELINE)
    path = folder / "scenario.toml"
    path.write_text(f'[scenario]\nname = "s"\npowertrain = "moved.toml"\nduration_s = 0.1\n[inputs]\n{inputs}')
    return path


def test_an_exact_motion_needs_its_reference_only(tmp_path: Path) -> None:
    path = scenario(tmp_path, '"x.phi_ref_deg" = { kind = "Sine", amplitude = 90.0, f = 2.0 }\n"T.T_K" = 320.0')
    out = simulate(path, tmp_path / "run")
    with np.load(out / "signals.npz") as r:
        phase = 4 * np.pi * r["time"][1:]
        assert r["J.phi"][1:] == pytest.approx(0.5 * np.pi * np.sin(phase), abs=1e-6)
        assert r["J.a"][1:] == pytest.approx(-0.5 * np.pi * (4 * np.pi) ** 2 * np.sin(phase), rel=1e-3, abs=1.0)
    info = read_run_info(out)
    assert info is not None and info.stats is not None
    # 0.1 s in ticks of 1 ms
    assert info.stats.clock.ticks == 100
    assert info.stats.clock.real_time_factor * info.stats.clock.run_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [
        ('"T.T_K" = 320.0', MissingValueError, ["no value for x.phi_ref "]),
        ('"x.phi_ref" = 0.0\n"T.T_K" = 320.0', UnknownKeyError, ["needs its unit", "x.phi_ref_rad", "x.phi_ref_deg"]),
        ('"x.phi_ref_rad" = 0.0\n"T.T" = 320.0', UnknownKeyError, ["needs its unit", "T.T_K"]),
        ('sorce = "data sheet"\n"x.phi_ref_rad" = 0.0\n"T.T_K" = 320.0', UnknownNameError, ["did you mean 'source'?"]),
        ('"x.phi_ref\'_radps" = 0.0\n"x.phi_ref_rad" = 0.0\n"T.T_K" = 320.0', UnknownNameError, ["x.phi_ref_rad"]),
    ],
)
def test_what_is_wrong_with_inputs_is_named(
    tmp_path: Path, inputs: str, error: type[Exception], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        compiled(load_scenario(scenario(tmp_path, inputs)))
    for word in words:
        assert word in str(caught.value) + " ", str(caught.value)
