"""The command line: defaults by bare name, exit status, one clear message per mistake, no traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import can
import numpy as np
import pytest
from synthetic_run import write_run
from typer.testing import CliRunner
from waiting import PATIENCE_S

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil import cli
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.common.locate import installed, locate
from torqueloop.hil.record.bus_log import read_bus

CONFIGS = [path for folder in ("gearboxes", "powertrains", "rigs", "tcu", "vehicles", "scenarios", "can")
           for path in installed(folder).values()]  # fmt: skip


def call(*arguments: str | Path) -> tuple[int, str]:
    """(exit status, everything printed); an exception that escapes fails the test."""
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, re.sub(r"\s+", " ", result.output)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", duration_s=3.0, gates=["missed == 0"])


# --- report ---------------------------------------------------------------------------------------------------------


def test_report_status_follows_the_gates(run_dir: Path) -> None:
    assert call("report", run_dir, "--no-html")[0] == 0
    status, text = call("report", run_dir, "--no-html", "--gate", "compute_p99_us < 1")
    assert status == 1 and "FAIL" in text


@pytest.mark.proof
def test_report_writes_all_files(run_dir: Path) -> None:
    status, text = call("report", run_dir, "--candump")
    assert status == 0 and "600 frames" in text
    for name in ("report.html", "report.json", "junit.xml", "modes.csv", "bus.log"):
        assert (run_dir / name).stat().st_size > 0


def test_report_as_json_is_only_json(run_dir: Path) -> None:
    result = CliRunner().invoke(cli.app, ["report", str(run_dir), "--no-html", "--json"])
    assert json.loads(result.stdout)["metrics"]["ticks"] == 3000


def test_unknown_metric_is_wrong_input_with_the_closest_name(run_dir: Path) -> None:
    status, text = call("report", run_dir, "--no-html", "--gate", "mised == 0")
    assert status == 2 and "did you mean 'missed'" in text


def test_mf4_holds_the_signals(run_dir: Path) -> None:
    asammdf = pytest.importorskip("asammdf")
    status, _ = call("report", run_dir, "--no-html", "--mf4")
    assert status == 0
    with asammdf.MDF(run_dir / "signals.mf4") as mdf:
        engine = mdf.get("engine.w")
        assert len(engine.samples) == 3000 and engine.unit == "rad/s"
    with asammdf.MDF(run_dir / "bus.mf4") as mdf:
        assert len(mdf.get("CAN_DataFrame.ID").samples) == 600


@pytest.mark.parametrize(("name", "more"), [("b.blf", ()), ("b.asc", ()), ("b.log", ()), ("b.csv", ("--frames",))])
def test_export_writes_the_frames_that_were_recorded(
    run_dir: Path, tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    frames = read_bus(run_dir)[0]
    status, text = call("export", run_dir, tmp_path / name, *more)
    assert status == 0 and f"{name}: {len(frames)} frames" in text
    with can.LogReader(tmp_path / name) as reader:
        read = list(reader)
    assert [m.arbitration_id for m in read] == list(frames["id"] & 0x1FFFFFFF)
    assert [bytes(m.data) for m in read] == [bytes(f["data"][: f["dlc"]]) for f in frames]


def test_export_of_frames_takes_no_choice_of_signals(run_dir: Path, tmp_path: Path) -> None:
    for words in (("--signal", "engine.w"), ("--every", "10")):
        status, text = call("export", run_dir, tmp_path / "b.blf", *words)
        assert status == 2 and "frames are written whole" in text
    # without --frames a table is one of signals
    status, text = call("export", run_dir, tmp_path / "b.csv")
    assert status == 0 and "samples of" in text


def test_mf4_of_frames_without_the_extra_says_what_to_install(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals need no other package."""
    monkeypatch.setattr("torqueloop.hil.record.mf4.with_asammdf", lambda: False)
    monkeypatch.setitem(sys.modules, "asammdf", None)
    status, text = call("report", run_dir, "--no-html", "--mf4")
    assert status == 2 and "pip install 'torqueloop[mf4]'" in text
    assert call("export", run_dir, tmp_path / "signals.mf4")[0] == 0


def test_report_of_something_else_is_wrong_input(tmp_path: Path) -> None:
    assert call("report", tmp_path)[0] == 2


# --- finding and checking -------------------------------------------------------------------------------------------


def test_installed_files_are_found_by_bare_name() -> None:
    assert locate("zf_4hp22", "gearboxes").name == "zf_4hp22.toml"
    with pytest.raises(ConfigError, match="did you mean 'zf_4hp22'"):
        locate("zf_4hp2", "gearboxes")
    with pytest.raises(ConfigError, match="no such gearbox file"):
        locate("somewhere/zf_4hp22.toml", "gearboxes")


