"""HPCC, Appendix A.3: equilibria of R <- R U_target/U + a, their fairness, and their stability.

On one link of capacity C with N flows the load S = sum of R becomes U_target C + N a, whatever it was: it is
right after one round trip. Differences between flows shrink by lambda = U_target/U* per round trip, where
U* = U_target + N a/C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
from scipy.optimize import brentq, minimize, root
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

TARGET = 0.95
PACKETS = 5e-3  # s, runs of packets
NOISE_SEED = 1
PACKET_FLOWS = 16
INCREASES = (300.0, 150.0, 80.0)  # bytes: W_AI beyond section 5.4's rule for 16 flows, at it, and the default
# Flow 0 crosses all links, flow i link i: A[link, flow] and capacities.
CROSSED = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
CAPACITIES = np.array([1.0, 1.4, 2.2])


def iterate(a: float, steps: int, crossed: np.ndarray = CROSSED, capacities: np.ndarray = CAPACITIES) -> np.ndarray:
    """Compute the rates after n round trips of the paper's update, all flows at once."""
    rates = np.full(crossed.shape[1], capacities.min() / crossed.shape[1])
    for _ in range(steps):
        used = crossed @ rates / capacities
        rates = rates * TARGET / (crossed * used[:, None]).max(axis=0) + a
    return rates


def max_min(crossed: np.ndarray, capacities: np.ndarray) -> np.ndarray:
    """Progressive filling."""
    rates, free, left = np.zeros(crossed.shape[1]), np.ones(crossed.shape[1], bool), capacities.astype(float)
    while free.any():
        sharing = crossed[:, free].sum(axis=1)
        share = np.where(sharing > 0, left / np.maximum(sharing, 1), np.inf)
        now = free & (crossed[share.argmin()] > 0)
        rates[now] = share.min()
        left = left - crossed[:, now].sum(axis=1) * share.min()
        free &= ~now
    return rates


@claim(
    "hpcc-a3-equilibrium",
    HPCC,
    "A.3",
    "at equilibrium R = a/(1 - U_target/U), and R(1) <= R(2) <= ..., U(1) >= U(2) >= ...",
)
def equilibrium(a: float = 0.01) -> Finding:
    R, U, T, A = sympy.symbols("R U T a", positive=True)
    solved = sympy.solve(sympy.Eq(R, R * T / U + A), R)[0]
    same = sympy.simplify(solved - A / (1 - T / U)) == 0
    rates = iterate(a, 20_000)
    used = CROSSED @ rates / CAPACITIES
    most = (CROSSED * used[:, None]).max(axis=0)
    ordered = bool((np.diff(most[np.argsort(rates)]) <= 1e-12).all())
    worst = int(np.abs(rates - a / (1 - TARGET / most)).argmax())
    return Finding(
        {"as printed": bool(same) and ordered},
        {"rates": rates, "utilisation_of_their_bottlenecks": most, "a": a},
        [Way("rate: formula at the U found, iteration", a / (1 - TARGET / most[worst]), rates[worst], 1e-9)],
    )


@claim("hpcc-a3-below-full", HPCC, "A.3", "the highest utilisation is below 100 % if a < R(1)(1 - U_target)")
def below_full() -> Finding:
    N, C, T, A = sympy.symbols("N C T a", positive=True)
    U = sympy.symbols("U", positive=True)
    # One link: N flows of rate U C/N each.
    solved = sympy.solve(sympy.Eq(U * C / N, A / (1 - T / U)), U)[0]
    formula = sympy.simplify(solved - (T + N * A / C)) == 0
    cases = [(a, n) for n in (1, 2, 16) for a in (0.3, 0.9, 0.999, 1.001, 1.1, 3.0)]
    right = True
    for share, n in cases:
        a = share * (1 - TARGET) / n  # share 1 is the boundary in parameters: a = (1 - U_target) C/N
        rates = iterate(a, 40 * n + 200, np.ones((1, n)), np.ones(1))
        right &= bool((rates.sum() < 1) == (a < rates.min() * (1 - TARGET)))
    rates = iterate(0.01, 20_000)
    return Finding(
        {"as printed": right and bool(formula)},
        {"one_link": "U* = U_target + N a/C, so a < (1 - U_target) C/N", "cases": len(cases)},
        [
            Way(
                "U* of 16 flows, a = C/640: formula, iteration",
                TARGET + 16 / 640,
                iterate(1 / 640, 2000, np.ones((1, 16)), np.ones(1)).sum(),
                1e-12,
            )
        ],
    )


