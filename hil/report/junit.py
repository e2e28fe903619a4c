"""junit.xml: every gate and every check is a test case, as CI systems show them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from torqueloop.hil.report.latency import degraded

if TYPE_CHECKING:
    from torqueloop.hil.report.build import Report

#: metrics that every suite carries as properties
PROPERTIES = (
    "clock", "policy", "ticks", "missed", "overruns", "slip_s", "lateness_p99_us", "lateness_p999_us",
    "lateness_max_us", "compute_p99_us", "compute_max_us", "margin_min_us", "minor_faults", "major_faults",
    "involuntary_switches", "hash",
)  # fmt: skip


def write_junit(report: Report, path: Path | str) -> None:
    """Two suites: gates (what the user asked for) and checks (what every run is held to)."""
    name = str(report.run.info.get("rig") or report.run.info.get("name") or report.run.path.name)
    root = ElementTree.Element("testsuites", name=f"torqueloop {name}")
    gates = [(g.text, g.passed, g.cause, True) for g in report.gates]
    checks = [(c.name, c.passed, c.text, c.counts) for c in report.checks]
    for suite_name, cases in (("gates", gates), ("checks", checks)):
        failures = sum(not passed and counts for _, passed, _, counts in cases)
        skipped = sum(not passed and not counts for _, passed, _, counts in cases)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=suite_name,
            tests=str(len(cases)),
            failures=str(failures),
            skipped=str(skipped),
            errors="0",
        )
        if report.run.info.get("started"):
            suite.set("timestamp", str(report.run.info["started"]))
        _properties(suite, report)
        class_name = f"torqueloop.{name}.{suite_name}"
        for text, passed, cause, counts in cases:
            case = ElementTree.SubElement(suite, "testcase", classname=class_name, name=_xml(text))
            if not passed:
                # A remark that does not fail the run is shown as skipped, the only third state JUnit has.
                ElementTree.SubElement(case, "failure" if counts else "skipped", message=_xml(cause))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _properties(suite: ElementTree.Element, report: Report) -> None:
    """What a reader of the results needs to judge them: clock, figures of its time, why it was degraded."""
    values = {name: report.metrics.get(name) for name in PROPERTIES}
    values["degraded"] = degraded(report.stats) or "no"
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in values.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=_xml(str(value)))


def _xml(text: str) -> str:
    """Without the control characters XML 1.0 cannot hold."""
    return "".join(c if c >= " " or c in "\t\n" else "?" for c in text)
