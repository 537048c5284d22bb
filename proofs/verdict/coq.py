"""Have Coq check all theorems, and ask what each rests on: ``python -m fluidcc.proofs.verdict.coq``, ``make proofs``.

A file that Coq has checked is kept, with the axioms that its theorems rest on, by a hash of it and of those that it
requires: a second run checks what has changed. Without Coq a line says how to install it, and nothing is checked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from fluidcc.progress import Bar
from fluidcc.proofs.verdict.theorems import SUFFIX, Theorem, plain, sources, theorems_of

INSTALL = "apt install coq libcoq-coquelicot"
LIMIT = 300.0  # s for one file
# Of Coq's real numbers, all that a theorem may rest on: not the excluded middle, nor the processor's floats.
OF_REALS = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
    }
)
# Words with which a file would state what nobody has proved.
FORBIDDEN = re.compile(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Unset\s+Guard\s+Checking|bypass_check)\b")


class UnprovedError(Exception):
    """A file that Coq refuses, or a theorem that rests on more than is allowed."""


class Checked(NamedTuple):
    """A file that Coq has checked, in this run or in an earlier one."""

    theorems: list[Theorem]
    axioms: frozenset[str]  # on which they rest, with their modules' names
    seconds: float


def required(text: str) -> list[str]:
    """List the modules of this project that a Coq file requires, such as ``hpcc.network``."""
    found = re.findall(r"From\s+fluidcc\.(\w+)\s+Require\s+(?:Import|Export)\s+([\w\s]+?)\.", plain(text))
    return [f"{folder}.{name}" for folder, names in found for name in names.split()]


def in_order(texts: dict[str, str]) -> list[str]:
    """Sort modules such that each comes after those that it requires."""
    return list(TopologicalSorter({name: required(text) for name, text in texts.items()}).static_order())


def forbidden(texts: dict[str, str]) -> list[str]:
    """List the places that state something without a proof, such as ``hpcc.pareto: Admitted``."""
    return [f"{name}: {word}" for name, text in texts.items() for word in FORBIDDEN.findall(plain(text))]


def check(folder: Path, coqc: str) -> dict[str, Checked]:
    """Check all files and ask what their theorems rest on.

    Parameters
    ----------
    folder : Path
        For checked files; kept between runs.
    coqc : str

    Returns
    -------
    dict of Checked
        By module.

    Raises
    ------
    UnprovedError
        With the file, and what Coq says.
    """
    texts = sources()
    if found := forbidden(texts):
        raise UnprovedError(f"stated without a proof: {', '.join(found)}")
    hashes = _hashes(texts, subprocess.run([coqc, "--version"], capture_output=True, text=True, check=True).stdout)
    record = folder / "checked.json"
    kept: dict[str, dict[str, Any]] = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    paths = {module: folder.joinpath(*module.split(".")).with_suffix(SUFFIX) for module in hashes}
    found_in = {module: theorems_of(module, text) for module, text in texts.items()}

    def is_kept(module: str) -> bool:
        one = kept.get(module, {})
        return one.get("hash") == hashes[module] and "axioms" in one and paths[module].with_suffix(".vo").is_file()

    if due := [module for module in hashes if not is_kept(module)]:
        with Bar("proofs", len(due), "files") as bar:
            for done, module in enumerate(due, 1):
                paths[module].parent.mkdir(parents=True, exist_ok=True)
                paths[module].write_text(texts[module], encoding="utf-8")
                begin = time.monotonic()
                _coq(coqc, folder, paths[module])
                axioms = _axioms(coqc, folder, module, found_in[module])
                kept[module] = {"hash": hashes[module], "seconds": time.monotonic() - begin, "axioms": axioms}
                record.write_text(json.dumps(kept, indent=1), encoding="utf-8")
                bar(done / len(due))
    for module, own in found_in.items():
        if not OF_REALS.issuperset(kept[module]["axioms"]):  # which of them is it?
            for theorem in own:
                if extra := set(_axioms(coqc, folder, module, [theorem])) - OF_REALS:
                    raise UnprovedError(f"{theorem.name} rests on {', '.join(sorted(extra))}")
    return {
        module: Checked(own, frozenset(kept[module]["axioms"]), kept[module]["seconds"])
        for module, own in found_in.items()
    }


def _hashes(texts: dict[str, str], version: str) -> dict[str, str]:
    """Hash each file together with those that it requires, in an order in which Coq can check them."""
    found: dict[str, str] = {}
    for module in in_order(texts):
        parts = (version, texts[module], *(found[name] for name in required(texts[module])))
        found[module] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return found


def _axioms(coqc: str, folder: Path, module: str, own: list[Theorem]) -> list[str]:
    """Ask for the axioms of theorems of a file, all at once: Coq walks through all that is below for each question."""
    if not own:
        return []
    asked = folder / f"asked{SUFFIX}"
    proofs = ", ".join(f"@fluidcc.{theorem.name}" for theorem in own)
    lines = (
        f"Require fluidcc.{module}.",
        f"Definition proofs := ({proofs}).",
        f'Goal True. idtac "theorem {module}". exact I. Qed.',
        "Print Assumptions proofs.",
    )
    asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = axioms_in(_coq(coqc, folder, asked))
    if module not in found:
        raise UnprovedError(f"{module}: Coq did not say what its theorems rest on")
    return list(found[module])


def axioms_in(printed: str) -> dict[str, tuple[str, ...]]:
    """Read Coq's answers: full names of axioms by theorem, or by file."""
    found: dict[str, tuple[str, ...]] = {}
    for block in printed.split("theorem ")[1:]:
        name, _, answer = block.partition("\n")
        if "Closed under the global context" in answer:
            found[name.strip()] = ()
        elif "Axioms:" in answer:
            found[name.strip()] = tuple(re.findall(r"^([\w.]+)\s*(?::|$)", answer.partition("Axioms:")[2], re.M))
    return found


