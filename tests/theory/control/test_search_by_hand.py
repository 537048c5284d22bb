"""Newton's search and what a right-hand side observes, in NumPy on two states written here, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.theory.control import delayed_inputs as inputs
from fluidcc.theory.control import newton
from fluidcc.theory.control.delayed_inputs import Plain, Tracked
from fluidcc.theory.control.newton import _RightHandSide, moved, solve_equilibrium
from tests.engines.fluid.in_numpy import Lax
from tests.theory.control.changed_copies import Numpy, Rows

# -- Newton -------------------------------------------------------------------------------------------------------

# One queue and one rate, in two points whose numbers differ: q' = r - C, r' = r (P - q / w) / T, with q >= 0 and
# r <= 1.5 C. It settles at q = P w and r = C.
C, T, W, P = 1000.0, np.array([0.02, 0.05]), np.array([2e4, 4e4]), np.array([0.2, 0.1])
PACKET = 500.0


def slope(x: Any) -> Any:
    q, r = x
    return np.stack([r - C, r * (P - q / W) / T])


def jacobian(function: Any, at: Any) -> Any:
    """By central differences (outputs, inputs, points)."""
    columns = []
    for k in range(len(at)):
        step = np.zeros_like(at)
        step[k] = 1e-6 * np.maximum(np.abs(at[k]), 1.0)
        columns.append((function(at + step) - function(at - step)) / (2 * step[k]))
    return np.stack(columns, axis=1)


def projected(x: Any) -> Any:
    return np.stack([np.where(x[0] > 1e-5, x[0], 0.0), np.minimum(x[1], 1.5 * C)])


def states(given: Any = slope, delays: Any = ((0.0, 0.0), (0.03, 0.01), (0.01, 0.02))) -> Any:
    network = SimpleNamespace(
        queues=1, packet=np.array([[PACKET, PACKET], [PACKET / 2, 1.0]]), capacity=np.array([[C]])
    )
    return SimpleNamespace(
        system=SimpleNamespace(network=network),
        delays=lambda x: np.array(delays),
        slope=lambda x, observed: given(x) + observed,
        observed=lambda x: 0.0,
        projected=projected,
    )


@pytest.fixture
def in_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (newton, inputs):
        monkeypatch.setattr(module, "jnp", Numpy())
    monkeypatch.setattr(newton, "lax", Lax())
    monkeypatch.setattr(newton, "jacobian", jacobian)

    def jvp(function: Any, x: Any, along: Any) -> Any:
        return function(*x), np.einsum("ijp,jp->ip", newton.jacobian(function, *x), *along)

    def vmap(function: Any) -> Any:
        return lambda stack: np.stack([function(one) for one in stack])

    monkeypatch.setattr(newton, "jax", SimpleNamespace(jvp=jvp, vmap=vmap, tree=jax.tree))
    with np.errstate(all="ignore"):
        yield


def at(*rows: Any) -> Any:
    return np.stack([np.broadcast_to(np.asarray(row, float), 2) for row in rows]).view(Rows)


@pytest.mark.usefixtures("in_numpy")
def test_sizes_below_which_a_state_counts_as_that() -> None:
    """A packet of a queue, a millionth of what begins above 1, and of 1; the shortest delay that is none of 0."""
    F = _RightHandSide.about(states(), at(7.0, [3e4, 0.5]))
    np.testing.assert_allclose(F.least, [[PACKET, PACKET], [3e-2, 1e-6]])
    assert F.shortest.tolist() == [0.01, 0.01]
    one = _RightHandSide.about(states(delays=((0.0, 0.0), (1e-9, 0.0))), at(7.0, 1.0))
    assert one.shortest.tolist() == [1e-6, 1e-6]
    assert one.least[1].tolist() == [1e-6, 1e-6]
    np.testing.assert_allclose(F.size(at([-900.0, 100.0], [-5.0, 0.0])), [[900, PACKET], [5, 1e-6]])


@pytest.mark.usefixtures("in_numpy")
def test_a_limit_holds_what_is_pushed_against_it() -> None:
    """An empty queue that would drain, a rate at its most that would grow; not those that move away."""
    F = _RightHandSide.about(states(lambda x: at([-1.0, 1.0], [1.0, -1.0])), at(1e3, C))
    assert F.look(at(0.0, 1.5 * C)).held.tolist() == [[True, False], [True, False]]
    assert F.look(at(1e3, C)).held.tolist() == [[False] * 2] * 2


@pytest.mark.usefixtures("in_numpy")
def test_speed_is_of_the_fastest_state_that_is_free() -> None:
    """Relative to its size."""
    F = _RightHandSide.about(states(), at(1e3, C))
    x = at(2e3, 900.0)
    expected = np.maximum(100.0 / 2e3, np.abs(P - 2e3 / W) / T)
    np.testing.assert_allclose(F.look(x).speed, expected)
    np.testing.assert_allclose(F.look(at(0.0, 900.0)).speed, P / T)  # the queue is held at 0
    np.testing.assert_allclose(F.look(at(100.0, 1.01 * C)).speed, np.maximum(10 / PACKET, np.abs(P - 100 / W) / T))


@pytest.mark.usefixtures("in_numpy")
def test_how_far_a_state_moves_in_the_shortest_delay() -> None:
    """Or its queue grows, of the link; nothing at the equilibrium."""
    network = states()
    for q, r in ((4e3, C), (4.4e3, 1.1 * C)):
        x = at(q, r)
        speed = np.maximum(np.abs(r - C) / q, np.abs(P - q / W) / T)
        expected = np.maximum(speed * 0.01, max(r - C, 0.0) / C)
        np.testing.assert_allclose(moved(network, x), expected, rtol=1e-6, atol=1e-15)
    grows = moved(network, at(1e9, 1.2 * C))
    np.testing.assert_allclose(grows, np.maximum(np.abs(P - 1e9 / W) / T * 0.01, 0.2))
    slow = moved(states(lambda x: np.stack([x[1] - C, 0.0 * x[1]])), at(1e9, 1.2 * C))
    np.testing.assert_allclose(slow, 0.2)


@pytest.mark.usefixtures("in_numpy")
@pytest.mark.parametrize(("jump", "lands"), [(0.0, True), (0.05, True), (0.2, False), (-0.2, False)])
def test_a_right_hand_side_that_jumps_has_no_equilibrium(
    monkeypatch: pytest.MonkeyPatch, jump: float, lands: bool
) -> None:
    """By more than a tenth of what its slopes say, on either side of the equilibrium."""
    monkeypatch.setattr(newton, "jacobian", lambda function, x: jacobian(slope, x))
    for side in (1, -1):

        def broken(x: Any, side: int = side) -> Any:
            aside = 1e-6 * x[1] * P / T  # what a millionth of the queue makes of the rate's slope
            return slope(x) + np.stack([0 * aside, jump * aside * (side * (x[0] - P * W) > 1e-9)])

        assert np.isfinite(moved(states(broken), at(P * W, C))).tolist() == [lands, lands]


# -- the search, replayed -----------------------------------------------------------------------------------------


def replay(x: list[float], point: int, steps: int, last: int) -> tuple[list[float], float]:
    """Pseudo-transient continuation of one point in plain Python, and the speed where it ends."""
    w, p, t = float(W[point]), float(P[point]), float(T[point])
    least = [PACKET, 1e-6 * x[1]]

    def F(x: list[float]) -> list[float]:
        return [x[1] - C, x[1] * (p - x[0] / w) / t]

    def size(x: list[float]) -> list[float]:
        return [max(abs(each), low) for each, low in zip(x, least, strict=True)]

    def limits(x: list[float]) -> list[float]:
        return [x[0] if x[0] > 1e-5 else 0.0, min(x[1], 1.5 * C)]

    def free(x: list[float]) -> list[bool]:
        found = []
        for k, (f, s) in enumerate(zip(F(x), size(x), strict=True)):
            push = math.copysign(1e-7 * s, f) if f else 0.0
            pushed = limits([each + (push if i == k else 0.0) for i, each in enumerate(x)])
            found.append(not abs(pushed[k] - x[k]) < 0.5 * abs(push))
        return found

    def speed(x: list[float]) -> float:
        return max(abs(f) / s if on else 0.0 for f, s, on in zip(F(x), size(x), free(x), strict=True))

    def move(x: list[float], length: float) -> list[float]:
        s, on, f = size(x), free(x), F(x)
        J = [[0.0, 1.0 * s[1] / s[0]], [-x[1] / w / t * s[0] / s[1], (p - x[0] / w) / t * s[1] / s[1]]]
        M = [[(1 / length if on[i] else 1.0) * (i == j) - J[i][j] * (on[i] and on[j]) for j in (0, 1)] for i in (0, 1)]
        b = [f[i] / s[i] if on[i] else 0.0 for i in (0, 1)]
        det = M[0][0] * M[1][1] - M[0][1] * M[1][0]
        step = [(b[0] * M[1][1] - b[1] * M[0][1]) / det, (M[0][0] * b[1] - M[1][0] * b[0]) / det]
        share = min(1.0, 1.0 / max(map(abs, step)))
        return limits([x[i] + share * step[i] * s[i] for i in (0, 1)])

    x = limits(x)
    now = speed(x)
    length = 0.3 / max(now, 1e-300)
    for _ in range(steps):
        new = move(x, length)
        after = speed(new)
        longer = length * (min(now / max(after, 1e-300), 3.0) if after < now else 0.5)
        done = now * 0.01 <= 1e-9
        if not done:
            x, now, length = new, after, max(longer, 0.3 / max(after, 1e-300))
    for _ in range(last):
        new = move(x, 1e6)
        after = speed(new)
        if after < now:
            x, now = new, after
    return x, now


@pytest.mark.usefixtures("in_numpy")
@pytest.mark.parametrize("start", [(0.0, 300.0), (2e3, 1900.0), (9e3, 800.0), (4.1e3, 1010.0)])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9])
def test_a_search_takes_the_steps_of_its_replay(
    monkeypatch: pytest.MonkeyPatch, start: tuple[float, float], steps: int
) -> None:
    """Euler's implicit steps that lengthen as the speed falls, then four of Newton's: signs, limits and bounds."""
    monkeypatch.setattr(newton, "_STEPS", steps)
    monkeypatch.setattr(newton, "_LAST_STEPS", 1)
    found = solve_equilibrium(states(delays=((0.01, 0.01),)), at(*start))
    for point in (0, 1):
        x, _ = replay(list(start), point, steps, 1)
        np.testing.assert_allclose(np.asarray(found.x)[:, point], x, rtol=1e-5, atol=1e-3)


@pytest.mark.usefixtures("in_numpy")
def test_a_search_ends_at_the_equilibrium() -> None:
    for start in ((0.0, 300.0), (9e3, 1400.0)):
        found = solve_equilibrium(states(), at(*start))
        np.testing.assert_allclose(found.x, np.stack([P * W, [C, C]]), rtol=1e-12)
        assert (np.asarray(found.moved) < 1e-13).all()
        assert not np.asarray(found.held).any()
    alone = solve_equilibrium(states(lambda x: np.stack([x[1] - C, 900.0 - x[1]])), at(0.0, 300.0))
    np.testing.assert_allclose(alone.x, [[0, 0], [900, 900]], rtol=1e-12)
    assert np.asarray(alone.held).tolist() == [[True, True], [False, False]]


# -- what is observed ----------------------------------------------------------------------------------------------


def lagging(*reads: tuple[tuple[int, ...], bool], points: int = 2) -> Any:
    """A system that is read for these rows, each as old as its number in us times the point's; rules add up."""
    return SimpleNamespace(
        reads=[SimpleNamespace(rows=rows, slopes=slopes) for rows, slopes in reads],
        points=points,
        lags=lambda y, z, t: tuple(1e-6 * (1 + k) * np.array([[1.0, 10.0]]) for k in range(len(reads))),
        remembered=lambda y: y * 10.0,
        feedback=lambda lagged: lagged,
        derivative=lambda clock, y, z, feedback: (clock, y, z, feedback),
    )


