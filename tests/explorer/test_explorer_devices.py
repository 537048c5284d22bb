"""Files that are chosen on the page: what is refused is called by the file's own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidcc.explorer.settings import Setting

SAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    """Panel and what needs it, which take seconds to import: not where tests are only collected."""
    global devices
    pytest.importorskip("panel", reason="needs panel: pip install 'fluidcc[explore]'")
    from fluidcc.explorer import devices


def load(**files: tuple[str, bytes | None]) -> tuple[str, list[Setting]]:
    """What the page says of some files, and the setting that it takes."""
    taken: list[Setting] = []
    made = devices.Devices(taken.append)
    for which, (name, content) in files.items():
        widget = getattr(made, f"_{which}")
        widget.param.update(filename=name, value=content)  # Panel has None for an empty file
        assert name in str(made._found.object)
    made._load()
    return str(made._found.object), taken


def load_named(name: str) -> tuple[str, list[Setting]]:
    """Load a NIC's settings that are none, under a name."""
    taken: list[Setting] = []
    made = devices.Devices(taken.append)
    made._nic.param.update(filename=name, value=b"rpg_gd = many")
    made._load()
    return str(made._found.object), taken


def test_a_setting_has_the_packets_of_its_nic(tmp_path: Path) -> None:
    """Not the preset's 1000 B: the NIC's active MTU, or the largest that is usual, with RoCE's headers."""
    nic = tmp_path / "nic.txt"
    for text, payload in (("", 4096), ("active_mtu: 1024 (3)\n", 1024)):
        nic.write_text(text + (SAMPLE / "nic.txt").read_text())
        setting = devices.setting_of(SAMPLE / "config_db.json", nic, None)
        assert (setting.value("packet_size"), setting.value("header_bytes")) == (payload, 62)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"switch": ("my_leaf.json", b"{")}, "my_leaf.json"),
        ({"switch": ("my_leaf.json", None)}, "my_leaf.json"),
        ({"nic": ("my_nic.txt", b"rpg_gd = many")}, "my_nic.txt"),
        ({"nic": ("my_nic.txt", None)}, "my_nic.txt"),
        ({}, "none is chosen"),
    ],
)
def test_files_are_refused_by_their_own_names(files: dict[str, tuple[str, bytes | None]], says: str) -> None:
    said, taken = load(**files)
    assert "devices-error" in said
    assert f'id="devices-error">{says}' in said or f"files: {says}" in said
    assert taken == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("..", "file"),
        (".", "file"),
        ("../../etc/passwd", "passwd"),
        ("C:\\nics\\my_nic.txt", "my_nic.txt"),
        ("a\0b.txt", "a_b.txt"),
        ("a\ud800.txt", "a_.txt"),
        ("a\n.txt", "a_.txt"),
        ("\u00e9" * 200 + ".txt", "\u00e9" * 48 + ".txt"),
    ],
)
def test_names_of_files_are_those_of_any_system(name: str, kept: str) -> None:
    """Whoever names a file so is answered, and nothing is written beside the page's own folder."""
    assert devices._plain(name) == kept
    said, _ = load_named(name)
    assert "devices-error" in said


def test_two_files_may_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_findings", lambda *given: '<div id="findings">audited</div>')  # takes its time
    switch, nic = ((SAMPLE / name).read_bytes() for name in ("config_db.json", "nic.txt"))
    said, taken = load(switch=("same", switch), nic=("same", nic))
    assert 'id="findings"' in said
    assert taken[0].preset == "vendor"


def test_tokens_that_nobody_here_made_are_none() -> None:
    """Bokeh would leave a traceback of each in the log."""
    from bokeh.util.token import generate_jwt_token

    from fluidcc.explorer.serve import _is_token

    assert _is_token(generate_jwt_token("a", expiration=60))
    for text in ("", "x", "a.b", "e30", "W10", "eyJhIjoxfQ", "\udc80", generate_jwt_token("a", expiration=-1)):
        assert not _is_token(text)
