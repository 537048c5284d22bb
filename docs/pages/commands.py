"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re

HEAD = """# Every command and option

What `fluidcc COMMAND --help` prints, made of the commands by the build. What the words mean, and what comes out: \
[the command line](../cli.md).

"""


def page() -> str:
    """The page in Markdown."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from fluidcc.cli.app import app

    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="fluidcc"), name="fluidcc")
    text = re.sub(r"^# `fluidcc`\n+.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    return HEAD + re.sub(r"^## `fluidcc ([a-z-]+)`$", r"## \1", text, flags=re.MULTILINE)