@pytest.mark.usefixtures("in_numpy")
def test_inputs_are_the_rows_that_are_read() -> None:
    """Slopes of reads with slopes are 0; a row is as old as its read."""
    plain = Plain(lagging(((3, 1), False), ((0, 2, 1), True)))
    assert [(each.row, each.summed) for each in plain.delayed_inputs] == [(row, False) for row in (3, 1, 0, 2, 1)]
    ages = 1e-6 * np.array([[1, 10], [1, 10], [2, 20], [2, 20], [2, 20]])
    np.testing.assert_allclose(plain.delays(cast(Any, None), cast(Any, None)), ages)
    y = np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(plain.signals(cast(Any, y)), 10 * y[[3, 1, 0, 2, 1]])
    values = np.arange(10.0).reshape(5, 2)
    clock, state, _, (first, second) = cast(Any, plain.slope(cast(Any, y), cast(Any, None), cast(Any, values)))
    np.testing.assert_allclose(first, values[:2])
    np.testing.assert_allclose(second, np.concatenate([values[2:], np.zeros((3, 2))]))
    assert clock[0] > 1e9
    assert state is y
    assert plain.complete(cast(Any, y), cast(Any, None)) is y


def telemetry(forward: Any) -> Any:
    """Two links, the first on the paths of both flows, of which the second stands for three: views are (1, 0, 0)."""
    network = SimpleNamespace(
        queues=2,
        flows=[0, 1],
        arrival_lag=forward,
        capacity=np.array([[100.0], [200.0]]),
        multiplicity=np.array([[1.0], [3.0]]),
    )
    system = lagging(((0,), False), ((0,), False), ((0,), False))
    system.network, system._path_queues = network, (1, 0, 0)
    system._hops = [(0, 0, 0), (1, 0, 1), (1, 1, 0)]
    system.rates = lambda y: y.rates
    system.derivative = lambda clock, y, z, feedback: Moved(feedback, z)
    return system


