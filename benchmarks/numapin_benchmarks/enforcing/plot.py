"""Draw the pictures in docs from the figures of `numapin_benchmarks.enforcing -o FILE`.

Each picture is drawn twice, for light and for dark pages, as an SVG that is identical for
identical figures. It needs matplotlib: `pip install 'numapin[bench]'`.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from numapin_benchmarks.pictures import Axes, Colours, Draw, Picture, draw_file, paint, ticker

PHASES = {
    "alone": "alone",
    "unpinned": "beside 6 busy containers",
    "pinned": "the policy is applied",
}
KINDS = {
    "neighbour stays": "A new owner runs: how long a busy neighbour stays on its CPU",
    "overwritten set repaired": "A cpuset is overwritten by hand: how long it stays wrong",
    "two owners of a CPU": "An owner is force-deleted, another comes: how long both have the CPU",
}
Read = Callable[[Sequence[float], Sequence[float]], float]
NEVER_MS, LEAST_MS = 30_000.0, 1.0
"""The longest time that was waited for a repair; below the least, the axis has only zero."""


def isolation(runs: Sequence[Mapping[str, Any]], colours: Colours) -> Picture:
    """A small service's slowest answers and its share of the CPU, through three phases."""
    picture = Picture(figsize=(8.6, 4.8), layout="constrained", facecolor=colours.page)
    slowest, share = panels = picture.subplots(2, 1, sharex=True)
    _lines(slowest, runs, lambda _, later: later[3])
    _lines(share, runs, _share)
    slowest.set_ylabel("slowest answer, ms")
    slowest.set_yscale("log")
    slowest.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ms, _: f"{ms:g}"))
    slowest.yaxis.set_minor_formatter(ticker.NullFormatter())
    share.set_ylabel("CPU when wanted, %")
    share.set_ylim(0, 104)
    share.set_xlabel("seconds")
    length = runs[0]["alone"][-1][0]
    for number, title in enumerate(PHASES.values()):
        middle = (number + 0.5) / len(PHASES)
        place = {"transform": slowest.transAxes, "ha": "center", "va": "bottom"}
        slowest.text(middle, 1.04, title, color=colours.ink, **place)
        for axes in panels:
            axes.axvline(number * length, color=colours.faint, linewidth=1, zorder=0)
    for axes in panels:
        axes.set_xlim(0, len(PHASES) * length)
        for line in axes.get_lines():
            if line.get_gid() == "run":
                line.set_color(colours.numapin)
        paint(axes, colours)
    return picture


def _share(earlier: Sequence[float], later: Sequence[float]) -> float:
    """CPU time in per cent of the time in which the service was runnable."""
    ran, waited = later[1] - earlier[1], later[2] - earlier[2]
    return 100 * ran / (ran + waited)


def _lines(axes: Axes, runs: Sequence[Mapping[str, Any]], read: Read) -> None:
    """Each run as a thin line, and their median as a thick one."""
    for number, phase in enumerate(PHASES):
        lines = []
        for run in runs:
            windows = run[phase]
            start = number * windows[-1][0]
            x = [start + one[0] for one in windows[1:]]
            y = [read(earlier, later) for earlier, later in pairwise(windows)]
            axes.plot(x, y, linewidth=0.8, alpha=0.35, gid="run")
            lines.append((x, y))
        shortest = min(len(x) for x, _ in lines)
        middle = [statistics.median(y[i] for _, y in lines) for i in range(shortest)]
        axes.plot(lines[0][0][:shortest], middle, linewidth=2.2, gid="run")


def sharing(parts: Mapping[str, Any], colours: Colours) -> Picture:
    """How long an exclusive CPU was shared: a dot for each case, on a logarithmic scale."""
    groups = {kind: rows for kind in KINDS if (rows := _rows(parts, kind))}
    heights = [len(rows) for rows in groups.values()]
    size = (8.6, 0.38 * sum(heights) + 0.5 * len(heights) + 0.4)
    picture = Picture(figsize=size, layout="constrained", facecolor=colours.page)
    panels = picture.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes, (kind, rows) in zip(panels[:, 0], groups.items(), strict=True):
        axes.set_title(KINDS[kind], loc="left", fontsize=11, color=colours.ink)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        for height, (who, values) in enumerate(rows.items()):
            _dots(axes, height, values, colours.numapin if who == "numapin" else colours.kubelet)
        axes.grid(axis="x", color=colours.faint, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0, pad=10)
        paint(axes, colours)
    _logarithmic(panels[-1, 0])
    return picture


def _dots(axes: Axes, height: int, values: Sequence[float | None], colour: str) -> None:
    known = [value for value in values if value is not None]
    late = len(values) - len(known)
    for x, marker in ((known, "o"), ([NEVER_MS] * late, ">")):
        y = [height] * len(x)
        axes.scatter(x, y, s=50, marker=marker, color=colour, alpha=0.7, clip_on=False, zorder=3)


def _logarithmic(axes: Axes) -> None:
    """Milliseconds, with a zero."""
    axes.set_xscale("symlog", linthresh=LEAST_MS, linscale=0.5)
    axes.set_xlim(0, NEVER_MS)
    ticks = {0: "0", 1: "1 ms", 10: "10 ms", 100: "100 ms", 1000: "1 s", 10_000: "10 s"}
    axes.xaxis.set_major_locator(ticker.FixedLocator([*ticks, NEVER_MS]))
    axes.xaxis.set_major_formatter(ticker.FixedFormatter([*ticks.values(), "> 30 s"]))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def _rows(parts: Mapping[str, Any], kind: str) -> dict[str, list[float | None]]:
    """Milliseconds of each system for which this was measured; None took too long."""
    found = {}
    for part in parts.values():
        for figure in part["figures"]:
            who, _, what = figure["name"].partition(": ")
            if what == kind:
                found[who] = [value for run in figure["runs"] for value in run]
    return {who: found[who] for who in sorted(found, key=lambda who: who != "numapin")}


def main() -> None:
    """Draw the pictures for which the file has figures."""
    draw_file(__doc__, _pictures)


def _pictures(document: Mapping[str, Any]) -> dict[str, Draw]:
    pictures: dict[str, Draw] = {"sharing": partial(sharing, document["parts"])}
    if "isolation" in document:
        pictures["isolation"] = partial(isolation, document["isolation"])
    return pictures


if __name__ == "__main__":
    main()
