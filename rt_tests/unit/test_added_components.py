"""Component kinds of packages: found by entry points, compiled and simulated like ours, with clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError, UnknownKindError

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from torqueloop.core.components import Component, Flange
from torqueloop.core.describe.params import param


@dataclass(frozen=True, kw_only=True)
class Flywheel(Component):
    """A solid disc by its mass and radius: J = m r^2/2."""

    flanges: ClassVar = {"flange": Flange()}

    m: float = param("mass", "mass", low=0.0, above=True)
    r: float = param("radius", "length", low=0.0, above=True)

    def contribute(self, b):
        b.inertia("flange", 0.5 * self.m * self.r**2)
        b.motion_outputs(b.w("flange"))


class Idle(Component):
    """Forgot its law."""


number = 3
'''
LINE = """
name = "line"
connections = [["motor.flange", "disc.flange"]]
[components.motor]
kind = "ConstantTorque"
tau_constant_Nm = 10
[components.disc]
kind = "{kind}"
m_kg = 8
r_mm = 500
"""


def package(folder: Path, name: str, value: str) -> None:
    (folder / "their_parts.py").write_text(MODULE)
    info = folder / "their_parts-1.2.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-parts\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[torqueloop.components]\n{name} = {value}\n")


def line(folder: Path, kind: str = "Flywheel") -> Path:
    path = folder / "line.toml"
    path.write_text(LINE.format(kind=kind))
    return path


def test_a_component_of_a_package_moves_as_its_law_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownKindError, match="Flywheel"):
        tl.load(line(tmp_path))
    package(tmp_path, "Flywheel", "their_parts:Flywheel")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = tl.Simulation(tl.load(line(tmp_path)), h=1e-3).run(2.0)
    # J = 8 x 0.25 / 2 = 1 kg m2, 10 Nm: 10 rad/s2
    assert result["disc.w"][-1] == pytest.approx(20.0, rel=1e-9)
    assert np.isfinite(result["disc.phi"]).all()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("Flywheel", "their_parts:Nothing", "their-parts 1.2.*cannot be loaded: AttributeError"),
        ("Flywheel", "their_parts:number", "'Flywheel' of their-parts 1.2.*is no component"),
        ("Inertia", "their_parts:Flywheel", "'Inertia' of their-parts 1.2.*exists already"),
        ("Idle", "their_parts:Idle", "'Idle' of their-parts 1.2.*(contributes nothing|is no component)"),
    ],
)
def test_a_broken_package_is_named(
    name: str, value: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, name, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=text):
        tl.load(line(tmp_path))
