"""Names of before: refused in files with the remedy, written anew by `check --fix`, read in recordings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.renamed import migrated, signals_in
from torqueloop.hil.cli import app
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.record.export import export
from torqueloop.hil.results.files import read_run_info
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
        (OLD, "'../manoeuvres/my_rig.toml': no such file"),
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


RIG = f'''kind = "rig"\nextends = "{installed("rigs")["desk_4hp22"]}"
[monitors]
told = "TCU_Status.gear_actual"
limit.told_speed = 4.0
waive.told_pedal = "a reason"
[gates]
mine = "slip_s == 0, can_stolen_ids + can_powertrain_stolen_ids == 0, x_slip_s == 0, peers_tcu_steps > 0"
'''


def test_a_rig_file_with_keys_of_before_is_read(tmp_path: Path) -> None:
    """Keys of [monitors], metrics in gates: the plan is that of a file with the new ones."""
    text = RIG
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


def test_check_with_fix_writes_todays_keys_and_metrics(tmp_path: Path) -> None:
    """Where they are keys and metrics, and nowhere else: it is then the file that was read."""
    path = tmp_path / "old.toml"
    text = RIG.replace(" + can_powertrain_stolen_ids", "").replace("x_slip_s == 0, ", "")
    path.write_text(text)
    before = load_plan(path)
    told = CliRunner().invoke(app, ["check", str(path)])
    assert "has former names; `torqueloop check --fix FILE`" in told.output and path.read_text() == text
    assert CliRunner().invoke(app, ["check", "--fix", str(path)]).exit_code == 0
    new = path.read_text()
    assert not [word for word in ("told", "slip_s", "stolen", "peers_") if word in new]
    after = load_plan(path)
    assert after.config.monitors == before.config.monitors
    assert [g.text for g in own_gates(after)] == [g.text for g in own_gates(before)]
    assert "has former names" not in CliRunner().invoke(app, ["check", str(path)]).output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[monitors]\nlimit = { told_speed = 4.0 }", "[monitors]\nlimit = { reported_speed = 4.0 }"),
        ("[monitors.waive]\ntold_pedal = 'told'", "[monitors.waive]\nreported_pedal = 'told'"),
        ("monitors.told = 'a.b'", "monitors.reported = 'a.b'"),
        ("[vary]\n'rig.monitors.limit.told_speed' = [1]", "[vary]\n'rig.monitors.limit.reported_speed' = [1]"),
        ("[objective]\nminimise = 'slip_s' # slip_s", "[objective]\nminimise = 'lost_time_s' # slip_s"),
        ("[metrics]\nmine = { signal = 'peers_x.n' }", "[metrics]\nmine = { signal = 'peers_x.n' }"),
        ("[metrics.mine]\nvalue = '2*slip_s'", "[metrics.mine]\nvalue = '2*lost_time_s'"),
        ("[parameters]\ntold = 1\nslip_s = 'slip_s'", "[parameters]\ntold = 1\nslip_s = 'slip_s'"),
        ('kind = "control unit"\nname = "control unit"', 'kind = "tcu"\nname = "control unit"'),
    ],
)
def test_a_former_name_is_written_anew_where_it_is_one(old: str, new: str) -> None:
    assert migrated(old) == new and migrated(new) == new


def test_a_control_unit_says_that_it_is_a_tcu_and_the_former_word_is_read(tmp_path: Path) -> None:
    whole = installed("tcu")["soft_4hp22"].read_text()
    path = tmp_path / "mine.toml"
    path.write_text(whole.replace('kind = "tcu"', 'kind = "control unit"'))
    assert path.read_text() != whole and load_tcu_config(path).name == "soft_4hp22"
    assert migrated(path.read_text()) == whole


def test_a_unit_may_be_called_as_a_former_key(tmp_path: Path) -> None:
    """Only the keys themselves get today's names in a recording, not what people have called so."""
    old = json.loads((RECORDINGS / "names_of_before" / "run.json").read_text())
    stats = old["stats"]
    stats["peers"]["peers"] = stats["peers"].pop("tcu") | {"told": {"told": 3, "slip_s": 4}}
    stats["buses"] = {"stolen": stats["buses"]["powertrain"] | {"stolen": "A (0x1)"}}
    old["overrides"] = {"told": 1}
    old["monitors"]["limits"] = {"told_speed": 2.0}
    (tmp_path / "run.json").write_text(json.dumps(old))
    info = read_run_info(tmp_path)
    assert info is not None and info.stats is not None and info.monitors is not None
    assert set(info.stats.participants) == {"peers", "vehicle"} and info.overrides == {"told": 1}
    assert info.stats.participants["peers"].reported == {"told": 3, "slip_s": 4}
    assert info.stats.buses["stolen"].foreign == "A (0x1)" and info.monitors.limits == {"reported_speed": 2.0}


def test_names_of_before_in_python_work_with_a_warning() -> None:
    from torqueloop.hil.ecu.control_unit import ParticipantStats, PeerStats

    with pytest.warns(DeprecationWarning, match="reported"):
        made = PeerStats("process", told={"shifts": 3}, losses={"x": 1})
    assert made == ParticipantStats("process", reported={"shifts": 3}, losses={"x": 1})


def test_a_study_reports_its_progress_also_to_a_function_of_before(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    study = {
        "study": {"of": "wot_4hp22", "duration_s": 0.02}, "vary": {"model.components.car.m_kg": [1500.0, 1600.0]},
        "metrics": {"v": {"signal": "car.v", "take": "last"}},
    }  # fmt: skip
    seen: list[tuple[int, int]] = []

    @contextmanager
    def progress(total: int) -> Iterator[Callable[[int, object], None]]:
        yield lambda done, best: seen.append((total, done))

    with pytest.warns(DeprecationWarning, match="progress"):
        tl.sweep(study, out=tmp_path / "old", told=progress, jobs=1, html=False)
    old, seen[:] = list(seen), []
    tl.sweep(study, out=tmp_path / "new", progress=progress, jobs=1, html=False)
    assert old[-1] == (2, 2) and seen[-1] == (2, 2)


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