def test_a_file_in_the_working_directory_goes_before_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zf_4hp22").write_text("")
    assert locate("zf_4hp22", "gearboxes") == Path("zf_4hp22")
    # a bare name is the file with the suffix, one of the user and one that is installed, too
    for name in ("mine", "lepelletier_6hp26"):
        Path(f"{name}.toml").write_text("")
        assert locate(name, "gearboxes") == Path(f"{name}.toml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_installed_file_passes_check(path: Path) -> None:
    checked = check_file(path)
    assert checked.ok, str(checked.error)
    assert checked.text


def changed(path: Path, tmp_path: Path, old: str, new: str) -> Path:
    """A copy of the folder's file with one thing changed, its neighbours beside it."""
    text = path.read_text()
    assert old in text
    target = tmp_path / "configs"
    target.mkdir()
    for folder in path.parent.parent.iterdir():
        if folder.is_dir() and not folder.name.startswith("__"):
            (target / folder.name).symlink_to(folder)
    own = target / path.parent.name
    own.unlink()
    own.mkdir()
    for other in path.parent.iterdir():
        if other.is_file():
            (own / other.name).write_bytes(other.read_bytes())
    copy = own / path.name
    copy.write_text(text.replace(old, new, 1))
    return copy


@pytest.mark.parametrize(
    ("folder", "name", "old", "new", "words"),
    [
        ("gearboxes", "zf_4hp22", "J_kgm2 = 0.020", "J = 0.020", ["J_kgm2", "components.in"]),
        ("gearboxes", "zf_4hp22", 'kind = "LaminarClutch"', 'kind = "LaminarClutsh"', ["LaminarClutch"]),
        ("rigs", "desk_4hp22", "[plant]", "[clock]\ntick_s = 2.0\n[plant]", ["tick_s", "clock", "0.1"]),
        ("rigs", "desk_4hp22", "[plant]", "[clock]\nsubstep = 1\n[plant]", ["substep", "substeps"]),
        ("rigs", "desk_4hp22", "TCU_Pressure_1.p_C4", "TCU_Pressure_1.p_C9", ["p_C9", "did you mean"]),
        ("scenarios", "wot_4hp22", '"C4.p_bar"', '"C4.p"', ["C4.p_bar", "inputs"]),
        ("scenarios", "wot_4hp22", '"C4.p_bar"', '"C44.p_bar"', ["C4.p_bar", "inputs"]),
        ("scenarios", "wot_4hp22", '"C8.p_bar" = 0.0', "", ["C8.p"]),
        ("scenarios", "wot_4hp22", '"C8.p_bar" = 0.0', '"C8.p_bar" = [[1.0, 0.0], [0.5, 1.0]]', ["C8.p_bar", "time"]),
    ],
)
def test_check_names_the_mistake(tmp_path: Path, folder: str, name: str, old: str, new: str, words: list[str]) -> None:
    bad = changed(installed(folder)[name], tmp_path, old, new)
    status, text = call("check", bad)
    assert status == 2 and "wrong" in text and "Traceback" not in text
    for word in [*words, bad.name]:
        assert word in text, text


def test_check_goes_on_after_a_wrong_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("a = [1,")
    status, text = call("check", broken, tmp_path / "missing.toml", installed("gearboxes")["zf_4hp22"])
    assert status == 2 and text.count("wrong") == 2 and "not TOML" in text and "no such file" in text and "ok" in text


def test_gearbox_prints_ratios_and_json() -> None:
    status, text = call("gearbox")
    assert status == 0 and "2.47945" in text and "0.72807" in text
    result = CliRunner().invoke(cli.app, ["gearbox", "zf_4hp22", "--json"])
    assert json.loads(result.stdout)["gears"]["3"]["ratio"] == 1.0


def test_gearbox_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert call("gearbox", "zf_4hp22", "--plot", tmp_path / "gearbox.png")[0] == 0
    assert (tmp_path / "gearbox.png").read_bytes().startswith(b"\x89PNG")


# --- doing ----------------------------------------------------------------------------------------------------------


def test_simulate_leaves_a_run_directory_with_a_closed_energy_balance(tmp_path: Path) -> None:
    out = tmp_path / "run"
    gates = "energy_residual_rel < 1e-9, t_0_100_kmh_s == 0"
    status, text = call("simulate", "--duration", "3", "--out", out, "--no-html", "--csv", "--gate", "complete == 1")
    # the scenario's own gate asks for all three upshifts, which 3 s do not hold
    assert status == 1 and "shifts = 0" in text
    for name in ("signals.npz", "signals.csv", "modes.csv", "run.json", "report.json", "config/wot_4hp22.toml"):
        assert (out / name).is_file(), name
    metrics = json.loads((out / "report.json").read_text())["metrics"]
    assert metrics["energy_residual_rel"] < 1e-9 and metrics["ticks"] == 3000 and metrics["clock"] == "offline"
    # what was not reached was not measured: that is no pass; a metric that does not exist is wrong input
    status, text = call("report", out, "--no-html", "--gate", gates)
    assert status == 1 and "t_0_100_kmh_s was not measured" in text
    assert call("report", out, "--no-html", "--gate", "t_0_100_kmh == 0")[0] == 2
    assert call("simulate", "--duration", "3", "--out", out)[0] == 2


def test_run_replay_and_report_of_a_virtual_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--clock", "virtual", "--duration", "1", "--out", out, "--no-html", "--quiet")
    assert call("run", *options, "--gate", "ticks == 1000")[0] == 0  # no upshift within 1 s: not judged
    status, text = call("replay", out)
    assert status == 0 and "identical: 1000 ticks replayed" in text
    result = CliRunner().invoke(cli.app, ["replay", str(out), "--json"])
    assert json.loads(result.stdout)["hash_equal"] is True
    # the same bits with one of them flipped are found, with signal and tick
    from torqueloop.hil.record.columns import encode
    from torqueloop.hil.record.recording import ChunkWriter
    from torqueloop.hil.record.run_data import read_signals

    signals = read_signals(out)
    records = signals.records
    records["out"].view(np.uint64)[700, signals.names.index("engine.w")] ^= np.uint64(1)
    (out / "signals").rename(tmp_path / "old")
    writer = ChunkWriter(out / "signals", signals.header)
    writer.write(encode(records))
    writer.close()
    status, text = call("replay", out)
    assert status == 1 and "first difference: tick 700 (t = 0.7010 s): engine.w" in text


def test_replay_of_what_is_no_rig_run_is_wrong_input(run_dir: Path) -> None:
    status, text = call("replay", run_dir)
    assert status == 2 and "names no rig file" in text


def test_replay_of_no_run_directory_says_so(tmp_path: Path) -> None:
    status, text = call("replay", tmp_path / "nosuch")
    assert status == 2 and "nosuch: a run directory is needed, and this is not there" in text
    status, text = call("replay", tmp_path)
    assert status == 2 and "this holds no run.json" in text


def test_mistakes_in_gates_are_found_before_anything_starts(tmp_path: Path) -> None:
    for name in ("run", "simulate"):
        status, text = call(name, "--out", tmp_path / "run", "--gate", "missed = 0")
        assert status == 2 and "column 8" in text
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["run", "simulate", "tcu", "vehicle", "gearbox"])
def test_unknown_names_are_wrong_input(name: str) -> None:
    status, text = call(name, "no_such_thing")
    assert status == 2 and "error:" in text and "no_such_thing" in text


