"""IFA's metadata (HPCC++ slides): what residenceTime is for, and what U is without it.

A switch writes rxTimestamp as a packet comes, and residenceTime, txBytes and Queue Length as it leaves. HPCC's txRate
is a difference of txBytes over one of times of emission, which are rxTimestamp + residenceTime. Over rxTimestamp alone
the same bytes are divided by the time in which they came: while packets wait that is the rate of arrivals, HPCC's
rxRate.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fluidcc.proofs.papers import HPCCPP
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

LINE = Fraction(25, 2)  # bytes/ns: 100 Gb/s
SIZE, TRIP = 1000, 4000  # bytes of a packet; ns, T
PHASES = ((Fraction(2), 100), (Fraction(1), 200), (Fraction(1, 2), 80))  # load, packets: a queue grows, stays, drains
QUEUE_UNIT = 80  # bytes; the slides name no unit: HPCC's (4.1)


class Stamp(NamedTuple):
    """Record of a port for a packet: when it came and left [ns]; as it left, bytes sent with it, and bytes waiting."""

    came: Fraction
    left: Fraction
    sent: int
    queue: int


def port(phases: Sequence[tuple[Fraction, int]] = PHASES) -> list[Stamp]:
    """Serve packets in order, at the line, and stamp each as its last byte leaves."""
    came, clock = [], Fraction(0)
    for load, count in phases:
        for _ in range(count):
            clock += SIZE / (load * LINE)
            came.append(clock)
    left: list[Fraction] = []
    for at in came:
        left.append(max(at, left[-1] if left else at) + SIZE / LINE)
    return [
        Stamp(at, gone, (k + 1) * SIZE, SIZE * (sum(other <= gone for other in came) - (k + 1)))
        for k, (at, gone) in enumerate(zip(came, left, strict=True))
    ]


def load(new: Stamp, old: Stamp, *, arrivals: bool = False) -> Fraction:
    """Compute u' of HPCC's Algorithm 1, lines 4 and 5, over times of emission or of arrival."""
    time = new.came - old.came if arrivals else new.left - old.left
    return Fraction(min(new.queue, old.queue)) / (LINE * TRIP) + (new.sent - old.sent) / (LINE * time)


def words(stamp: Stamp) -> dict[str, int]:
    """Cut a stamp to the slides' fields: seconds of 20 bits, words of 32 bits of ns and bytes, a queue in its unit."""
    came, left = int(stamp.came), int(stamp.left)
    return {
        "rxTimestampSec": came // 10**9 % 2**20,
        "rxTimeStampNs": came % 10**9,
        "residenceTime": (left - came) % 2**32,
        "txBytes": stamp.sent % 2**32,
        "Queue Length": stamp.queue // QUEUE_UNIT,
    }


def load_of_words(new: dict[str, int], old: dict[str, int]) -> Fraction:
    """Compute u' as a sender does, of two packets' metadata."""
    left = [each["rxTimestampSec"] * 10**9 + each["rxTimeStampNs"] + each["residenceTime"] for each in (new, old)]
    time, sent = (left[0] - left[1]) % (2**20 * 10**9), (new["txBytes"] - old["txBytes"]) % 2**32
    queue = QUEUE_UNIT * min(new["Queue Length"], old["Queue Length"])
    return Fraction(queue) / (LINE * TRIP) + sent / (LINE * time)


@claim("hpccpp-ifa", HPCCPP, "IFA metadata", "rxTimestamp, residenceTime, txBytes and Queue Length are HPCC's metadata")
def metadata(apart: int = 20) -> Finding:
    """Compare u' over packets that are some packets apart while the queue grows, stays and drains."""
    stamps = port()
    ends: dict[str, int] = {"grows": 45, "stays": 240, "drains": 345}  # packets that come and leave in one phase
    pairs = {name: (stamps[end], stamps[end - apart]) for name, end in ends.items()}
    exact = {name: load(*pair) for name, pair in pairs.items()}
    alone = {name: load(*pair, arrivals=True) for name, pair in pairs.items()}
    read = {name: load_of_words(*map(words, pair)) for name, pair in pairs.items()}
    # A queue is cut to its unit, and two times to whole ns.
    cut = Fraction(QUEUE_UNIT) / (LINE * TRIP) + Fraction(2) / (apart * SIZE / LINE)
    fits = {name: abs(read[name] - exact[name]) <= cut for name in pairs}
    ahead = {
        name: sum(min(Fraction(SIZE), LINE * (other.left - new.came)) for other in stamps[: ends[name]]
                  if other.left > new.came) + SIZE
        for name, (new, _) in pairs.items()
    }  # fmt: skip
    met = {name: LINE * (new.left - new.came) for name, (new, _) in pairs.items()}
    loads = dict(zip(ends, (of for of, _ in PHASES), strict=True))
    return Finding(
        {
            "HPCC's ts is rxTimestamp + residenceTime": all(fits.values()),
            "HPCC's ts is rxTimestamp": all(abs(alone[name] - exact[name]) <= cut for name in pairs),
        },
        {f"u_{name}": value for name, value in exact.items()}
        | {f"u_of_ifa_words_{name}": value for name, value in read.items()}
        | {f"u_without_residence_{name}": value for name, value in alone.items()}
        | {f"residence_{name}_bytes": value for name, value in met.items()}
        | {f"queue_length_{name}_bytes": new.queue for name, (new, _) in pairs.items()}
        | {"most_residence_s": 2**32 / 1e9, "txbytes_wrap_at_100_gbps_s": 2**32 / float(LINE) / 1e9},
        [
            *(
                Way(f"u' without residenceTime, queue {name}: stamps, u' + arrivals - 1", value, exact[name] + of - 1)
                for name, value in alone.items()
                for of in (loads[name],)
            ),
            *(
                Way(f"residenceTime, queue {name}: times the line, bytes ahead at arrival and its own", value, of)
                for name, value in met.items()
                for of in (ahead[name],)
            ),
        ],
        restricted=all(fits.values()),
        conditions="ts is rxTimestamp + residenceTime, the time of emission. With rxTimestamp alone u' has the "
        f"arrivals' rate for txRate: {float(alone['grows']):.2f} in place of {float(exact['grows']):.2f} while "
        f"arrivals at {float(loads['grows']):g} B make the queue grow, {float(alone['drains']):.2f} in place of "
        f"{float(exact['drains']):.2f} while it drains at {float(loads['drains']):g} B. residenceTime is the queue "
        f"that the packet met, {float(met['grows']) / 1e3:.1f} KB where Queue Length has "
        f"{pairs['grows'][0].queue / 1e3:.1f} and {float(met['drains']) / 1e3:.1f} where it has "
        f"{pairs['drains'][0].queue / 1e3:.1f}",
    )


if __name__ == "__main__":
    main(__name__)