def _coq(coqc: str, folder: Path, path: Path) -> str:
    try:
        ran = subprocess.run(
            [coqc, "-q", "-Q", ".", "fluidcc", str(path.relative_to(folder))],
            cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnprovedError(f"{path.relative_to(folder)}: not checked within {LIMIT:.0f} s") from None
    if ran.returncode:
        raise UnprovedError(f"{path.relative_to(folder)}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout


def main() -> int:
    """Check all, print a table by file; exit status 1 if something is not proved."""
    parser = argparse.ArgumentParser(prog="python -m fluidcc.proofs.verdict.coq", description=main.__doc__)
    parser.add_argument(
        "--kept", type=Path, default=Path("build/proofs"), metavar="DIR", help="checked files (%(default)s)"
    )
    kept = parser.parse_args().kept
    coqc = shutil.which("coqc")
    if coqc is None:
        print(f"proofs: skipped, for Coq is not installed here; on Debian: {INSTALL}")
        return 0
    try:
        checked = check(kept, coqc)
    except UnprovedError as error:
        print(f"proofs: {error}", file=sys.stderr)
        return 1
    texts = sources()
    print(f"{'file':24} {'lines':>5} {'theorems':>8} {'seconds':>7}  rests on")
    for module, own in checked.items():
        rests = "the axioms of the reals" if own.axioms else "nothing" if own.theorems else ""
        lines = texts[module].count("\n")
        print(f"{module:24} {lines:5} {len(own.theorems):8} {own.seconds:7.1f}  {rests}".rstrip())
    count = sum(len(own.theorems) for own in checked.values())
    lines = sum(text.count("\n") for text in texts.values())
    seconds = sum(own.seconds for own in checked.values())
    print(f"{count} theorems proved, in {lines} lines; {seconds:.0f} s of Coq where nothing is kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
