"""Pages of the manual that the program writes of itself: the command line, the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

import torqueloop as tl
from torqueloop.hil.cli import app

HEAD = "# {title}\n\nMade by `python scripts/manual.py pages`; do not edit.\n"


def written() -> dict[str, str]:
    """File name -> page."""
    return {"cli.md": cli_page(), "api.md": api_page()}


# --- command line ---------------------------------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its arguments and options."""
    root = typer.main.get_command(app)
    text = HEAD.format(title="Command line") + "\n" + _plain(root.help or "") + "\n\n"
    text += f"{root.epilog}\n"
    return text + "".join(_command(words, command) for words, command in _commands(root, ("torqueloop",)))


def _commands(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        elif not command.hidden:
            yield (*words, name), command


def _command(words: tuple[str, ...], command: Any) -> str:
    context = command.context_class(command, info_name=" ".join(words))
    usage = " ".join(command.collect_usage_pieces(context))
    text = f"\n## `{' '.join(words[1:])}`\n\n{_plain(command.help or '')}\n\n```text\n{' '.join(words)} {usage}\n```\n"
    rows = [_row(p) for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    return text + ("\n| | meaning | default |\n|---|---|---|\n" + "".join(rows) if rows else "")


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        name = param.metavar or str(param.name).upper()
    else:
        name = ", ".join([*param.opts, *param.secondary_opts])
        if not param.is_flag and param.metavar:
            name += f" {param.metavar}"
    default = param.default
    told = "" if default in (None, False, [], ()) or callable(default) else str(getattr(default, "value", default))
    told = "" if "UNSET" in told.upper() else told
    return f"| `{name.strip()}` | {_cell(_plain(param.help or ''))} | {f'`{told}`' if told else ''} |\n"


def _plain(text: str) -> str:
    return re.sub(r"\s*\n\s*(?!\n)", " ", text.strip().replace("\n\n", "\0")).replace("\0", "\n\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# --- Python ---------------------------------------------------------------------------------------------------------


def api_page() -> str:
    """Everything in torqueloop.__all__: signatures, docstrings, attributes and methods."""
    text = HEAD.format(title="Python API") + "\n```text\n" + inspect.cleandoc(tl.__doc__ or "") + "\n```\n"
    for name in sorted(tl.__all__, key=str.lower):
        text += _entry(name, getattr(tl, name))
    return text


def _entry(name: str, thing: Any) -> str:
    if inspect.ismodule(thing):
        return f"\n## `{name}`\n\n{_first(thing)} Kinds: [components](components.md).\n"
    text = f"\n## `{name}`\n\n"
    if not inspect.isclass(thing):
        return text + _code(f"{name}{inspect.signature(thing)}") + _doc(thing)
    text += _code(f"class {name}{_signature(thing)}") + _doc(thing)
    rows = [_member(n, m) for n, m in sorted(vars(thing).items()) if not n.startswith("_")]
    rows = [row for row in rows if row]
    return text + ("\n| | |\n|---|---|\n" + "".join(rows) if rows else "")


def _signature(thing: Any) -> str:
    try:
        return str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(...)"


def _member(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"| `{name}` | {_cell(_first(member.fget))} |\n"
    inner = getattr(member, "func", getattr(member, "__func__", member))
    if not callable(inner) or inspect.isclass(inner):
        return ""
    signature = re.sub(r"\(self(, )?", "(", str(inspect.signature(inner))) if inner is member else ""
    signature = re.sub(r"'", "", signature)
    return f"| `{_cell(name + signature)}` | {_cell(_first(inner))} |\n"


def _code(text: str) -> str:
    short = text.replace("'", "")
    if len(short) > 110:
        head, _, rest = short.partition("(")
        inside, close, back = rest.rpartition(")")
        short = head + "(\n    " + ",\n    ".join(_split(inside)) + ",\n" + close + back
    return f"```text\n{short}\n```\n\n"


def _split(text: str) -> Iterator[str]:
    """Arguments, at commas outside brackets."""
    depth, word = 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield word.strip()
            word = ""
        else:
            word += letter
    if word.strip():
        yield word.strip()


def _doc(thing: Any) -> str:
    """The docstring; what is indented in it is an example."""
    text = inspect.cleandoc(thing.__doc__ or "")
    parts = re.split(r"\n\n((?:    .*(?:\n|$))+)", text + "\n")
    made = ""
    for k, part in enumerate(parts):
        made += f"\n\n```text\n{inspect.cleandoc(part)}\n```\n\n" if k % 2 else part.strip()
    return made.strip() + "\n"


def _first(thing: Any) -> str:
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "").partition("\n\n")[0]
    return " ".join(text.split())
