"""Tests of the theorems that Coq checks: what they rest on, which claims they name, and that they say what runs do."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.proofs.verdict import coq
from fluidcc.proofs.verdict.claim import Claim, Finding
from fluidcc.proofs.verdict.registry import homes
from fluidcc.proofs.verdict.theorems import Theorem, proof_of, sources, theorems, theorems_of
from tests.proofs.coq_statements import holds

NETWORKS, STEPS = 1000, 4
# A theorem of HPCC's A.2, and what makes too much of it: it must be false on one of the networks.
TOO_MUCH = {
    "pareto.load_at_most_capacity": ("(1 <= n)", "(0 <= n)"),
    "pareto.utilisation_at_most_one": ("<= 1", "< 1"),
    "pareto.highest_at_most_one": ("(1 <= n)", "(0 <= n)"),
    "pareto.rates_never_fall": ("rate n j <= rate", "rate n j < rate"),
    "pareto.room_shrinks_geometrically": ("^ (n - 1)", "^ n"),
    "saturation.saturates_iff_busiest_on_its_paths": (
        "(forall j, (j < paths)%nat -> crosses i j = true ->",
        "(exists j, (j < paths)%nat /\\ crosses i j = true /\\",
    ),
    "saturation.busiest_link_saturates": ("utilisation n i <= utilisation n k", "0 <= utilisation n k"),
    "saturation.saturated_link_stays_saturated": ("(1 <= n)", "(0 <= n)"),
    "saturation.rates_through_saturated_link_stay": ("crosses i j = true ->", ""),
    "saturation.link_with_frozen_path_never_saturates": ("crosses i j = true ->", ""),
    "saturation.rates_on_the_same_links_keep_their_ratio": (
        "(forall i, (i < links)%nat -> crosses i a = crosses i b) ->",
        "",
    ),
}


def names_of(A: np.ndarray, C: list[Fraction], rates: np.ndarray) -> dict[str, Any]:
    """Give the names of HPCC's Coq files their meaning in a run: rates (steps + 1, paths)."""
    links, paths = A.shape

    def load(n: int, i: int) -> Fraction:
        return sum((rates[n][j] for j in range(paths) if A[i, j]), Fraction(0))

    def utilisation(n: int, i: int) -> Fraction:
        return load(n, i) / C[i]

    def highest(n: int, j: int) -> Fraction:
        return max(utilisation(n, i) for i in range(links) if A[i, j])

    return {
        "links": links,
        "paths": paths,
        "crosses": lambda i, j: bool(A[i, j]),
        "capacity": lambda i: C[i],
        "start": lambda j: rates[0][j],
        "used": lambda i: bool(A[i].any()),
        "widest": lambda j: max(C[i] for i in range(links) if A[i, j]),
        "rate": lambda n, j: rates[n][j],
        "S": lambda n: n + 1,
        **{one.__name__: functools.cache(one) for one in (load, utilisation, highest)},
    }


def domains_of(known: dict[str, Any]) -> dict[str, Iterable[int]]:
    """Ranges of the variables of these statements: steps n and p, links i and k, paths j, a and b."""
    steps, links, paths = range(STEPS), range(known["links"]), range(known["paths"])
    return {"n": steps, "p": steps, "i": links, "k": links, "j": paths, "a": paths, "b": paths}


@functools.cache
def runs() -> list[dict[str, Any]]:
    """Random networks of up to three links and paths, each run exactly."""
    random, found = np.random.default_rng(2019), []
    while len(found) < NETWORKS:
        links, paths = random.integers(1, 4, 2)
        A = (random.random((links, paths)) < 0.6).astype(int)
        if not A.any(axis=0).all():
            continue
        C = [Fraction(int(each)) for each in random.integers(1, 6, links)]
        start = [Fraction(int(each), 2) for each in random.integers(1, 9, paths)]
        found.append(names_of(A, C, fc.theory.pareto(A, C, start, steps=STEPS, exact=True).rates))
    return found


