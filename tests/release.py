"""Is it fit to be released? Build sdist and wheel, install the wheel in a clean environment, run it and its tests.

    python -m tests.release               offline: other packages are those of this environment
    python -m tests.release --fresh       every package of requirements.lock anew, from the index
    python -m tests.release --all         all tests that are not slow, in place of a few folders of them

The wheel is built of the unpacked sdist, so that what the sdist lacks shows. Both stay in dist/.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
FEW = ("tests/scenario", "tests/results", "tests/cli/test_exit_codes.py", "tests/cli/test_completion.py")
# Of the sources as a checkout has them, which are no part of what is installed.
OF_THE_CHECKOUT = ("tests/test_imports.py", "tests/test_mutants.py", "tests/compiling/test_folder.py")
# Where this machine keeps things: nothing of that may be in a wheel.
PLACES = re.compile("|".join([*map(re.escape, {str(ROOT), sys.prefix}), r"/home/\w", r"/Users/\w"]).encode())
_T = TypeVar("_T")


class UnfitError(Exception):
    """What keeps it from being released."""


def build(kind: str, source: Path, to: Path) -> Path:
    """Build an sdist or a wheel of a folder, by the backend that pyproject.toml names."""
    call([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", to], cwd=source)
    (built,) = to.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def unpack(sdist: Path, to: Path) -> Path:
    """The folder that an sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(to, filter="data")
    (folder,) = to.iterdir()
    return folder


