"""pytest plug-in: fixtures that give a test a running rig (docs/pytest.md).

    rig         on the virtual clock, or on the one of --torqueloop-clock
    real_rig    on the real clock
    make_rig    several in one test, with options of their own

The report of a failed test shows the folder of its run, and junit.xml has it as property `torqueloop_run`.
Everything of torqueloop is imported when a fixture is used: pytest starts as fast as without.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torqueloop.hil.testing.driven_rig import DrivenRig

#: rig file of tests that name none
DEFAULT_RIG = "desk_4hp22"
#: simulated seconds a test may take
DURATION_S = 600.0
#: keywords of `make_rig` and of the marker
OPTIONS = ("name", "clock", "duration", "driver", "overrides", "gates", "judge", "participants", "control", "peers")
_RUNS: pytest.StashKey[list[DrivenRig]] = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line and of the ini file."""
    group = parser.getgroup("torqueloop", "rigs (torqueloop)")
    group.addoption("--torqueloop-rig", metavar="FILE", help="Rig of the fixtures, instead of the ini file's.")
    group.addoption("--torqueloop-clock", choices=("virtual", "real"), help="Clock of the fixture `rig`.")
    group.addoption(
        "--torqueloop-runs", metavar="DIR", help="Folder of the runs, kept; default: pytest's temporary folder."
    )
    group.addoption("--torqueloop-no-html", action="store_true", help="No report.html of runs whose test failed.")
    parser.addini("torqueloop_rig", "rig file of the fixtures, or the bare name of an installed one", default="")
    parser.addini("torqueloop_names", 'short names: "gear = TCU_Status.gear_actual", one a line', "linelist")


def pytest_configure(config: pytest.Config) -> None:
    """The marker, known to --strict-markers."""
    config.addinivalue_line(
        "markers", f"rig(name, **options): the rig of this test's fixtures; options: {', '.join(OPTIONS[1:-1])}"
    )


@pytest.fixture
def make_rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Start a rig: make_rig(name=..., clock=..., overrides={...}); ended and judged after the test."""
    with ExitStack() as stack:

        def make(**more: Any) -> DrivenRig:
            options = {"clock": "virtual", **_marked(request), **more}
            unknown = sorted(set(options) - set(OPTIONS))
            if unknown:
                raise pytest.UsageError(f"rig: unknown option {unknown[0]!r}; allowed: {', '.join(OPTIONS[:-1])}")
            if options["clock"] == "real":
                stack.enter_context(_one_at_a_time())
            path = _folder(request, tmp_path_factory)
            return stack.enter_context(_driven(request, path, options))

        yield make


@pytest.fixture
def rig(make_rig: Callable[..., DrivenRig], request: pytest.FixtureRequest) -> DrivenRig:
    """A running rig on the virtual clock (or on that of --torqueloop-clock), its driver as the file has it at t = 0."""
    clock = request.config.getoption("--torqueloop-clock")
    return make_rig(clock=clock) if clock else make_rig()


@pytest.fixture
def real_rig(make_rig: Callable[..., DrivenRig]) -> DrivenRig:
    """A running rig on the real clock; one at a time on a machine, for all users."""
    return make_rig(clock="real")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Say where the run of a failed test is, and what the test did."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.failed and runs:
        for rig in runs:
            text = [f"{rig.path}", f"  torqueloop report {rig.path}", *rig.log[-40:]]
            report.sections.append(("torqueloop run", "\n".join(text)))
    if report.failed:
        item.stash.setdefault(_FAILED, True)
    return report


# --- inside -----------------------------------------------------------------------------------------------------------


@contextmanager
def _driven(request: pytest.FixtureRequest, path: Path, options: dict[str, Any]) -> Iterator[DrivenRig]:
    from torqueloop.hil.common.locate import locate
    from torqueloop.hil.report.write import write_report
    from torqueloop.hil.scenario.scenario_tables import GATES
    from torqueloop.hil.scenario.standing import standing_driver
    from torqueloop.hil.testing.driven_rig import DrivenRig
    from torqueloop.hil.testing.holder import Holder

    config, names = request.config, _own_names(request.config)
    name = options.get("name") or config.getoption("--torqueloop-rig") or config.getini("torqueloop_rig") or DEFAULT_RIG
    file = locate(name, "rigs")
    driver = {f"driver.{name}": value for name, value in options.get("driver", {}).items()}
    given = {
        "gates": {**GATES, **options.get("gates", {})},
        **standing_driver(file, options.get("overrides")),
        **driver,
        **options.get("overrides", {}),
    }
    # participants had the name peers before
    names_of = {"participants": "participants", "peers": "participants", "control": "control"}
    more = {new: options[key] for key, new in names_of.items() if key in options}
    holder = Holder(
        file, options["clock"], path, duration_s=options.get("duration", DURATION_S), overrides=given, **more
    )
    driven = DrivenRig(holder, path, names)
    request.node.stash.setdefault(_RUNS, []).append(driven)
    request.node.user_properties.append(("torqueloop_run", str(path)))
    try:
        yield driven
    finally:
        report = driven.end().report
    failed = request.node.stash.get(_FAILED, False)
    wrong = [f"{name}: {text}" for name, text in report.failures.items()]
    judged = wrong if options.get("judge", True) else []
    if failed or judged:
        write_report(path, html=not config.getoption("--torqueloop-no-html"))
    if judged and not failed:
        # not an assertion: the test itself passed, its run did not
        pytest.fail(f"the run of the rig failed: {'; '.join(wrong)}; run: {path}", pytrace=False)


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # the closest one wins: function, class, module
    for mark in reversed(list(request.node.iter_markers("rig"))):
        if len(mark.args) > 1:
            raise pytest.UsageError(f"rig{mark.args}: one name, the rest by keyword: {', '.join(OPTIONS[1:-1])}")
        found |= {**mark.kwargs, **({"name": mark.args[0]} if mark.args else {})}
    return found


def _own_names(config: pytest.Config) -> dict[str, str]:
    names = {}
    for line in config.getini("torqueloop_names"):
        short, equals, full = (part.strip() for part in line.partition("="))
        if not (short and equals and full):
            raise pytest.UsageError(f"torqueloop_names: {line!r} is not SHORT = SIGNAL")
        names[short] = full
    return names


def _folder(request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Path:
    """A new folder for a run; workers of pytest-xdist make theirs in one place without meeting."""
    word = re.sub(r"\W+", "-", request.node.name).strip("-")[:80]
    asked = request.config.getoption("--torqueloop-runs")
    if not asked:
        return factory.mktemp(word, numbered=True) / "run"
    root = Path(asked).absolute()
    root.mkdir(parents=True, exist_ok=True)
    for k in range(1, 100_000):
        path = root / (word if k == 1 else f"{word}-{k}")
        try:
            path.mkdir()  # taken by whoever makes it
            return path
        except FileExistsError:
            continue
    raise pytest.UsageError(f"{root}: no free name for a run of {word}")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Real-time runs of all tests on this machine stand in a queue: they would spoil each other's deadlines."""
    path = Path(tempfile.gettempdir()) / f"torqueloop-real-{os.getuid()}.lock"
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
