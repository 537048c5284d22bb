"""DCQCN, section 5: how much delay the fixed point of (5)-(9) stands, and what it comes to from elsewhere."""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import newton

from fluidcc.proofs.dcqcn.equations import C, jacobians, setting
from fluidcc.proofs.dcqcn.fixed_point import marking, most_flows, queue
from fluidcc.proofs.dcqcn.settings import ABOUT, FROM, GAINS, STEP, cells, fluid, halved
from fluidcc.proofs.papers import DCQCN, ECN_OR_DELAY
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main


def linear(flows: int, g: float = 1 / 256) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of (6)-(9) at the fixed point, of N equal flows: by q, alpha, R_T, R_C now, and a delay ago."""
    return jacobians([(flows, C / flows)], marking(flows), g=g)


@functools.cache
def critical_delay(flows: int) -> float:
    """Least tau* at which the fixed point's linearisation has a root on the imaginary axis [s]."""
    now, then = linear(flows)

    def roots(omega: np.ndarray) -> np.ndarray:
        """Roots z = e^(-i w tau*) of det(i w - A - A' z), a quadratic as A' has two columns; by modulus, (2, omega)."""
        marks = (0.0, 1.0, -1.0)
        at = [np.linalg.det(1j * omega[:, None, None] * np.eye(4) - now - then * z) for z in marks]
        square, one = (at[1] + at[2]) / 2 - at[0], (at[1] - at[2]) / 2
        root = np.sqrt(one**2 - 4 * square * at[0])
        # Divided by the greater of two numerators, as the other may vanish; so may the square, with a root far away.
        first = np.where(np.abs(root - one) > np.abs(root + one), root - one, -root - one)
        with np.errstate(divide="ignore"):
            found = np.stack([2 * at[0] / first, first / (2 * square)])
        return np.take_along_axis(found, np.abs(found).argsort(axis=0), axis=0)

    omega = np.geomspace(1e2, 1e6, 20_001)
    z = roots(omega)
    size, late = np.log(np.abs(z)), np.mod(-np.angle(z), 2 * np.pi) / omega
    k, n = np.nonzero(np.diff(np.sign(size), axis=1))
    part = size[k, n] / (size[k, n] - size[k, n + 1])  # of the way from one frequency to the next
    return float((late[k, n] + part * (late[k, n + 1] - late[k, n])).min())


def difference_root(flows: int, g: float, delay: float = 50e-6) -> complex:
    """Rightmost root of what differs between flows, which leaves the queue where it is [1/s].

    Without the queue, `linear` has three states left and one delayed input, R_C. The delay is short beside the roots'
    times, so that Newton's method comes to them from the three eigenvalues without a delay.
    """
    now, then = (matrix[1:, 1:] for matrix in linear(flows, g))

    def characteristic(root: complex) -> complex:
        return complex(np.linalg.det(root * np.eye(3) - now - then * np.exp(-root * delay)))

    starts = np.linalg.eigvals(now + then)
    found = np.array([newton(characteristic, x0=start + 1e-3j, tol=1e-9) for start in starts], complex)
    root = found[np.argmax(np.real(found))]
    return complex(root.real, abs(root.imag))  # of a pair the one above the axis


