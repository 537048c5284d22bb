"""DCQCN, section 5: the fixed point of (5)-(9), and the closed form that a later paper gives for it.

With R = C/N and the coefficients a to e of (8) and (9), both at equilibrium demand (packets as the unit of data)

    alpha a^2 = tau^2 R_AI R (b + d)(c + e),   alpha = 1 - (1-p)^(tau' R),

one equation for p; neither g nor the delay tau* enters.
"""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np

from fluidcc.proofs.dcqcn.equations import (
    KMAX,
    KMIN,
    PACKET,
    PMAX,
    R_AI,
    TAU,
    TAU_PRIME,
    B,
    C,
    F,
    T,
    jacobians,
    rightmost,
    setting,
)
from fluidcc.proofs.papers import DCQCN, ECN_OR_DELAY
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

FULL_SIZED = 1500.0  # bytes: packets of section 3.3's testbed
SMALL_B, SLOW_T = 5e3 / PACKET, 10e-3  # a byte counter that is fast compared with the timer,
HIGH_PMAX = 0.1  # and marks enough for two unequal rates to have one p on the ramp


def sides(p: Any, rate: Any, r_ai: Any = R_AI, counter: Any = B, timer: Any = T) -> tuple[Any, Any]:
    """Return both sides of the equation for p, in mpmath's numbers."""
    keep = 1 - p
    a = 1 - keep ** (TAU * rate)
    b, d = (p / (keep ** (-n) - 1) for n in (counter, timer * rate))
    c, e = keep ** (F * counter) * b, keep ** (F * timer * rate) * d
    alpha = 1 - keep ** (TAU_PRIME * rate)
    return alpha * a**2, TAU**2 * r_ai * rate * (b + d) * (c + e)


@functools.cache
def marking(flows: float, r_ai: float = R_AI, *, packet: float = PACKET, counter: float = B, timer: float = T) -> float:
    """p*, by bisection of the logarithm in 30 digits; ``r_ai`` and ``counter`` in packets of `PACKET`."""
    with mpmath.workdps(30):
        size = mpmath.mpf(packet) / PACKET
        rate = mpmath.mpf(C) / size / mpmath.mpf(flows)

        def surplus(log: Any) -> Any:
            left, right = sides(mpmath.exp(log), rate, mpmath.mpf(r_ai) / size, counter / size, timer)
            return mpmath.log(left) - mpmath.log(right)

        root: Any = mpmath.findroot(surplus, (mpmath.log("1e-12"), mpmath.log("0.9")), solver="anderson", tol=1e-20)
        return float(mpmath.exp(root))


def queue(p: float) -> float:
    """Queue that marks with p on the ramp (5) [bytes]."""
    return KMIN + p / PMAX * (KMAX - KMIN)


def _gap(p: Any, rate: Any, counter: float = B, timer: float = T) -> Any:
    """Log of the left side over the right, in NumPy: as logarithms, since (1-p)^(-B) overflows."""
    log = np.log1p(-p)
    a, alpha = -np.expm1(TAU * rate * log), -np.expm1(TAU_PRIME * rate * log)
    b, d = (np.log(p) + n * log - np.log(-np.expm1(n * log)) for n in (counter, timer * rate))
    c, e = F * counter * log + b, F * timer * rate * log + d
    return np.log(alpha * a**2) - np.log(TAU**2 * R_AI * rate) - np.logaddexp(b, d) - np.logaddexp(c, e)


def crossings(flows: int) -> int:
    """Count how often the two sides of the equation for p cross, on a fine grid of p."""
    return int(np.count_nonzero(np.diff(np.sign(_gap(np.geomspace(1e-9, 0.99, 4000), C / flows)))))


def rises(counter: float = B, timer: float = T) -> bool:
    """Check whether the p that holds a rate ever rises with it between C/1000 and C, so that two rates have one p."""
    rate = np.geomspace(C / 1000, C, 600)[:, None]
    p = np.geomspace(1e-9, 0.999999, 4000)
    first = np.argmax(_gap(p, rate, counter, timer) > 0, axis=1)
    return bool((np.diff(first) > 0).any())


def unequal() -> tuple[float, float]:
    """Marking and the lesser rate of two flows that settle at different ones, in 30 digits."""
    with mpmath.workdps(30):

        def surplus(log: Any, rate: Any) -> list[Any]:
            both = (sides(mpmath.exp(log), r, R_AI, SMALL_B, SLOW_T) for r in (rate, C - rate))
            return [mpmath.log(left) - mpmath.log(right) for left, right in both]

        log, rate = mpmath.findroot(surplus, (mpmath.log("0.0265"), 0.09 * C), tol=1e-20)
        return float(mpmath.exp(log)), float(rate)