def check_wheel(wheel: Path, source: Path) -> str:
    """The package whole, and nothing else; metadata that an index takes, and that say what pyproject.toml says.

    Raises
    ------
    UnfitError
        If something is missing, too much, or speaks of this machine.
    """
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    info = next(name.partition("/")[0] for name in contents if name.partition("/")[0].endswith(".dist-info"))
    mine = {name for name in contents if not name.startswith(f"{info}/")}
    wanted = {
        str(path.relative_to(source))
        for folder in ("", "proofs")  # which is a link in a checkout
        for path in (source / "fluidcc" / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    if mine != wanted:
        raise UnfitError(f"the wheel lacks {sorted(wanted - mine)[:5]} and has {sorted(mine - wanted)[:5]} too much")
    if "fluidcc/py.typed" not in mine:
        raise UnfitError("the wheel has no py.typed")
    spoken = [f"{name}: {found[0].decode()}" for name, text in contents.items() if (found := PLACES.search(text))]
    if spoken:
        raise UnfitError(f"places of this machine: {spoken[:5]}")
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = Metadata.from_email(contents[f"{info}/METADATA"], validate=True)
    said = {
        "name": metadata.name,
        "version": str(metadata.version),
        "license": metadata.license_expression,
        "requires-python": str(metadata.requires_python),
        "description": metadata.summary,
    }
    differ = {key: (value, project[key]) for key, value in said.items() if value != project[key]}
    if differ:
        raise UnfitError(f"metadata differ from pyproject.toml: {differ}")
    if set(metadata.provides_extra or ()) != set(project["optional-dependencies"]):
        raise UnfitError("extras differ from pyproject.toml")
    if f"{info}/licenses/LICENSE" not in contents or not metadata.description:
        raise UnfitError("LICENSE or the README are not in the wheel")
    return f"{len(mine)} files, {wheel.stat().st_size / 1e6:.1f} MB"


def environment(wheel: Path, folder: Path, fresh: bool) -> Path:
    """The interpreter of a clean environment with the wheel, and other packages anew or from here."""
    call([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python", python, "install"]
    if fresh:
        call([*pip, "--quiet", "--require-hashes", "--requirement", ROOT / "requirements.lock"])
    else:
        # A folder on a .pth line has no .pth lines of its own read: the editable install that it holds stays out.
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    call([*pip, "--quiet", "--no-deps", "--no-index", wheel])
    return python


def check_runs(python: Path, folder: Path) -> str:
    """The command of the environment, from a folder with nothing of ours.

    Raises
    ------
    UnfitError
        If it is not the wheel's, or answers something else than it should.
    """
    where = call([python, "-c", "import fluidcc; print(fluidcc.__file__)"], cwd=folder).strip()
    if not where.startswith(str(python.parents[1])):
        raise UnfitError(f"fluidcc is imported from {where}, not from the wheel")
    version = call([python.parent / "fluidcc", "--version"], cwd=folder).strip()
    options = ["--until", "10ms", "--plot", "queue.png", "--json"]
    found = json.loads(call([python.parent / "fluidcc", "simulate", "dcqcn", *options], cwd=folder))
    # Two flows that begin alike stay so, and cut their rates before they take the link again.
    if not (
        found["jain"] > 0.999 and 0.4 < found["utilisation"] <= 1 and (folder / "queue.png").stat().st_size > 10_000
    ):
        raise UnfitError(f"simulate answers {found}")
    return version


def check_proofs(python: Path, folder: Path) -> str:
    """A claim and a figure of the papers, which lie elsewhere in a checkout.

    Raises
    ------
    UnfitError
        If one is not there, or comes out otherwise.
    """
    command = python.parent / "fluidcc"
    listed = json.loads(call([command, "verify", "--list", "--json"], cwd=folder))["claims"]
    (claim,) = json.loads(call([command, "verify", "hpccpp-ai", "--json"], cwd=folder))["claims"]
    figure = json.loads(call([command, "reproduce", "hpcc-fig13", "--quick", "--json"], cwd=folder))
    if len(listed) < 100 or claim["verdict"] != "false-as-printed" or not figure["agrees"]:
        raise UnfitError(f"{len(listed)} claims; {claim}; {figure}")
    return f"{len(listed)} claims, {figure['name']} agrees"


def check_demo(python: Path, source: Path, folder: Path) -> str:
    """The demo on one sample, with few evaluations.

    Raises
    ------
    UnfitError
        If it writes no page.
    """
    examples = source / "examples"
    call([python, examples / "demo.py", examples / "leaf-100g", "--evaluations", "24", "--out", folder], cwd=folder)
    pages = [str(path.relative_to(folder)) for path in folder.rglob("report.html")]
    if not pages:
        raise UnfitError("the demo wrote no report.html")
    return ", ".join(pages)


def check_tests(python: Path, source: Path, folder: Path, everything: bool) -> str:
    """The sdist's tests without the sdist's package, so that they can import none but the wheel's."""
    shutil.copytree(source, folder, ignore=lambda at, names: {"fluidcc"} if Path(at) == source else set())
    chosen = [f"--ignore={each}" for each in OF_THE_CHECKOUT] if everything else FEW
    said = call([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen], cwd=folder)
    return said.strip().splitlines()[-1]


def call(command: Sequence[object], cwd: Path | None = None) -> str:
    """What a command prints.

    Raises
    ------
    UnfitError
        If it fails, with the end of what it said.
    """
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        words = " ".join(Path(str(word)).name for word in command[:5])
        raise UnfitError(f"{words} ... ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def main() -> int:
    """Run it; exit status 1 if it is not fit."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--fresh", action="store_true", help="packages of requirements.lock from the index")
    parser.add_argument("--all", action="store_true", help="all tests that are not slow; some twenty minutes")
    given = parser.parse_args()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as temporary:
        there = Path(temporary)
        for name in ("sdist", "runs", "demo"):
            (there / name).mkdir()
        try:
            sdist = step("sdist", lambda: build("sdist", ROOT, DIST), str)
            source = step("unpacked", lambda: unpack(sdist, there / "sdist"), lambda path: path.name)
            wheel = step("wheel", lambda: build("wheel", source, DIST), str)
            step("contents", lambda: check_wheel(wheel, source))
            python = step("environment", lambda: environment(wheel, there / "env", given.fresh), lambda _: "clean")
            step("command", lambda: check_runs(python, there / "runs"))
            step("proofs", lambda: check_proofs(python, there / "runs"))
            step("demo", lambda: check_demo(python, source, there / "demo"))
            step("tests", lambda: check_tests(python, source, there / "tests", given.all))
        except UnfitError as error:
            print(f"NOT FIT: {error}")
            return 1
    print(f"fit: {sdist.name} and {wheel.name} in dist/")
    return 0


def step(name: str, work: Callable[[], _T], shown: Callable[[_T], str] = str) -> _T:
    """Do a part, and say what came of it and how long it took."""
    began = time.perf_counter()
    print(f"{name:12}", end="", flush=True)
    result = work()
    print(f"{time.perf_counter() - began:6.1f} s  {shown(result)}", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
