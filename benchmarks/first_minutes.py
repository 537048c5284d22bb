"""Times of each command of the page of first minutes, with an empty cache and again.

``python -m benchmarks.first_minutes`` writes docs/start/first_minutes.md; ``--no-write`` only prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "start" / "first_minutes.md"
PART = re.compile(r"```sh\n(.*?)```\n\n<!-- (\w+): begin -->\n(.*?)<!-- \w+: end -->", re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """Commands of a block of shell, as words without the program."""
    lines = [line for line in block.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [shlex.split(line)[1:] for line in lines]


def spent(words: list[str], folder: Path) -> tuple[float, float]:
    """Wall time and processors' time of a command in a folder, whose ``cache`` it uses [s].

    Raises
    ------
    RuntimeError
        If it fails; a difference between engines (1) is an answer.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    values = os.environ | {"FLUIDCC_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    began = time.perf_counter()
    done = subprocess.Popen(
        [sys.executable, "-m", "fluidcc", *words],
        cwd=folder,
        env=values,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"fluidcc {' '.join(words)}: exit code {done.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def table(block: str) -> str:
    """Run a block's commands twice, from an empty cache, and make a table of their times."""
    rows = ["| command | cold (processors) | warm (processors) |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")
        todo = commands(block)
        cold, warm = ([spent(words, folder) for words in todo] for _ in range(2))
    for words, first, again in zip(todo, cold, warm, strict=True):
        rows.append(f"| `{words[0]}` | {_shown(first)} | {_shown(again)} |")
    return "\n".join(rows) + "\n"


def _shown(times: tuple[float, float]) -> str:
    return f"{times[0]:.0f} s ({times[1]:.0f} s)" if times[0] >= 10 else f"{times[0]:.1f} s ({times[1]:.1f} s)"


def main() -> None:
    """Measure all parts, print their tables, and write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--no-write", action="store_true", help="leave the page as it is")
    given = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    for block, part, old in PART.findall(text):
        made = table(block)
        print(f"{part}\n{made}", flush=True)
        text = text.replace(
            f"<!-- {part}: begin -->\n{old}<!-- {part}: end -->",
            f"<!-- {part}: begin -->\n{made}<!-- {part}: end -->",
        )
    if not given.no_write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
