"""Texts of nested commands as statements: by indentation, by braces, or each on a line of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fluidcc.errors import InputError

_TOKEN = re.compile(r'/\*.*?\*/|#[^\n]*|"(?:[^"\\\n]|\\.)*"|[{};\[\]]|[^\s{};\[\]"#]+', re.DOTALL)
_DEEPEST = 64
_WORD = 3  # letters of a word that may be cut


def check_whole(text: str, heads: str = "") -> None:
    """Refuse a text that ends at a page, or lost its indentation.

    Parameters
    ----------
    text : str
    heads : str
        Pattern of lines under which others are indented; empty: none are.

    Raises
    ------
    InputError
        If it is such a text.
    """
    rows = [line for line in text.splitlines() if line.strip()]
    if rows and re.fullmatch(r"\s*[-<(]+\s*more\b.*", rows[-1], re.IGNORECASE):
        raise InputError(f"the text ends at {rows[-1].strip()[:40]}: it is cut; give all of it, printed without pages")
    follows = rf"^(?:{heads})\b.*\n(?!(?:{heads})\b|!)\S"
    if heads and not any(row[0].isspace() for row in rows) and (match := re.search(follows, text, re.MULTILINE)):
        raise InputError(
            f"{match[0].splitlines()[0][:60]}: the lines below are not indented, so that nothing says which are its "
            "own; give the text as the switch prints it"
        )


def doubt(text: str) -> str:
    """Say why a text may have been cut within its last line; empty if nothing speaks for it."""
    last = "" if text.endswith("\n") else text.split("\n")[-1].strip()
    *_, word = last.split() or [""]
    others = {each for each in text.split() if each != word}
    if len(word) < _WORD or text.split().count(word) > 1 or not any(each.startswith(word) for each in others):
        return ""
    longer = next(each for each in sorted(others) if each.startswith(word))
    return f"it ends within a line, `{last[-60:]}`, at what may be the start of {longer[:40]}"


def indented(text: str, comments: tuple[str, ...] = ("!", "#")) -> Iterator[tuple[str, ...]]:
    """Yield each line with the lines that it is indented under, the outermost first."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith(comments):
            continue
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        if len(above) < _DEEPEST:
            above.append((depth, words))
            yield tuple(each for _, each in above)


def nested(lines: Sequence[str]) -> tuple[str, ...]:
    """Indent each line under the one before it."""
    return tuple("  " * depth + line for depth, line in enumerate(lines))


def braced(text: str) -> Iterator[list[str]]:
    """Yield the statements of a text with braces as their words, those around them first.

    Raises
    ------
    InputError
        At the end, if a brace is not closed.
    """
    above: list[list[str]] = []
    now: list[str] = []
    for token in _TOKEN.findall(text):
        if token.startswith(("/*", "#")):
            continue
        if token == "{":
            above.append(now)
            now = []
        elif token == "}":
            now = []
            if above:
                above.pop()
        elif token == ";":
            yield [word for words in above for word in words] + now
            now = []
        else:
            now.append(token.strip('"'))
    if above:
        raise InputError(f"{' '.join(above[0])[:40]} {{ is not closed: the text is cut; give all of it")


def mapped(text: str) -> Iterator[list[str]]:
    """Yield the leaves of nested mappings (YAML without its fine points) as words, the keys above first.

    Raises
    ------
    InputError
        If a mapping is written in braces.
    """
    # A list's dash is of the depth of what follows it.
    plain = "\n".join(re.sub(r"^(\s*)-(\s)", r"\1 \2", line) for line in text.splitlines())
    for lines in indented(plain, comments=("#", "---")):
        key, colon, value = re.sub(r"\s#.*", "", lines[-1]).partition(":")
        if value.strip().startswith("{") and value.strip(" {}"):
            raise InputError(f"{lines[-1][:60]}: write each key on a line of its own, as `nv config show` prints them")
        if colon and value.strip():
            yield [line.partition(":")[0].strip(" '\"") for line in (*lines[:-1], key)] + [value.strip(" '\"")]
