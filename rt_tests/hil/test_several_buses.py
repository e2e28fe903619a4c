"""A rig of two buses, one of them CAN FD, two control units of different kinds, and a package from outside that adds
one of them and the vehicle model by entry points."""

from __future__ import annotations

from pathlib import Path

import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common import plugins
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay

RIG = """
extends = "desk_4hp22"

[rig]
name = "two_buses"

[bus.body]
database = "body.dbc"
rx_timeout_s = { BODY_Echo = 1.0 }

[ecu.tcu]
bus = "powertrain"

[ecu.cluster]
kind = "own_cluster"
bus = "body"
node = "BODY"

[vehicle]
kind = "own_road"

# from bus to bus, and from the model, to a signal whose name is that of another bus too
[outputs]
"HIL_Cluster.gear" = { signal = "TCU_Status.gear_actual" }
"body.HIL_Cluster.n_engine" = "engine.w"
"""

BODY = """VERSION ""

NS_ :

BS_:

BU_: HIL BODY

BO_ 768 HIL_Cluster: 12 HIL
 SG_ gear : 0|8@1+ (1,0) [0|255] "" BODY
 SG_ n_engine : 16|16@1+ (0.25,0) [0|16000] "rpm" BODY

BO_ 769 BODY_Echo: 12 BODY
 SG_ echo : 0|8@1+ (1,0) [0|255] "" HIL

BA_DEF_ BO_ "GenMsgCycleTime" INT 0 10000;
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN",RESERVED,"StandardCAN_FD";
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_ "GenMsgCycleTime" BO_ 768 10;
BA_ "GenMsgCycleTime" BO_ 769 10;
BA_ "VFrameFormat" BO_ 768 14;
BA_ "VFrameFormat" BO_ 769 14;
""".replace("RESERVED", ",".join(['"reserved"'] * 12))

PACKAGE = """
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.ecu.control_unit import EcuOutputs, Frame, ParticipantStats
from torqueloop.hil.vehicle.model import make as road


class Cluster:
    period_s = 0.01

    def __init__(self, setup):
        bus = setup.buses[0]
        self.database = CanDatabase.load(bus.database, bus.node, timeouts_s={"*": 0.0})
        self.codec = self.database.codec()
        self.seen, self.gear = 0, 0.0

    def start(self): pass

    def step(self, inputs):
        for frame in inputs.frames:
            status, values = self.codec.decode(frame.can_id, frame.data, inputs.t_s, frame.flags)
            if status == "ok":
                self.seen, self.gear = self.seen + 1, values["gear"]
        data = self.codec.encode("BODY_Echo", {"echo": self.gear})
        return EcuOutputs((Frame(self.codec.can_id("BODY_Echo"), data, 4 | 8),))

    def save(self): return {"gear": self.gear, "codec": self.codec.save()}
    def load(self, data): self.gear = data["gear"]; self.codec.load(data["codec"])
    def stop(self): return ParticipantStats(losses={"seen twice": 3}, reported={"seen": self.seen, "gear": self.gear})


def make_road(setup):
    return road(setup)
"""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rig file, its second database, and a distribution on the path as pip would leave it."""
    installed = tmp_path / "site" / "own_parts-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[torqueloop.ecus]\nown_cluster = own_parts:Cluster\n\n[torqueloop.vehicles]\nown_road = own_parts:make_road\n"
    )
    (installed.parent / "own_parts.py").write_text(PACKAGE)
    assert "own_road" not in plugins.kinds(plugins.VEHICLES), "what was looked for before is not remembered as missing"
    monkeypatch.syspath_prepend(str(installed.parent))
    (tmp_path / "body.dbc").write_text(BODY)
    (tmp_path / "rig.toml").write_text(RIG)
    return tmp_path / "rig.toml"


def test_two_buses_two_kinds_of_control_units_and_a_vehicle_from_outside_replay_to_the_bit(
    rig: Path, tmp_path: Path
) -> None:
    run = tl.run(rig, clock="virtual", duration=9.0, out=tmp_path / "run", html=False)
    buses = run.stats.buses
    assert set(buses) == {"powertrain", "body"} and run.stats.clock.ticks == 9000
    assert buses["powertrain"].rx["TCU_Status"].ok == 900 and buses["body"].rx["BODY_Echo"].ok == 900
    for bus in buses.values():
        assert bus.rx_bad == 0
    # the gear went from bus to bus, to the unit there, and came back a control period later
    echo, gear = run["BODY_Echo.echo"], run["TCU_Status.gear_actual"]
    assert gear[-1] == 2.0 and echo[-1] == gear[-1], "it has shifted up once"
    late = echo.searchsorted(2.0) - gear.searchsorted(2.0)
    assert 0 < late <= 40, "ticks"
    # what a unit of somebody else's tells at its end is typed, and its losses are a check of the run
    told = run.stats.participants["cluster"]
    assert (told.place, told.losses, told.reported["gear"]) == ("in process", {"seen twice": 3}, 2.0)
    assert [c.text for c in run.report.checks if c.name.startswith("cluster") and not c.passed] == ["seen twice 3"]
    again = replay(tmp_path / "run")
    assert again.passed and again.compared == 9000


@pytest.mark.parametrize("broken", ["body", "powertrain"])
def test_a_broken_database_is_the_fault_of_its_own_bus(rig: Path, broken: str) -> None:
    """Not of the other bus, which lacks the messages that nobody could read."""
    if broken == "body":
        (rig.parent / "body.dbc").write_text(BODY.replace("SG_ gear : 0|8@1+", "SG_ gear 0|8@1+"))
    else:
        (rig.parent / "no.dbc").write_text("BO_ nothing\n")
        rig.write_text(RIG + f'[bus.powertrain]\ndatabase = "{rig.parent / "no.dbc"}"\n')
    with pytest.raises(ConfigError, match=rf"CAN database cannot be read.* in \[bus.{broken}\]"):
        load_plan(rig)
