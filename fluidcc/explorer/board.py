"""Widgets and figures of the explorer's page, and their layout; no behaviour."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import panel as pn

from fluidcc.contract.registry import DEFAULT
from fluidcc.explorer.devices import Devices
from fluidcc.explorer.pieces import FOCUS, SMALL, error, quiet, status, text, wrapped
from fluidcc.explorer.plots import ChartPlot, DistributionPlot, QueuePlot, RatePlot, RootPlot
from fluidcc.explorer.rows import Rows
from fluidcc.explorer.settings import TOPOLOGIES, Setting, preset_names, schemes
from fluidcc.explorer.tips import Tips

_LEFT, _TALL, _LOW = 290, 235, 255  # pixels, for a page of 1280 by 800
NO_CHART_YET = quiet("the chart follows; the first of its kind is compiled ...")
ASK_FOR_CHART = quiet("drawn if you ask for it: nothing moves until it is there")
_STARTING = '<div class="quiet" id="verdict">compiling, the first time a few seconds ...</div>'
TIPS = {
    "pick-scheme": f"Congestion control of all flows; default: {DEFAULT}.",
    "pick-preset": "Named set of the scheme's and the marking's values; default: paper.",
    "pick-topology": f"Links and paths: all senders into one port, or links in a row; default: {TOPOLOGIES[0]}.",
    "keep": "Keep this setting in the pictures, dashed and grey, while you move on.",
    "swap": "Exchange the kept setting with the present one.",
    "drop": "Forget the kept setting.",
    "packets": "Run the present setting packet by packet, with two seeds; takes seconds to minutes.",
    "axis-x": "Value along the stability chart.",
    "axis-y": "Value up the stability chart.",
    "draw-chart": "Work out the stability chart of the present setting.",
    "more": "Less common values of NIC, marking and packets.",
    "code": "Program that makes these runs, roots and chart with fluidcc.",
    "save": "Save that program as a file.",
    "devices": "Read the marking, rate and timers that your devices are set to.",
    "switch-file": "SONiC's config_db.json of the switch; read, then deleted.",
    "nic-file": "Text of the NIC's settings, as its tools print them; read, then deleted.",
    "port": "Port of the switch; default: the one that marks worst, of those that are up.",
    "view-queue": "Queue of the most loaded link over time; range: over seeds. A click on the legend hides a line.",
    "view-rates": "Sending rate of a flow of each class (late flows red). A click on the legend hides a line.",
    "view-share": "Share of the run's second half that the queue spends at each length.",
    "view-roots": "Rightmost characteristic roots; right of the dashed line perturbations grow.",
    "view-chart": "Rightmost root over two values: black where it crosses the axis, grey without an equilibrium.",
    "load": "Show the setting of these files, and the audit's findings.",
}
VIEWS = ("view-queue", "view-rates", "view-share", "view-roots", "view-chart")
# A narrow page has the answer first, then what moves it, then the rest; a wide one has the sliders on the left.
_PAGE = f"""
:host {{
  display: grid !important;
  grid-template: "picks head" 52px "knobs head" auto "knobs rest" 1fr / {_LEFT}px minmax(0, 1fr);
  column-gap: 14px;
  min-width: 0 !important;
}}
.picks {{ grid-area: picks; }} .knobs {{ grid-area: knobs; }} .head {{ grid-area: head; }} .rest {{ grid-area: rest; }}
.picks, .knobs, .head, .rest {{ width: auto; min-width: 0 !important; align-self: start; justify-self: stretch; }}
@media (max-width: 700px) {{
  :host {{ grid-template: "picks" auto "head" auto "knobs" auto "rest" auto / minmax(0, 1fr); row-gap: 8px; }}
}}
"""


class Board:
    """Widgets and figures of the page, laid out.

    Parameters
    ----------
    setting : Setting
        What the choices begin with.
    devices : Devices
    moved : callable
        ``moved(name, text)`` as a person moves a value.
    program : callable
        Gives the Python to be saved.
    """

    def __init__(
        self, setting: Setting, devices: Devices, moved: Callable[[str, str], None], program: Callable[[], str]
    ) -> None:
        self._pick(setting)
        self.front, self.more, self.tips = Rows(moved), Rows(moved), Tips(margin=0)
        self.fold = _card("more of NIC, marking, packets", "more", self.more.view)
        self.status, self.error = text(status("starting", 0)), text(error(""))
        self.verdict, self.numbers = text(_STARTING, min_height=20), text("", min_height=54)
        self.why, self.python = text(NO_CHART_YET), text("", sizing_mode="stretch_width")
        self.over_time = (QueuePlot(_TALL), RatePlot(_TALL), DistributionPlot(_LOW))
        self.roots, self.map = RootPlot(_LOW), ChartPlot(_LOW - 30)
        axis: dict[str, Any] = {"width": 148, "margin": (0, 2), "stylesheets": [SMALL]}
        self.x = pn.widgets.Select(name="chart across", css_classes=["axis-x"], **axis)
        self.y = pn.widgets.Select(name="chart up", css_classes=["axis-y"], **axis)
        small: dict[str, Any] = {"margin": (2, 4), "stylesheets": [SMALL]}
        self.keep_button = pn.widgets.Button(name="Keep beside", css_classes=["keep"], width=100, **small)
        self.swap_button = pn.widgets.Button(name="Swap", css_classes=["swap"], width=60, disabled=True, **small)
        self.drop_button = pn.widgets.Button(name="Drop", css_classes=["drop"], width=60, disabled=True, **small)
        self.packet_button = pn.widgets.Button(name="Run packets", css_classes=["packets"], width=100, **small)
        self.chart_button = pn.widgets.Button(name="Draw chart", css_classes=["draw-chart"], width=90, **small)
        self.progress = pn.indicators.Progress(value=0, max=100, width=110, height=10, visible=False, margin=(9, 4))
        saved: dict[str, Any] = {"filename": "explore.py", "label": "Save explore.py", "css_classes": ["save"]}
        download = pn.widgets.FileDownload(callback=lambda: io.StringIO(program()), width=140, **saved, **small)
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
            choice("scheme", 96), choice("preset", 82), choice("topology", 96),
        )  # fmt: skip

    def _layout(self, devices: Any) -> Any:
        wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}
        buttons = (self.keep_button, self.swap_button, self.drop_button, self.packet_button, self.progress)
        figures = (*self.over_time, self.roots, self.map)
        for kind, figure in zip(VIEWS, figures, strict=True):
            figure.plot.css_classes = [kind]
        queue, rates, share, roots, chart = (pn.pane.Bokeh(figure.plot, **wide) for figure in figures)
        chart = pn.Column(wrapped(self.x, self.y, self.chart_button), self.why, chart, **wide)
        picks = pn.Row(self.scheme, self.preset, self.topology, css_classes=["picks"], **wide)
        knobs = pn.Column(self.front.view, self.fold, css_classes=["knobs"], **wide)
        lines = (wrapped(*buttons, self.status), self.error, self.verdict, self.numbers)
        head = pn.Column(*lines, wrapped(queue, rates, least=380), css_classes=["head"], **wide)
        rest = pn.Column(wrapped(roots, chart, share, least=290), self.code, devices, css_classes=["rest"], **wide)
        page: dict[str, Any] = {"stylesheets": [_PAGE], "sizing_mode": "stretch_width", "margin": (4, 8)}
        return pn.Column(picks, knobs, head, rest, self.tips, **page)


def _card(title: str, kind: str, *parts: Any) -> Any:
    """Return a card that is folded until somebody opens it."""
    wide: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (6, 0)}
    return pn.Card(*parts, title=title, collapsed=True, css_classes=[kind], stylesheets=[FOCUS], **wide)
