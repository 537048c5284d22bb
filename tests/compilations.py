"""How much each test file asks to have compiled: a table with ``--compilations``, and a budget that holds always.

Counted are the distinct shapes of problems that a file's tests ask fluidcc's compiled functions for, whether they are
then found in memory, loaded from a file or compiled. So the count depends neither on caches, nor on the files that ran
before in the same process, nor on how xdist shares tests among workers, whose sets are joined. What JAX compiles
besides (the tests' own functions, single operations) is shown in the table, as it happens, and has no budget. Budgets
are of the tests that are not slow, and hold where these are what runs.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BUDGET = Path(__file__).with_name("compilations.toml")
MOST = 437  # shapes of all budgets together; lower it as they fall
_SPARE = 1  # a shape: chunks of other machines' cores may ask for it
_COMPILED = "/jax/core/compile/backend_compile_duration"


class Count:
    """Of this process, then of all workers."""

    def __init__(self) -> None:
        self.shapes: dict[str, set[str]] = defaultdict(set)
        self.others: Counter[str] = Counter()
        self._file = ""
        self._digests: dict[Any, str] = {}
        self._listening = False

    def listen(self, file: str) -> None:
        """Count for a file from now on."""
        self._file = file
        if not self._listening:
            self._listening = True
            import jax

            from fluidcc.compiling import functions

            functions.watchers.append(self._asked)
            jax.monitoring.register_event_duration_secs_listener(self._compiled)

    def _asked(self, name: str, key: Any) -> None:
        if key not in self._digests:
            text = f"{name} {key[1]} {key[2:]}"
            self._digests[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.shapes[self._file].add(self._digests[key])

    def _compiled(self, event: str, _: float, **__: Any) -> None:
        if event == _COMPILED:
            self.others[self._file] += 1

    def add(self, shapes: dict[str, list[str]], others: dict[str, int]) -> None:
        """Take in what a worker counted."""
        for file, digests in shapes.items():
            self.shapes[file].update(digests)
        self.others.update(others)

    def sent(self) -> dict[str, Any]:
        """For xdist, which carries plain values."""
        shapes = {file: sorted(digests) for file, digests in self.shapes.items()}
        return {"shapes": shapes, "others": dict(self.others)}

    def over(self, budget: dict[str, int]) -> list[str]:
        """A line for each file that exceeds its budget."""
        return [
            f"{file} asks for {len(digests)} compiled shapes, of a budget of {budget[file]}: share shapes between "
            f"tests (same numbers of flows and links, same options), or raise it in tests/{BUDGET.name} and say why"
            for file, digests in sorted(self.shapes.items())
            if len(digests) > budget.get(file, len(digests))
        ]

    def table(self, most: int = 20) -> list[str]:
        """The files that ask for most, most first."""
        rows = sorted({*self.shapes, *self.others}, key=lambda file: (-len(self.shapes[file]), file))
        lines = [f"{'shapes':>7} {'XLA':>6}  file"]
        return lines + [f"{len(self.shapes[file]):>7} {self.others[file]:>6}  {file}" for file in rows[:most]]

    def budget(self) -> str:
        """Budgets as a file: what was counted and one more, but no more than before; of the files that have one."""
        known = {file: most for file, most in read().items() if (BUDGET.parents[1] / file).exists()}
        for file in known.keys() & self.shapes.keys():
            known[file] = min(known[file], len(self.shapes[file]) + _SPARE)
        total = sum(known.values())
        head = (
            f"# Distinct shapes that a file may ask compiled functions for. They only fall: {total} in all.\n"
            "# Files that share what they computed with others (figures, claims) have none: who comes first compiles.\n"
        )
        return head + "".join(f'"{file}" = {most}\n' for file, most in sorted(known.items()))


def read() -> dict[str, int]:
    """The budgets, by file."""
    return tomllib.loads(BUDGET.read_text())


class Plugin:
    """Counts in each process, joins what workers counted, and holds the budget where all comes together."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.count = Count()
        self.budget = read() if config.getoption("markexpr").strip() == "not slow" else {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.count.listen(item.nodeid.partition("::")[0])
        yield

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["compilations"] = self.count.sent()
            return
        if self.config.getoption("--compilations-write"):
            BUDGET.write_text(self.count.budget())
        if self.count.over(self.budget) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        found = getattr(node, "workeroutput", {}).get("compilations")
        if found is not None:
            self.count.add(**found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        over = self.count.over(self.budget)
        if self.config.getoption("--compilations"):
            terminalreporter.section("compilations")
            for line in self.count.table():
                terminalreporter.write_line(line)
        if over:
            terminalreporter.section("over the budget of compilations")
            for line in over:
                terminalreporter.write_line(line, red=True)


def add_options(parser: pytest.Parser) -> None:
    """For ``pytest_addoption``."""
    group = parser.getgroup("fluidcc")
    group.addoption("--compilations", action="store_true", help="print which files ask for most compiled shapes")
    group.addoption(
        "--compilations-write", action="store_true", help=f"lower the budgets in {BUDGET.name} to what was counted"
    )
