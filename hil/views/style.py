"""Colours of all pages and pictures, in light and in dark."""

from __future__ import annotations

#: role -> (colour in the figure = light theme, dark theme)
COLOURS: dict[str, tuple[str, str]] = {
    "fg": ("#1d2430", "#e6e9ef"),
    "muted": ("#6b7483", "#98a2b3"),
    "grid": ("#dfe3ea", "#2c3340"),
    "panel": ("#fefefe", "#171b22"),
    "blue": ("#2563b8", "#6ea8fe"),
    "orange": ("#d9660f", "#ff9f4a"),
    "green": ("#1a8a54", "#4cc38a"),
    "red": ("#c9302c", "#ff6b66"),
    "purple": ("#7d4bc0", "#b692f6"),
    "teal": ("#0f8b95", "#4fd0d9"),
    "gold": ("#a87a06", "#e5b93c"),
    "pink": ("#c2408f", "#f58cc5"),
    "band_a": ("#eef2f8", "#1d232d"),
    "band_b": ("#e1e8f2", "#252d39"),
    "stuck": ("#2a66b9", "#5b96ec"),
    "slip": ("#e8891d", "#f5a143"),
    "slip_back": ("#b8479b", "#e07cc4"),
    "free": ("#e9ecf1", "#242a34"),
}


def css_variables(theme: int) -> str:
    """`--fg:...;` declarations; theme 0 light, 1 dark."""
    return "".join(f"--{name}:{pair[theme]};" for name, pair in COLOURS.items())


def css() -> str:
    """The declarations of both themes: that of the system, unless the page has chosen one."""
    light, dark = css_variables(0), css_variables(1)
    return (
        f":root{{{light}color-scheme:light}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}color-scheme:dark}}}}"
        f":root[data-theme=dark]{{{dark}color-scheme:dark}}"
    )
