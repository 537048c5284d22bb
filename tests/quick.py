"""XLA's quick flags: half of the time to compile; runs take longer, and differ in rounding.

The fast tests compile all with them. Of the slow ones, those that compile more than they run, and whose subject is
neither time nor what users get: figures and claims of papers, the command line, and what is compiled stay as users have
them. A process reads `XLA_FLAGS` once, so for slow tests the flags go to XLA with each compilation, and in the
environment to the processes that the tests start. Not where terms tie at an equilibrium, as in `test_linearize`:
rounding decides on their derivatives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())
QUICK = (
    "dde/test_limit_cycles_of_equations",
    "docs",
    "engines/fluid/test_classes",
    "engines/fluid/test_finite_flows",
    "engines/fluid/test_network",
    "schemes/test_acc_lossless",
    "test_notebooks",
    "theory/control/test_limit_cycle",
    "theory/control/test_newton",
    "theory/control/test_shares",
    "theory/control/test_stability",
)


def add_to_environment() -> None:
    """Have this process and those that it starts compile quickly; before JAX starts."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"


def is_quick(file: str) -> bool:
    """Whether a file's slow tests compile quickly."""
    return file.startswith(tuple(f"tests/{start}" for start in QUICK))


class Plugin:
    """Compiles quickly or not, file by file; what was compiled the other way is let go."""

    def __init__(self) -> None:
        self._patch: pytest.MonkeyPatch | None = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        quick = is_quick(item.nodeid.partition("::")[0])
        if quick is not bool(self._patch):
            self.turn(quick)
        yield

    def turn(self, quick: bool) -> None:
        """Compile quickly from now on, or as users do."""
        import jax
        from jax._src import compiler

        from fluidcc.compiling import functions

        functions._held.clear()
        jax.clear_caches()
        if self._patch:
            self._patch.undo()
            self._patch = None
        if quick:
            self._patch = pytest.MonkeyPatch()
            made: Any = compiler.get_compile_options

            def options(*given: Any, env_options_overrides: dict[str, Any] | None = None, **named: Any) -> Any:
                return made(*given, env_options_overrides={**OPTIONS, **(env_options_overrides or {})}, **named)

            self._patch.setattr(compiler, "get_compile_options", options)
            self._patch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}")  # in the names of files, too
