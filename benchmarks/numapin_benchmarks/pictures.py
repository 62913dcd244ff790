"""The look of the pictures in docs: each is drawn for light and for dark pages.

An SVG is identical for identical figures. It needs matplotlib: `pip install 'numapin[bench]'`.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import matplotlib as mpl
    from matplotlib import ticker
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture
except ModuleNotFoundError as missing:
    raise SystemExit(f"{missing.msg}: pip install 'numapin[bench]'") from None

STYLE = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "numapin",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class Colours:
    """The colours of one kind of page; `numapin` and `kubelet` are also a first and a second."""

    page: str
    ink: str
    faint: str
    numapin: str
    kubelet: str


THEMES = {
    "light": Colours("#ffffff", "#24292f", "#d0d7de", "#0969da", "#bc4c00"),
    "dark": Colours("#0d1117", "#e6edf3", "#30363d", "#58a6ff", "#f0883e"),
}

__all__ = ["Axes", "Colours", "Draw", "Picture", "draw_file", "paint", "ticker"]

Draw = Callable[[Colours], Picture]


def paint(axes: Axes, colours: Colours) -> None:
    """Give axes, ticks and labels the colours of the page."""
    axes.set_facecolor(colours.page)
    axes.tick_params(colors=colours.ink, which="both")
    axes.xaxis.label.set_color(colours.ink)
    axes.yaxis.label.set_color(colours.ink)
    for spine in axes.spines.values():
        spine.set_color(colours.faint)


def _save(pictures: Mapping[str, Draw], folder: Path, kind: str) -> None:
    """Draw each picture in each theme as `NAME-THEME.KIND`."""
    with mpl.rc_context(STYLE):
        for theme, colours in THEMES.items():
            for name, draw in pictures.items():
                place = folder / f"{name}-{theme}.{kind}"
                picture = draw(colours)
                picture.savefig(place, metadata={"Date": None} if kind == "svg" else None)


def draw_file(description: str | None, pictures: Callable[[Any], Mapping[str, Draw]]) -> None:
    """The command of a module that draws a file of figures, for both kinds of pages.

    Args:
        description: what its help says.
        pictures: the pictures by name, of what the file contains.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("file", type=Path, help="the figures")
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of the pictures (default: that of the file)"
    )
    parser.add_argument("--format", default="svg", help="svg, or png to look at (default: svg)")
    options = parser.parse_args()
    folder = options.folder or options.file.parent
    _save(pictures(json.loads(options.file.read_text())), folder, options.format)
