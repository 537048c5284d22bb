"""The commands and samples of Python that README and the documentation print, page by page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "proofs" / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & set(path.parts)),
]
_STARTS = r"(?:\.venv/bin/)?(?:fluidcc|python -m|pytest)"
# What stands for something that the reader puts in.
_PLACEHOLDER = re.compile(r"(?<![\w.])(?:NAME|FILE|FILE\.\w+|SCHEME|COMMAND|DIR|N|K)(?![\w=])|\.\.\.|…")

# Of what takes minutes, less: what is given twice counts the second time. `tests/cli/test_demo.py` tunes with packets.
LESS = {
    "tune": ["--evaluations", "4", "--seeds", "1", "--packets", "0", "--sensitivity", "0", "--until", "5ms"],
    "race": ["--evaluations", "4", "--until", "200us"],  # `tune` on a whole fabric
    "fabric": ["--seeds", "1"],
    "collective": ["--seeds", "1"],
    "audit": ["--packets", "0"],
    "fit": ["--runs", "200"],
}


class Printed(NamedTuple):
    """A command as a page prints it, without prompt and comment; whether it stands alone in a block."""

    page: Path
    text: str
    block: bool

    @property
    def words(self) -> list[str]:
        """As the shell splits it, the path of the program left out; what is in brackets is an option, taken along."""
        text = self.text.replace("\\|", "|").replace(" [", " ").replace("]", "")
        return shlex.split(text.removeprefix(".venv/bin/"))

    @property
    def is_template(self) -> bool:
        """Whether the reader has to put something in."""
        return bool(_PLACEHOLDER.search(self.text)) or "$" in self.text or len(self.words) < 2


def less_of(words: list[str]) -> list[str]:
    """Options that a command takes less time with."""
    return LESS.get("race" if words[1] == "tune" and "--workload" in words else words[1], [])


def commands(page: Path) -> list[Printed]:
    """Commands of fluidcc, Python's modules and pytest, in the order of the page, each once."""
    text = page.read_text(encoding="utf-8")
    found: dict[str, Printed] = {}
    blocks = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    for block in [*blocks.findall(text), *re.findall(rf"^    {_STARTS} .*$", text, re.MULTILINE)]:
        for line in block.replace("\\\n", " ").splitlines():
            one = " ".join(re.sub(r"\s#\s.*", "", line).split())
            if re.match(rf"{_STARTS} ", one):
                found.setdefault(one, Printed(page, one, True))
    for one in re.findall(rf"`({_STARTS} [^`\n]+)`", blocks.sub("", text)):
        found.setdefault(one, Printed(page, one, False))
    return list(found.values())


def samples(page: Path) -> list[str]:
    """Blocks of Python, in the order of the page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