@claim("dcqcn-52-g-slower", DCQCN, "5.2", "a lower g leads to slightly slower convergence", slow=True)
def slower_gain() -> Finding:
    """Check the long run by the rightmost root of the flows' difference, and the transient from Fig. 11's start."""
    import fluidcc as fc

    gaps, times = ({n: fluid()[f"g_1/{n}"][key] for n in GAINS} for key in ("mean_gap", "converged_s"))
    roots = {n: difference_root(2, 1 / n) for n in GAINS}
    speeds = {n: -root.real for n, root in roots.items()}
    found = {n: fc.stability(fc.incast(2, scheme=fc.DCQCN(g=1 / n))).fairness_root or complex("nan") for n in GAINS}
    low = max(speeds, key=lambda n: speeds[n])  # the g from which on a lower one is slower
    below, falling = [speeds[n] for n in GAINS if n >= low], sorted(speeds.values(), reverse=True)
    decays = ", ".join(f"{speed:.1f} /s at g = 1/{n}" for n, speed in speeds.items())
    transient = ", ".join(f"{time * 1e3:.1f}" for time in times.values())
    return Finding(
        {
            "in the long run, Fig. 12's 1/16 and 1/256": speeds[256] < speeds[16],
            "in the long run, each g beside the one before": list(speeds.values()) == falling,
            "mean gap from 40 and 0 Gb/s": list(gaps.values()) == sorted(gaps.values()),
            "time from there until the gap is below 1 Gb/s": list(times.values()) == sorted(times.values()),
        },
        {f"fairness_root_per_s_g_1/{n}": [root.real, abs(root.imag)] for n, root in roots.items()}
        | {f"mean_gap_gbps_g_1/{n}": gap for n, gap in gaps.items()}
        | {f"below_1_gbps_from_s_g_1/{n}": value for n, value in times.items()},
        [
            *(
                Way(f"decay at g = 1/{n}: own Jacobian less the queue, fluidcc.stability", -speed, found[n].real, 1e-6)
                for n, speed in speeds.items()
            ),
            halved("g_1/256", "mean_gap", 0.01),
            halved("g_1/16", "mean_gap", 0.01),
        ],
        restricted=len(below) > 2 and below == sorted(below, reverse=True) and speeds[256] < speeds[16],
        conditions=f"in the long run, from g = 1/{low} on ({setting()}): differences decay by {decays}; not in the "
        f"transient from 40 and 0 Gb/s, whose gap is below 1 Gb/s after {transient} ms",
        sample=f"the long run is computed; the transient: {cells(len(GAINS), since=FROM)}",
    )


@claim(
    "dcqcn-52-latency",
    DCQCN,
    "5.2",
    "flows converge fast and stably even with 50 us more latency (tau* = 100 us)",
    slow=True,
)
def more_latency() -> Finding:
    at = {n: fluid()[f"delay_{n}us"] for n in (85, 87, 100)}
    critical = critical_delay(2)
    oscillations = {n: each["most_queue"] - each["least_queue"] for n, each in at.items()}
    half = fluid(STEP / 2)["delay_85us"]
    return Finding(
        {"rates": at[100]["last_gap"] < 1, "queue": oscillations[100] < ABOUT * queue(marking(2))},
        {
            "critical_delay_us": critical * 1e6,
            "last_gap_gbps": at[100]["last_gap"],
            "queue_bytes_from_to": [at[100]["least_queue"], at[100]["most_queue"]],
            "queue_empty_share": at[100]["empty"],
            "amplitude_bytes": oscillations,
        },
        [
            # The queue oscillates less than a tenth below the critical delay, after 180 ms, and more above it.
            Way(
                "85 us: stable by linearisation, queue within 10 % after 180 ms",
                critical > 85e-6,
                oscillations[85] < 2e3,
            ),
            Way(
                "100 us: stable by linearisation, queue within 10 % after 180 ms",
                critical > 100e-6,
                oscillations[100] < 2e3,
            ),
            Way(
                "85 us: oscillation at a step of 1 us, of 0.5 us",
                oscillations[85],
                half["most_queue"] - half["least_queue"],
                0.2,
            ),
        ],
        restricted=at[100]["last_gap"] < 1,
        conditions=f"the rates; the queue of two flows ({setting()}) does not settle: beyond tau* = "
        f"{critical * 1e6:.2f} us it cycles, empty {at[100]['empty']:.0%} of the time",
        sample=cells(len(at)),
    )


