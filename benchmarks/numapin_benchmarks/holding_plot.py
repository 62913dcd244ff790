"""Draw what holding pods gains from the figures of `numapin_campaigns holding --output FILE`."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from numapin_benchmarks.pictures import Axes, Colours, Picture, draw_file, paint, ticker
from numapin_campaigns.holding.outcome import Way

Figures = Mapping[str, Any]
NAMES: Final = {
    Way.HOLD: "numapin, Hold",
    Way.SHARE: "numapin, Share",
    Way.PLUG_IN: "Share, plug-in",
    Way.KUBELET: "kubelets",
}


def placed(figures: Figures, colours: Colours) -> Picture:
    """Left: which pods were aligned, and since when. Right: how long it took."""
    ways = [way for way in Way if way in figures]
    picture = Picture(figsize=(8.6, 3.4), layout="constrained", facecolor=colours.page)
    shares, times = picture.subplots(1, 2, width_ratios=(1, 1.2))
    _shares(shares, figures, ways, colours)
    _times(times, figures, ways, colours)
    for axes in (shares, times):
        axes.set_facecolor(colours.page)
        axes.title.set_color(colours.ink)
        paint(axes, colours)
    return picture


def _shares(axes: Axes, figures: Figures, ways: list[Way], colours: Colours) -> None:
    """A bar for each way; failed pods beside it."""
    parts = (("atStart", "from its start", colours.numapin), ("later", "later", colours.faint))
    left = [0.0] * len(ways)
    for part, label, colour in (*parts, ("never", "never", colours.kubelet)):
        widths = [100 * figures[way][part] / figures[way]["pods"] for way in ways]
        axes.barh(range(len(ways)), widths, left=left, color=colour, height=0.5, label=label)
        left = [one + more for one, more in zip(left, widths, strict=True)]
    for at, way in enumerate(ways):
        if failed := figures[way]["failedPods"]:
            text = f"{failed} more pods failed"
            axes.text(2, at + 0.32, text, color=colours.ink, fontsize=9, va="top")
    axes.set_yticks(range(len(ways)), [NAMES[way] for way in ways])
    axes.set_ylim(len(ways) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_title("Pods with CPUs of one NUMA node, %", fontsize=11)
    axes.legend(
        frameon=False,
        fontsize=9,
        labelcolor=colours.ink,
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.4, -0.12),
    )


def _times(axes: Axes, figures: Figures, ways: list[Way], colours: Colours) -> None:
    """For each way the share of its pods that had their place within so many seconds."""
    looks = {
        Way.HOLD: {"color": colours.numapin, "linewidth": 2.0},
        Way.SHARE: {"color": colours.ink, "linewidth": 1.2, "linestyle": "--"},
        Way.PLUG_IN: {"color": colours.ink, "linewidth": 1.2, "linestyle": ":"},
        Way.KUBELET: {"color": colours.kubelet, "linewidth": 1.6},
    }
    last = max((figures["times"][way] or [1.0])[-1] for way in ways)
    for way in ways:
        seconds, pods = figures["times"][way], figures[way]["pods"]
        heights = [100 * (at + 1) / pods for at in range(len(seconds))]
        x, y = [*seconds, last], [*heights, heights[-1] if heights else 0.0]
        axes.step(x, y, where="post", label=NAMES[way], **looks[way])
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(0, last * 1.05)
    axes.set_ylim(0, 102)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda one, _: f"{one:g}"))
    axes.set_xlabel("seconds after its creation")
    axes.set_title("Pods that have them, %", fontsize=11)
    axes.grid(color=colours.faint, linewidth=0.8)
    axes.legend(frameon=False, fontsize=9, labelcolor=colours.ink, loc="lower right")


def main() -> None:
    """Draw the picture for both kinds of pages."""
    draw_file(__doc__, lambda figures: {"holding": partial(placed, figures)})


if __name__ == "__main__":
    main()
