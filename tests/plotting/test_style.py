"""One style: every picture's colours are the series', told apart by all, and pictures come from one place."""

from __future__ import annotations

import ast
import io
import itertools
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from cycler import cycler
from matplotlib.colors import to_hex, to_rgb
from matplotlib.image import imread

from fluidcc.plotting import style
from tests.test_imports import modules

# What protanopes and deuteranopes see of linear RGB: Machado, Oliveira and Fernandes, IEEE TVCG 15 (2009), severity 1.
SEEN = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "all": np.eye(3),
}
APART = 10.0  # CIE 1976; about 2 can just be noticed side by side, and lines are thin and apart


def lab(colour: str, seen: object) -> np.ndarray:
    """CIE L*a*b* under D65 of a colour as it is seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(seen) @ linear, 0, 1)
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(matrix) @ linear / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours: tuple[str, ...], seen: object) -> float:
    """The least distance of two of these colours."""
    return min(float(np.linalg.norm(lab(a, seen) - lab(b, seen))) for a, b in itertools.combinations(colours, 2))


@pytest.mark.parametrize("seen", SEEN)
def test_the_series_is_told_apart_by_those_who_see_fewer_colours(seen: str) -> None:
    assert nearest(style.SERIES[:8], SEEN[seen]) > APART


def test_the_distance_finds_colours_that_are_not() -> None:
    assert nearest(("#2ca02c", "#d62728"), np.eye(3)) > 100
    assert nearest(("#8c564b", "#2ca02c", "#d62728"), SEEN["protanopia"]) < 30


@pytest.mark.parametrize("around", [("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728"), ("#000000", "#ff0000", "#00ff00")])
def test_names_of_colours_are_the_series(around: tuple[str, ...]) -> None:
    """Of lines, bars, bands and points, whatever the user's own pictures have; their settings stay."""
    with mpl.rc_context({"axes.prop_cycle": cycler(color=around)}):
        picture, ((axes,),) = style.figure()
        axes.plot([0, 1], [0, 1])  # the first of the series
        axes.bar([0], [1], color="C1", alpha=0.5)
        band = axes.fill_between([0, 1], [0, 0], [1, 1], color="C2")
        points = axes.scatter([0], [0], color=["C0"])
        numbers = axes.scatter([0], [0], c=[3.0])
        axes.legend(["a", "b"])
        assert picture._repr_png_().startswith(b"\x89PNG")
        assert [each["color"] for each in mpl.rcParams["axes.prop_cycle"]] == list(around)
    assert to_hex(axes.lines[0].get_color()) == style.SERIES[0]
    assert to_hex(axes.patches[0].get_facecolor()) == style.SERIES[1]
    assert axes.patches[0].get_facecolor()[3] == 0.5
    assert to_hex(band.get_facecolor()[0]) == style.SERIES[2]
    assert to_hex(points.get_facecolor()[0]) == style.SERIES[0]
    assert to_hex(numbers.get_facecolor()[0]) == "#440154"  # viridis
    assert to_hex(axes.spines["left"].get_edgecolor()) == "#000000"


def test_a_line_of_a_name_is_drawn_in_the_series(tmp_path: Path) -> None:
    picture, ((axes,),) = style.figure(size=(2, 2))
    axes.plot([0, 1], [0.5, 0.5], color="C3", lw=40)
    pixels = imread(io.BytesIO(picture.write(tmp_path / "p.png").read_bytes()))[..., :3]
    wanted = np.all(np.abs(pixels - to_rgb(style.SERIES[3])) < 0.005, axis=-1)
    assert wanted.mean() > 0.2


def test_all_pictures_are_made_in_one_place() -> None:
    """No module but the style imports pyplot, or makes a figure or its subplots by Matplotlib's own means."""
    makers = []
    for path in modules().values():
        if path == Path(style.__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) or ""
            if "matplotlib.pyplot" in names or module == "matplotlib.pyplot" or "pyplot" in names:
                makers.append(str(path))
            if module == "matplotlib.figure":
                makers.append(str(path))
    assert makers == []
