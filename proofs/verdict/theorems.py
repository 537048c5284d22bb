"""Theorems that Coq checks: read from ``proofs/PAPER/*.v``, where each stands below a comment that says it in words."""

from __future__ import annotations

import dataclasses
import importlib
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

# A comment for readers, and the theorem below it up to its proof.
_THEOREM = re.compile(
    r"\(\*\*\s+(?P<says>(?:(?!\*\)).)*?)\s*\*\)\s*Theorem\s+(?P<name>\w+)(?P<statement>.*?)\.\s*Proof", re.S
)
_CLAIMS = re.compile(r"\s*Claims?:\s*(?P<names>[\w\s,-]+?)\.?\s*$")
_COMMENT = re.compile(r"\(\*.*?\*\)", re.S)
SUFFIX = ".v"


@dataclasses.dataclass(frozen=True)
class Theorem:
    """A statement that Coq checks for all networks or parameters.

    Parameters
    ----------
    name : str
        Paper's folder, file and theorem, such as ``hpcc.pareto.loads_fit``.
    says : str
        In plain words, with the paper's section.
    statement : str
        In Coq's language, without its name.
    claims : tuple of str
        Claims that it proves, or whose conditions or correction it proves.
    """

    name: str
    says: str
    statement: str
    claims: tuple[str, ...] = ()


@cache
def sources() -> dict[str, str]:
    """Read all Coq files: texts by module, such as ``hpcc.pareto``."""
    found = {}
    for folder in sorted(_home().iterdir(), key=lambda each: each.name):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda each: each.name):
                if file.name.endswith(SUFFIX):
                    found[f"{folder.name}.{file.name.removesuffix(SUFFIX)}"] = file.read_text(encoding="utf-8")
    return found


@cache
def theorems() -> dict[str, Theorem]:
    """List all theorems by name, in the order of files and lines."""
    return {one.name: one for module, text in sources().items() for one in theorems_of(module, text)}


def theorems_of(module: str, text: str) -> list[Theorem]:
    """Read the theorems of a file.

    Parameters
    ----------
    module : str
        Such as ``hpcc.pareto``.
    text : str

    Raises
    ------
    ValueError
        For a theorem without a comment before it, or one that ends otherwise than in ``Proof``.
    """
    found = []
    for match in _THEOREM.finditer(text):
        words = " ".join(match["says"].split())
        claims = _CLAIMS.search(words)
        names = tuple(re.split(r"[\s,]+", claims["names"])) if claims else ()
        says = words[: claims.start()] if claims else words
        found.append(Theorem(f"{module}.{match['name']}", says, " ".join(match["statement"].split()), names))
    read = {one.name.rpartition(".")[2] for one in found}
    if lost := [name for name in re.findall(r"^\s*Theorem\s+(\w+)", plain(text), re.M) if name not in read]:
        raise ValueError(f"{module}: {lost[0]} has no comment (** ... *) right before it, or no Proof after it")
    return found


def plain(text: str) -> str:
    """Return a Coq file's text without its comments."""
    while (shorter := _COMMENT.sub(" ", text)) != text:
        text = shorter
    return text


def proof_of(claim: str) -> str | None:
    """Name the theorem that proves a claim, or its conditions or correction; None if there is none."""
    return next((one.name for one in theorems().values() if claim in one.claims), None)


def _home() -> Traversable:
    return files(importlib.import_module("fluidcc.proofs"))