@claim(
    "hpcc-33-rule",
    HPCC,
    "3.3",
    "W_AI = W_init (1 - eta)/N keeps the total increase within the headroom: no queue forms",
)
def rule_of_thumb() -> Finding:
    eta, n, w, f = sympy.symbols("eta N W f", positive=True)
    # f N flows on the link: U* = eta + f N W_AI/W_init, from A.3 with a = W_AI/T and C = W_init/T.
    load = sympy.simplify(eta + f * n * (w * (1 - eta) / n) / w)
    at = {
        share: float(load.subs({f: sympy.Rational(share), eta: sympy.Rational(19, 20)}))
        for share in ("1/2", "15/16", "1")
    }
    within = load.subs(f, 1) == 1
    below = bool(sympy.simplify(load.subs(f, 1) - 1) < 0)
    found = iterate((1 - TARGET) / 16, 3000, np.ones((1, 16)), np.ones(1)).sum()
    return Finding(
        {"U* <= 1, no standing queue in the fluid": bool(within), "A.3's U(1) < 1": below},
        {"utilisation_at_share_of_N": at},
        [Way("U* with N flows: algebra, iteration", at["1"], found, 1e-12)],
        restricted=at["15/16"] < 1,
        conditions=f"fewer than N flows: with N the rule sits exactly on the boundary, U* = {at['1']:g}; with 15 of "
        f"16 it is {at['15/16']:.4f}",
    )


@claim("hpcc-33-beyond", HPCC, "3.3", "beyond N flows still stable and fully utilised, but no zero queues")
def beyond(flows: int = 16, w_ai: float = 300.0) -> Finding:
    # Section 5.4: 100 Gb/s, 4 us, 16 flows. The queue is the window beyond one bandwidth-delay product.
    product = 100e9 / 8 * 4e-6
    lam = TARGET / (TARGET + flows * w_ai / product)
    predicted = flows * w_ai - (1 - TARGET) * product
    windows = np.linspace(0.5, 1.5, flows) * product / flows
    for _ in range(3000):
        windows = windows * TARGET / (windows.sum() / product) + w_ai
    queue = windows.sum() - product
    at_equilibrium = 0 < lam < 1 and queue > 0 and float(np.ptp(windows)) < 1e-6 * product
    # Packets by Algorithm 1, at half the rule's W_AI and beyond it: the queue is bounded, and oscillations to empty.
    runs = [
        fc.simulate(fc.incast(flows, rate="100Gbps", scheme=fc.HPCC(w_ai=each)), PACKETS, engine="packet").summary
        for each in (w_ai / 2, w_ai)
    ]
    used, size = [run["utilisation"] for run in runs], fc.incast(1, scheme="hpcc").packet_size
    return Finding(
        {"at equilibrium (A.3)": at_equilibrium, "packets": predicted > 0 and used[1] >= used[0]},
        {
            "queue_bytes": queue,
            "fairness_eigenvalue": lam,
            "w_ai_bytes": w_ai,
            "rule_bytes": (1 - TARGET) * product / flows,
            "packets_queue_mean_bytes": runs[1]["queue_bytes"]["mean"],
            "packets_queue_max_bytes": runs[1]["queue_bytes"]["max"],
            "packets_utilisation": used[1],
            "packets_utilisation_at_half_the_increase": used[0],
        },
        [Way("queue: N W_AI - (1 - eta) B T, iteration", predicted, queue, 1e-9)],
        restricted=(at_equilibrium and runs[1]["queue_bytes"]["max"] < product) or None,
        conditions=f"at equilibrium; with W_AI = {w_ai:g} B, {flows} flows and packets of {size:g} B the queue is "
        f"bounded, by {runs[1]['queue_bytes']['max'] / 1e3:.1f} KB, but cycles and runs empty: {used[1]:.1%} are "
        f"used, and within the rule, with {w_ai / 2:g} B, {used[0]:.1%}",
        sample=sample.packets(PACKETS, len(runs), since=PACKETS / 2),
    )


