"""A package adds a kind of device to rigs with one class and one entry point, which runs, replays and is described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import Field
from rig_help import rig_file

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.catalogue.models import KINDS
from torqueloop.hil.catalogue.pages import page
from torqueloop.hil.catalogue.schema import schema
from torqueloop.hil.common import plugins
from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.devices.registry import rig_model
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig


class Tap(ConfigTable):
    """[taps.NAME]: a measuring amplifier on a signal; its voltage is the signal tap.NAME."""

    #: signal it measures
    signal: str
    #: voltage per unit of the signal
    gain: float = Field(gt=0)


class TapTables(ConfigTable):
    """What the rig file has of them."""

    #: measuring amplifiers by name
    taps: dict[str, Tap] = {}


class Taps(Device[TapTables]):
    """Signals tap.NAME in V."""

    TABLES = TapTables
    GROUPS = ("tap",)

    def signals(self) -> None:
        self.table.add_all((f"tap.{name}", "V") for name in self.given.taps)

    def plan(self) -> None:
        for name, tap in self.given.taps.items():
            source = self.read_slot(tap.signal, f"taps.{name}", "signal")
            self.rig.in_copies.append((source, self.table.slot(f"tap.{name}"), tap.gain, 0.0))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package on the path whose entry point names the class above."""
    info = tmp_path / "amplifiers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: amplifiers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[torqueloop.devices]\ntaps = {__name__}:Taps\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._found.cache_clear()
    yield
    plugins._found.cache_clear()


TAP = '[taps.engine]\nsignal = "engine.w"\ngain = 0.01\n'


@pytest.mark.usefixtures("installed")
def test_its_signal_runs_in_the_tick_is_recorded_and_replays(tmp_path: Path) -> None:
    path = rig_file(tmp_path, "record.every = 1", add=TAP)
    result = run_rig(path, RunSpec("virtual", 0.5, tmp_path / "run"))
    run = tl.read_run(result.out)
    speed, voltage = run.signal("engine.w"), run.signal("tap.engine")
    assert load_plan(path).table.unit("tap.engine") == "V" and np.ptp(speed) > 1.0
    # inputs are copied before the step: the tap shows the speed at the end of the tick before
    np.testing.assert_array_equal(voltage[1:], 0.01 * speed[:-1])
    assert replay(result.out).hash_equal


@pytest.mark.usefixtures("installed")
def test_its_tables_are_checked_named_and_described_like_all_others(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rig.toml: gain = -1.0 .*\[taps.engine\].*> 0"):
        load_plan(rig_file(tmp_path, add=TAP.replace("0.01", "-1.0")))
    with pytest.raises(ConfigError, match=r"signal.*'engine.v'.*\[taps.engine\].*did you mean"):
        load_plan(rig_file(tmp_path, add=TAP.replace("engine.w", "engine.v")))
    with pytest.raises(ConfigError, match="'tap' is no name of a bus or control unit"):
        load_plan(rig_file(tmp_path, add="[ecu.tap]\n"))
    kind = replace(KINDS[0], model=rig_model())
    assert "`[taps.NAME]`" in page(kind) and "signal it measures" in page(kind)
    assert schema(kind)["definitions"]["Tap"]["properties"]["gain"]["description"] == "voltage per unit of the signal"


def test_without_the_package_its_table_is_an_unknown_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key 'taps'"):
        load_plan(rig_file(tmp_path, add=TAP))


def test_an_entry_point_that_is_no_device_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plugins.OWN, plugins.DEVICES, {"taps": "torqueloop.hil.rig.resolve.plan:load_plan"})
    with pytest.raises(plugins.PluginError, match="taps.*is no subclass of torqueloop.hil.rig.devices.device.Device"):
        load_plan(rig_file(tmp_path))
