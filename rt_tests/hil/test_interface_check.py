"""`torqueloop bus scan --check` on logs of our own rigs, and how each message of an interface is known: everywhere a
person looks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import can
import cantools
import pytest
from rig_help import CONFIGS
from test_new_files import call

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.judge import judge
from torqueloop.hil.can.known import WORDS
from torqueloop.hil.can.scan import log_frames
from torqueloop.hil.ecu.interface_tables import interface_messages, load_interface
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.real_clock import _tell_doubts

INTERFACES = sorted(p.stem for p in (CONFIGS / "interfaces").glob("*.toml"))
BUS = 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tl.RecordedRun:
    """3 s of the desk rig of VW PQ."""
    return tl.run("desk_vw_pq", clock="virtual", duration=3.0, out=tmp_path_factory.mktemp("pq") / "run", html=True)


def log_of(run: tl.RecordedRun, path: Path) -> Path:
    """The maker's bus of a run as python-can writes it."""
    with can.Logger(path) as writer:
        for frame in run.frames():
            if frame["bus"] == BUS:
                number = int(frame["id"])
                writer(can.Message(timestamp=1e-9 * float(frame["t_ns"]), arbitration_id=number & 0x1FFFFFFF,
                                   is_extended_id=number >> 31 == 1,
                                   data=frame["data"].tobytes()[: frame["dlc"]]))  # fmt: skip
    return path


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_message_says_how_it_is_known_and_from_where(interface: str) -> None:
    path = CONFIGS / "interfaces" / f"{interface}.toml"
    read = load_interface(path)
    names = interface_messages(path, read)
    assert names and set(read.known) == set(names)
    raw = cantools.database.load_file(CONFIGS / "can" / f"{read.database}.dbc")
    for name, known in read.known.items():
        assert known.source, name
        message = raw.get_message_by_name(name)
        assert (known.period == "event") == (not message.cycle_time), name
        assert set(known.signals) <= {s.name for s in message.signals}, name


def test_a_message_that_is_not_in_the_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "egs_bmw_e9x"\n[known.AccPedals]\nlayout = "recorded"\n')
    with pytest.raises(ConfigError, match="AccPedals.*AccPedal"):
        interface_messages(path, load_interface(path))
    status, text = call("check", path)
    assert status == 2 and "did you mean 'AccPedal'" in text


@pytest.mark.parametrize("ending", ["asc", "log", "blf", "trc", "mf4"])
def test_a_log_of_our_own_confirms_its_interface(run: tl.RecordedRun, ending: str, tmp_path: Path) -> None:
    if ending == "mf4":
        pytest.importorskip("asammdf")
    found = judge(log_frames(log_of(run, tmp_path / f"bus.{ending}")), CONFIGS / "can" / "vw_pq.dbc")
    assert found.frames > 1900
    assert found.undeclared == [] and not found.skipped
    assert {name: row.state for name, row in found.messages.items()} == dict.fromkeys(found.messages, "confirmed")
    assert found.messages["Motor_6"].fits[0].rule == "XOR"


def test_the_command_says_and_writes_what_is_confirmed_and_contradicted(
    run: tl.RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(run, tmp_path / "bus.asc")
    monkeypatch.chdir(tmp_path)
    status, text = call("bus", "scan", "--log", log, "--check", "tcu_vw_pq")
    assert status == 0 and "confirmed: Getriebe_1" in text and "contradicted" not in text
    # planted: a period wrong by two, and a message that has another identifier
    dbc = (CONFIGS / "can" / "vw_pq.dbc").read_text()
    cycle = int(dbc.split('"GenMsgCycleTime" BO_ 640 ')[1].split(";")[0])
    wrong = dbc.replace(f"BO_ 640 {cycle};", f"BO_ 640 {2 * cycle};").replace("1088", "1087")
    (tmp_path / "wrong.dbc").write_text(wrong)
    asked = ("bus", "scan", "--log", log, "--check", "tcu_vw_pq")
    status, text = call(*asked, "--dbc", "wrong.dbc", "--write", "own.toml")
    assert status == 1 and f"declared {2 * cycle}" in text and "not seen: Getriebe_1" in text
    assert "1 identifiers that no database declares" in text and "440:" in text
    own = load_interface(tmp_path / "own.toml")
    assert own.known["Motor_1"].period == "contradicted" and "declared 20" in own.known["Motor_1"].log
    assert own.known["Motor_5"].period == "recorded" and own.known["Motor_5"].source
    assert own.known["Getriebe_1"].log == ""
    status, text = call("check", "own.toml")
    assert status == 0 and "Motor_1: period contradicted by a recording" in text
    status, text = call("bus", "scan", "--log", log, "--check", "tcu_vw_pq", "--write", "own.toml")
    assert status == 2 and "nothing is overwritten" in text
    status, text = call("bus", "scan", "--log", log, "--check", "tcu_vw_pq", "--json")
    assert status == 0 and json.loads(text)["messages"]["Motor_1"]["state"] == "confirmed"


def test_the_report_says_how_each_message_is_known(run: tl.RecordedRun) -> None:
    known = run.stats.buses["car"].known
    read = load_interface(CONFIGS / "interfaces" / "tcu_vw_pq.toml").known
    assert {n: (k.layout, k.period) for n, k in known.items()} == {
        n: (WORDS[k.layout], WORDS[k.period]) for n, k in read.items()
    }
    page = (run.path / "report.html").read_text()
    assert "How each message of this bus is known" in page and "eingelegte_Fahrstufe: assumed" in page


def test_what_is_assumed_is_said_before_a_real_bus_is_armed(capsys: pytest.CaptureFixture[str]) -> None:
    plan = load_plan(CONFIGS / "rigs" / "desk_vw_mqb.toml")
    told: list[str] = []
    live = SimpleNamespace(plan=plan, degrade=told.append)
    _tell_doubts(live)  # type: ignore[arg-type]
    assert capsys.readouterr().err == "" and told == []
    bus = plan.bus("car")
    bus.config = bus.config.model_copy(update={"interface": "socketcan", "channel": "can0"})
    _tell_doubts(live)  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert "bus car (socketcan can0)" in said and "Getriebe_12: period assumed, checksum not public" in said
    assert told and told[0] in said


def test_the_bus_itself_may_name_the_interface_when_the_control_unit_is_a_real_one() -> None:
    rig = CONFIGS / "rigs" / "desk_bmw_e9x.toml"
    real = {"ecu.tcu": None, "bus.car.known": "egs_bmw_e9x"}
    assert load_plan(rig, real).bus("car").known == load_plan(rig).bus("car").known
    assert load_plan(rig, {"ecu.tcu": None}).bus("car").known == {}
    with pytest.raises(ConfigError, match="egs_bmw_e99"):
        load_plan(rig, {"bus.car.known": "egs_bmw_e99"})