@claim("hpcc-a3-max-min", HPCC, "A.3", "if a is small enough the rates are approximately max-min fair")
def small_a() -> Finding:
    fair = max_min(CROSSED, TARGET * CAPACITIES)
    steps = (1e-2, 1e-3, 1e-4)
    errors = []
    for a in steps:
        # The fixed point from there, by Newton's method: iterating takes of the order of 1/a steps.
        def left(rates: np.ndarray, a: float = a) -> np.ndarray:
            used = CROSSED @ rates / CAPACITIES
            return rates * (1 - TARGET / (CROSSED * used[:, None]).max(axis=0)) / a - 1

        found = root(left, fair + a, tol=1e-12)
        errors.append(float(np.abs(found.x - fair).max()))
    orders = [float(np.log10(errors[i] / errors[i + 1])) for i in range(2)]
    iterated = np.abs(iterate(1e-3, 40_000) - fair).max()
    return Finding(
        {"as printed": errors[-1] < 1e-3 and errors == sorted(errors, reverse=True)},
        {"largest_error_at_a_1e-2_1e-3_1e-4": errors, "order_in_a": orders, "max_min_rates": fair},
        [
            Way("error at a = 1e-3: Newton's method, iteration", errors[1], float(iterated), 1e-6),
            Way("order of the error in a: measured, linear theory", orders[1], 1, 0.05),
        ],
    )


@claim("hpcc-a3-slower", HPCC, "A.3", "a smaller a converges more slowly to the equilibrium")
def slower() -> Finding:
    N = 4

    def eigenvalues(a: float) -> np.ndarray:
        fixed_point = np.full(N, (TARGET + N * a) / N)
        h = 1e-6
        columns = []
        for j in range(N):
            nudge = np.eye(N)[j] * h
            up, down = ((fixed_point + s * nudge) * TARGET / (fixed_point + s * nudge).sum() + a for s in (1, -1))
            columns.append((up - down) / (2 * h))
        return np.sort(np.abs(np.linalg.eigvals(np.array(columns).T)))

    sizes = (0.01, 0.005, 0.0025)
    found = [eigenvalues(a) for a in sizes]
    theory = [TARGET / (TARGET + N * a) for a in sizes]
    return Finding(
        {"as printed": found[0][-1] < found[1][-1] < found[2][-1] < 1},
        {"a": sizes, "fairness_eigenvalue": [f[-1] for f in found], "load_eigenvalue": found[0][0]},
        [
            Way("fairness eigenvalue: U_target/U*, Jacobian by differences", theory[1], found[1][-1], 1e-7),
            Way("all N-1 of them alike", found[1][1], found[1][-1], 1e-7),
            Way("load eigenvalue: 0, Jacobian by differences", 0, found[1][0], 1e-7),
        ],
    )


def in_packets(w_ai: float) -> tuple[float, float]:
    """Measure deviations in the second half of a run: of the sum of rates, relatively, and of the queue [bytes]."""
    scenario = fc.incast(PACKET_FLOWS, rate="100Gbps", scheme=fc.HPCC(w_ai=w_ai), packet_size="1000B")
    late = fc.simulate(scenario, PACKETS, engine="packet", sample_interval="1us").between(PACKETS / 2, PACKETS)
    load = late["pacing_rate"].values.sum(axis=1)
    return float(load.std() / load.mean()), float(late["queue"].values[:, 0].std())


