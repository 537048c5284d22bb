"""How far DCTCP's queue oscillates: the fluid against packets, and how often a flow of packets cuts its window.

    python -m examples.dctcp_amplitude

One line for each link rate, step marking K, number of flows and form of the fluid: fluid over packets for the largest
less the smallest queue, the standard deviation and the mean; then, of the packets, window and cuts of each flow in each
tooth of the queue.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

import fluidcc as fc

SETTINGS = (("100Gbps", "300KB"), ("100Gbps", "100KB"), ("10Gbps", "60KB"), ("10Gbps", "30KB"))
FLOWS = (2, 4, 8, 16)
LENGTH = {"100Gbps": ("20ms", "0.5us"), "10Gbps": ("100ms", "2us")}  # run, and spacing of its samples
FORMS = ("protocol", "analysis")
PACKET = 1000.0  # bytes


class Amplitude(NamedTuple):
    """Ratios of the fluid to packets over the second half of a run, and how the packets' flows cut."""

    peak_to_peak: float
    std: float
    mean: float
    window: float  # of a flow of packets [packets]
    cuts: float  # of a flow in a tooth


def scenario_of(rate: str, step_marking: str, flows: int, form: str = "protocol") -> fc.Scenario:
    """An incast of flows that mark at a step marking."""
    return fc.incast(flows, rate=rate, scheme=fc.DCTCP(form=form), marking=fc.RED(step_marking, step_marking, 1.0))


@functools.cache
def packets_of(rate: str, step_marking: str, flows: int) -> fc.Trace:
    """Run the packet engine."""
    until, spacing = LENGTH[rate]
    return fc.simulate(scenario_of(rate, step_marking, flows), until, engine="packet", sample_interval=spacing)


def compared(rate: str, step_marking: str, flows: int, form: str = "protocol") -> Amplitude:
    """Run both engines; packets once for all forms."""
    scenario = scenario_of(rate, step_marking, flows, form)
    fluid = fc.simulate(scenario, LENGTH[rate][0], estimate_error=False).summary["queue_bytes"]
    packets = packets_of(rate, step_marking, flows)
    theirs = packets.summary["queue_bytes"]
    half = packets.between(packets.summary["window_s"][0], packets.summary["window_s"][1])
    window = half["window"].values
    # A window falls by more than a tenth of a packet in a cut only.
    cuts = (np.diff(window, axis=0) < -0.1 * PACKET).sum() / flows
    return Amplitude(
        (fluid["max"] - fluid["min"]) / (theirs["max"] - theirs["min"]),
        fluid["std"] / theirs["std"],
        fluid["mean"] / theirs["mean"],
        float(window.mean()) / PACKET,
        float(cuts) / teeth(half["queue"].values[:, 0]),
    )


def teeth(queue: np.ndarray) -> int:
    """How often a queue goes from half a standard deviation above its mean to half a one below."""
    centred = (queue - queue.mean()) / queue.std()
    sides = np.sign(centred[np.abs(centred) > 0.5])
    return int(np.sum(np.diff(sides) < 0))


def main() -> None:
    """Print the table."""
    print("rate     K      flows  form      peak to peak  std   mean   window  cuts per tooth")
    for rate, step_marking in SETTINGS:
        for flows in FLOWS:
            for form in FORMS:
                at = compared(rate, step_marking, flows, form)
                print(
                    f"{rate:8} {step_marking:6} {flows:5}  {form:8}  {at.peak_to_peak:12.2f}  {at.std:.2f}  "
                    f"{at.mean:.3f}  {at.window:6.1f}  {at.cuts:.2f}"
                )
            packets_of.cache_clear()


if __name__ == "__main__":
    main()
