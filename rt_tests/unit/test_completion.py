"""Completion in the shell, and the groups of the help."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.main import get_command

from torqueloop.hil.cli import app


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("torqueloop run desk_mb_", "desk_mb_7226"),
        ("torqueloop gearbox zf_8", "zf_8hp45"),
        ("torqueloop scen", "scenario"),
    ],
)
def test_names_and_commands_are_completed(typed: str, offered: str) -> None:
    words = typed.split()
    asked = {"_TORQUELOOP_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    env = {**os.environ, **asked}
    program = "import sys; sys.argv = ['torqueloop']; from torqueloop.hil.cli import main; main()"
    made = subprocess.run([sys.executable, "-c", program], env=env, text=True, capture_output=True)
    assert offered in made.stdout.split()
    assert all(name.startswith(words[-1]) for name in made.stdout.split())


def test_every_command_is_in_a_group_of_the_help() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    groups = {name: getattr(command, "rich_help_panel", None) for name, command in commands.items()}
    assert set(groups.values()) == {"Run", "Judge", "Model", "Bus and participants", "Machine"}, groups
