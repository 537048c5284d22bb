"""Figures of the papers, one module each: a picture, its data, and whether the numbers are those expected.

`FIGURES` lists them without loading anything heavy; `Figure.run` loads a figure's module and makes it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.reproduce.result import Check, Figure, Result

if TYPE_CHECKING:
    import os

_DCQCN = "DCQCN, SIGCOMM 2015"
_CONEXT = "ECN or Delay, CoNEXT 2016"
_DCTCP = "DCTCP, SIGCOMM 2010"
_SWIFT = "Swift, SIGCOMM 2020"
_ACC = "ACC, NSDI 2024"
_HPCC = "HPCC, SIGCOMM 2019"
_HPCC_PLUS = "HPCC++, IETF slides"
_VAI = "Fast convergence to fairness (VAI, SF)"

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("dcqcn-fig3", _DCQCN, "Figure 3: PFC alone is unfair to flows that share a port", "dcqcn_fig3"),
        Figure("dcqcn-fig4", _DCQCN, "Figure 4: PFC alone hurts a victim flow", "dcqcn_fig4"),
        Figure("dcqcn-fig8", _DCQCN, "Figure 8: with DCQCN all senders get the same share", "dcqcn_fig3"),
        Figure("dcqcn-fig9", _DCQCN, "Figure 9: with DCQCN the victim flow is not hurt", "dcqcn_fig4"),
        Figure("dcqcn-fig10", _DCQCN, "Figure 10: second sender starts 10 ms after the first", "dcqcn_fig10"),
        Figure("dcqcn-fig11a", _DCQCN, "Figure 11(a): convergence against the byte counter", "dcqcn_fig11"),
        Figure("dcqcn-fig11b", _DCQCN, "Figure 11(b): convergence against the timer", "dcqcn_fig11"),
        Figure("dcqcn-fig11c", _DCQCN, "Figure 11(c): convergence against Kmax", "dcqcn_fig11"),
        Figure("dcqcn-fig11d", _DCQCN, "Figure 11(d): convergence against Pmax", "dcqcn_fig11"),
        Figure("dcqcn-fig12", _DCQCN, "Figure 12: queue against g at 2:1, 8:1 and 16:1 incast", "dcqcn_fig12"),
        Figure("dcqcn-fig10-packet", _DCQCN, "Figure 10: the model against packets", "dcqcn_fig10_packet"),
        Figure("dcqcn-fig13", _DCQCN, "Figure 13: two flows under four settings, model and packets", "dcqcn_fig13"),
        Figure("dcqcn-fig20", _DCQCN, "Figure 20: two bottlenecks, cut-off against RED-like marking", "dcqcn_fig20"),
        Figure(
            "dcqcn-incast-totals", _DCQCN, "section 6.1: total and queue of K:1 incast, K = 1 to 19", "dcqcn_incast"
        ),
        Figure("dcqcn-table14", _DCQCN, "Figure 14 (table): what each parameter does", "dcqcn_table14"),
        Figure("dcqcn-margins", _CONEXT, "phase margin over flows, published and exact", "dcqcn_margins"),
        Figure("dcqcn-stability", _DCQCN, "no figure: where its fixed point is stable", "dcqcn_stability"),
        Figure("dcqcn-bistability", _DCQCN, "no figure: a stable rest beside a large limit cycle", "dcqcn_bistability"),
        Figure("dctcp-swings", _DCTCP, "no figure: how far its queue swings", "window_swings"),
        Figure("swift-swings", _SWIFT, "no figure: how far its queue swings", "window_swings"),
        Figure(
            "timely-stability", _CONEXT, "no figure: where patched TIMELY is stable; TIMELY swings", "timely_stability"
        ),
        Figure("hpcc-case1", _HPCC, "Case-1: a storm of PFC pauses, and what is left of the traffic", "hpcc_case1"),
        Figure("hpcc-fig1", _HPCC, "Figure 1: how far PFC pauses spread, and what they stop", "hpcc_fig1"),
        Figure("hpcc-fig6", _HPCC, "Figure 6: txRate against rxRate", "hpcc_fig6"),
        Figure("hpcc-fig9ab", _HPCC, "Figure 9(a), (b): a short flow joins a long one", "hpcc_fig9ab"),
        Figure("hpcc-fig9cd", _HPCC, "Figure 9(c), (d): seven senders join a long flow", "hpcc_fig9cd"),
        Figure("hpcc-fig9ef", _HPCC, "Figure 9(e), (f): latency of mice behind two elephants", "hpcc_fig9ef"),
        Figure("hpcc-fig9gh", _HPCC, "Figure 9(g), (h): four flows come and go", "hpcc_fig9gh"),
        Figure("hpcc-fig13", _HPCC, "Figure 13: reaction per ACK, per RTT, and combined", "hpcc_fig13"),
        Figure("hpcc-fig14", _HPCC, "Figure 14: fairness and queue against W_AI", "hpcc_fig14"),
        Figure("hpcc-wai", _HPCC, "section 3.3: queue and time to fairness against W_AI", "hpcc_wai"),
        Figure("hpcc-parking-lot", _HPCC, "A.3: the long flow of a parking lot, and registers", "hpcc_parking_lot"),
        Figure("hpcc-a1", _HPCC, "appendix A.1: queue of 50 periodic sources", "hpcc_a1"),
        Figure("hpcc-a2", _HPCC, "appendix A.2: steps to a Pareto optimum, as printed and repaired", "hpcc_a2"),
        Figure("hpcc-a3", _HPCC, "appendix A.3: additive increase, fairness and noise", "hpcc_a3"),
        Figure("hpcc-stability", _HPCC, "no figure: where appendix A.3's rates are stable", "hpcc_stability"),
        Figure("hpcc-a4", _HPCC, "appendix A.4: 64-to-1 with and without window limits", "hpcc_a4"),
        Figure("acc-table2", _ACC, "Table 2: how often a Clos unit with two failed links deadlocks", "acc_table2"),
        Figure("hpcc-multiq", _HPCC_PLUS, "MultiQ: three classes at 15-to-1, before and after", "hpcc_multiq"),
        Figure("hpcc-rx", _HPCC_PLUS, "receiver-based HPCC: 2-to-1, 8-to-1, come and go", "hpcc_rx"),
        Figure(
            "acc-fig2", _ACC, "Figure 2: a congested flow's packets in switches, in flight, and its ACKs", "acc_fig2"
        ),
        Figure("acc-fig3", _ACC, "Figure 3: head-of-line blocking at P3 with 20 bursting hosts", "acc_fig3"),
        Figure("acc-fig4", _ACC, "Figure 4: head-of-line blocking at P3 with 10 bursting hosts", "acc_fig3"),
        Figure("acc-fig9", _ACC, "Figure 9: four flows on the testbed, total of their rates", "acc_fig9"),
        Figure("acc-fig10", _ACC, "Figure 10: ten flows: queue, halts, utilisation, rates", "acc_fig10"),
        Figure("acc-fig11", _ACC, "Figure 11: bursts at P4: what waits there, and who is paused", "acc_fig11"),
        Figure("acc-fig16", _ACC, "Figure 16: slowdowns and PAUSEs with halts and without", "acc_sensitivity"),
        Figure("acc-fig18", _ACC, "Figure 18: slowdowns against RI", "acc_sensitivity"),
        Figure("acc-fig19", _ACC, "Figure 19: slowdowns and PAUSEs against P_thresh", "acc_sensitivity"),
        Figure("fairness-fig1", _VAI, "Figure 1: Jain's index and queue of HPCC and Swift, 16-1", "fairness_fig1"),
        Figure("fairness-fig2", _VAI, "Figure 2: start against finish, HPCC", "fairness_start_finish"),
        Figure("fairness-fig3", _VAI, "Figure 3: start against finish, Swift", "fairness_start_finish"),
        Figure("fairness-fig4", _VAI, "Figure 4: a decrease per RTT against one per 30 ACKs", "fairness_fig4"),
        Figure("fairness-fig5", _VAI, "Figure 5: Jain's index and queue of HPCC, 16-1 and 96-1", "fairness_fig5"),
        Figure("fairness-fig6", _VAI, "Figure 6: Jain's index and queue of Swift, 16-1 and 96-1", "fairness_fig5"),
        Figure("fairness-fig8", _VAI, "Figure 8: start against finish, HPCC with VAI SF", "fairness_start_finish"),
        Figure("fairness-fig9", _VAI, "Figure 9: start against finish, Swift with VAI SF", "fairness_start_finish"),
        Figure("fairness-joiner", _VAI, "section V-A: a flow joins others of large dampeners", "fairness_joiner"),
        Figure("fairness-tradeoffs", _VAI, "section IV: fairness, queue and bandwidth traded", "fairness_tradeoffs"),
        Figure("acc-fig20", _ACC, "Figure 20: utilisation of SW3->SW4 after bursts", "acc_fig20"),
    )
}


def reproduce(name: str, out: str | os.PathLike[str] = "out", *, quick: bool = False) -> Result:
    """Make a figure of a paper.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    out : path
        Folder for picture and data; made if missing.
    quick : bool
        Fewer values and coarser steps, same verdicts where they can be had; ``Result.notes`` says what is left out.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If there is no such figure, or the folder cannot be written to.
    """
    if name not in FIGURES:
        raise InputError(f"reproduce: {name[:40]!r} is no figure; write list, or one of {', '.join(FIGURES)}")
    figure = FIGURES[name]
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "bad name"
        raise InputError(f"--out: {str(out)[:200]}: {reason}; give a folder that can be made or exists") from None
    module = importlib.import_module(f"fluidcc.reproduce.{figure.module}")
    return module.make(figure, folder, quick)


__all__ = ["FIGURES", "Check", "Figure", "Result", "reproduce"]
