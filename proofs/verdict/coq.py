"""Have Coq check all theorems, and ask what each rests on: ``python -m fluidcc.proofs.verdict.coq``, ``make proofs``.

A file that Coq has checked is kept by a hash of it and of those that it requires, so that a second run checks what has
changed. Without Coq a line says how to install it, and nothing is checked.
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
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from fluidcc.progress import Bar
from fluidcc.proofs.verdict.theorems import SUFFIX, Theorem, plain, sources, theorems

INSTALL = "apt install coq libcoq-coquelicot libcoq-interval"
LIMIT = 300.0  # s for one file
# Of Coq's real numbers. Statements on numbers alone may also rest on what Coq's `interval` uses: the processor's whole
# numbers and floats, and the excluded middle.
OF_REALS = frozenset({"sig_forall_dec", "sig_not_dec", "functional_extensionality_dep"})
OF_INTERVALS = re.compile(r"^(?:PrimInt63|Uint63|Sint63|PrimFloat|FloatAxioms|FloatOps|Classical_Prop)\.")
# Words with which a file would state what nobody has proved.
FORBIDDEN = re.compile(r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|Unset\s+Guard\s+Checking|bypass_check)\b")


class UnprovedError(Exception):
    """A file that Coq refuses, or a theorem that rests on more than is allowed."""


class Checked(NamedTuple):
    """A theorem that Coq has checked: the axioms that it rests on, without their modules' names where of the reals."""

    theorem: Theorem
    axioms: tuple[str, ...]


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


def not_allowed(theorem: Theorem, axioms: Iterable[str]) -> list[str]:
    """List the axioms that a theorem may not rest on.

    Parameters
    ----------
    theorem : Theorem
    axioms : iterable of str
        Full names, as Coq prints them.
    """
    numeric = "forall" not in theorem.statement
    return [
        name
        for name in axioms
        if name.rpartition(".")[2] not in OF_REALS and not (numeric and OF_INTERVALS.match(name))
    ]


def check(folder: Path, coqc: str) -> tuple[list[Checked], dict[str, float]]:
    """Check all files and ask what each theorem rests on.

    Parameters
    ----------
    folder : Path
        For checked files; kept between runs.
    coqc : str

    Returns
    -------
    list of Checked
    dict of float
        Seconds by module, of this run or of that which checked it.

    Raises
    ------
    UnprovedError
        With the file, and what Coq says.
    """
    texts = sources()
    if found := forbidden(texts):
        raise UnprovedError(f"stated without a proof: {', '.join(found)}")
    version = subprocess.run([coqc, "--version"], capture_output=True, text=True, check=True).stdout
    record = folder / "checked.json"
    kept = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    hashes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    with Bar("proofs", len(texts), "files") as bar:
        for done, module in enumerate(in_order(texts), 1):
            parts = (version, texts[module], *(hashes[name] for name in required(texts[module])))
            hashes[module] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
            path = folder.joinpath(*module.split(".")).with_suffix(SUFFIX)
            if kept.get(module, {}).get("hash") != hashes[module] or not path.with_suffix(".vo").is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(texts[module], encoding="utf-8")
                begin = time.monotonic()
                _coq(coqc, folder, path)
                kept[module] = {"hash": hashes[module], "seconds": time.monotonic() - begin}
                record.write_text(json.dumps(kept, indent=1), encoding="utf-8")
            seconds[module] = kept[module]["seconds"]
            bar(done / len(texts))
    return _assumptions(coqc, folder, list(texts)), seconds


def _assumptions(coqc: str, folder: Path, modules: list[str]) -> list[Checked]:
    """Ask for the axioms of each theorem, in one run of Coq."""
    asked = folder / f"assumptions{SUFFIX}"
    lines = [f"Require fluidcc.{module}." for module in modules]
    for name in theorems():
        lines += [f'Goal True. idtac "theorem {name}". exact I. Qed.', f"Print Assumptions fluidcc.{name}."]
    asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = axioms_in(_coq(coqc, folder, asked))
    checked = []
    for name, theorem in theorems().items():
        if name not in found:
            raise UnprovedError(f"{name}: Coq did not say what it rests on")
        if extra := not_allowed(theorem, found[name]):
            raise UnprovedError(f"{name} rests on {', '.join(extra)}")
        checked.append(Checked(theorem, found[name]))
    return checked


def axioms_in(printed: str) -> dict[str, tuple[str, ...]]:
    """Read Coq's answers: full names of axioms by theorem."""
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
        checked, seconds = check(kept, coqc)
    except UnprovedError as error:
        print(f"proofs: {error}", file=sys.stderr)
        return 1
    print(f"{'file':24} {'lines':>5} {'theorems':>8} {'seconds':>7}  rests on")
    for module, text in sources().items():
        own = [one for one in checked if one.theorem.name.rpartition(".")[0] == module]
        axioms = {name for one in own for name in one.axioms}
        rests = " and ".join(
            said
            for said, some in (
                ("the axioms of the reals", any(name.rpartition(".")[2] in OF_REALS for name in axioms)),
                ("interval arithmetic", any(OF_INTERVALS.match(name) for name in axioms)),
            )
            if some
        )
        print(f"{module:24} {text.count(chr(10)):5} {len(own):8} {seconds[module]:7.1f}  {rests or 'nothing'}")
    lines = sum(text.count("\n") for text in sources().values())
    print(
        f"{len(checked)} theorems proved, in {lines} lines; {sum(seconds.values()):.0f} s of Coq where nothing is kept"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
