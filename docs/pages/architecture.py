"""Draw the rooms of the package and who imports whom, into docs/pictures/architecture.svg.

    python -m docs.pages.architecture

Places are by hand. That every folder is there, that arrows are imports and that all imports follow arrows is held by
`tests/test_architecture.py`.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

PICTURE = Path(__file__).resolve().parents[1] / "pictures" / "architecture.svg"
_A_LINE = 4  # rooms
_LEADING = 0.32  # between lines of text


class Group(NamedTuple):
    """Rooms in one box: its centre and size, its colour's place in the series, its title, its folders, and a word."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    title: str
    rooms: tuple[str, ...]
    says: str = ""


GROUPS = {
    "cli": Group(5.0, 10.7, 3.2, 0.8, 0, "command line", ("cli",)),
    "explorer": Group(2.6, 9.4, 3.4, 0.8, 0, "moved by hand", ("explorer",)),
    "papers": Group(7.6, 9.4, 3.6, 0.8, 0, "what papers say", ("proofs",)),
    "pictures": Group(7.6, 8.1, 3.6, 0.8, 1, "pictures", ("plotting",)),
    "operators": Group(4.4, 8.1, 2.3, 0.8, 1, "what to type", ("operators",)),
    "studies": Group(1.7, 6.8, 2.3, 0.8, 1, "many runs", ("studies",)),
    "workloads": Group(7.6, 5.5, 3.6, 0.8, 1, "whole fabrics", ("workloads",)),
    "theory": Group(2.6, 5.5, 4.2, 0.8, 1, "analysis", ("theory",)),
    "schemes": Group(2.6, 4.05, 4.2, 1.1, 2, "congestion control", ("schemes",), "dcqcn, hpcc, swift, ..."),
    "scenario": Group(1.5, 2.3, 2.5, 1.2, 3, "Scenario", ("scenario", "builders", "contract"), "what is described"),
    "engines": Group(
        5.0, 2.3, 3.6, 1.2, 3, "engines", ("fluid", "hybrid", "packet", "flow_level", "common", "dde", "compiling")
    ),
    "results": Group(8.65, 2.3, 2.1, 1.2, 3, "Trace", ("results",), "what is answered"),
    "base": Group(5.0, 0.6, 9.4, 0.55, 3, "", ("units", "errors", "files", "progress", "version", "surface")),
}
# Who imports whom; what follows from several arrows is left out.
IMPORTS = (
    ("cli", "explorer"),
    ("cli", "papers"),
    ("explorer", "operators"),
    ("explorer", "pictures"),
    ("papers", "pictures"),
    ("pictures", "studies"),
    ("studies", "workloads"),
    ("papers", "operators"),
    ("operators", "theory"),
    ("studies", "theory"),
    ("theory", "schemes"),
    ("schemes", "engines"),
    ("workloads", "engines"),
    ("engines", "scenario"),
    ("engines", "results"),
    ("results", "scenario"),
    ("scenario", "base"),
)
FLOW = (("scenario", "engines"), ("engines", "results"))  # a run


def draw() -> bytes:
    """The picture, as SVG whose text is text."""
    import matplotlib as mpl

    from fluidcc.plotting.style import colour, figure

    # Fixed identifiers and no date: the same picture is the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "architecture"}):
        picture, ((axes,),) = figure(size=(8.4, 9.2))
        axes.set(xlim=(-0.05, 10.05), ylim=(0.2, 11.2), aspect="equal")
        axes.axis("off")
        for one, other in FLOW:
            _flow(axes, _side(GROUPS[one], GROUPS[other], 0.3), _side(GROUPS[other], GROUPS[one], 0.3))
        for one, other in IMPORTS:
            _import(axes, GROUPS[one], GROUPS[other])
        for group in GROUPS.values():
            _box(axes, group, colour(group.colour))
        _legend(axes)
        written = io.BytesIO()
        picture.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _box(axes: Any, group: Group, edge: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = (group.x - group.width / 2, group.y - group.height / 2)
    style = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch(corner, group.width, group.height, style, fc="white", ec=edge, lw=1.8, zorder=3))
    most = _A_LINE if group.title else len(group.rooms)
    named = [", ".join(group.rooms[k : k + most]) for k in range(0, len(group.rooms), most)]
    lines = [(group.title, "bold", "black"), *((line, "normal", "black") for line in named)]
    lines = [line for line in (*lines, (group.says, "normal", "0.35")) if line[0]]
    for k, (text, weight, ink) in enumerate(lines):
        y = group.y + _LEADING * ((len(lines) - 1) / 2 - k)
        axes.text(group.x, y, text, ha="center", va="center", weight=weight, color=ink, size=10, zorder=4)


def _import(axes: Any, user: Group, used: Group) -> None:
    """An arrow from who imports: down, to the box beside, or below the box between."""
    if user.y > used.y:
        end = (_below(used, user.x), used.y + used.height / 2)
        start = (_below(user, end[0]), user.y - user.height / 2)
    else:
        start, end = _side(user, used, -0.25), _side(used, user, -0.25)
    bent = "arc3"
    if abs(user.x - used.x) > 6:
        start, end = (user.x, user.y - user.height / 2), (used.x + 0.5, used.y - used.height / 2)
        bent = "arc3,rad=-0.12"
    arrow = {"arrowstyle": "-|>", "color": "0.3", "lw": 1.1, "connectionstyle": bent, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow, zorder=2)


def _below(group: Group, x: float) -> float:
    """A place on a box's lower or upper edge, as near to another as its width allows."""
    reach = 0.35 * group.width
    return min(max(x, group.x - reach), group.x + reach)


def _side(group: Group, other: Group, up: float) -> tuple[float, float]:
    """A place on the side that faces another box, so far above its middle."""
    return group.x + (1 if other.x > group.x else -1) * group.width / 2, group.y + up


def _flow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = "simple,head_width=1.1,tail_width=0.5,head_length=0.7"
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": style, "color": "0.8", "shrinkA": 1, "shrinkB": 1}, zorder=1
    )


def _legend(axes: Any) -> None:
    arrow = {"arrowstyle": "-|>", "color": "0.3", "lw": 1.1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0.9, 10.9), (0.1, 10.9), arrowprops=arrow)
    _flow(axes, (0.1, 10.5), (0.9, 10.5))
    for y, text in ((10.9, "imports"), (10.5, "a run")):
        axes.text(1.05, y, text, va="center", size=9)


def main() -> None:
    """Write it."""
    PICTURE.write_bytes(draw())


if __name__ == "__main__":
    main()
