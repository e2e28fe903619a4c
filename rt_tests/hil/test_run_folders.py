"""Run folders that are being written, half deleted, or of an older version: what each reader says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rig_help import DESK
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.hil import cli
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import ResultVersionError
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.testing.driven_rig import DrivenRig
from torqueloop.hil.testing.holder import Holder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folders") / "run"
    run_rig(DESK, RunSpec("virtual", 0.3, out, overrides={"gates": {"safe": "safe_state_latched == 0"}}))
    return out


def called(*arguments: str | Path) -> tuple[int, str]:
    more = ["--no-html"] if arguments[0] == "report" else []
    result = CliRunner().invoke(cli.app, [*map(str, arguments), *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_one_that_is_being_written(tmp_path: Path) -> None:
    """What is there is read, and that it goes on is said; nothing of it is changed."""
    out = tmp_path / "run"
    holder = Holder(DESK, "virtual", out, duration_s=10.0)
    try:
        DrivenRig(holder, out).run(0.6)
        holder.live.recorder.flush()
        run = tl.read_run(out)
        assert run.signals.n == 600 and not run.signals.closed and not run.passed
        report = analyse(out)
        assert report.exit_status == 1 and "running" in report.run.incomplete[0], report.run.incomplete
        status, text = called("replay", out)
        assert status == 0 and "no end mark" in text, text
        DrivenRig(holder, out).run(0.4)
    finally:
        holder.end()
    assert tl.read_run(out).signals.n == 1000


def _gone(name: str) -> Callable[[Path], None]:
    def spoil(run: Path) -> None:
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()

    return spoil


def _older(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    info["format"] = 1
    (run / "run.json").write_text(json.dumps(info))


@pytest.mark.proof
@pytest.mark.parametrize(
    ("spoil", "report", "replay"),
    [
        (_gone("signals"), (1, "no signals"), (0, "nothing to compare with but the hash")),
        (_gone("inputs"), (1, "inputs: "), (2, "inputs")),
        (_gone("bus"), (1, "bus: "), (0, "")),
        (_gone("run.json"), (1, "there is no run.json that can be read"), (2, "this holds no run.json")),
        (_gone("config/rigs/desk_4hp22.toml"), (1, "desk_4hp22.toml is missing"), (2, "names no rig file in config/")),
        (_older, (2, "results of format 1; this program reads 3"), (2, "results of format 1; this program reads 3")),
    ],
    ids=["signals", "inputs", "bus", "run.json", "config", "older version"],
)
def test_half_deleted_or_older(
    whole: Path, tmp_path: Path, spoil: Callable[[Path], None], report: tuple[int, str], replay: tuple[int, str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    assert called("report", run)[0] == called("replay", run)[0] == 0
    spoil(run)
    for command, (status, words) in (("report", report), ("replay", replay)):
        found, text = called(command, run)
        assert found == status and words in text, (command, found, text)


def test_an_older_version_is_named(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    _older(run)
    with pytest.raises(ResultVersionError, match="format"):
        tl.read_run(run)
