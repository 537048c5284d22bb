"""Memory maps of a process that computes ever new shapes: ``python -m benchmarks.memory_maps``.

Each shape is linearised, continued or measured. Compiled functions map their machine code, Linux lets a process have
65 530 maps, and one that kept all it had compiled crashed after a thousand tests. We hold those used last only
(`fluidcc.compiling.functions`), so the maps must stop growing, while a function that the user compiled is traced
once whatever we drop. 300 shapes with 40 held take a quarter of an hour; the tests run fewer.
"""

from __future__ import annotations

import argparse

import jax

import fluidcc as fc
from fluidcc.compiling import functions
from fluidcc.engines.fluid.engine import Continued
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.scenario.model import resolve
from fluidcc.theory.control.local import local


def measure(shapes: int, held: int) -> list[int]:
    """Maps after each shape, where ``held`` compiled functions are kept."""
    functions.MOST = held
    traced, counts = [], []

    @jax.jit
    def own(x: float) -> float:
        traced.append(1)
        return x * 2 + 1

    network = network_of(resolve(fc.incast(1)))
    plan = plan_of(network, until="1ms")
    for number in range(shapes):
        own(1.0)
        if number % 3 == 0:
            local(network, points=1 + number)  # what linearize and charts do
        elif number % 3 == 1:
            Continued(network, plan, points=1 + number).window(3)
        else:
            with jax.enable_x64(True):
                fc.measure(fc.incast(1), until=f"{64 * (1 + number)}us")
        with open("/proc/self/maps") as maps:
            counts.append(sum(1 for _ in maps))
    assert traced == [1], traced
    assert functions.made >= 4 * shapes // 3
    assert functions.held() <= held
    return counts


def main() -> None:
    """Print the maps after each shape."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_maps", description=__doc__)
    parser.add_argument("shapes", nargs="?", type=int, default=300)
    parser.add_argument("held", nargs="?", type=int, default=40)
    options = parser.parse_args()
    print(*measure(options.shapes, options.held))


if __name__ == "__main__":
    main()
