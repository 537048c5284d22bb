"""Make mutations one at a time in a copy of the checkout, and see whether the tests notice: ``python -m mutants``.

A mutation is killed if one of its tests fails, and that test passes without it; it survives if all pass. Which kind of
mistake no test notices is what this is for: exit status 0 whatever comes out, unless an option makes no sense.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants import Mutation, Refused, mutated, mutations, nearest_tests, source_of

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300.0  # s for the tests of one mutation: what loops for ever is noticed too
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_PASSED, _FAILING = 0, (1, 2, 4)  # exit status of pytest; 2 and 4: a file of tests cannot be imported

KILLED, SURVIVED, REFUSED = "killed", "SURVIVED", "refused"


class Outcome(NamedTuple):
    """What became of a mutation, and a word on it."""

    result: str
    text: str
    seconds: float


class Copy:
    """A copy of the checkout, as it is on disk, in which one mutation at a time is made."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: subprocess.Popen[str] | None = None
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, place / name
            if source.is_file() and not source.is_symlink():  # deleted, or the environment
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def pytest(self, tests: list[str], limit: float, cache: Path, plain: bool = False) -> tuple[int | None, str]:
        """Exit status, None after ``limit``, and output."""
        # No bytecode: a file that changes twice in a second, to the same length, would be taken for unchanged.
        own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.place), "FLUIDCC_CACHE_DIR": str(cache)}
        own |= {"NUMBA_DISABLE_JIT": "1"} if plain else {}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=no", *tests]
        with subprocess.Popen(
            command,
            cwd=self.place,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            self.running = process
            try:
                out, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                self.stop()
                process.communicate()
                return None, ""
            finally:
                self.running = None
            return process.returncode, out

    def stop(self) -> None:
        """End the tests that run, with all that they started."""
        if self.running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)

    def judge(self, mutation: Mutation, limit: float, cache: Path, sound: dict[str, bool]) -> Outcome:
        """Make a mutation, run its tests, and take it back."""
        began = time.monotonic()

        def outcome(result: str, text: str = "") -> Outcome:
            return Outcome(result, text, time.monotonic() - began)

        try:
            text, tests = mutated(mutation, self.place), nearest_tests(mutation, self.place)
        except Refused as error:
            return outcome(REFUSED, str(error))
        path = source_of(mutation, self.place)
        before = path.read_bytes()
        try:
            path.write_text(text, encoding="utf-8")
            status, out = self.pytest(tests, limit, cache, mutation.plain)
        finally:
            path.write_bytes(before)
        if status is None:
            return outcome(KILLED, f"no end within {limit:g} s")
        if status == _PASSED:
            return outcome(SURVIVED, " ".join(tests))
        found = _FAILED.search(out)
        if status not in _FAILING or found is None:
            return outcome(REFUSED, f"pytest ends with status {status}: {' '.join(out.split())[-200:]}")
        test = found[1]
        if test not in sound:  # a test that fails anyway kills nothing
            again = [test] if "::" in test else tests  # a file that cannot be imported
            sound[test] = self.pytest(again, limit, cache, mutation.plain)[0] == _PASSED
        if not sound[test]:
            return outcome(REFUSED, f"{test} fails without it too")
        return outcome(KILLED, test)


def main() -> None:
    """Read the options, run, and say what survived."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="this one, or all of a table; repeat")
    parser.add_argument("--list", action="store_true", help="name them and their tests, and run nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="K", help="how many at once (1)")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="S", help=f"seconds for one ({LIMIT:g})")
    options = parser.parse_args()
    known = mutations()
    chosen = [m for m in known if not options.only or {m.name, m.room} & set(options.only)]
    unknown = [n for n in options.only or [] if not any(n in (m.name, m.room) for m in known)]
    if unknown:
        parser.error(f"--only: {unknown[0]} is no mutation and no table; --list names all")
    if options.jobs < 1:
        parser.error(f"--jobs: {options.jobs}; give 1 or more")
    if options.list:
        for mutation in chosen:
            print(f"{mutation.room:<12} {mutation.name:<36} {' '.join(mutation.tests)}")
        return
    run(chosen, options.jobs, options.limit)


def run(chosen: list[Mutation], jobs: int, limit: float) -> dict[str, Outcome]:
    """Judge them, in so many copies at once; print each as it is known, and the score."""
    outcomes: dict[str, Outcome] = {}
    sound: dict[str, bool] = {}
    spoken = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="fluidcc-mutants-") as name:
        place = Path(name)
        made = [Copy(place / f"copy{k}") for k in range(min(jobs, len(chosen)))]
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in made:
            copies.put(copy)

        def one(mutation: Mutation) -> None:
            copy = copies.get()
            try:
                found = copy.judge(mutation, limit, place / "cache", sound)
            finally:
                copies.put(copy)
            with spoken:
                outcomes[mutation.name] = found
                print(f"{found.result:<8} {mutation.name:<36} {found.seconds:6.1f} s  {found.text}", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(one, chosen))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for copy in made:
                    copy.stop()
                raise
    results = [found.result for found in outcomes.values()]
    killed, survived = results.count(KILLED), results.count(SURVIVED)
    score = f"{100 * killed / (killed + survived):.0f} %" if killed + survived else "none could be judged"
    print(f"\n{killed} of {killed + survived} mutations killed ({score}); {results.count(REFUSED)} refused")
    for mutation in chosen:
        if outcomes[mutation.name].result == SURVIVED:
            print(f"  survived: {mutation.name} ({mutation.room}, {mutation.module}) {mutation.why}".rstrip())
    return outcomes


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("mutants: interrupted")
