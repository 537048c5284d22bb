"""Make mutations one at a time in a copy of the checkout, and see whether the tests notice: ``python -m mutants``.

A mutation is killed if one of its tests fails, and that test passes without it; it survives if all pass. Mutations are
those of the tables, or drawn ones (``--drawn 240 --seed 1``), which all fast tests of their room judge. Outcomes are
kept, so that a run that was interrupted goes on where it stopped. The exit status is 0 whatever comes out, unless an
option makes no sense.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from fluidcc.progress import Bar
from mutants import Mutation, Refused, mutated, mutations, nearest_tests, source_of
from mutants.drawing import Drawn, draw
from mutants.keeping import Kept, Outcome
from mutants.rooms import ROOMS, files_of
from mutants.server import MODULES

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300.0  # s for the tests of one mutation of a table: what loops for ever is noticed too
ROOM_LIMIT = 1200.0  # s for all tests of a room, of a drawn mutation
EACH = 120.0  # s of the processor for one test; machine code is made within it
EACH_PLAIN, QUICK_PLAIN = 30.0, 2.0  # the same without machine code, for tests that take less than the other there
UNSOUND = 5  # tests that fail anyway before a mutation is given up
_PASSED = (0, 5)  # exit status of pytest; 5: no test is left

KILLED, SURVIVED, REFUSED = "killed", "SURVIVED", "refused"


class Done(NamedTuple):
    """A run of tests: exit status (None after the limit), the test that failed or did not end, durations, all such."""

    status: int | None
    failed: str | None
    endless: bool
    seconds: dict[str, float]
    failures: set[str]
    output: str

    @property
    def passed(self) -> bool:
        """Say that all tests passed."""
        return self.status in _PASSED and self.failed is None


class Stage(NamedTuple):
    """Tests to run, in order, with or without machine code, and those of their tests that are run or are not."""

    tests: list[str]
    plain: bool = False
    only: list[str] | None = None
    without: tuple[str, ...] = ()


class Copy:
    """A copy of the checkout, as it is on disk, in which one mutation at a time is made."""

    def __init__(self, place: Path, keep: Path, modules: list[str] | None = None, fill: bool = True) -> None:
        self.place, self.keep = place, keep
        self.running: subprocess.Popen[str] | None = None
        self.modules = MODULES if modules is None else modules
        self.changes = 0
        if fill:
            self._fill()

    def _fill(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, self.place / name
            if source.is_symlink() and Path(os.readlink(source)).is_absolute():  # the environment
                continue
            if source.exists():  # not deleted
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)

    def _server(self) -> subprocess.Popen[str]:
        if self.running is None or self.running.poll() is not None:
            one_thread = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
            self.running = subprocess.Popen(
                [sys.executable, "-m", "mutants.server", *self.modules],
                cwd=ROOT,
                env=os.environ | one_thread | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            ready = self.running.stdout.readline()  # type: ignore[union-attr]
            if '"forks": true' not in ready:
                print("mutants: forking is not safe here; each run of tests starts Python afresh", file=sys.stderr)
        return self.running

    def pytest(
        self, stage: Stage, limit: float, known: dict[str, float] | None = None, own_cache: bool = False, **job: Any
    ) -> Done:
        """Run tests as the copy is now."""
        folder = self.place.parent / f"{self.place.name}-run"
        folder.mkdir(exist_ok=True)
        cache = folder / "cache" if own_cache else self.keep / "cache"
        env = {"PYTHONPATH": str(self.place), "FLUIDCC_CACHE_DIR": str(cache)}
        env |= {"NUMBA_DISABLE_JIT": "1"} if stage.plain else {}
        job = {
            "place": str(self.place),
            "home": str(ROOT),
            "env": env,
            "out": str(folder / "out"),
            "report": str(folder / "report"),
            "arguments": stage.tests,
            "only": stage.only,
            "without": list(stage.without),
            "known": known or {},
            "kept": None if own_cache else str(self.keep / "jax"),
            "limit": limit,
            "each": EACH_PLAIN if stage.plain else EACH,
        } | job
        (folder / "report").write_text("")
        server = self._server()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs the tests has ended")
        status = json.loads(answer)["status"]
        lines = (folder / "report").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines if line.endswith("]")]
        failures = [test for what, test, _ in events if what == "failed"]
        began = [test for what, test, _ in events if what == "began"]
        ended = {test: seconds for what, test, seconds in events if what == "ended"}
        open_one = began[-1] if began and began[-1] not in ended else None
        failed = failures[0] if failures else open_one if status not in (*_PASSED, None) else None
        output = (folder / "out").read_text(encoding="utf-8", errors="replace")
        endless = status in (-signal.SIGPROF, -signal.SIGXCPU)
        bad = {*failures, open_one} if endless and open_one else set(failures)
        return Done(status, failed, endless, ended, bad, output)

    def stop(self) -> None:
        """End the tests that run, with all that they started."""
        if self.running is not None:
            assert self.running.stdin
            with contextlib.suppress(OSError):
                self.running.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.running.wait(2.0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait()
            self.running = None

    @contextlib.contextmanager
    def mistaken(self, path: Path, text: str) -> Iterator[None]:
        """The file with another text, and a new time of change for each, so that no bytecode of another is used."""
        before, times = path.read_bytes(), path.stat()
        self.changes += 1
        try:
            path.write_text(text, encoding="utf-8")
            os.utime(path, (self.changes, self.changes))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def judge(
        self,
        mutation: Mutation | Drawn,
        limit: float,
        sound: dict[tuple[str, bool], bool],
        kept: Kept | None = None,
    ) -> Outcome:
        """Make a mutation, run its tests, and take it back."""
        began = time.monotonic()

        def outcome(result: str, text: str = "") -> Outcome:
            return Outcome(result, text, round(time.monotonic() - began, 1))

        try:
            path, text = changed_file(mutation, self.place)
            stages = self.stages(mutation, kept)
        except Refused as error:
            return outcome(REFUSED, str(error))
        own_cache = "compiling" in path.parts
        unsound: list[str] = []
        for stage in stages:
            while True:
                stage = stage._replace(without=(*stage.without, *unsound))
                known = durations(kept, mutation.room, stage.plain)
                with self.mistaken(path, text):
                    done = self.pytest(stage, limit, known, own_cache)
                if kept and done.seconds and not stage.plain:
                    kept.keep_durations(f"compiled-{mutation.room}", known | done.seconds)
                if done.status is None and isinstance(mutation, Drawn):
                    return outcome(REFUSED, f"its tests take over {limit:g} s")
                if done.status is None:
                    return outcome(KILLED, f"no end within {limit:g} s")
                if done.passed:
                    break
                test = done.failed or "the start of its tests"
                if (test, stage.plain) not in sound:  # a test that fails anyway kills nothing
                    sound[test, stage.plain] = self.passes(done.failed, stage, limit, own_cache)
                if sound[test, stage.plain]:
                    return outcome(KILLED, f"no end: {test}" if done.endless else test)
                unsound.append(test)
                if isinstance(mutation, Mutation) or len(unsound) > UNSOUND or not done.failed:
                    return outcome(REFUSED, f"{test} fails without it too: {' '.join(done.output.split())[-200:]}")
        return outcome(SURVIVED, " ".join(mutation.tests) if isinstance(mutation, Mutation) else "")

    def passes(self, test: str | None, stage: Stage, limit: float, own_cache: bool) -> bool:
        """Run a test, or import a file, in the copy as it is now."""
        if test is None or "::" not in test:
            again = Stage(["--collect-only", *([test] if test else stage.tests)], stage.plain)
        else:
            again = Stage([test], stage.plain)
        done = self.pytest(again, limit, None, own_cache)
        return done.status == 0 and not done.failed

    def stages(self, mutation: Mutation | Drawn, kept: Kept | None) -> list[Stage]:
        """Tests that judge it: of a drawn one first those that are quick without machine code, if it would be made."""
        if isinstance(mutation, Mutation):
            return [Stage(nearest_tests(mutation, self.place), mutation.plain)]
        room = ROOMS[mutation.room]
        seconds = durations(kept, mutation.room, False)
        tests = ordered(mutation, self.place, files_of(self.place, room.tests, "test_*.py"), seconds)
        if not room.numba or kept is None:
            return [Stage(tests)]
        quick = self.quick_tests(mutation.room, kept)
        return [Stage(tests, True, quick), Stage(tests, False, None, tuple(quick))]

    def quick_tests(self, room: str, kept: Kept) -> list[str]:
        """Tests of a room that pass, quickly, without machine code; measured again where their files have changed."""
        name, files = f"plain-{room}", files_of(self.place, ROOMS[room].tests, "test_*.py")
        for wait in (False, True):  # first those that no other copy measures now
            for file in files:
                lock = kept.measuring[file]
                if kept.measured(name, file) or not lock.acquire(blocking=wait):
                    continue
                try:
                    if not kept.measured(name, file):
                        kept.keep_measured(name, file, self.seconds_plain(file))
                finally:
                    lock.release()
        seconds = kept.durations(name).get("seconds", {})
        quick = {test for test, value in seconds.items() if value <= QUICK_PLAIN}
        return sorted(test for test in quick if test.partition("::")[0] in files)

    def seconds_plain(self, file: str, each: float = 2 * QUICK_PLAIN) -> dict[str, float]:
        """Seconds of a file's tests that pass without machine code.

        One that takes long ends the process, and the rest run in another.
        """
        found: dict[str, float] = {}
        seen: set[str] = set()
        while True:
            stage = Stage([file], True, without=tuple(seen))
            done = self.pytest(stage, ROOM_LIMIT, each=each, go_on=True)
            found |= {test: value for test, value in done.seconds.items() if test not in done.failures}
            new = (done.seconds.keys() | done.failures) - seen
            if not (done.endless and new):
                return found
            seen |= new


def durations(kept: Kept | None, room: str, plain: bool) -> dict[str, float]:
    """Seconds of the processor for each test, as far as they are known."""
    if kept is None:
        return {}
    return kept.durations(f"plain-{room}").get("seconds", {}) if plain else kept.durations(f"compiled-{room}")


def changed_file(mutation: Mutation | Drawn, root: Path) -> tuple[Path, str]:
    """The file that is changed, and its text then."""
    if isinstance(mutation, Drawn):
        return root / mutation.file, mutation.text(root)
    return source_of(mutation, root), mutated(mutation, root)


def ordered(mutation: Drawn, root: Path, files: list[str], seconds: dict[str, float]) -> list[str]:
    """Files of tests, first those that name what is mutated and are quick."""
    module = mutation.file.removesuffix(".py").replace("/", ".")
    package, _, stem = module.rpartition(".")
    imported = re.compile(rf"{re.escape(module)}\b|from {re.escape(package)} import [^\n]*\b{stem}\b")
    named = re.compile(rf"\b({'|'.join(map(re.escape, mutation.function.split('.')))})\b")
    costs: dict[str, float] = {}
    for test, value in seconds.items():
        file = test.partition("::")[0]
        costs[file] = costs.get(file, 0.0) + value

    def key(file: str) -> float:
        text = (root / file).read_text(encoding="utf-8")
        near = 1 + 10 * bool(imported.search(text)) + 10 * bool(named.search(text)) + 3 * (stem in text)
        return (1.0 + costs.get(file, text.count("\n") / 20)) / near

    return sorted(files, key=key)


def main() -> None:
    """Read the options, run, and say what survived."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="this one, or all of a table or room; repeat")
    parser.add_argument("--drawn", type=int, metavar="N", help="N drawn mistakes in place of the tables")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the drawn mistakes (1)")
    parser.add_argument("--list", action="store_true", help="name them and their tests, and run nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="K", help="how many at once (1)")
    parser.add_argument("--keep", type=Path, default=ROOT / ".mutants", metavar="DIR", help="outcomes (.mutants)")
    parser.add_argument("--again", action="store_true", help="judge what has an outcome too")
    options = parser.parse_args()
    if options.drawn is not None and options.drawn < 1:
        parser.error(f"--drawn: {options.drawn}; give 1 or more")
    if options.keep.exists() and not options.keep.is_dir():
        parser.error(f"--keep: {options.keep} is a file; give a folder")
    known: list[Mutation] | list[Drawn]
    wanted = set(options.only or [])
    rooms = list(wanted) if wanted and wanted <= set(ROOMS) else None
    known = mutations() if options.drawn is None else draw(ROOT, options.drawn, options.seed, rooms)
    chosen = [m for m in known if not wanted or {m.name, m.room} & wanted]
    unknown = [n for n in options.only or [] if not any(n in (m.name, m.room) for m in known)]
    if unknown:
        kind = "no drawn mistake and no room" if options.drawn else "no mutation and no table"
        parser.error(f"--only: {unknown[0]} is {kind}; --list names all")
    if options.jobs < 1:
        parser.error(f"--jobs: {options.jobs}; give 1 or more")
    if options.list:
        for mutation in chosen:
            says = str(mutation) if isinstance(mutation, Drawn) else " ".join(mutation.tests)
            print(f"{mutation.room:<12} {mutation.name:<36} {says}")
        return
    limit = LIMIT if options.drawn is None else ROOM_LIMIT
    run(chosen, options.jobs, limit, options.keep.resolve(), options.again)


def rests_on(mutation: Mutation | Drawn) -> tuple[str, str, list[str]]:
    """Key of an outcome, the mutated file, and the files of tests."""
    if isinstance(mutation, Drawn):
        return f"drawn {mutation.rank}", mutation.file, files_of(ROOT, ROOMS[mutation.room].tests, "test_*.py")
    tests = sorted({test.partition("::")[0] for test in nearest_tests(mutation, ROOT)})
    key = json.dumps([mutation.name, mutation.before, mutation.after, mutation.tests, mutation.plain])
    return key, str(source_of(mutation, ROOT).relative_to(ROOT)), tests


def run(
    chosen: list[Mutation] | list[Drawn], jobs: int, limit: float, keep: Path, again: bool = False
) -> dict[str, Outcome]:
    """Judge them, in so many copies at once; print each as it is known, and the score of each room."""
    outcomes: dict[str, Outcome] = {}
    sound: dict[tuple[str, bool], bool] = {}
    spoken = threading.Lock()
    kept = Kept(keep, ROOT)
    (keep / ".gitignore").write_text("*\n")
    left = []
    for mutation in chosen:
        with contextlib.suppress(Refused):
            key, source, tests = rests_on(mutation)
            found = kept.find(key, source, tests)
            if found is not None and not again:
                outcomes[mutation.name] = found
                continue
        left.append(mutation)
    known = len(outcomes)
    if known:
        print(f"{known} of {len(chosen)} have an outcome already; --again judges them too", flush=True)
    with tempfile.TemporaryDirectory(prefix="fluidcc-mutants-") as name:
        place = Path(name)
        made = [Copy(place / f"copy{k}", keep) for k in range(min(jobs, len(left)))]
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in made:
            copies.put(copy)

        def one(mutation: Mutation | Drawn) -> None:
            copy = copies.get()
            bar((len(outcomes) - known) / len(left), mutation.name)
            try:
                found = copy.judge(mutation, limit, sound, kept)
            finally:
                copies.put(copy)
            with spoken:
                outcomes[mutation.name] = found
                if found.result != REFUSED:
                    key, source, tests = rests_on(mutation)
                    killer = re.sub(r"^no end: |::.*", "", found.text)
                    killers = [killer] if killer in tests else tests
                    survived = found.result == SURVIVED
                    kept.keep(key, found, survived, [source, *(tests if survived else killers)])
                says = f"{mutation}: " if isinstance(mutation, Drawn) else ""
                print(f"{found.result:<8} {mutation.name:<36} {found.seconds:6.1f} s  {says}{found.text}", flush=True)

        with Bar("mutants", len(left), "") as bar, ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(one, left))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                for copy in made:
                    copy.stop()
    for line in table(chosen, outcomes):
        print(line)
    return outcomes


def table(chosen: list[Mutation] | list[Drawn], outcomes: dict[str, Outcome]) -> Iterator[str]:
    """Scores by room, in all, and what survived."""

    def score(of: Callable[[Mutation | Drawn], bool]) -> str:
        results = [outcomes[mutation.name].result for mutation in chosen if of(mutation)]
        killed, refused = results.count(KILLED), results.count(REFUSED)
        return (
            f"{killed} of {len(results)} mutations killed ({killed / len(results):.0%}); {refused} could not be judged"
        )

    yield ""
    rooms = list(dict.fromkeys(mutation.room for mutation in chosen))
    if len(rooms) > 1:
        for room in rooms:
            yield f"{room:<12} {score(lambda mutation, room=room: mutation.room == room)}"
    yield score(lambda _: True)
    for mutation in chosen:
        if outcomes[mutation.name].result == SURVIVED:
            drawn = isinstance(mutation, Drawn)
            says = f"{mutation.room}) {mutation}" if drawn else f"{mutation.room}, {mutation.module}) {mutation.why}"
            yield f"  survived: {mutation.name} ({says}".rstrip()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the copies are removed, what runs is ended
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("mutants: interrupted")
