"""Names of before: refused in files with the remedy, written anew by `check --fix`, read in recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.renamed import migrated, signals_in
from torqueloop.hil.cli import app
from torqueloop.hil.record.export import export
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.known_gates import own_gates
from torqueloop.hil.scenario.scenario_tables import load_scenario

RECORDINGS = Path(__file__).parents[1] / "hil" / "recordings"
OLD = """# the manoeuvre.step of manoeuvres/creep stays in a comment
kind = "manoeuvre"
[scenario]
name = "mine"
rig = "../manoeuvres/my_rig.toml"
[[steps]]
name = "manoeuvre"
when = 'manoeuvre.begun > 3'
[[checks]]
name = "not too far"
always = "manoeuvre.step < 2"
"""


def test_a_file_is_written_in_todays_names() -> None:
    new = migrated(OLD)
    assert new == (
        OLD.replace('kind = "manoeuvre"', 'kind = "scenario"')
        .replace("../manoeuvres/my", "../scenarios/my")
        .replace("'manoeuvre.begun", "'scenario.begun")
        .replace('"manoeuvre.step <', '"scenario.step <')
    ), "a step may be called manoeuvre, and a comment is left alone"
    assert migrated(new) == new


def test_a_name_inside_another_one_is_left_alone() -> None:
    for name in ("a.manoeuvre.step", "my_manoeuvre.step", "manoeuvre", "scenario.step"):
        assert signals_in(name) == name


def old_file(folder: Path, text: str) -> Path:
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "my_rig.toml").write_text(f'kind = "rig"\nextends = "{installed("rigs")["desk_4hp22"]}"\n')
    path = folder / "scenarios" / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OLD, "'manoeuvre' is no kind of file"),
        (OLD.replace('kind = "manoeuvre"\n', ""), "'../manoeuvres/my_rig.toml': no such file"),
        (OLD.replace('kind = "manoeuvre"\n', "").replace("../manoeuvres", "../scenarios"), "'manoeuvre.step < 2'"),
        (OLD.partition("[[checks]]")[0].replace('kind = "manoeuvre"\n', "").replace("../manoeuvres", "../scenarios"),
         "unknown signal 'manoeuvre.begun'"),
    ],
)  # fmt: skip
def test_an_old_name_is_refused_with_its_remedy(tmp_path: Path, text: str, said: str) -> None:
    path = old_file(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        made = load_scenario(path)
        load_plan(made.of_rig, made.overrides)
    assert said in str(error.value) and "torqueloop check --fix FILE" in str(error.value)


def test_check_with_fix_mends_an_old_file(tmp_path: Path) -> None:
    path = old_file(tmp_path, OLD)
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == 2
    result = CliRunner().invoke(app, ["check", "--fix", str(path)])
    assert result.exit_code == 0 and "now has the present names" in result.output, result.output
    assert path.read_text() == migrated(OLD)
    again = CliRunner().invoke(app, ["check", "--fix", str(path)])
    assert again.exit_code == 0 and "now has the present names" not in again.output


def test_a_rig_file_with_keys_of_before_is_read(tmp_path: Path) -> None:
    """Keys of [monitors], metrics in gates: the plan is that of a file with the new ones."""
    text = f'''kind = "rig"\nextends = "{installed("rigs")["desk_4hp22"]}"
[monitors]
told = "TCU_Status.gear_actual"
limit.told_speed = 4.0
waive.told_pedal = "a reason"
[gates]
mine = "slip_s == 0, can_stolen_ids + can_powertrain_stolen_ids == 0, x_slip_s == 0, peers_tcu_steps > 0"
'''
    made = []
    for k, one in enumerate((text, text.replace("told", "reported").replace("= \"slip_s", "= \"lost_time_s")
                             .replace("stolen_ids", "foreign_frames").replace("peers_", "participants_"))):  # fmt: skip
        path = tmp_path / f"{k}.toml"
        path.write_text(one)
        made.append(load_plan(path))
    monitors = made[0].config.monitors
    assert monitors.reported == "TCU_Status.gear_actual" and monitors == made[1].config.monitors
    assert (monitors.limit, monitors.waive) == ({"reported_speed": 4.0}, {"reported_pedal": "a reason"})
    old, new = ([g.text for g in own_gates(plan)] for plan in made)
    assert old == new and "lost_time_s == 0" in old and "participants_tcu_steps > 0" in old and "x_slip_s == 0" in old
    assert "can_foreign_frames + can_powertrain_foreign_frames == 0" in old


def test_names_of_before_in_python_work_with_a_warning() -> None:
    from torqueloop.hil.ecu.control_unit import ParticipantStats, PeerStats

    with pytest.warns(DeprecationWarning, match="reported"):
        made = PeerStats("process", told={"shifts": 3}, losses={"x": 1})
    assert made == ParticipantStats("process", reported={"shifts": 3}, losses={"x": 1})


def test_a_recording_with_names_of_before_reports(tmp_path: Path) -> None:
    """Recorded when the signals of steps were called manoeuvre.*; its file of results has such a condition as well.

    The times are those that the program of that time printed.
    """
    run = tl.read_run(RECORDINGS / "names_of_before")
    assert {"scenario.step", "scenario.state"} <= set(run) and not any(name.startswith("manoeuvre") for name in run)
    assert b"manoeuvre.step" in (RECORDINGS / "names_of_before" / "signals" / "000001.tlc").read_bytes()
    assert [(v.name, v.passed, v.t_s) for v in run.report.verdicts] == [
        ("engage", True, pytest.approx(0.101)), ("drive", True, pytest.approx(0.991)),
        ("it stands before", True, pytest.approx(0.981)), ("it moves", True, pytest.approx(1.241)),
    ]  # fmt: skip
    stats = run.report.stats
    assert set(stats.participants) == {"tcu", "vehicle"} and stats.participants["tcu"].reported["gear"] == "1"
    spec = run.report.run.info.monitors
    assert stats.clock.lost_time_s == 0.0 and spec is not None and spec.signals["reported"].endswith("gear_actual")
    assert spec.pairs[0].reported == "HIL_Speeds.n_engine" and (8.0, -2.0) in spec.reported
    made = export(RECORDINGS / "names_of_before", tmp_path / "old.csv")
    assert made.signals == 5 and "scenario.step" in (tmp_path / "old.csv").read_text()
