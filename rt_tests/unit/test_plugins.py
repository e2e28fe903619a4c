"""Kinds of control units, vehicles and gateways: found by entry points, in a checkout as well, with clear errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from torqueloop.core.describe.errors import ConfigError, UnknownKindError
from torqueloop.hil.can.bus import CanBusConfig, open_bus
from torqueloop.hil.common import plugins
from torqueloop.hil.ecu.control_unit import Bus, ControlUnit, EcuSetup, make_unit
from torqueloop.hil.ecu.soft_tcu import SoftTcu
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle import Vehicle, VehicleSetup, make_vehicle

ROOT = Path(__file__).resolve().parents[2]
TCU, CAR = ROOT / "configs/tcu/soft_4hp22.toml", ROOT / "configs/vehicles/bmw_528i_e28.toml"
BUS = Bus("powertrain", ROOT / "configs/can/tcu_4hp22.dbc", "TCU", CanBusConfig())

MODULE = """
class Unit:
    period_s = 5e-3
    def __init__(self, setup): self.setup = setup
    def start(self): pass
    def step(self, inputs): return None
    def save(self): return None
    def load(self, data): pass
    def stop(self): return {}

class Port:
    name, own_echoes, malformed, kernel_drops, bus_off = "mine", 0, 0, 0, False
    def __init__(self, config, ids): self.config = config
    def recv(self, timeout_s): return None
    def send(self, can_id, data, flags=0): pass
    def close(self): pass

class Lame:
    def __init__(self, setup): pass
    def start(self): pass

def raises(setup):
    raise KeyError("what")

number = 3
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution `someones_units` 1.2 in a folder on the path."""
    name = f"someones_units_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    info = tmp_path / "someones_units-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones_units\nVersion: 1.2\n")
    lines = ["[torqueloop.ecus]", f"mine = {name}:Unit", f"lame = {name}:Lame", f"raises = {name}:raises"]
    lines += [f"number = {name}:number", f"absent = {name}:Absent", "nowhere = no_such_module_at_all:Unit"]
    lines += ["[torqueloop.gateways]", f"my_bus = {name}:Port"]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._found.cache_clear()
    yield info
    plugins._found.cache_clear()


def test_our_own_kinds_are_those_of_the_package_description() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    # fixtures for pytest are no kind of a peer (rt_tests/hil/test_pytest_plugin.py)
    del described["pytest11"]
    # devices of ours are registered once, in the table of plugins
    ours = {group: dict(kinds) for group, kinds in plugins.OWN.items() if group != plugins.DEVICES}
    assert described == ours


def test_our_own_kinds_are_found_in_a_checkout_that_nobody_installed() -> None:
    unit: ControlUnit = make_unit("soft_tcu", EcuSetup("tcu", 1e-3, TCU, (BUS,)))
    car: Vehicle = make_vehicle("road", VehicleSetup(CAR))
    assert isinstance(unit, SoftTcu) and isinstance(car, VehicleModel)
    unit.start()
    assert unit.load(unit.save() or {}) is None and unit.stop().reported["steps"] == 0


def test_an_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(UnknownKindError) as error:
        make_unit("soft_tuc", EcuSetup("tcu", 1e-3, TCU, rig_file="rig.toml", table="ecu.tcu"))
    text = str(error.value)
    assert "rig.toml: no control unit kind 'soft_tuc' is installed in [ecu.tcu]; allowed: soft_tcu" in text
    assert "did you mean 'soft_tcu'?" in text


def test_a_kind_of_another_package_is_found(package: Path) -> None:
    unit = make_unit("mine", EcuSetup("gearbox", 1e-3))
    assert unit.setup.name == "gearbox"  # type: ignore[attr-defined]
    assert plugins.kinds(plugins.ECUS)[0] == "soft_tcu" and "mine" in plugins.kinds(plugins.ECUS)
    assert open_bus(CanBusConfig(interface="my_bus", channel="1")).name == "mine"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("lame", "made a Lame that has no period_s, step, save, load, stop"),
        ("raises", "failed: KeyError: 'what'"),
        ("number", "is a int, no callable"),
        ("absent", "cannot be loaded: AttributeError"),
        ("nowhere", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    ],
)
def test_a_broken_package_is_named_with_the_reason(package: Path, kind: str, why: str) -> None:
    with pytest.raises(plugins.PluginError) as error:
        make_unit(kind, EcuSetup("tcu", 1e-3, TCU))
    assert f"control unit kind {kind!r} of someones_units 1.2" in str(error.value) and why in str(error.value)


def test_two_packages_with_one_name_are_both_named(package: Path) -> None:
    with (package / "entry_points.txt").open("a") as stream:
        stream.write("\n[torqueloop.vehicles]\nroad = somewhere:else\n")
    with pytest.raises(plugins.PluginError, match=r"'road' is offered by torqueloop and by someones_units 1.2"):
        make_vehicle("road", VehicleSetup(CAR))


def test_our_kinds_refuse_what_they_do_not_know() -> None:
    where = {"rig_file": "r.toml", "table": "ecu.a"}
    with pytest.raises(ConfigError, match="needs its file"):
        make_unit("soft_tcu", EcuSetup("a", 1e-3, **where))
    with pytest.raises(ConfigError, match="unknown key 'x'"):
        make_unit("soft_tcu", EcuSetup("a", 1e-3, TCU, options={"x": 1}, **where))
    with pytest.raises(ConfigError, match="is on one bus"):
        make_unit("soft_tcu", EcuSetup("a", 1e-3, TCU, **where))
    with pytest.raises(ConfigError, match="node"):
        make_unit("soft_tcu", EcuSetup("a", 1e-3, TCU, (replace(BUS, node="TUC"),), **where))
    with pytest.raises(ConfigError, match="the same mass on both sides"):
        make_vehicle("road", VehicleSetup(CAR, 1000.0, "car"))
    # masses are the same to a millionth
    mass = tomllib.loads(CAR.read_text(encoding="utf-8"))["body"]["mass_kg"]
    for share in (-8e-7, 0.0, 8e-7):
        make_vehicle("road", VehicleSetup(CAR, mass * (1.0 + share), "car"))
    for share in (-2e-6, 2e-6):
        with pytest.raises(ConfigError, match="the same mass on both sides"):
            make_vehicle("road", VehicleSetup(CAR, mass * (1.0 + share), "car"))
