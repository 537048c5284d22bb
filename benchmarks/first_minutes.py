"""Time of each command of the page of first minutes, with an empty cache and again.

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


def seconds(words: list[str], folder: Path) -> float:
    """Wall time of a command in a folder, whose ``cache`` it uses [s].

    Raises
    ------
    subprocess.CalledProcessError
        If it fails; a difference between engines (1) is an answer.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    values = os.environ | {"FLUIDCC_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "fluidcc", *words], cwd=folder, env=values, capture_output=True)
    if done.returncode not in (0, 1):
        done.check_returncode()
    return time.perf_counter() - began


def table(block: str) -> str:
    """Run a block's commands twice, from an empty cache, and make a table of their times."""
    rows = ["| command | cold | warm |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")
        todo = commands(block)
        cold = [seconds(words, folder) for words in todo]
        warm = [seconds(words, folder) for words in todo]
    rows += [
        f"| `{words[0]}` | {first:.1f} s | {again:.1f} s |"
        for words, first, again in zip(todo, cold, warm, strict=True)
    ]
    return "\n".join(rows) + "\n"


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
