"""DCQCN, section 4: the headroom t_flight from its parts, and what the paper's 22.4 KB take for granted.

The guideline that the paper follows, [8], adds up what may still arrive after a PAUSE is decided: a frame that this
side has begun, behind which the PAUSE waits; what crosses the cable in both directions; what the other side sends until
it obeys; and a frame that it has begun by then. Neither the paper nor [8] says how long the cable is.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fluidcc.operators.checks import ecn_bound
from fluidcc.operators.lossless import QUANTA, QUANTUM, needed
from fluidcc.proofs.dcqcn.thresholds import BETA, BUFFER, LINE, PORTS
from fluidcc.proofs.papers import DCQCN
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main

MTU = 1500  # bytes: section 4
FRAMING = 18 + 20  # bytes: header and check sequence; preamble and the gap between frames (802.3)
PAUSE = 64 + 20  # bytes of a PFC frame, likewise
FIBRE = Fraction(513, 100 * 10**9)  # s/m: [8], single-mode fibre at 65 % of the speed of light
SHORT, LONG = 100, 300  # m: ours. [8] counts in hundreds of metres, and the printed number needs three of them
OLD = 60  # quanta within which a port must obey at 10 Gb/s (802.3, 31B.3.7 at the time of [8]; SONiC's table has 67)


def parts(cable: int, quanta: int, framing: int = FRAMING, pause: int = PAUSE) -> dict[str, Fraction]:
    """Return what may arrive after a PAUSE is decided, part by part [bytes].

    Parameters
    ----------
    cable : int
        Its length [m].
    quanta : int
        Of 512 bits, within which the other side obeys.
    framing, pause : int
        What a frame takes on the wire beyond its MTU, and a PAUSE all in all [bytes].
    """
    frame, one_way = Fraction(MTU + framing), cable * FIBRE * LINE
    return {
        "begun_here": frame,
        "pause": Fraction(pause),
        "cable_there": one_way,
        "response": Fraction(quanta * QUANTUM),
        "begun_there": frame,
        "cable_back": one_way,
    }


def t_flight(cable: int, quanta: int, **options: int) -> Fraction:
    """Return the sum of the parts [bytes]."""
    return sum(parts(cable, quanta, **options).values(), Fraction(0))


def counted(cable: int, quanta: int) -> np.ndarray:
    """Count what arrives after a PAUSE is decided, for all phases of both sides' frames [bytes].

    Both sides send frame after frame. Time is counted in bytes of the line, from the decision on.

    Returns
    -------
    array, shape (frame, frame)
        By how much of this side's frame is out, and by when the other side begins one.
    """
    each = parts(cable, quanta)
    frame, one_way = int(each["begun_here"]), int(each["cable_there"])
    out, phase = np.arange(frame)[:, None], np.arange(frame)[None, :]
    obeyed = frame - out + int(each["pause"]) + one_way + int(each["response"])
    last = (obeyed - phase) // frame * frame + phase  # when the other side begins its last frame
    return last + frame + one_way  # all that it sends from -one_way on


@claim(
    "dcqcn-4-flight", DCQCN, "4", "following [8], with an MTU of 1500 B, t_flight = 22.4 KB for each port and priority"
)
def flight(printed: str = "22.4") -> Finding:
    """Add up the parts for two cables and two times of response, and count them frame by frame."""
    new = QUANTA[40]
    speed = {OLD: "10 Gb/s", new: "40 Gb/s"}
    sums = {(quanta, cable): t_flight(cable, quanta) for quanta in speed for cable in (SHORT, LONG)}
    right = {case: rounds_to(float(value) / 1e3, printed) for case, value in sums.items()}
    quanta, cable = next((case for case, holds in right.items() if holds), (OLD, LONG))
    framed, bare = float(sums[quanta, cable]) / 1e3, float(t_flight(cable, quanta, framing=0, pause=64)) / 1e3
    reach = {each: (Fraction(printed) * 1000 - t_flight(0, each)) / (2 * FIBRE * LINE) for each in speed}
    phases = counted(LONG, OLD)
    most = max(sums.values())
    others = ", ".join(
        f"{float(value) / 1e3:.1f} KB with {of[0]} quanta and {of[1]} m" for of, value in sums.items() if not right[of]
    )
    return Finding(
        {f"obeyed within {of[0]} quanta, as at {speed[of[0]]}; {of[1]} m of fibre": right[of] for of in right},
        {
            "parts_bytes": parts(LONG, OLD),
            **{f"t_flight_{of[0]}_quanta_{of[1]}_m_bytes": value for of, value in sums.items()},
            "t_flight_mean_over_phases_bytes": float(phases.mean()),
            **{f"cable_of_printed_{each}_quanta_m": metres for each, metres in reach.items()},
            "t_pfc_with_the_largest_bytes": (BUFFER - 8 * PORTS * most) / (8 * PORTS),
            "t_ecn_with_the_largest_bytes": ecn_bound(float(BUFFER), float(most), PORTS, BETA),
        },
        [
            Way("t_flight: sum, largest over all phases of frames", sums[OLD, LONG], int(phases.max())),
            # SONiC has a chip's delay in place of the PAUSE, and one of the two frames is of 1 KiB: less than a frame.
            Way(
                f"t_flight within {new} quanta: sum, SONiC's for {LONG} m",
                float(sums[new, LONG]),
                needed(float(LINE), LONG, MTU)[0],
                float((MTU + FRAMING) / sums[new, LONG]),
            ),
        ],
        restricted=any(right.values()) or None,
        conditions=f"{cable} m of fibre, and a port that obeys within {quanta} quanta, 802.3's at {speed[quanta]} "
        f"({framed:.2f} KB; without framing {bare:.2f}). It is {others}. Within the {new} of {speed[new]} {printed} KB "
        f"are enough for {float(reach[new]):.0f} m",
    )


if __name__ == "__main__":
    main(__name__)