@claim("hpcc-a3-fluctuations", HPCC, "A.3", "a smaller a produces smaller fluctuations about the equilibrium")
def fluctuations(noise: float = 0.005, steps: int = 60_000) -> Finding:
    # The fluctuations that A.3 goes on to consider: U (1 + e) is observed, with e of deviation `noise`.
    N, random = 4, np.random.default_rng(NOISE_SEED)

    def theory(a: float) -> float:
        """Relative deviation of one rate: load of eigenvalue 0, N - 1 differences of eigenvalue lambda."""
        lam = TARGET / (TARGET + N * a)
        return noise * lam * np.sqrt(1 / N + (1 - 1 / N) / (1 - lam**2))

    def measured(a: float) -> float:
        rates, seen = np.full(N, (TARGET + N * a) / N), []
        for draw in random.normal(1, noise, (steps, N)):
            rates = rates * TARGET / (rates.sum() * draw) + a
            seen.append(rates)
        seen = np.array(seen[steps // 20 :])
        return float(seen.std() / seen.mean())

    def half_width(a: float) -> float:
        """Compute the relative half width of a deviation's 95 % interval: N - 1 modes that decay with lambda."""
        lam = TARGET / (TARGET + N * a)
        independent = (N - 1) * (steps - steps // 20) * (1 - lam**2) / (1 + lam**2)
        return float(1.96 / np.sqrt(2 * independent))

    sizes = (0.02, 0.005)
    loads, queues = zip(*(in_packets(w_ai) for w_ai in INCREASES), strict=True)
    packets = all(list(each) == sorted(each, reverse=True) for each in (loads, queues))
    found, expected = [measured(a) for a in sizes], [theory(a) for a in sizes]
    common = [noise * TARGET / (TARGET + N * a) for a in sizes]  # the same e for all flows moves the load alone
    return Finding(
        {
            "noise independent between flows": found[1] < found[0],
            "the same noise for all flows": common[1] < common[0],
            "load and queue in packets": packets,
        },
        {
            "a": sizes,
            "relative_deviation_of_a_rate": found,
            "of_the_load_if_noise_is_common": common,
            "noise": noise,
            "packets_w_ai_bytes": INCREASES,
            "packets_relative_deviation_of_the_load": loads,
            "packets_deviation_of_the_queue_bytes": queues,
        },
        # Of first order in the noise; correlated over 1/(1 - lambda) steps, some thousand independent samples.
        [
            Way(f"deviation at a = {a}: linear theory, simulation", e, f, 0.1)
            for a, e, f in zip(sizes, expected, found, strict=True)
        ],
        restricted=packets and expected[1] > expected[0],
        conditions="the load and the queue, of packets, whose fluctuations are the increases': "
        + ", ".join(
            f"{load:.1%} and {size / 1e3:.1f} KB at W_AI = {w_ai:g} B"
            for w_ai, load, size in zip(INCREASES, loads, queues, strict=True)
        )
        + f" ({PACKET_FLOWS} flows from line rate, 100 Gb/s, packets of 1000 B). Noise e of a given size in U moves "
        "single rates by e lambda sqrt(1/N + (1-1/N)/(1-lambda^2)), relatively: more as a falls, "
        f"{expected[0]:.2%} at a = {sizes[0]:g}, {expected[1]:.2%} at {sizes[1]:g}",
        sample=f"{len(sizes)} runs of {steps} round trips, seed {NOISE_SEED}, less their first twentieths; deviations "
        f"are known to within {100 * half_width(min(sizes)):.1f} % (95 %), and the theory beside them draws nothing; "
        + sample.packets(PACKETS, len(INCREASES), since=PACKETS / 2),
    )


def registers(alpha: float, a: float, steps: int) -> tuple[np.ndarray, ...]:
    """Give each link of each flow a register (7): rates, U of links, and growth of registers in the last step."""
    held = np.where(CROSSED > 0, 0.3, np.inf)
    rates = used = growth = np.zeros(0)
    for _ in range(steps):
        rates = (held ** (-alpha)).sum(axis=0) ** (-1 / alpha)
        used = CROSSED @ rates / CAPACITIES
        after = held * TARGET / used[:, None] + a
        growth = np.where(CROSSED > 0, after / np.where(CROSSED > 0, held, 1), 1)
        held = after
    return rates, used, growth


@claim(
    "hpcc-a3-alpha-fair",
    HPCC,
    "A.3, (7)",
    "with a register for each resource the equilibrium is the alpha-fair allocation",
)
def alpha_fair(a: float = 0.01) -> Finding:
    ways, apart = [], []
    for alpha in (0.5, 1.0, 2.0, 8.0):
        rates, used, growth = registers(alpha, a, 6000)
        settled = bool(np.abs(growth - 1).max() < 1e-9)
        best = minimize(
            lambda log, alpha=alpha: -np.sum(log if alpha == 1 else np.exp((1 - alpha) * log) / (1 - alpha)),
            np.log(rates) - 0.2,
            jac=lambda log, alpha=alpha: -np.exp((1 - alpha) * log),
            constraints={"type": "ineq", "fun": lambda log, used=used: used * CAPACITIES - CROSSED @ np.exp(log)},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        worst = int(np.abs(np.exp(best.x) - rates).argmax())
        apart.append(settled and float(np.abs(np.exp(best.x) / rates - 1).max()) < 1e-3)
        # Sequential quadratic programming to about the root of its tolerance.
        ways.append(Way(f"rate at alpha = {alpha:g}: iteration, optimiser", rates[worst], np.exp(best.x[worst]), 1e-4))
    # A link that the others keep below the target: capacity 5 where no more than 2 can come.
    idle = np.array([0.6, 5.0, 0.6])
    lone = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]])
    held = np.where(lone > 0, 0.3, np.inf)
    last = held
    for _ in range(100):
        rates = (1 / held).sum(axis=0) ** -1.0
        used = lone @ rates / idle
        held, last = held * TARGET / used[:, None] + a, held
    ratio = held[1, 0] / last[1, 0]
    ways.append(Way("growth per RTT of an idle link's register: U_target/U, iteration", TARGET / used[1], ratio, 1e-6))
    return Finding(
        {"every link above the target": all(apart), "a link that stays below it": bool(abs(ratio - 1) < 1e-9)},
        {"alphas": [0.5, 1.0, 2.0, 8.0], "idle_link_utilisation": used[1], "idle_register_growth_per_rtt": ratio},
        ways,
        restricted=all(apart),
        conditions="every link has U_i > U_target; registers of others have no equilibrium, growing by U_target/U_i, "
        f"{ratio:.2f} times per RTT at U_i = {used[1]:.2f}",
    )


def characteristic(extra: int, lam: float) -> float:
    """Largest modulus of a root of z^(d+1) = lambda z^d - lambda: the load, seen d round trips late."""
    coefficients = np.zeros(extra + 2)
    coefficients[0], coefficients[1] = 1, -lam
    coefficients[-1] += lam
    return float(np.abs(np.roots(coefficients)).max())


@claim("hpcc-a3-stability", HPCC, "1, A.1", "stability is guaranteed in theory: feedback on rate mismatch is stable")
def stability(target: float = TARGET, a: float = 0.0005) -> Finding:
    N = 10
    lam = target / (target + N * a)

    def settles(extra: int) -> float:
        """Deviation of the load after 400 round trips over that at the start."""
        rates = np.full(N, (target + N * a) / N)
        past = [rates.sum()] * (extra + 1)
        rates = rates * (1 + 1e-9)
        for _ in range(400):
            past.append(rates.sum())
            rates = rates * target / past[-1 - extra] + a
        return float(abs(rates.sum() / (target + N * a) - 1) / 1e-9)

    moduli = {extra: characteristic(extra, lam) for extra in (0, 1, 2)}
    ends = {extra: settles(extra) for extra in (0, 1, 2)}
    # Two extra round trips: unstable where lambda^2 > 1/2, by Jury's criterion for z^3 - lambda z^2 + lambda.
    x = sympy.symbols("lambda", positive=True)
    border = max(r for r in sympy.solve(sympy.Eq(1 - x**2, x**2), x) if r > 0)
    crossing: Any = brentq(lambda v: characteristic(2, v) - 1, 0.6, 0.8, xtol=1e-14)
    # In continuous time T s' = -(1-lambda) s - lambda s(t-D): a root on the imaginary axis at this D/T.
    bound, at_target = (np.arccos(-(1 - v) / v) / np.sqrt(v**2 - (1 - v) ** 2) for v in (lam, TARGET))
    rightmost = -(1 - lam) + lambertw(-lam * bound * np.exp((1 - lam) * bound)) / bound
    return Finding(
        {
            "feedback of the last round trip": ends[0] < 1,
            "one round trip older": ends[1] < 1,
            "two round trips older": ends[2] < 1,
        },
        {
            "lambda": lam,
            "largest_modulus_by_extra_round_trips": moduli,
            "lambda_where_two_become_unstable": float(border),
            "largest_delay_over_T_in_continuous_time": float(bound),
            "the_same_at_lambda_0.95": float(at_target),
        },
        [
            Way("lambda where two extra round trips become unstable: Jury, roots", float(border), crossing, 1e-9),
            Way("rightmost root at the largest delay: on the axis, Lambert W", 0, float(rightmost.real), 1e-9),
            *(Way(f"stable with {k} extra: root, iteration", moduli[k] < 1, ends[k] < 1) for k in (0, 1, 2)),
        ],
        restricted=max(moduli[0], moduli[1]) < 1 and max(ends[0], ends[1]) < 1,
        conditions=f"feedback at most one round trip late; with two, unstable for lambda > {float(border):.4f}",
    )


if __name__ == "__main__":
    main(__name__)
