"""Widgets and figures of the explorer's page, and their layout; no behaviour."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import panel as pn

from fluidcc.explorer.chart_plot import ChartPlot
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.distribution_plot import DistributionPlot
from fluidcc.explorer.knobs import TOPOLOGIES
from fluidcc.explorer.pieces import SMALL, error, quiet, status, text
from fluidcc.explorer.root_plot import RootPlot
from fluidcc.explorer.settings import Setting, preset_names, schemes
from fluidcc.explorer.time_plots import QueuePlot, RatePlot

_LEFT, _TALL, _LOW = 290, 235, 255  # pixels, for a page of 1280 by 800
NO_CHART_YET = quiet("the chart follows; the first of its kind is compiled ...")
ASK_FOR_CHART = quiet("drawn if you ask for it: nothing moves until it is there")
_STARTING = '<div class="quiet" id="verdict">compiling, the first time a few seconds ...</div>'


class Board:
    """Widgets and figures of the page, laid out.

    Parameters
    ----------
    setting : Setting
        What the choices begin with.
    devices : Devices
    program : callable
        Gives the Python to be saved.
    """

    def __init__(self, setting: Setting, devices: Devices, program: Callable[[], str]) -> None:
        self._pick(setting)
        self.front = pn.Column(margin=(10, 0, 0, 0), width=_LEFT)
        more: dict[str, Any] = {"title": "more of NIC, marking, packets", "css_classes": ["more"]}
        self.more = pn.Card(pn.Column(margin=0), collapsed=True, width=_LEFT - 10, margin=(6, 0), **more)
        self.status, self.error = text(status("starting", 0)), text(error(""))
        self.verdict, self.numbers = text(_STARTING, min_height=20), text("", min_height=54)
        self.why, self.python = text(NO_CHART_YET), text("")
        self.over_time = (QueuePlot(_TALL), RatePlot(_TALL), DistributionPlot(_LOW))
        self.roots, self.map = RootPlot(_LOW), ChartPlot(_LOW - 30)
        axis: dict[str, Any] = {"name": "", "width": 132, "margin": (0, 2), "stylesheets": [SMALL]}
        self.x = pn.widgets.Select(css_classes=["axis-x"], **axis)
        self.y = pn.widgets.Select(css_classes=["axis-y"], **axis)
        small: dict[str, Any] = {"height": 26, "margin": (2, 4), "stylesheets": [SMALL]}
        self.keep_button = pn.widgets.Button(name="Keep beside", css_classes=["keep"], width=100, **small)
        self.swap_button = pn.widgets.Button(name="Swap", css_classes=["swap"], width=60, disabled=True, **small)
        self.drop_button = pn.widgets.Button(name="Drop", css_classes=["drop"], width=60, disabled=True, **small)
        self.packet_button = pn.widgets.Button(name="Run packets", css_classes=["packets"], width=100, **small)
        self.chart_button = pn.widgets.Button(name="Draw chart", css_classes=["draw-chart"], width=90, **small)
        self.progress = pn.indicators.Progress(value=0, max=100, width=110, height=10, visible=False, margin=(9, 4))
        saved: dict[str, Any] = {"filename": "explore.py", "label": "Save explore.py", "width": 140}
        download = pn.widgets.FileDownload(callback=lambda: io.StringIO(program()), **saved, **small)
        self.code = _card("Python that makes this", "code", download, self.python)
        title = "A switch's and a NIC's own configuration: where does it stand?"
        self.view = self._layout(_card(title, "devices", devices.view))

    def _pick(self, setting: Setting) -> None:
        """Build the choices of scheme, preset and topology; a scenario that was handed in has one of each."""
        given = setting.given is not None
        options = {"scheme": list(schemes()), "preset": preset_names(setting.scheme), "topology": list(TOPOLOGIES)}

        def choice(name: str, width: int) -> Any:
            value = getattr(setting, name)
            return pn.widgets.Select(
                name=name,
                options=[value] if given else options[name],
                value=value,
                disabled=given,
                css_classes=[f"pick-{name}"],
                width=width,
                margin=(0, 4),
                stylesheets=[SMALL],
            )

        self.scheme, self.preset, self.topology = (
            choice("scheme", 96), choice("preset", 74), choice("topology", 96),
        )  # fmt: skip

    def _layout(self, devices: Any) -> Any:
        left = pn.Column(
            pn.Row(self.scheme, self.preset, self.topology, margin=0),
            self.front,
            self.more,
            width=_LEFT,
            margin=(0, 8, 0, 0),
        )
        buttons = (self.keep_button, self.swap_button, self.drop_button, self.packet_button, self.progress)
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
        figures = (*self.over_time, self.roots, self.map)
        queue, rates, share, roots, chart = (pn.pane.Bokeh(figure.plot, **wide) for figure in figures)
        over = pn.Row(text('<span class="quiet">over</span>'), self.x, self.y, self.chart_button, margin=0)
        right = pn.Column(
            pn.Row(*buttons, self.status, margin=0),
            self.error,
            self.verdict,
            self.numbers,
            pn.Row(queue, rates, **wide),
            pn.Row(roots, pn.Column(over, self.why, chart, **wide), share, **wide),
            self.code,
            devices,
            **wide,
        )
        return pn.Row(left, right, sizing_mode="stretch_width", margin=(4, 8))


def _card(title: str, kind: str, *parts: Any) -> Any:
    """Return a card that is folded until somebody opens it."""
    return pn.Card(*parts, title=title, collapsed=True, css_classes=[kind], sizing_mode="stretch_width", margin=(6, 0))
