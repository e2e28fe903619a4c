"""Stage of the machine about `torqueloop setup-host`: applied to a running kernel, applied again, and undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stages.inside import CONFIGS
from stages.rigs import write_rig
from torqueloop.hil.doctor.host_files import planned
from torqueloop.hil.doctor.setup_host import apply, undo
from torqueloop.hil.rig.resolve.plan import load_plan

#: where files are written
FOLDERS = ("/etc", "/var/lib")
#: what the kernel of an ordinary computer begins with
ORDINARY = {"/proc/sys/kernel/sched_rt_runtime_us": "950000", "/proc/sys/kernel/numa_balancing": "1",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always"}  # fmt: skip


def _files() -> dict[str, str]:
    """Mode and contents of every file, mode of every folder."""
    found = (path for folder in FOLDERS for path in Path(folder).rglob("*") if not path.is_symlink())
    return {str(p): f"{p.stat().st_mode:o} {p.read_bytes().hex() if p.is_file() else ''}" for p in found}


def setup_host(folder: Path) -> dict[str, Any]:
    """What has changed after each step, and the kernel's values then."""
    machine = {path: _chosen(path) for path in ORDINARY if Path(path).exists()}
    try:
        for path in machine:
            Path(path).write_text(ORDINARY[path])
        return _steps(folder)
    finally:
        # the other stages have the machine as it was
        for path, value in machine.items():
            Path(path).write_text(value)


def _chosen(path: str) -> str:
    """Value of the kernel; of a list, what is in brackets."""
    text = Path(path).read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def _steps(folder: Path) -> dict[str, Any]:
    Path("/etc/sysctl.d").mkdir(parents=True, exist_ok=True)
    Path("/etc/sysctl.d/90-torqueloop.conf").write_text("vm.swappiness = 10\n")
    plan = planned("root", {3}, 4, load_plan(write_rig(folder, CONFIGS)), 5)
    before = _files()
    found: dict[str, Any] = {"planned": sorted(plan.files), "wanted": plan.values, "commands": plan.commands}
    steps = {"apply": lambda: apply(plan), "apply again": lambda: apply(plan), "undo": undo}
    last = before
    for name, step in steps.items():
        lines, _ = step()
        now = _files()
        found[name] = {
            "lines": lines,
            "changed": sorted(path for path in last.keys() | now.keys() if last.get(path) != now.get(path)),
            "values": {path: _chosen(path) for path in plan.values if Path(path).exists()},
        }
        last = now
    return {**found, "left": sorted(path for path in before.keys() | last.keys() if before.get(path) != last.get(path))}
