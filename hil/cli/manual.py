"""`torqueloop docs`: the manual in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.configs import package_root
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.cli.common import command, out_console


def pages() -> dict[str, Path]:
    """Name -> file of each page of the manual that came with the package."""
    return {path.stem: path for path in sorted((package_root().with_name("docs")).rglob("*.md"))}


@command
def docs(
    page: Annotated[
        str,
        typer.Argument(
            help="Name of the page, as in a link: safe_state for safe_state.md.",
            autocompletion=lambda incomplete: [name for name in pages() if name.startswith(incomplete)],
        ),
    ] = "index",
) -> None:
    """Show a page of the manual. Without PAGE, show the first one, which lists all others."""
    known = pages()
    name = Path(page).stem
    if name not in known:
        raise ConfigError("the manual has no page {value}", key="page", value=name, hint=did_you_mean(name, known))
    text = known[name].read_text(encoding="utf-8")
    if not out_console.is_terminal:
        typer.echo(text, nl=False)
        return
    from rich.markdown import Markdown

    with out_console.pager(styles=True):
        out_console.print(Markdown(text))
