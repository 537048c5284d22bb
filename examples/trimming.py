"""An incast of 64 into one port: trimmed, dropped and sent again, or never lost. Prints a table, draws a picture.

python examples/trimming.py trimming.png
"""

from __future__ import annotations

import math
import sys

import fluidcc as fc

CASES = {
    "trimming, 1 MB": {"loss_recovery": "trimming", "buffer": "1MB"},
    "trimming where 1 MB is full": {"loss_recovery": "trimming", "buffer": "1MB", "trim_above": "1TB"},
    "go-back-N, 1 MB": {"loss_recovery": "gbn", "buffer": "1MB"},
    "IRN, 1 MB": {"loss_recovery": "irn", "buffer": "1MB"},
    "unlimited buffer": {"buffer": math.inf},
}


def main(path: str | None) -> None:
    """Run each case, and say when the last flow is done and what was lost."""
    traces = {}
    for name, options in CASES.items():
        given = {"rate": "100Gbps", "delay": "3us", "size": "100KB", "scheme": "nscc", "preset": "paper", **options}
        traces[name] = trace = fc.simulate(fc.incast(64, **given), "4ms", engine="packet", sample_interval="2us")
        found = trace.summary
        took, queue = found["fct_s"], found["queue_bytes"]["max_whole_run"]
        print(
            f"{name:28} last {max(took) * 1e6:6.1f} us, mean {sum(took) / 64 * 1e6:6.1f} us, {found['trims']} trims, "
            f"{found['drops']} drops, {found['retransmissions']} sent again, queue {queue / 1e3:.0f} KB"
        )
    if path is not None:
        draw(traces, path)


def draw(traces: dict[str, fc.Trace], path: str) -> None:
    """Queue and what has been acknowledged, over time."""
    from fluidcc.plotting.style import figure

    picture, ((queues, done),) = figure(1, 2, size=(9, 3.2))
    for name, trace in traces.items():
        queues.plot(trace.time * 1e3, trace["queue"].values[:, 0] / 1e3, label=name)
        done.plot(trace.time * 1e3, trace["delivered"].values.sum(axis=1) / 1e6, label=name)
    queues.set(yscale="log", ylim=(1, 1e4), xlabel="time [ms]", ylabel="queue [KB]")
    done.set(ylim=(0, 6.7), xlabel="time [ms]", ylabel="acknowledged [MB]")
    done.legend(fontsize="small")
    picture.write(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
