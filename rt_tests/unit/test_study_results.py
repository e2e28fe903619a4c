"""What a study tells of its runs, a second time from made-up runs: table, page, timing, batches, generations."""

from __future__ import annotations

import html
import math
import re
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.study.design import Line, drawn, lines
from torqueloop.hil.study.measures import check, measures
from torqueloop.hil.study.optimise import optimise
from torqueloop.hil.study.page import _responses, _signals, write_page
from torqueloop.hil.study.parameter_paths import Target
from torqueloop.hil.study.pool import AHEAD, BATCH_MAX, BATCH_S, run_all, run_batch
from torqueloop.hil.study.result import StudyResult
from torqueloop.hil.study.store import table
from torqueloop.hil.study.study import Study, Timing, _Running
from torqueloop.hil.study.study_tables import StudyConfig
from torqueloop.hil.study.work import Job, Outcome

#: run k has the mass 1000 + k, and the seed 7000 - k: seeds fall where runs rise
N = 30


def config(**more: Any) -> StudyConfig:
    """Tables of a study of masses, seed 5, whose signals `w` are kept."""
    own = {"name": "masses", "of": "x", "design": "list", "seed": 5, "signals": ["w"], **more.pop("study", {})}
    tables = {
        "vary": {"mass": [1000.0 + k for k in range(N)]},
        "metrics": {"w": {"signal": "w"}},
        "objective": {"maximise": "w", "subject_to": ["mass_used < 1028.5"]},
    }
    return validate({"study": own, **tables, **more}, StudyConfig, "study.toml")


def job(signals: Path | None = None, **more: Any) -> Job:
    return Job("j", config(**more), Target(Path("x.toml"), "rig", ("rig",)), Path(), signals)


def runs() -> list[Outcome]:
    """w is largest in the middle, at run 12; run 3 cannot be made, runs 4 and 5 do not pass, 6 has a remark."""
    made = []
    for k in range(N):
        line = Line(k, 7000 - k, {"mass": 1000.0 + k})
        if k == 3:
            made.append(Outcome(line, error="no such car", took_s=0.5))
            continue
        metrics = {"w": 100.0 - abs(k - 12.1), "mass_used": 1000.0 + k}
        more = {"failures": (f"gate {k}", "late")} if k in (4, 5) else {"remarks": ("too steep",)} if k == 6 else {}
        made.append(Outcome(line, metrics, f"hash{k}", 0.25 + k, 0.75 + 2 * k, **more))  # type: ignore[arg-type]
    return made


#: the order of the runs that count, by hand: from 12 outwards to either side, 29 is too heavy
RANKED = sorted((k for k in range(29) if k != 3), key=lambda k: abs(k - 12.1))


def result(timing: Timing | None = None) -> StudyResult:
    return StudyResult(Study(job(), "study.toml", N), Path("there"), runs(), timing or Timing(2.0, 3, N, 1.5))


def sections(page: str) -> dict[str, list[list[str]]]:
    """Rows of the table of each section of a page, as a reader sees their cells."""
    found = {}
    for name, body in re.findall(r'<section id="(\w+)">(.*?)</section>', page, re.S):
        rows = re.findall(r"<tr.*?</tr>", body, re.S)
        cells = [
            [html.unescape(re.sub(r"<[^>]+>", "", c)).strip() for c in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)]
            for row in rows
        ]
        found[name] = cells
    return found


def test_the_page_names_every_run_by_its_number(tmp_path: Path) -> None:
    study = Study(job(), "study.toml", N)
    page = write_page(tmp_path / "report.html", study, runs(), Timing(2.0, 3, N, 1.5)).read_text(encoding="utf-8")
    found = sections(page)
    assert [row[0] for row in found["best"][1:]] == [str(k) for k in RANKED[:12]]
    assert [float(row[1].replace("\u202f", "")) for row in found["best"][1:]] == [1000.0 + k for k in RANKED[:12]]
    assert found["failed"][1:] == [["3", "mass = 1003", "no such car"]]
    assert found["not_passed"][1:] == [[str(k), f"mass = {1000 + k}", f"gate {k}; late"] for k in (4, 5)]
    assert found["unresolved"][1:] == [["6", "mass = 1006", "too steep"]]
    words = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert re.search(r"(?<![\d-])29 of 30 runs", words) and "seed 5 ·" in words
    assert re.search(r"(?<![\d-])2 runs, in which", words)


