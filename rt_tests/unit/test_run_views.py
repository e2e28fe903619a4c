"""A simulated, a recorded and a live run answer in the same words, with the same numbers that are in them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from synthetic_run import write_run

import torqueloop as tl
from torqueloop.core.components import Inertia, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import RangeError, UnknownNameError
from torqueloop.hil.testing.driven_rig import Window


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tl.RecordedRun:
    return tl.read_run(write_run(tmp_path_factory.mktemp("runs") / "run", duration_s=2.0))


def simulated(_: tl.RecordedRun) -> tuple[tl.Run, str, str]:
    """10 N.m on 2 kg.m2: w = 5 t."""
    line = Driveline("one")
    line.add("J", Inertia(J=2.0))
    line.add("T", Torque())
    line.connect("T.flange", "J.flange_a")
    return tl.Simulation(line, h=1e-3).run(2.0, inputs={"T.tau": 10.0}), "J.w", "rad/s"


def as_recorded(run: tl.RecordedRun) -> tuple[tl.Run, str, str]:
    return run, "engine.w", "rad/s"


def live(run: tl.RecordedRun) -> tuple[tl.Run, str, str]:
    rig = SimpleNamespace(column=lambda signals, name: signals[name])
    return Window(rig, run.signals, 500), "engine.w", "rad/s"  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [simulated, as_recorded, live])
def test_all_kinds_of_runs_answer_alike(
    kind: Callable[[tl.RecordedRun], tuple[tl.Run, str, str]], recorded: tl.RecordedRun
) -> None:
    run, name, unit = kind(recorded)
    assert isinstance(run, tl.Run) and name in run and name in list(run) and run.units[name] == unit
    w = run.signal(name)
    assert w.shape == run.t.shape and np.array_equal(run[name], w)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    frame = run.to_dataframe([name])
    assert isinstance(frame, pandas.DataFrame) and list(frame) == [name] and frame.index.name == "t"
    np.testing.assert_array_equal(frame[name].to_numpy(), w)
    np.testing.assert_array_equal(frame.index.to_numpy(), run.t)
    assert set(run.to_dataframe()) == set(run)
    (axes,) = run.plot([name], from_s=1.2, until_s=1.5).axes
    (line,) = axes.lines
    inside = (run.t >= 1.2) & (run.t <= 1.5)
    np.testing.assert_array_equal(line.get_xdata(), run.t[inside])
    np.testing.assert_array_equal(line.get_ydata(), w[inside])
    assert axes.get_ylabel() == f"[{unit}]"
    with pytest.raises((KeyError, UnknownNameError), match="engin.w"):
        run.to_dataframe(["engin.w"])
    with pytest.raises(RangeError, match="names is empty"):
        run.plot([])


def test_a_simulated_run_has_its_samples_at_their_times(recorded: tl.RecordedRun) -> None:
    run, name, _ = simulated(recorded)
    np.testing.assert_allclose(run.signal(name), 5.0 * run.t, atol=1e-12)


def test_a_live_run_begins_where_it_was_asked_from(recorded: tl.RecordedRun) -> None:
    window, name, _ = live(recorded)
    np.testing.assert_array_equal(window.t, recorded.t[500:])
    np.testing.assert_array_equal(window.signal(name), recorded[name][500:])
