"""One colour for each scheme in all pictures, and lines that coincide said in their legend."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib import style as matplotlib_style
from matplotlib.colors import to_hex

from fluidcc.contract import registry
from fluidcc.explorer.plots import COLOURS as OF_EXPLORER
from fluidcc.plotting import style
from fluidcc.plotting.colours import ENGINES, SCHEMES, SERIES, SHADES, scheme_colours, shade
from fluidcc.plotting.fabrics import bar_panel, slowdown_axis, slowdown_panel
from proofs.acc.common import COLOURS as OF_ACC
from tests.plotting.test_style import APART, SEEN, lab


def test_the_series_is_that_of_petroff() -> None:
    """A digit mistyped would be a colour that nobody has tested."""
    assert list(SERIES) == matplotlib_style.library["petroff10"]["axes.prop_cycle"].by_key()["color"]


@pytest.mark.parametrize("seen", SEEN)
def test_schemes_are_told_apart_by_those_who_see_fewer_colours(seen: str) -> None:
    pairs = itertools.combinations(SCHEMES.values(), 2)
    assert min(float(np.linalg.norm(lab(a, SEEN[seen]) - lab(b, SEEN[seen]))) for a, b in pairs) > APART


def test_every_scheme_has_a_colour_of_its_own() -> None:
    """A scheme without one would take another's in some picture."""
    assert {*registry.names()} <= {*SCHEMES}
    assert len({*SCHEMES.values()}) == len(SCHEMES)


def test_what_is_no_scheme_of_ours_has_a_free_colour() -> None:
    found = scheme_colours(["HPCC", "dcqcn, g 1/16", "dcqcn", "mine", "hpccx"])
    assert (found["HPCC"], found["dcqcn"]) == (SCHEMES["hpcc"], SCHEMES["dcqcn"])
    assert len({*found.values()}) == 5
    assert {found["mine"], found["hpccx"]} <= {*SERIES}


def test_variants_are_shades_of_their_scheme() -> None:
    """With a free one DCQCN+TCD was in the purple of Swift, and HPCC_PFC in no red."""
    found = scheme_colours(["DCQCN+TCD", "DCQCN", "HPCC_PFC", "HPCC_GBN", "hpcc-rx"])
    assert found["DCQCN"] == shade("dcqcn", 0) == SCHEMES["dcqcn"]
    assert found["DCQCN+TCD"] == shade("dcqcn", 1)
    assert [found["HPCC_PFC"], found["HPCC_GBN"]] == [shade("hpcc", 0), shade("hpcc", 1)]
    assert found["hpcc-rx"] == SCHEMES["hpcc-rx"]  # a scheme, and no variant of HPCC
    assert shade("hpcc", 1) == "#de8f80"  # half way from #bd1f01 to white


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("name", SCHEMES)
def test_shades_are_told_apart(name: str, seen: str) -> None:
    """By the bound of schemes; nscc's own is so pale that its paler one is nearer, but not white."""
    shades = [*(shade(name, k) for k in range(len(SHADES))), "#ffffff"]
    pairs = itertools.combinations(shades, 2)
    apart = min(float(np.linalg.norm(lab(a, SEEN[seen]) - lab(b, SEEN[seen]))) for a, b in pairs)
    assert apart > (7.0 if name == "nscc" else APART)


def test_more_variants_than_shades_have_free_colours() -> None:
    """A shade twice would be two lines that nobody can tell apart."""
    found = scheme_colours([f"dcqcn, {k}" for k in range(len(SHADES) + 3)])
    assert len({*found.values()}) == len(found)


def test_acc_s_and_the_explorer_s_pictures_have_these_colours() -> None:
    for name in ("acc", "hpcc", "dcqcn", "timely"):
        assert OF_ACC[name] == SCHEMES[name]
    assert len({*OF_ACC.values()}) == len(OF_ACC)
    assert [OF_EXPLORER[name] for name in ("fluid", "hybrid")] == [ENGINES["fluid"], ENGINES["hybrid"]]