def test_the_table_has_each_number_in_its_column() -> None:
    found = table(runs()).to_pydict()
    assert found["run"] == list(range(N)) and found["seed"] == [7000 - k for k in range(N)]
    assert found["run_s"] == [0.0 if k == 3 else 0.25 + k for k in range(N)]
    assert found["took_s"] == [0.5 if k == 3 else 0.75 + 2 * k for k in range(N)]
    assert found["hash"][7] == "hash7" and found["error"][3] == "no such car" and found["w"][3] is None
    assert found["failures"][4] == "gate 4; late" and found["remarks"][6] == "too steep"


def test_what_python_reads_of_a_study_are_its_runs() -> None:
    found = result()
    assert [o.line.run for o in found.failed] == [3] and [o.line.run for o in found.not_passed] == [4, 5]
    assert [o.line.run for o in found.unresolved] == [6] and len(found) == N
    assert [o.line.run for o in found.best(5)] == RANKED[:5] and len(found.best(99)) == len(RANKED)
    assert found["mass"] == [1000.0 + k for k in range(N)] and math.isnan(found["w"][3]) and found["w"][12] == 99.9
    assert found.frame().loc[7].seed == 6993
    assert repr(found) == "<study there: 30 runs, 1 failed>"
    with pytest.raises(ConfigError, match=r"no column 'masss'.*mass"):
        found["masss"]


def test_the_best_so_far_is_the_best_of_all_batches() -> None:
    told: list[tuple[int, int | None]] = []

    class Kept:
        def keep(self, outcomes: list[Outcome]) -> None: ...

    running = _Running(job(), Kept(), {}, lambda n, best: told.append((n, best and best.line.run)))  # type: ignore[arg-type]
    running.tell()
    for first in (0, 10, 20):
        running.take(runs()[first : first + 10])
    assert told == [(0, None), (10, 9), (20, 12), (30, 12)]


def test_the_time_of_a_study_is_told_by_its_parts() -> None:
    """3 workers for 2 s are 6 s, of which 1.5 s simulate: a quarter, and three times as much beside it."""
    timing = Timing(wall_s=2.0, at_a_time=3, runs=30, run_s=1.5)
    assert timing.overhead == 3.0
    assert timing.text == "30 runs in 2.0 s, 3 at a time: 15.0 runs/s; the workers simulate 25 % of that time"
    assert Timing(1.0, 1, 0, 0.0).text == "nothing was left to run"


class Later(Executor):
    """Runs nothing until somebody waits; sees how many batches are under way, and how long each is."""

    def __init__(self, took_s: float) -> None:
        self.took_s = took_s
        self.sizes: list[int] = []
        self.open = self.most = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        _, batch = args
        self.sizes.append(len(batch))
        self.open += 1
        self.most = max(self.most, self.open)
        future: Future[Any] = Future()
        result, made = future.result, [Outcome(line, took_s=self.took_s) for line in batch]

        def taken(timeout: float | None = None) -> Any:
            self.open -= 1
            return result(timeout)

        future.result = taken  # type: ignore[method-assign]
        future.set_result(made)
        return future


@pytest.mark.parametrize(("took_s", "size"), [(3.0, 1), (0.1, 5), (1e-9, BATCH_MAX)])
def test_a_batch_takes_half_a_second_and_no_worker_waits(took_s: float, size: int) -> None:
    """Every run is made once. Two batches are under way for each worker."""
    asked = [Line(k, k, {}) for k in range(400)]
    executor = Later(took_s)
    made = [o.line.run for batch in run_all(job(), iter(asked), executor, 3) for o in batch]
    assert sorted(made) == list(range(400)) and BATCH_S == 0.5
    assert executor.most == 3 * AHEAD and set(executor.sizes[6:-1]) <= {size} and size in executor.sizes
    back = run_batch(job(), asked[::-1], Later(took_s), 3)
    assert [o.line.run for o in back] == list(range(399, -1, -1))