@claim("dcqcn-52-settles", DCQCN, "5.2", "the model's stable queue length is what flows come to", slow=True)
def settles(flows: int = 10) -> Finding:
    """Ten flows, whose fixed point is stable at tau* = 50 us: from line rate, and from it but for the queue."""
    at = {name: fluid()[f"{flows}_{name}"] for name in ("from_line_rate", "without_queue")}
    stable = critical_delay(flows)
    fixed_point = queue(marking(flows))
    amplitude = {name: each["most_queue"] - each["least_queue"] for name, each in at.items()}
    return Finding(
        {name: amplitude[name] < ABOUT * fixed_point for name in at},
        {f"queue_bytes_{name}": [each["least_queue"], each["most_queue"]] for name, each in at.items()}
        | {"queue_bytes_at_equilibrium": fixed_point, "critical_delay_us": stable * 1e6}
        | {f"without_queue_runs_empty_share_N_{n}": fluid()[f"{n}_without_queue"]["empty"] for n in (7, 8, 9, 10, 14)},
        [
            Way("queue from line rate: fluid, fixed point", at["from_line_rate"]["most_queue"], fixed_point, 0.01),
            Way(
                "stable at 50 us: linearisation, fluid from line rate",
                stable > 50e-6,
                amplitude["from_line_rate"] < 1e3,
            ),
            halved("10_without_queue", "most_queue", 0.05),
        ],
        restricted=amplitude["from_line_rate"] < ABOUT * fixed_point,
        conditions=f"from line rate ({setting()}); from the fixed point's rates and alpha, but without a queue, "
        f"{flows} flows cycle for ever, with "
        f"up to {at['without_queue']['most_queue'] / 1e3:.0f} KB",
        sample=cells(len(at)),
    )


@claim(
    "dcqcn-conext-monotone", ECN_OR_DELAY, "DCQCN", "stability is not monotonic in N: least near N = 8 to 10", slow=True
)
def not_monotonic() -> Finding:
    most, _ = most_flows()
    critical = {n: critical_delay(n) for n in range(2, most + 1)}
    least = min(critical, key=lambda n: critical[n])
    unstable = [n for n, delay in critical.items() if delay < 85e-6]
    return Finding(
        {"as printed": 8 <= least <= 10},
        {"critical_delay_us": {n: 1e6 * delay for n, delay in critical.items()}, "unstable_at_85_us": unstable},
        [
            Way(
                f"{n} flows at 65 us: unstable by linearisation, range of the fluid's queue grows", delay < 65e-6, grows
            )
            for n in (4, 9, 14)
            for delay, grows in [(critical[n], fluid()[f"{n}_at_65us"]["growth"] > 1)]
        ],
        sample=f"the verdict is computed; beside it {cells(3)}",
    )


@claim(
    "dcqcn-conext-margin",
    ECN_OR_DELAY,
    "DCQCN",
    "at tau* = 50 us the phase margin is negative for N = 4 to 16, most for 10",
    slow=True,
)
def margin(flows: int = 10) -> Finding:
    """The sign: a fixed point without margin is unstable."""
    most, _ = most_flows()
    critical = {n: critical_delay(n) for n in range(2, most + 1)}
    at = fluid()["10_from_line_rate"]
    cycling = [str(n) for n in (7, 8, 9, 10, 14) if fluid()[f"{n}_without_queue"]["empty"] > 0]
    return Finding(
        {
            "of the model's own linearisation, where it has a fixed point": all(
                critical[n] < 50e-6 for n in range(4, most)
            )
        },
        {"critical_delay_us": {n: 1e6 * critical[n] for n in (2, 4, 6, 8, 10)}},
        [
            Way(
                f"{flows} flows stable at 50 us: linearisation, fluid from line rate",
                critical[flows] > 50e-6,
                at["most_queue"] - at["least_queue"] < ABOUT * queue(marking(flows)),
            )
        ],
        correction=f"by its roots stable for all N <= {most} that have a fixed point ({setting()}); "
        f"least so, to {1e6 * min(critical.values()):.1f} us, at N = "
        f"{min(critical, key=lambda n: critical[n])}. From the fixed point's rates and alpha, but without a queue, "
        f"{', '.join(cycling)} of 7, 8, 9, 10 and 14 flows cycle all the same; beyond {most} there is no fixed point",
        corrected=min(critical.values()) > 50e-6,
        sample=f"the verdict is computed; beside it {cells(6)}",
    )


if __name__ == "__main__":
    main(__name__)