@pytest.mark.parametrize("names", [["hpcc", "dcqcn"], ["dcqcn", "swift", "hpcc"]])
def test_a_scheme_s_colour_does_not_depend_on_the_others(names: list[str]) -> None:
    """By order, HPCC was blue in one picture and red in the next."""
    made, ((lines, bars),) = style.figure(1, 2)
    values = np.arange(1.0, 1 + len(names))[:, None, None] * np.ones((len(names), 1, 2))
    slowdown_panel(lines, _bins(names, values), "p95")
    assert [line.get_color() for line in lines.get_lines()] == [SCHEMES[name] for name in names]
    bar_panel(bars, {name: np.array([1.0, 2.0, 3.0]) for name in names})
    made.draw_without_rendering()
    assert [to_hex(bar.get_facecolor()) for bar in bars.patches] == [SCHEMES[name] for name in names]


def _bins(names: list[str], values: np.ndarray) -> xr.Dataset:
    """Percentiles of slowdowns, (schemes, seeds, bins)."""
    dims = ("scheme", "seed", "bin")
    ends = np.broadcast_to(np.array([1e3, 1e6]), values.shape)
    return xr.Dataset({"p95": (dims, values), "to_bytes": (dims, ends)}, coords={"scheme": names})


@pytest.mark.parametrize(
    ("others", "entries"),
    [
        ([1.001, 3.0], ["none, dcqcn (coincide)", "hpcc"]),
        ([1.2, 1.2004], ["none", "dcqcn, hpcc (coincide)"]),
        ([1.2, 3.0], ["none", "dcqcn", "hpcc"]),
    ],
)
def test_lines_that_coincide_are_said(others: list[float], entries: list[str]) -> None:
    """The first of two that cover each other is not seen, and its colour is nowhere in the picture."""
    _, ((axis,),) = style.figure()
    for name, height in zip(("none", "dcqcn", "hpcc"), [1.0, *others], strict=True):
        axis.plot([0, 1, 2], [0, height, np.nan], color=SCHEMES[name], label=name)
    axis.set_ylim(0, 4)
    style.legend(axis)
    found: Any = axis.get_legend()
    assert [text.get_text() for text in found.get_texts()] == entries
    assert found.legend_handles[0].get_color() == SCHEMES[entries[0].removesuffix(" (coincide)").split(", ")[-1]]


def test_lines_that_coincide_are_said_where_the_legend_is_elsewhere() -> None:
    """HPCC's queue lay under that of its receiver-based form, and looked as if it had not run."""
    _, ((axis, apart),) = style.figure(1, 2)
    for panel, shift in ((axis, 0.001), (apart, 1.0)):
        panel.plot([0, 1], [1, 2], label="hpcc")
        panel.plot([0, 1], [1 + shift, 2 + shift], label="hpcc-rx")
        panel.set_ylim(0, 4)
        style.say_coinciding(panel)
    assert [panel.texts[0].get_text() for panel in (axis, apart)] == ["hpcc; hpcc-rx coincide", ""]


def test_a_panel_without_anything_has_no_axes() -> None:
    """Empty axes from 0 to 1 would look as if something had been measured there."""
    _, ((axis,),) = style.figure()
    bar_panel(axis, {"hpcc": np.zeros(3)})
    assert not axis.axison
    assert [text.get_text() for text in axis.texts] == ["none in any run"]
    assert not axis.lines  # of the intervals' ends, which would cross the words


def test_a_bar_of_height_0_is_said() -> None:
    """Nothing at its place would look as if the scheme had not run."""
    _, ((axis,),) = style.figure()
    bar_panel(axis, {"hpcc": np.zeros(3), "dcqcn": np.ones(3)})
    assert sorted(text.get_text() for text in axis.texts) == ["", "0"]


def test_bands_do_not_press_lines_together() -> None:
    """Intervals of three seeds reached to 50 000, and all lines lay on the axis; the longest tail stays inside."""
    _, ((median, tail),) = style.figure(1, 2, sharey=True)
    for axis, highest in ((median, 2.0), (tail, 90.0)):
        axis.plot([0, 1], [1.0, highest])
        axis.fill_between([0, 1], [1, 1], [1, 5e4])
        axis.set_yscale("log")
    slowdown_axis(median)
    assert 90 < tail.get_ylim()[1] < 1000