@pytest.mark.parametrize(("columns", "runs_made"), [(1, 50), (2, 160), (3, 160), (3, 4000)])
def test_a_population_is_an_eighth_of_the_runs_within_the_limits_of_scipy(columns: int, runs_made: int) -> None:
    """differential_evolution: at least five points, at most its default of 15 a column (Sobol: the power of two above);
    generations of one size are asked for at once."""
    vary = {f"x{k}": {"low": 0.0, "high": 1.0, "start": 0.5} for k in range(columns)}
    tables = config(study={"design": "optimise", "runs": runs_made, "signals": []}, vary=vary,
                    objective={"minimise": "w"})  # fmt: skip
    batches: list[int] = []

    def ask(points: Any) -> list[float]:
        batches.append(len(points))
        return [float(np.sum((np.array(p) - 0.3) ** 2)) for p in points]

    optimise(tables, ask, 1)
    wanted = max(5, min(15 * columns, runs_made / 8))
    assert wanted / 2 < batches[0] <= 2 * wanted and sum(batches) <= runs_made
    assert max(batches) == batches[0], "no generation is larger than the population"


@pytest.mark.parametrize(
    ("where", "given", "said"),
    [
        ("vary", {"low": 3.0, "high": 2.0}, "high = 2.0 is not above low; allowed: > 3"),
        ("vary", {"low": -4.0, "high": 2.0, "scale": "log"}, "low = -4.0 has no logarithm; allowed: > 0"),
        ("vary", {"low": 3.0, "high": 8.0, "start": 9.0}, "start = 9.0 is outside; allowed: 3 .. 8"),
        ("vary", {"low": 3.0, "high": 8.0, "start": 2.0}, "start = 2.0 is outside; allowed: 3 .. 8"),
        ("vary", {"low": 3.0}, "needs either values or low and high"),
        ("vary", {"high": 3.0}, "needs either values or low and high"),
        ("vary", {"low": 1.0, "high": 2.0, "values": [1.0]}, "needs either values or low and high"),
        ("vary", {"values": [1.0], "start": 1.0}, "steps and start belong to a range"),
        ("vary", {"values": [1.0], "steps": 4}, "steps and start belong to a range"),
        ("scatter", {"low": 3.0, "high": 2.0}, "high = 2.0 is not above low; allowed: > 3"),
        ("scatter", {"low": 3.0}, "needs mean and sd, or low and high"),
        ("scatter", {"high": 3.0}, "needs mean and sd, or low and high"),
        ("scatter", {"mean": 3.0}, "mean and sd belong together"),
        ("scatter", {"mean": 3.0, "sd": 1.0, "low": 4.0}, "mean = 3.0 is cut off; allowed: low <= mean <= high"),
        ("scatter", {"mean": 3.0, "sd": 1.0, "high": 2.0}, "mean = 3.0 is cut off; allowed: low <= mean <= high"),
        ("metrics", {"signal": "w", "until_s": 2.0, "from_s": 4.0}, "until_s = 2.0 is not after from_s; allowed: > 4"),
        ("metrics", {"signal": "w", "value": "1"}, "needs one of signal, value, python"),
        ("metrics", {"take": "min"}, "needs one of signal, value, python"),
    ],
)
def test_a_refused_entry_is_named_with_its_value_and_what_is_allowed(
    where: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        config(**{where: {"mass": [1.0], "entry": given} if where == "vary" else {"entry": given}})
    text, _, allowed = said.partition("; allowed: ")
    told = str(error.value)
    assert text in told and f"{where}.entry" in told and (f"allowed: {allowed}" in told if allowed else True), told


@pytest.mark.parametrize(
    "entry",
    [{"low": 1.0, "high": 2.0}, {"low": 1.0, "high": 2.0, "start": 1.0}, {"low": 1.0, "high": 2.0, "start": 2.0}],
)
def test_what_is_on_the_border_is_taken(entry: dict[str, float]) -> None:
    config(
        study={"design": "sobol", "runs": 4}, vary={"mass": entry}, scatter={"x": {"mean": 3.0, "sd": 1.0, "high": 3.0}}
    )


def test_a_drawn_number_has_the_limits_that_are_written() -> None:
    """None, one, or both: what is outside is drawn again, so the rest are NumPy's own draws."""
    for limits in ({}, {"low": 1450.0}, {"high": 1520.0}, {"low": 1450.0, "high": 1520.0}):
        scattered = config(scatter={"m": {"mean": 1500.0, "sd": 50.0, **limits}}).scatter["m"]
        mine, own = np.random.default_rng(8), np.random.default_rng(8)
        every = own.normal(1500.0, 50.0, 1000)
        wanted = every[(every >= limits.get("low", -1e9)) & (every <= limits.get("high", 1e9))][:100]
        assert [drawn("m", scattered, mine) for _ in range(100)] == wanted.tolist()


def test_a_random_design_is_numpys_of_the_seed() -> None:
    vary = {"a": {"low": -1.0, "high": 3.0}, "b": [1.0, 2.0, 3.0, 4.0]}
    tables = config(study={"design": "random", "runs": 6, "seed": 9}, vary=vary)
    unit = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(0,))).random((6, 2))
    assert [tuple(x.values.values()) for x in lines(tables)] == [
        (pytest.approx(4 * a - 1), 1 + math.floor(4 * b)) for a, b in unit
    ]


