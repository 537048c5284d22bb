"""What Tab offers in bash and zsh, as the shells' scripts ask for it, and without anything heavy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fluidcc.cli import options
from fluidcc.cli.app import run
from fluidcc.contract.registry import names, presets


@pytest.fixture
def tab(monkeypatch, capsys):
    """What is offered after a line, in a shell; the last word is what is being typed."""

    def offered(line: str, shell: str = "bash") -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_FLUIDCC_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        assert run([]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return offered


def test_commands(tab) -> None:
    assert tab("fluidcc s") == ["simulate", "stability", "sweep", "show"]
    assert '"show"' in "".join(tab("fluidcc s", "zsh"))


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("fluidcc simulate h", ["hpcc", "hpcc-multiq", "hpcc-rx"]),
        ("fluidcc fabric dcqcn,ti", ["dcqcn,timely"]),
        ("fluidcc collective all-reduce --scheme hpcc,ti", ["hpcc,timely"]),
        ("fluidcc simulate hpcc --preset hpcc-", ["hpcc-sim", "hpcc-eval"]),
        ("fluidcc show dcqcn --preset v", ["vendor"]),
        ("fluidcc simulate dcqcn --topology p", ["parking-lot"]),
        ("fluidcc simulate dcqcn --set km", ["kmin=", "kmax="]),
        ("fluidcc sweep hpcc --over w_", ["w_ai="]),
        ("fluidcc simulate dcqcn --engine h", ["hybrid"]),
        ("fluidcc reproduce dcqcn-fig11a", ["dcqcn-fig11a"]),
        ("fluidcc verify hpcc-a2-fin", ["hpcc-a2-finite"]),
    ],
)
def test_names(tab, shell: str, line: str, offers: list[str]) -> None:
    found = tab(line, shell)
    if shell == "zsh":  # one call of its own builtin, with quoted words
        assert found[0].startswith("_arguments '*: :((")
        found = re.findall(r'"([^"]+)"', "\n".join(found))
    assert set(offers) <= set(found)
    assert all(word.startswith(line.split(" ")[-1]) for word in found)


def test_all_names_are_offered(tab) -> None:
    assert tab("fluidcc show ") == list(names())
    assert tab("fluidcc show hpcc --preset ") == list(presets("hpcc"))


def test_a_scheme_that_is_none_offers_nothing(tab) -> None:
    assert tab("fluidcc simulate swoop --set ") in ([], [""])


def test_names_read_off_the_sources_are_those_there_are() -> None:
    from fluidcc.proofs.verdict.registry import list_claims, list_figures

    assert options.complete_figures(None, "") == ["list", *sorted(list_figures())]
    assert options.complete_claims(None, "") == sorted(list_claims())


@pytest.mark.parametrize("words", ["reproduce dcqcn", "verify hpcc", "show dc", "simulate dcqcn --topology "])
def test_names_are_offered_without_anything_heavy(words: str) -> None:
    code = (
        "import sys; from fluidcc.cli.app import run; run([]);"
        "heavy = {'jax', 'numpy', 'scipy', 'xarray', 'matplotlib'} & sys.modules.keys(); assert not heavy, heavy"
    )
    line = f"fluidcc {words}"
    asked = {"_FLUIDCC_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_script_and_completes(tmp_path: Path) -> None:
    """The script that --show-completion prints, in a real shell."""
    command = tmp_path / "fluidcc"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fluidcc "$@"\n')
    command.chmod(0o755)
    typed = """
    eval "$(fluidcc --show-completion bash)"
    COMP_WORDS=(fluidcc simulate dcq) COMP_CWORD=2
    _fluidcc_completion fluidcc
    echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    asked = os.environ | {"PATH": path, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(["bash", "--norc", "-c", typed], env=asked, capture_output=True, text=True)
    assert done.stdout.split() == ["dcqcn"], done.stderr
