"""Rows of sliders and tooltips without a browser: what a move does, and that no control lacks its words."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("panel", reason="needs panel: pip install 'fluidcc[explore]'")

import panel as pn

from fluidcc import units
from fluidcc.explorer.board import TIPS, Board, Rows
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.settings import Setting, schemes


@pytest.fixture
def moves() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def rows(moves: list[tuple[str, str]]) -> Rows:
    found = Rows(lambda name, text: moves.append((name, text)))
    found.take(Setting().knobs, Setting().text)
    return found


def sent(rows: Rows, name: str) -> dict[str, Any]:
    """Text and place as they are sent to the browser."""
    return json.loads(rows.view.values)[name]


def test_a_slider_sets_its_text(rows: Rows, moves: list[tuple[str, str]]) -> None:
    """And is told the number of the move that was seen, else an answer would pull it back from under the hand."""
    knob = Setting().knobs["kmin"]
    rows._on_move({"name": "kmin", "place": 120, "count": 7})
    assert moves == [("kmin", knob.stop_text(120))]
    assert sent(rows, "kmin") == {"text": knob.stop_text(120), "place": 120, "count": 7}


def test_a_text_moves_its_slider_once_it_is_taken(rows: Rows, moves: list[tuple[str, str]]) -> None:
    rows._on_move({"name": "kmin", "text": "20KB", "count": 1})
    assert moves == [("kmin", "20KB")]
    rows.show({"kmin": "20KB", "unknown": "1"})
    assert sent(rows, "kmin") == {"text": "20KB", "place": Setting().knobs["kmin"].nearest_stop(20e3), "count": 1}


def test_a_refused_text_goes_back(rows: Rows) -> None:
    """Send what was typed back once, so that its reset is a change that the browser hears of."""
    rows._on_move({"name": "kmin", "text": "five", "count": 1})
    assert sent(rows, "kmin")["text"] == "five"
    rows.show({"kmin": "5KB"})
    assert sent(rows, "kmin")["text"] == "5KB"


def test_a_move_of_a_scheme_that_was_left_is_dropped(rows: Rows, moves: list[tuple[str, str]]) -> None:
    rows.take(Setting("hpcc").knobs, Setting("hpcc").text)
    rows._on_move({"name": "g", "place": 3, "count": 1})
    assert moves == []


@pytest.mark.parametrize("scheme", schemes())
def test_every_tooltip_gives_meaning_unit_and_default(scheme: str) -> None:
    """In the words of the parameter's own declaration."""
    setting = Setting(scheme)
    for knob in setting.knobs.values():
        assert knob.tip.lower().startswith(knob.spec.doc.lower())
        assert f"default: {setting.text(knob.name) or 'none'}." in knob.tip
        if not knob.spec.static:
            assert f"such as {units.EXAMPLE[knob.spec.dimension]};" in knob.tip


def test_every_control_of_the_page_has_a_tooltip() -> None:
    """A widget added without one would be the only control that says nothing."""
    board = Board(Setting(), Devices(lambda setting: None), lambda name, text: None, lambda: "")
    widgets = [each for each in board.view.select(pn.widgets.Widget) if not isinstance(each, pn.indicators.Progress)]
    assert len(widgets) > 12
    assert [repr(each) for each in widgets if not {*each.css_classes} & TIPS.keys()] == []
    cards = board.view.select(pn.Card)
    assert [card.title for card in cards if not {*card.css_classes} & TIPS.keys()] == []
