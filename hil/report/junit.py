"""junit.xml as CI systems read it: the one writer of it, and the suites of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report.latency import degraded

if TYPE_CHECKING:
    from torqueloop.hil.report.monitors import MonitorVerdict
    from torqueloop.hil.report.report import Report

#: metrics that every suite of a report carries as properties
PROPERTIES = (
    "clock", "policy", "ticks", "missed", "overruns", "lost_time_s", "lateness_p99_us", "lateness_p999_us",
    "lateness_max_us", "compute_p99_us", "compute_max_us", "margin_min_us", "minor_faults", "major_faults",
    "involuntary_switches", "hash",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A test case."""

    name: str
    #: why it failed; None: it passed
    failure: str | None = None
    #: shown as skipped, not as failed: the only third state JUnit has
    skipped: bool = False


@dataclass(frozen=True)
class Suite:
    """Cases that belong together."""

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp: str = ""


def write_suites(path: Path | str, name: str, suites: Sequence[Suite]) -> None:
    """junit.xml"""
    root = ElementTree.Element("testsuites", name=_xml(name))
    for suite in suites:
        failed = [case for case in suite.cases if case.failure is not None]
        element = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(suite.name),
            tests=str(len(suite.cases)),
            failures=str(sum(not case.skipped for case in failed)),
            skipped=str(sum(case.skipped for case in failed)),
            errors="0",
        )
        if suite.timestamp:
            element.set("timestamp", _xml(suite.timestamp))
        if suite.properties:
            properties = ElementTree.SubElement(element, "properties")
            for key, value in suite.properties.items():
                ElementTree.SubElement(properties, "property", name=_xml(key), value=_xml(value))
        class_name = _xml(f"{name.replace(' ', '.')}.{suite.name}")
        for case in suite.cases:
            one = ElementTree.SubElement(element, "testcase", classname=class_name, name=_xml(case.name))
            if case.failure is not None:
                ElementTree.SubElement(one, "skipped" if case.skipped else "failure", message=_xml(case.failure))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_junit(report: Report, path: Path | str) -> None:
    """Three suites: gates (what the user asked for), monitors (of what the gearbox did), checks (of every run)."""
    # what a reader of the results needs to judge them: clock, figures of its time, why it was degraded
    known = {name: report.metrics.get(name) for name in PROPERTIES} | {"degraded": degraded(report.stats) or "no"}
    properties = {name: str(value) for name, value in known.items() if value is not None}
    gates = [Case(g.text, None if g.passed else g.cause) for g in report.gates]
    checks = [Case(c.name, None if c.passed else c.text, skipped=not c.counts) for c in report.checks]
    monitors = [_monitor(v) for v in report.monitors]
    suites = [
        Suite(name, cases, properties, report.run.info.started)
        for name, cases in (("gates", gates), ("monitors", monitors), ("checks", checks))
    ]
    write_suites(path, f"torqueloop {report.run.name}", suites)


def _monitor(v: MonitorVerdict) -> Case:
    """A monitor that was waived, not reached or follows from another one is skipped, with the reason."""
    return Case(v.name, None if v.state == "passed" else v.text, skipped=v.state != "failed")


def _xml(text: str) -> str:
    """Without the control characters XML 1.0 cannot hold."""
    return "".join(c if c >= " " or c in "\t\n" else "?" for c in text)