class Moved:
    def __init__(self, feedback: Any, z: Any) -> None:
        self.feedback, self.z, self.queue = feedback, z, None

    def _replace(self, queue: Any) -> Any:
        self.queue = queue
        return self


TOLD = [(0, 1, 1), (1, 0, 0), (1, 2, 1), (2, 0, 0), (2, 2, 1)]  # view, hop and flow of what telemetry tells
COME = [(0, 0, 0), (0, 2, 1), (1, 1, 1)]  # queue, hop and flow of what comes


@pytest.mark.usefixtures("in_numpy")
@pytest.mark.parametrize("forward", [None, np.array([[3e-7, 4e-7], [5e-7, 6e-7], [7e-7, 8e-7]])])
def test_telemetry_tells_of_rates_as_old_as_they_came(forward: Any) -> None:
    """Queues and flows first, then queues by telemetry, and the rates whose sums arrived then, and arrive now."""
    tracked = Tracked(telemetry(forward))
    rows = [1, 0, 0, 2, 3, 1, 0, 0, *(2 + flow for _, _, flow in TOLD), *(2 + flow for _, _, flow in COME)]
    assert [each.row for each in tracked.delayed_inputs] == rows
    assert [each.summed for each in tracked.delayed_inputs] == [False] * 8 + [True] * 8
    late = np.zeros((3, 2)) if forward is None else forward
    ages = np.array([[1.0, 10.0]]) * 1e-6
    expected = [*[ages] * 3, *[2 * ages] * 2, *[3 * ages] * 3]
    expected += [late[hop][None] + 3 * ages for _, hop, _ in TOLD] + [late[hop][None] for _, hop, _ in COME]
    np.testing.assert_allclose(tracked.delays(cast(Any, None), cast(Any, None)), np.concatenate(expected))