def true_of(statement: str) -> Iterator[bool]:
    """Evaluate a statement on every network."""
    return (holds(statement, known, domains_of(known)) for known in runs())


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_theorem_holds_on_random_networks_and_a_stronger_one_does_not(name: str) -> None:
    """Notice definitions in Coq that are not the recursion's, and premises that no network meets."""
    statement, (old, new) = theorems()[f"hpcc.{name}"].statement, TOO_MUCH[name]
    assert all(true_of(statement))
    assert statement.count(old) == 1
    assert not all(true_of(statement.replace(old, new)))


def test_the_counterexample_of_lemma_iii_is_one_in_a_run() -> None:
    """Notice numbers of the two links that are not the recursion's."""
    A, C = np.array([[1, 1], [0, 1]]), [Fraction(3), Fraction(1)]
    known = names_of(A, C, fc.theory.pareto(A, C, [1, 1], steps=4, exact=True).rates)
    for name in ("growing_rate", "frozen_rate", "growing_rate_never_constant", "shared_link_never_saturates"):
        assert holds(theorems()[f"hpcc.counterexample.{name}"].statement, known, domains_of(known))
    for name in ("rate_after_two_steps", "rate_after_three_steps"):
        assert holds(theorems()[f"hpcc.counterexample.{name}"].statement, known, {})
    printed = ": forall n j, (links <= n)%nat -> (j < paths)%nat -> rate n j = rate links j"
    assert not holds(printed, known, domains_of(known))


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        ("(n : nat) : 1 <= n -> 2 * n - 1 = n + (n - 1)", True),
        (": forall n, n ^ 2 <= 9 /\\ ~ n < 0", True),
        (": exists n, n = 4", False),
        (": forall n, (exists k, k = n + 1) <-> n < 3", True),
        (": forall n, n < 3 -> exists k, total (fun j => j * k) = 6 * (n + 1)", True),
        (": - 2 ^ 2 = 0 - 4 /\\ / 2 = 1 / 2 /\\ 1 < 2 <= 2", True),
    ],
)
def test_statements_are_read_as_coq_reads_them(statement: str, true: bool) -> None:
    """Notice wrong precedence, a quantifier that ends too early, or a connective that is another."""
    domains = {"n": range(4), "k": range(4)}
    assert holds(statement, {"total": lambda f: f(1) + f(2) + f(3)}, domains) is true


def test_what_cannot_be_read_is_refused() -> None:
    """Notice a statement that is cut off without a word."""
    for statement in (": 1 < 2 ]", ": 1 < 2 2 &", "no colon"):
        with pytest.raises(ValueError, match=r"cannot read|no colon|expected"):
            holds(statement, {}, {})


def test_theorems_name_claims_that_exist_each_once() -> None:
    """Notice a claim that was renamed, and two theorems for one."""
    named = [claim for one in theorems().values() for claim in one.claims]
    assert named
    assert not set(named) - set(homes("claim"))
    assert len(named) == len(set(named))


def test_a_claim_says_what_proves_it() -> None:
    """Notice a theorem that is lost on the way to ``fluidcc verify --json``, where null means none."""
    claims = [Claim(name, "", "", "", lambda: Finding({}, {})) for name in ("hpcc-a2-rate", "hpcc-51-wai")]
    said = [one.as_dict()["proved_by"] for one in claims]
    assert said == ["hpcc.pareto.room_shrinks_geometrically", None]
    assert proof_of("hpcc-a2-rate") == said[0]


def test_no_file_states_what_it_does_not_prove() -> None:
    """Notice Admitted and its kind, also beside comments, and the names of things that only look like it."""
    assert coq.forbidden(sources()) == []
    text = "(* Admitted. *) Theorem x : 1 = 2.\nProof. admit. Admitted.\nAxiom y : False. (* Parameter *)"
    assert coq.forbidden({"paper.file": text}) == [f"paper.file: {word}" for word in ("admit", "Admitted", "Axiom")]


def test_files_come_after_what_they_require() -> None:
    """Notice an order in which Coq does not find a file, and a change that leaves a dependent file kept."""
    texts = {
        "b.two": "From fluidcc.a Require Import one three.",
        "a.one": "From fluidcc.a Require Export three.",
        "a.three": "",
    }
    assert coq.in_order(texts) == ["a.three", "a.one", "b.two"]