class Kept(dict[str, np.ndarray]):
    """A run with the signal w over a second."""

    time = np.linspace(0.1, 1.0, 10)
    units = {"w": "rad/s"}


def test_a_window_behind_the_end_is_told_with_the_end() -> None:
    found = measures({"m": config(metrics={"m": {"signal": "w", "from_s": 1.5}}).metrics["m"]}, Path(), {})
    with pytest.raises(ConfigError, match=r"1\.5.*<= 1\b"):
        check(found, Kept(w=np.zeros(10)), {})


def test_signals_of_the_best_the_middle_and_the_worst_run_are_drawn(tmp_path: Path) -> None:
    """The files are written as a run writes them, every second sample; the picture spans their times."""
    kept = job(tmp_path / "signals", study={"every": 2})
    for k in range(N):
        kept._keep(k, Kept(w=k + Kept.time))
    ranked = [o for k in RANKED for o in runs() if o.line.run == k]
    (figure,) = _signals(tmp_path / "report.html", kept, ranked)
    (panel,) = figure.panels
    wanted = {"worst": RANKED[-1], "middle": RANKED[len(RANKED) // 2], "best": RANKED[0]}
    assert [line.label for line in panel.lines] == [f"{name}: run {k}" for name, k in wanted.items()]
    for line, k in zip(panel.lines, wanted.values(), strict=True):
        np.testing.assert_allclose(line.x, Kept.time[::2])
        np.testing.assert_allclose(line.y, k + Kept.time[::2])
    assert (figure.begin, figure.end) == pytest.approx((0.1, 0.9)) and panel.title == "w"


def test_many_runs_are_thinned_and_few_are_drawn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, every in ((1000, 1), (10, 3)):
        monkeypatch.setattr("torqueloop.hil.study.page.DRAWN", most)
        (figure,) = _responses(job(), runs(), runs()[12:13], ["w"])
        dots, best = figure.panels[0].lines
        shown = [k for k in range(0, N, every) if k != 3]
        assert list(dots.x) == [1000.0 + k for k in shown] and list(best.x) == [1012.0]
        assert list(dots.y) == pytest.approx([100.0 - abs(k - 12.1) for k in shown])