@functools.cache
def most_flows(packet: float = PACKET) -> tuple[int, float]:
    """The largest N with p* <= Pmax, and the real number at which they are equal."""
    with mpmath.workdps(30):
        meets: Any = mpmath.findroot(
            lambda n: marking(float(n), packet=packet) - PMAX, (8, 20), solver="anderson", tol=1e-12
        )
    return max(n for n in range(1, 65) if marking(n, packet=packet) <= PMAX), float(meets)


def for_both_packets() -> str:
    """Up to how many flows there is a fixed point at the paper's settings, for packets of either size."""
    return " and ".join(
        f"{most} flows with packets of {packet:g} B (p* = Pmax at {meets:.2f})"
        for packet in (PACKET, FULL_SIZED)
        for most, meets in [most_flows(packet)]
    )


def _engine(flows: int, packet: float = PACKET) -> dict[str, Any]:
    """The same by `fluidcc.equilibrium`, which nests a root of the rate in a root of the marking."""
    from fluidcc import equilibrium, incast

    return equilibrium(incast(flows, packet_size=packet)).as_dict()


def _same(flows: tuple[int, ...]) -> list[Way]:
    return [
        Way(f"p* of {n} flows: in 30 digits, fluidcc.equilibrium", marking(n), _engine(n)["marking_probability"], 1e-9)
        for n in flows
    ]


@claim("dcqcn-51-unique", DCQCN, "5.1, (10)", "the fluid model has a unique fixed point, with equal rates C/N")
def unique() -> Finding:
    """Check that equal rates have one fixed point, as (10) implies; solve for unequal ones, with their stability."""
    from fluidcc import DCQCN as SCHEME
    from fluidcc import RED, equilibrium, incast, stability

    most, meets = most_flows()
    counts = {n: crossings(n) for n in range(1, 65)}
    exists = {n: marking(n) <= PMAX for n in counts}  # (5) has no queue for Pmax < p < 1
    at = {f"N_{n}": {"p": marking(n), "queue_bytes": queue(marking(n))} for n in (2, 8, most)}
    rate = C / 2
    keep = 1 - marking(2)
    alpha = 1 - keep ** (TAU_PRIME * rate)
    # Flows with the same p may have two rates where the p that holds a rate rises with it.
    p, low = unequal()
    equal = marking(2, counter=SMALL_B, timer=SLOW_T)
    fast = {"pmax": HIGH_PMAX, "counter": SMALL_B, "timer": SLOW_T}
    shares = [(2.0, rate)], [(1.0, low), (1.0, C - low)]
    own = [rightmost(*jacobians(each, mark, **fast)) for each, mark in zip(shares, (equal, p), strict=True)]
    scheme = SCHEME(byte_counter=SMALL_B * PACKET, timer=SLOW_T)
    scenario = incast(1, multiplicity=2, scheme=scheme, marking=RED(KMIN, KMAX, HIGH_PMAX), packet_size="1000B")
    found = equilibrium(scenario)
    (other,) = found.others
    roots = [stability(scenario, at=each).rightmost_root or complex("nan") for each in (found, other)]
    rates = [flow["rate_bytes_per_s"] for flow in other.flows]
    apart = {"byte_counter_bytes": SMALL_B * PACKET, "timer_s": SLOW_T, "pmax": HIGH_PMAX, "packet_bytes": PACKET}
    apart |= {"p": p, "rates_bytes_per_s": rates}
    apart |= {
        f"rightmost_root_per_s_{name}": [root.real, root.imag]
        for name, root in zip(("equal", "unequal"), own, strict=True)
    }
    return Finding(
        {"equal rates, for any N": all(counts[n] == 1 and exists[n] for n in counts)},
        at | {"alpha_N_2": alpha, "most_flows": most, "flows_at_which_p_is_pmax": meets, "unequal": apart},
        [
            *_same((2, 8, most)),
            Way("alpha of 2 flows", alpha, _engine(2)["alpha"], 1e-9),
            Way("whether it exists one flow further", bool(exists[most + 1]), bool(_engine(most + 1)["exists"])),
            *_last(FULL_SIZED),
            Way(
                "p of 2 unequal flows: in 30 digits, fluidcc.equilibrium",
                p,
                other.links[0]["marking_probability"],
                1e-9,
            ),
            Way("the lesser rate of the two [bytes/s]", low * PACKET, min(rates), 1e-9),
            Way("whether equal shares are all there is, at the paper's settings", not rises(), _engine(2)["unique"]),
            *(
                Way(
                    f"rightmost root, {name} shares, {part}: own Jacobian, fluidcc.stability",
                    getattr(one, part),
                    getattr(root, part),
                    1e-5,
                )
                for name, one, root in zip(("equal", "unequal"), own, roots, strict=True)
                for part in ("real", "imag")
            ),
        ],
        restricted=all(counts[n] == 1 and exists[n] for n in range(1, most + 1)) and not rises(),
        conditions=f"Pmax = {PMAX:.0%}, {setting('packets', 'Pmax', runs=False)}, and up to {for_both_packets()}: "
        "beyond, p* > Pmax, which (5) gives for no queue. Unequal rates, of which (10) does not speak, have one "
        "too with a byte counter of "
        f"{SMALL_B * PACKET / 1e3:g} KB, a timer of {SLOW_T * 1e3:g} ms and Pmax = {HIGH_PMAX:.0%} (packets of "
        f"{PACKET:g} B): {low * PACKET / 1.25e8:.2f} and {(C - low) * PACKET / 1.25e8:.2f} Gb/s, p = {p:.4f}, "
        f"{_judged(own[1])}; equal shares there are {_judged(own[0])}",
    )