def test_ctrl_c_ends_cleanly(monkeypatch: pytest.MonkeyPatch, run_dir: Path) -> None:
    import torqueloop.hil.report.write as write

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(write, "write_report", interrupted)
    status, text = call("report", run_dir)
    assert status == 130 and "interrupted" in text


def test_doctor_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(cli.app, ["doctor", "--probe", "0", "--json"])
    data = json.loads(result.stdout)
    assert result.exit_code == (0 if data["fit"] else 1)
    assert {f["name"] for f in data["findings"]} >= {"kernel", "UDP multicast"}


def test_help_of_every_command_and_no_traceback_in_a_real_process(tmp_path: Path) -> None:
    for name in ("run", "simulate", "tcu", "vehicle", "report", "replay", "gearbox", "check", "doctor"):
        status, text = call(name, "--help")
        assert status == 0 and "Usage" in text
    command = [sys.executable, "-m", "torqueloop.hil.cli", "report", str(tmp_path / "missing")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, timeout=PATIENCE_S)
    assert done.returncode == 2 and "no such directory" in done.stderr and "Traceback" not in done.stderr


def test_list_shows_whole_sentences_on_a_narrow_screen() -> None:
    status, text = call("list", "rigs")
    assert status == 0
    assert "…" not in text and "[bold]" not in text
    assert "software (UDP multicast), vehicle process over ZeroMQ" in " ".join(text.split())


def test_list_of_an_unknown_kind_is_wrong_input() -> None:
    status, text = call("list", "vehicle")
    assert status == 2 and "did you mean 'vehicles'?" in text
    assert call("list", "vehicles")[0] == 0


def test_a_page_of_the_manual_is_shown_by_its_name() -> None:
    status, text = call("docs", "own_tcu")
    assert status == 0 and text.startswith("# A control unit in Python A control unit in Python is a class")
    status, text = call("docs")
    assert status == 0 and "[I/O devices](io.md)" in text
    status, text = call("docs", "own_tuc")
    assert status == 2 and "did you mean 'own_tcu'?" in text