def test_a_theorem_without_words_is_refused() -> None:
    """Notice a theorem that no reader could find."""
    good = "(** Says. Claims: a-1, b-2. *)\nTheorem one (n : nat) : n = n.\nProof. reflexivity. Qed."
    assert theorems_of("paper.file", good) == [Theorem("paper.file.one", "Says.", "(n : nat) : n = n", ("a-1", "b-2"))]
    with pytest.raises(ValueError, match="two has no comment"):
        theorems_of("paper.file", good + "\nTheorem two : 1 = 1.\nProof. reflexivity. Qed.")


def test_the_answers_of_coq_are_read() -> None:
    """Notice an axiom that is passed over because its type stands on the next line."""
    first, second = (
        "p.f.one\nClosed under the global context\n",
        "p.f.two\nAxioms:\nA.b : nat\nC.d\n  : forall x,\n    x = x\n",
    )
    assert coq.axioms_in(f"theorem {first}theorem {second}") == {"p.f.one": (), "p.f.two": ("A.b", "C.d")}


def test_a_second_run_checks_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notice progress on kept files, a changed file or a dependent one that is not checked, and lost axioms."""
    coqc, said, kept = tmp_path / "coqc", tmp_path / "said", tmp_path / "kept"
    coqc.write_text(
        f"""#!/bin/sh
test "$1" = --version && exit
for file; do :; done
echo "$file" >> {said}
touch "${{file%.v}}.vo"
sed -n 's/.*idtac "\\(theorem [^"]*\\)".*/\\1/p' "$file"
test "$file" != asked.v || printf 'Axioms:\\nClassicalDedekindReals.sig_not_dec : True\\n'
""",
        encoding="utf-8",
    )
    coqc.chmod(0o755)
    real = "ClassicalDedekindReals.sig_not_dec"
    theorem = "(** Says. *)\nTheorem one : forall n, n = n.\nProof. reflexivity. Qed.\n"
    texts = {"a.one": theorem, "b.two": f"From fluidcc.a Require Import one.\n{theorem}", "b.three": ""}
    monkeypatch.setattr(coq, "sources", lambda: texts)

    def files() -> list[str]:
        said.write_text("", encoding="utf-8")
        checked = coq.check(kept, str(coqc))
        assert [sorted(one.axioms) for one in checked.values()] == [[real], [real], []]
        return sorted(said.read_text(encoding="utf-8").split())

    kept.mkdir()
    assert files() == ["a/one.v", "asked.v", "asked.v", "b/three.v", "b/two.v"]
    with monkeypatch.context() as patch:
        patch.setattr(coq, "Bar", None)
        assert files() == []
    texts["a.one"] += "(* More. *)"
    assert files() == ["a/one.v", "asked.v", "asked.v", "b/two.v"]
    texts["b.three"] += "(* More. *)"
    assert files() == ["b/three.v"]
    coqc.write_text(coqc.read_text().replace(real, "Classical_Prop.classic"), encoding="utf-8")
    texts["a.one"] += "(* And more. *)"
    with pytest.raises(coq.UnprovedError, match=r"a\.one\.one rests on Classical_Prop\.classic"):
        files()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("coqc") is None, reason=f"Coq is not installed; on Debian: {coq.INSTALL}")
def test_coq_refuses_a_stronger_theorem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notice a check that never fails: the bound with n for n - 1 has the same proof text, and is not proved by it."""
    coqc = str(shutil.which("coqc"))
    texts = {name: sources()[name] for name in ("shared.limits", "shared.sums", "hpcc.network", "hpcc.pareto")}
    old, new = "rate 1 j / widest j) ^ (n - 1).", "rate 1 j / widest j) ^ n."
    assert "1 - highest n j <= (1 - highest 1 j) * (1 - rate 1 j / widest j) ^ (n - 1).\n" in texts["hpcc.pareto"]
    texts["hpcc.pareto"] = texts["hpcc.pareto"].replace(old, new, 1)
    monkeypatch.setattr(coq, "sources", lambda: texts)
    with pytest.raises(coq.UnprovedError, match=r"hpcc/pareto\.v"):
        coq.check(tmp_path, coqc)