@pytest.mark.usefixtures("in_numpy")
def test_a_link_with_a_queue_sends_its_capacity() -> None:
    """Else what arrives; queues grow by what comes now beyond it."""
    tracked = Tracked(telemetry(None))
    values = 1.0 + np.arange(32.0).reshape(16, 2)
    values[5:8] = [[4.0, 0.0], [0.0, 5.0], [6.0, 7.0]]  # queues of the views
    z: Any = SimpleNamespace(_replace=lambda **changed: ("memory", changed))
    moved = cast(Any, tracked.slope(cast(Any, None), z, cast(Any, values)))
    assert moved.z == ("memory", {"arriving": None})
    marks, own, told = moved.feedback
    np.testing.assert_allclose(marks, values[:3])
    np.testing.assert_allclose(own, np.concatenate([values[3:5], values[3:5]]))
    many = [1.0, 3.0]
    arriving = np.zeros((3, 2))
    for k, (view, _, flow) in enumerate(TOLD):
        arriving[view] += many[flow] * values[8 + k]
    capacity = np.array([200.0, 100.0, 100.0])[:, None]
    output = np.where(values[5:8] > 0, capacity, arriving)
    np.testing.assert_allclose(told, np.concatenate([values[5:8], output, arriving]))
    grown = np.array([[-100.0] * 2, [-200.0] * 2])
    for k, (queue, _, flow) in enumerate(COME):
        grown[queue] += many[flow] * values[13 + k]
    np.testing.assert_allclose(moved.queue, grown)
    y: Any = SimpleNamespace(queue=np.array([[1.0], [2.0]]), rates=np.array([[3.0], [4.0]]))
    assert np.asarray(tracked.signals(y))[:, 0].tolist() == [2, 1, 1, 3, 4, 2, 1, 1, 4, 3, 4, 3, 4, 3, 4, 4]


def test_telemetry_and_delays_together_are_refused() -> None:
    system = telemetry(None)
    system.reads.append(system.reads[0])
    with pytest.raises(InputError, match="one kind alone"):
        Tracked(system)
