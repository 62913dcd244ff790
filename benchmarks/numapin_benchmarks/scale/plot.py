"""Draw how the operator's figures grow, from those of `numapin_benchmarks.scale -o FILE`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numapin_benchmarks.pictures import Axes, Colours, Picture, draw_file, paint

Sizes = Sequence[Mapping[str, Any]]
PANELS: dict[str, list[tuple[str, str, str]]] = {
    "seconds": [
        ("all assigned", "seconds", "all pods assigned"),
        ("edit that concerns every node", "seconds", "policy edit written"),
        ("restart", "ready_seconds", "restart until ready"),
    ],
    "MiB": [
        ("relist after 410", "rss_mib", "after a relist"),
        ("all assigned", "rss_mib", "all pods assigned"),
    ],
    "bound until written, p50, ms": [
        ("200 pods a second", "p50_ms", "200 pods a second"),
        ("20 pods a second", "p50_ms", "20 pods a second"),
    ],
    "CPU time for a pod, ms": [
        ("20 pods a second", "cpu_ms_per_pod", "20 pods a second"),
        ("all assigned", "cpu_ms_per_placed_pod", "first roll-out"),
    ],
}
"""The unit of each panel, and its lines: the step, the figure, and how the line is called."""

STYLES = (("-", "numapin"), ("--", "kubelet"), (":", "ink"))
"""Of the first, second and third line of a panel: the dashes and the name of the colour."""


def growth(sizes: Sizes, colours: Colours) -> Picture:
    """Time, memory, latency and CPU time over the number of nodes."""
    picture = Picture(figsize=(8.6, 6.4), layout="constrained", facecolor=colours.page)
    panels = picture.subplots(2, 2, sharex=True)
    for axes, (unit, lines) in zip(panels.flat, PANELS.items(), strict=True):
        for line, (dashes, which) in zip(lines, STYLES, strict=False):
            drawn = _line(axes, sizes, line)
            drawn.set(linestyle=dashes, color=getattr(colours, which))
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9, labelcolor=colours.ink)
        axes.grid(axis="y", color=colours.faint, linewidth=0.8)
        paint(axes, colours)
    for axes in panels[-1]:
        axes.set_xlabel("nodes, with 30 pods each")
        axes.set_xlim(left=0)
    return picture


def _line(axes: Axes, sizes: Sizes, line: tuple[str, str, str]) -> Any:
    step, figure, label = line
    known = [one for one in sizes if figure in one["figures"].get(step, {})]
    x = [one["nodes"] for one in known]
    y = [one["figures"][step][figure] for one in known]
    return axes.plot(x, y, marker="o", linewidth=1.8, label=label)[0]


def main() -> None:
    """Draw the picture for both kinds of pages."""
    draw_file(__doc__, lambda document: {"scale": partial(growth, document["sizes"])})


if __name__ == "__main__":
    main()
