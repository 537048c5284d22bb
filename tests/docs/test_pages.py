"""Pages that the build makes, and what a built page may load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docs.pages import extension, foreign_loads, found, gallery, results
from docs.pages.extension import mended
from docs.pages.found import escape
from fluidcc.proofs.verdict.figure import status


def test_every_claim_has_its_verdict_and_its_command() -> None:
    claims, figures = results.load(results.CLAIMS), results.load(results.FIGURES)
    pages = found.pages(claims, figures)
    text = "\n".join(pages.values())
    for name, claim in claims.items():
        assert text.count(f"\n    fluidcc verify {name}\n") == 1
        section = text.split(f"\n({name})=\n")[1].split("\n(")[0]
        assert f"`{found.VERDICTS[claim['verdict']][0]}`" in section
        assert "**Sample**:" in section
        if claim["verdict"] == "false-as-printed":
            assert escape(claim["correction"]) in pages["found"]


def test_the_overview_counts() -> None:
    claims: dict[str, Any] = {
        name: {
            "name": name,
            "paper": paper,
            "section": "1",
            "claim": "a_b is | c",
            "verdict": verdict,
            "reason": "",
            "conditions": "",
            "correction": "d",
            "readings": {"as printed": False},
            "ways": [],
            "evidence": {"x": 1.0},
        }
        for name, paper, verdict in (
            ("a", "P, 1", "holds"),
            ("b", "P, 1", "holds"),
            ("c", "Q, 2", "false-as-printed"),
        )
    }
    pages = found.pages(claims, {})
    assert set(pages) == {"found", "found-p-1", "found-q-2", "erratum-q-2"}
    assert "Of 3 claims that were checked, 2 hold as printed" in pages["found"]
    assert r"a\_b is \| c" in pages["found"]
    assert "nothing is drawn" in pages["found-q-2"]
    for said in (r"a\_b is \| c", "**Instead**: d", "x = 1", "fluidcc verify c", "1 are false as printed"):
        assert said in pages["erratum-q-2"]


def test_errata_say_what_holds_under_a_condition_and_what_is_proved() -> None:
    """Notice a condition, or a theorem, that is lost on the way to the page that is cited."""
    text = found.erratum("HPCC, SIGCOMM 2019", results.load(results.CLAIMS).values())
    assert "`hpcc.counterexample.printed_lemma_iii_is_false`" in text
    assert "fewer than N flows" in text
    assert "`hpcc-a2-feasible`; `hpcc.pareto.load_at_most_capacity`" in text


def test_every_figure_is_in_the_gallery_with_its_command() -> None:
    figures = results.load(results.FIGURES)
    text = gallery.page(figures)
    for name, figure in figures.items():
        assert (results.FIGURES / f"{name}.webp").is_file()
        card = text.split(f"/{name}.webp)](")[1].split(":::\n")[0]
        assert f"`fluidcc reproduce {name}{' --quick' if figure['quick'] else ''}`" in card
        assert ("`agrees`" in card) == (figure["agrees"] and bool(figure["expected"]))
        assert ("`not decided`" in card) == (status(figure) == "not decided")
        above, below = card.split("```{dropdown} Numbers")
        assert f"**Sample**: {escape(figure.get('sample') or 'nothing is drawn')}." in above
        assert "**Sample**" not in below


def test_the_gallery_is_in_the_papers_order() -> None:
    titles = ["Figure 10: c", "Figure 11(b): e", "Figure 11(a): d", "Figure 2: a", "no figure: g", "Figure 9: b"]
    ordered = [figure["figure"] for figure in gallery.in_order([{"figure": title} for title in titles])]
    assert [title[-1] for title in ordered] == list("abcdeg")
    text = gallery.page(results.load(results.FIGURES))
    assert text.index("} Figure 2: a congested flow") < text.index("} Figure 10: ten flows")


def test_every_command_and_option_is_in_the_reference() -> None:
    from typer.main import get_command

    from fluidcc.cli.app import app

    text = extension.reference()
    group: Any = get_command(app)
    assert re.findall(r"^## (\S+)$", text, re.MULTILINE) == list(group.commands)
    for name, command in group.commands.items():
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert f"`{max(parameter.opts, key=len)}" in section


def test_what_a_page_loads_from_elsewhere_is_seen() -> None:
    own = '<script src="_static/a.js"></script><a href="https://example.org">there</a><img src="a.png">'
    assert foreign_loads.loaded_by(own) == []
    for loads in ('<script src="https://x.org/a.js">', '<link href="//x.org/a.css">', '<img src="http://x.org/a.png">'):
        assert len(foreign_loads.loaded_by(own + loads)) == 1


def test_a_name_that_was_moved_leaves_no_page(tmp_path: Path) -> None:
    """Notice a build that fails where an older one has left the page of a name under its old group."""
    for name in ("fluidcc.sweep", "fluidcc.wai_sweep"):
        (tmp_path / f"{name}.rst").write_text(name)
    extension.drop_stubs(tmp_path, ".. autosummary::\n\n   fluidcc.sweep\n   fluidcc.studies.wai_sweep\n")
    assert [path.name for path in tmp_path.iterdir()] == ["fluidcc.sweep.rst"]


def test_links_from_source_to_documentation_lead_to_their_object() -> None:
    """Sphinx gave all names of a module the public package of one of them: 24 links led to no place of their page."""
    link = '<a class="viewcode-back" href="../../{}.html#{}">[docs]</a>'
    places = {
        "fluidcc.theory.Symbolic": ("reference/fluidcc.theory.Symbolic", "fluidcc.theory.Symbolic"),
        "fluidcc.theory.Symbolic.latex": ("reference/fluidcc.theory.Symbolic", "fluidcc.theory.Symbolic.latex"),
        "fluidcc.symbolic": ("reference/fluidcc.symbolic", "fluidcc.symbolic"),
    }
    page = "reference/fluidcc.theory.Symbolic"
    for wrong, right in (("fluidcc.Symbolic", "Symbolic"), ("fluidcc.Symbolic.latex", "Symbolic.latex")):
        assert mended(link.format(page, wrong), places) == link.format(page, f"fluidcc.theory.{right}")
    for kept in (("reference/fluidcc.symbolic", "fluidcc.symbolic"), ("theory/x", "fluidcc.unknown")):
        assert mended(link.format(*kept), places) == link.format(*kept)
