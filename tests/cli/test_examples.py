"""Every help ends with examples, which run as printed in a folder of the user's own."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command_from_info

from fluidcc.cli.app import app, run
from fluidcc.operators import behaviour
from tests.docs.printed import less_of

# What is by nature the user's: a switch's and a NIC's settings.
SETTINGS = Path(__file__).parents[2] / "examples" / "leaf-100g"
COMMANDS = [str(each.name) for each in app.registered_commands]
SECONDS = {"equilibrium", "show"}  # where all examples of a command run in a few; the others are slow
SERVES = "explore"  # until it is interrupted
WIDTH = 80  # columns of a terminal
WRITES = ("--plot", "--out", "--write")


def help_of(*command: str) -> str:
    """What --help prints on a terminal of `WIDTH` columns."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(WIDTH))
        assert run([*command, "--help"]) == 0
    return printed.getvalue()


def examples_of(text: str) -> list[list[str]]:
    """Words of each example at the end of a help, as a shell would read them."""
    _, heading, printed = re.split(r"^(  Examples?:)$", text, flags=re.MULTILINE)
    assert heading
    commands = printed.replace("\\\n", " ").strip().splitlines()
    return [shlex.split(command) for command in commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples(command: str) -> None:
    text = help_of(command)
    examples = examples_of(text)
    assert 1 <= len(examples) <= 2
    assert all(words[0] == "fluidcc" for words in examples)
    assert command in {words[1] for words in examples}
    assert max(map(len, text.splitlines())) < WIDTH


def test_list_of_commands_is_not_cut() -> None:
    """Notice a command whose first sentence does not fit next to its name."""
    listed = help_of().partition("Commands:")[2]
    assert set(COMMANDS) <= set(listed.split())
    assert "..." not in listed


@pytest.mark.parametrize("command", COMMANDS)
def test_options_open_with_a_noun_or_verb(command: str) -> None:
    """Notice an option described by a fragment, such as "Of the search."."""
    (only,) = (each for each in app.registered_commands if each.name == command)
    options = get_command_from_info(only, pretty_exceptions_short=False, rich_markup_mode=None).params
    opening = {str(each.name): str(getattr(each, "help", "")).split()[0] for each in options}
    fragments = {"Of", "What", "Which", "Whether", "How", "As", "By", "At", "When", "Where", "Who", "About", "So"}
    assert not {name: word for name, word in opening.items() if word in fragments}


def test_help_of_all_ends_with_examples() -> None:
    assert [words[0] for words in examples_of(help_of())] == ["fluidcc", "fluidcc"]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=() if name in SECONDS else pytest.mark.slow)
        for name in ("", *COMMANDS)
        if name != SERVES
    ],
)
def test_examples_run_as_printed(command: str, tmp_path: Path, monkeypatch, capsys) -> None:
    shutil.copytree(SETTINGS, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(behaviour, "SEEDS", 2)  # of the audit
    for words in examples_of(help_of(*filter(None, [command]))):
        status = run([*words[1:], *less_of(words)])
        out, err = capsys.readouterr()
        assert status == 0, (words, err)
        assert out
        for option in WRITES:
            if option in words:
                assert Path(words[words.index(option) + 1]).exists(), words


@pytest.mark.slow
def test_examples_of_the_explorer_serve_a_page(tmp_path: Path) -> None:
    pytest.importorskip("panel", reason="needs panel: pip install 'fluidcc[explore]'")
    for words in examples_of(help_of(SERVES)):
        with subprocess.Popen(
            [sys.executable, "-m", *words, *([] if "--no-open" in words else ["--no-open"])],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        assert address.startswith("http://127.0.0.1:")
