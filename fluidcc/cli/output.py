"""Output of commands: printed text and written files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.scenario.model import Scenario


# Endings of files, by what they hold; known here, so that they are checked before anything is imported or computed.
TRACE, TABLE, PICTURE = (".nc",), (".nc", ".csv"), (".png", ".pdf", ".svg")


def check_outputs(**outputs: tuple[str | None, tuple[str, ...]]) -> None:
    """Refuse what could not be written at the end: of each option its path, if it is given, and its endings."""
    from fluidcc.files import check_writable

    for option, (path, endings) in outputs.items():
        if path is not None:
            check_writable(path, f"--{option.replace('_', '-')}", endings)


def make_folder(path: str, option: str) -> None:
    """Make the folder that an option names, or say why not, before anything is computed."""
    if not path.strip():
        raise InputError(f"{option}: no folder is named; write for example {option} out")
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = "no folder" if isinstance(error, FileExistsError) else getattr(error, "strerror", None)
        reason = reason or "no name of a folder"
        raise InputError(f"{option}: {path[:200]!r}: {reason}; give a folder that can be written to") from None


def tell(text: str) -> None:
    """Say a line to people, apart from the answer."""
    sys.stderr.write(f"fluidcc: {text}\n")


def save_scenario(scenario: Scenario, path: str | None) -> None:
    """Write the scenario if a path is given."""
    if path is not None:
        check_outputs(save_scenario=(path, ()))
        from fluidcc.builders.toml_file import save_scenario as save

        save(scenario, path)


def packets_of(scenario: Any) -> dict[str, float]:
    """Payload and headers of packets [bytes], under the names that results have."""
    return {"packet_bytes": float(scenario.packet_size), "header_bytes": float(scenario.header_bytes)}


def print_json(document: dict[str, Any]) -> None:
    """Print one document; an undefined number is null, never NaN."""
    json.dump(_defined(document), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _defined(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_defined(v) for v in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def print_table(title: str, rows: list[tuple[str, str]]) -> None:
    """Print names and values for a person."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    Console().print(table)


NOT_SHRUNK = "the error did not fall with the step as it should: take it as an order of magnitude"


def small(value: float | None) -> str:
    """An error, for a person."""
    return "undefined" if value is None or value != value else f"{value:.1e}"


def tell_of_others(folder: str, files: Sequence[str], names: Sequence[str]) -> None:
    """Say which files of some names, in a folder or its tiers', are left of earlier runs: nobody should type these."""
    place = Path(folder)
    there = [path for name in names for path in (place / name, *place.glob(f"tier*/{name}")) if path.exists()]
    old = sorted(str(path.relative_to(place)) for path in there if str(path) not in files)
    if old:
        tell(f"{folder}: {', '.join(old)} {'are' if old[1:] else 'is'} of an earlier run, not of this setting")