def _judged(root: complex) -> str:
    """Stability by a rightmost root."""
    return f"{'stable' if root.real < 0 else 'unstable'} (root {root.real:+.0f} ± {root.imag:.0f}i per second)"


def _last(packet: float) -> list[Way]:
    """Compare with the engine whether the largest number of flows with a fixed point, and the next, have one."""
    most, _ = most_flows(packet)
    return [
        Way(
            f"whether {n} flows have one, packets of {packet:g} B: in 30 digits, fluidcc.equilibrium",
            marking(n, packet=packet) <= PMAX,
            bool(_engine(n, packet)["exists"]),
        )
        for n in (most, most + 1)
    ]


@claim("dcqcn-51-marking", DCQCN, "5.1", "for reasonable settings p is less than 1 %")
def below_one_percent() -> Finding:
    _, meets = most_flows()
    below = {n: marking(n) < 0.01 for n in range(1, 65)}
    first = min(n for n in below if not below[n])
    return Finding(
        {"with the paper's settings, for any N": all(below.values())},
        {
            "first_N_above": first,
            "p_there": marking(first),
            "p_of_2": marking(2),
            "flows_at_which_p_is_1_percent": meets,
        },
        _same((first - 1, first)),
        restricted=all(below[n] for n in range(1, first)),
        conditions=f"up to {for_both_packets()}; {setting('packets', runs=False)}",
    )


@claim("dcqcn-52-queue", DCQCN, "5.2", "the stable queue is usually one order of magnitude larger than Kmin")
def order_of_magnitude() -> Finding:
    most, _ = most_flows()
    ratio = {n: queue(marking(n)) / KMIN for n in range(2, most + 1)}
    inside = [n for n, r in ratio.items() if 5 <= r <= 20]  # ten times, within a factor of two
    return Finding(
        {"for every N that has a fixed point": len(inside) == len(ratio)},
        {"queue_over_kmin": ratio},
        [Way("queue of 8 flows", queue(marking(8)), _engine(8)["queue_bytes"], 1e-9)],
        restricted=inside == list(range(inside[0], inside[-1] + 1)),
        conditions=f"N = {inside[0]} to {inside[-1]} ({setting(runs=False)}), within a factor of "
        f"two; {ratio[2]:.2f} times at N = 2, "
        f"{ratio[most]:.1f} times at {most}",
    )


@claim("dcqcn-conext-cube-root", ECN_OR_DELAY, "DCQCN", "p* is about (R_AI N^2/(tau' C^2) (1/B + N/(T C))^2)^(1/3)")
def cube_root() -> Finding:
    def closed(flows: int, r_ai: float = R_AI) -> float:
        return float((r_ai * flows**2 / (TAU_PRIME * C**2) * (1 / B + flows / (T * C)) ** 2) ** (1 / 3))

    above = {n: closed(n) / marking(n) - 1 for n in (2, 8, 32)}
    # As p falls it becomes exact; with the paper's B, p B is not small.
    tiny = R_AI * 1e-12
    limit = closed(2, tiny) / marking(2, tiny) - 1
    return Finding(
        {"within 10 % at DCQCN's settings": max(map(abs, above.values())) < 0.1},
        {"too_high_by": above, "too_high_by_as_R_AI_falls_1e12_times": limit, "p_B_of_2_flows": marking(2) * B},
        _same((2, 8, 32)),
        restricted=abs(limit) < 1e-2,
        conditions=f"p B << 1 and p T C/N << 1; at the paper's settings ({setting('Pmax', runs=False)}) it is "
        "too high by " + ", ".join(f"{share:.0%} (N = {n})" for n, share in above.items()),
    )


if __name__ == "__main__":
    main(__name__)
