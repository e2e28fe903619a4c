"""What every run answers in the same words, whether it was simulated, recorded, or still goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.errors import MissingLibraryError, RangeError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


class Run(ABC):
    """Signals over time by name, in SI units: `run["engine.w"]`, `run.signal("engine.w")`.

    A simulation leaves a `Result`, a rig a `RecordedRun`; `Window` is what a running rig has recorded so far.
    """

    @property
    @abstractmethod
    def t(self) -> Array:
        """Simulated time of the samples [s]."""

    @property
    @abstractmethod
    def units(self) -> Mapping[str, str]:
        """SI unit of every signal."""

    @abstractmethod
    def signal(self, name: str) -> Array:
        """The samples of one signal, SI. UnknownNameError, of a recording KeyError, when there is none of this name."""

    def __getitem__(self, name: str) -> Array:
        return self.signal(name)

    def __iter__(self) -> Iterator[str]:
        """Names of all signals."""
        return iter(self.units)

    def __contains__(self, name: object) -> bool:
        return name in self.units

    def to_dataframe(self, names: Sequence[str] | None = None, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The signals (all, or these) as a data frame: pandas with index `t`, Polars with column `t`.
        MissingLibraryError when the library is not installed."""
        columns = {name: self.signal(name) for name in (self if names is None else names)}
        try:
            if library == "polars":
                import polars

                return polars.DataFrame({"t": self.t, **columns})
            import pandas
        except ImportError:
            raise MissingLibraryError(f"to_dataframe() needs {library}: pip install {library}") from None
        return pandas.DataFrame(columns, index=pandas.Index(self.t, name="t"))

    def plot(self, names: Sequence[str], from_s: float | None = None, until_s: float | None = None) -> Figure:
        """The signals over time, those of one unit in one picture (rad/s, Pa ... as they are, SI); a matplotlib figure,
        to be shown or saved. MissingLibraryError without matplotlib."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingLibraryError(
                "plot() needs matplotlib, which is not installed: pip install 'torqueloop[report]'"
            ) from None
        if not names:
            raise RangeError("plot: {key} is empty", key="names", value=[], allowed="at least one signal")
        curves, units, t = {name: self.signal(name) for name in names}, self.units, self.t
        groups: dict[str, list[str]] = {}
        for name in curves:
            groups.setdefault(units.get(name, ""), []).append(name)
        first = -np.inf if from_s is None else from_s
        inside = (t >= first) & (t <= (np.inf if until_s is None else until_s))
        figure = Figure(figsize=(9.0, 0.8 + 2.2 * len(groups)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (unit, members) in zip(axes, groups.items(), strict=True):
            for name in members:
                ax.plot(t[inside], curves[name][inside], label=name, linewidth=1.2)
            ax.set_ylabel(f"[{unit}]")
            ax.grid(alpha=0.3)
            ax.legend(loc="upper left", fontsize="small")
        axes[-1].set_xlabel("time [s]")
        return figure
