"""Write the files of a plan below a root folder, keep what stood there, and restore it."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.doctor.host_files import HostPlan
from torqueloop.hil.realtime.machine import ROOT

#: what stood before, for undo; only its owner root may write it
KEPT = "var/lib/torqueloop/setup-host.json"
#: exit status of a command
Runner = Callable[[str], int]


def run_command(command: str) -> int:
    """Run a command of a plan; 127: there is no such command."""
    try:
        return subprocess.run(shlex.split(command)).returncode
    except FileNotFoundError:
        return 127


def described(plan: HostPlan, root: Path = ROOT) -> list[str]:
    """Lines that say what apply would do."""
    lines: list[str] = []
    for path, text in sorted(plan.files.items()):
        before = _text(root / path[1:])
        state = "is written" if before is None else "stays" if before == text else "is replaced"
        lines += [f"file {path} {state}", *(f"    {line}" for line in text.splitlines())]
    lines += [f"value {path} = {value}" for path, value in plan.values.items() if (root / path[1:]).exists()]
    lines += [f"command {command}" if root == ROOT else f"not run: {command}" for command in plan.commands]
    return lines + [f"note {note}" for note in plan.notes]


def apply(plan: HostPlan, root: Path = ROOT, runner: Runner = run_command) -> tuple[list[str], bool]:
    """Do what the plan says; lines about it, and whether all went well. Applying again changes nothing more, and takes
    away what an earlier plan has written and this one has not."""
    kept = _kept(root)
    lines, gone = _restored(
        {path: kept["files"].pop(path) for path in [*kept["files"]] if path not in plan.files}, root
    )
    kept["files"] |= gone
    for path, text in plan.files.items():
        before = kept["files"][path]["before"] if path in kept["files"] else _text(root / path[1:])
        kept["files"][path] = {"before": before, "written": text}
    for path in (*plan.files, f"/{KEPT}"):
        made = [f"/{folder.relative_to(root)}" for folder in (root / path[1:]).parents if not folder.exists()]
        kept["folders"] += [folder for folder in made if folder not in kept["folders"]]
    for path in plan.values:
        if path not in kept["values"] and (root / path[1:]).exists():
            kept["values"][path] = _chosen(_text(root / path[1:]) or "")
    kept["commands"], kept["undo"] = plan.commands, plan.undo_commands
    # first what stood before: an interrupted apply can be undone
    _write(root / KEPT, json.dumps(kept, indent=1))
    for path, text in sorted(plan.files.items()):
        if _text(root / path[1:]) != text:
            _write(root / path[1:], text)
            lines.append(f"{path} written")
    lines += _set({path: value for path, value in plan.values.items() if (root / path[1:]).exists()}, root)
    done = _run(plan.commands, root, runner)
    return lines + done + plan.notes, not gone and not done


def undo(root: Path = ROOT, runner: Runner = run_command) -> tuple[list[str], bool]:
    """Restore what stood before; lines about it, and whether all is restored. A file that has been changed since is
    left as it is."""
    if not (root / KEPT).exists():
        return ["nothing to undo: setup-host has not been applied"], True
    kept = _kept(root)
    done = _run(kept["undo"], root, runner)
    lines, left = _restored(kept["files"], root)
    lines += _set(kept["values"], root)
    # the files are gone: the same commands make that known, but for what starts a rig
    done += _run([c for c in kept["commands"] if not c.startswith("systemctl start")], root, runner)
    if left:
        _write(root / KEPT, json.dumps({**kept, "files": left, "values": {}, "undo": []}, indent=1))
    else:
        (root / KEPT).unlink()
    for folder in sorted(kept["folders"], key=len, reverse=True):
        if (root / folder[1:]).is_dir() and not any((root / folder[1:]).iterdir()):
            (root / folder[1:]).rmdir()
    return lines + done, not left and not done


def _kept(root: Path) -> dict[str, Any]:
    text = _text(root / KEPT)
    empty: dict[str, Any] = {"files": {}, "values": {}, "folders": [], "commands": [], "undo": []}
    return empty if text is None else dict(json.loads(text))


def _restored(files: dict[str, Any], root: Path) -> tuple[list[str], dict[str, Any]]:
    """Restore files; lines about them, and those that have been changed."""
    lines, left = [], {}
    for path, entry in sorted(files.items()):
        now, file = _text(root / path[1:]), root / path[1:]
        if now not in (entry["written"], entry["before"], None):
            left[path] = entry
            lines.append(f"{path} has been changed since and is left: remove it by hand, then undo again")
        elif entry["before"] is not None:
            _write(file, entry["before"])
            lines.append(f"{path} restored")
        elif now is not None:
            file.unlink()
            lines.append(f"{path} removed")
    return lines, left


def _set(values: dict[str, str], root: Path) -> list[str]:
    lines = []
    for path, value in values.items():
        if _chosen(_text(root / path[1:]) or "") != value:
            try:
                (root / path[1:]).write_text(value, encoding="utf-8")
                lines.append(f"{path} = {value}")
            except OSError as error:
                lines.append(f"{path} cannot be set to {value}: {error.strerror}")
    return lines


def _run(commands: list[str], root: Path, runner: Runner) -> list[str]:
    """Commands that failed; below another root none is run, as it is not the running system."""
    found = [(command, runner(command)) for command in commands] if root == ROOT else []
    return [f"`{command}` ended with status {status}" for command, status in found if status]


def _chosen(text: str) -> str:
    """Value of a file of /sys, which may list all values with the chosen one in brackets."""
    return text[text.find("[") + 1 : text.find("]")] if "[" in text else text.strip()


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    except PermissionError as error:
        raise ConfigError("{value} cannot be written: run as root, with sudo", value=str(error.filename)) from None
