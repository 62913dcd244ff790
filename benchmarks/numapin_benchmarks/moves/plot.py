"""Draw what moves gain from the figures of `numapin_benchmarks.moves -o FILE`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numapin_benchmarks.pictures import Axes, Colours, Picture, draw_file, paint

Rows = Sequence[Mapping[str, Any]]


def gain(rows: Rows, colours: Colours) -> Picture:
    """The share of requests that fit, for each machine with several NUMA nodes, at each load."""
    several = [row for row in rows if row["numa_nodes"] > 1]
    loads = sorted({row["load"] for row in several})
    picture = Picture(figsize=(8.6, 4.4), layout="constrained", facecolor=colours.page)
    panels = picture.subplots(1, len(loads), sharey=True)
    for axes, load in zip(panels, loads, strict=True):
        _panel(axes, [row for row in several if row["load"] == load], colours)
        axes.set_title(f"{load} % in use", color=colours.ink, fontsize=11)
    panels[0].legend(
        frameon=False,
        fontsize=9,
        labelcolor=colours.ink,
        loc="upper left",
        bbox_to_anchor=(0, -0.2),
    )
    panels[1].set_xlabel("requests that get one NUMA node, %")
    return picture


def _panel(axes: Axes, rows: Rows, colours: Colours) -> None:
    names = [f"{row['machine'].split('-')[0]}, {row['numa_nodes']} NUMA nodes" for row in rows]
    at = range(len(rows))
    before = [100 * row["kubelet"] / row["requests"] for row in rows]
    after = [100 * row["dynamic"] / row["requests"] for row in rows]
    axes.hlines(list(at), before, after, color=colours.faint, linewidth=3, zorder=1)
    axes.scatter(before, at, color=colours.kubelet, zorder=3, label="kubelet's static policy")
    axes.scatter(
        after, at, color=colours.numapin, zorder=2, s=64, label="after the fewest possible moves"
    )
    axes.set_yticks(list(at), names)
    axes.set_xlim(50, 103)
    axes.invert_yaxis()
    axes.grid(axis="x", color=colours.faint, linewidth=0.8)
    paint(axes, colours)


def main() -> None:
    """Draw the picture for both kinds of pages."""
    draw_file(__doc__, lambda document: {"moves": partial(gain, document["rows"])})


if __name__ == "__main__":
    main()
