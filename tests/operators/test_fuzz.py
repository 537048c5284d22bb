"""Whatever a file holds, the readers return settings or refuse it in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.errors import InputError
from fluidcc.operators import dcqcn_of, read_nic, read_sonic

SAMPLES = Path(__file__).parents[2] / "examples" / "leaf-100g"
DUMP = (SAMPLES / "nic.txt").read_bytes()
TEXT = b"# ours\ndce_tcp_g = 1019\nrpg_ai_rate: 5\nrpg_time_reset 300\nrpg_byte_reset = 32767\n"
CONFIG = json.loads((SAMPLES / "config_db.json").read_text())
# Two ports are enough to mutate, and keep each example fast.
KEPT = ("Ethernet0", "Ethernet96", "AZURE", "pg_", "ingress", "egress", "scheduler")
SMALL = {t: {k: v for k, v in entries.items() if k.split("|")[0].startswith(KEPT)} for t, entries in CONFIG.items()}
RAW = json.dumps(SMALL, indent=1).encode()

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["-1", "1e400", "NaN", "", "|", "[", "[|]", "[WRED_PROFILE|", "9" * 70, "3-", "\ud800", "\n"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)
EDITS = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 12), st.binary(max_size=8)), min_size=1, max_size=4)


def edited(raw, edits):
    for place, length, patch in edits:
        at = place % (len(raw) + 1)
        raw = raw[:at] + patch + raw[at + length :]
    return raw


def attempt(read, path):
    try:
        return read(path)
    except InputError as error:
        message = str(error)
        assert message.isprintable()
        assert 20 < len(message) < 1500
        assert path.name in message
        return None


def nic(path):
    return dcqcn_of(read_nic(path))


def nodes(tree):
    """Every (container, key) below a JSON object."""
    for key, value in tree.items():
        yield tree, key
        if isinstance(value, dict):
            yield from nodes(value)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "file.txt"


@settings(max_examples=120)
@given(edits=EDITS)
def test_sonic_bytes(path, edits):
    path.write_bytes(edited(RAW, edits))
    attempt(read_sonic, path)


@settings(max_examples=40)
@given(data=st.data())
def test_sonic_nodes(path, data):
    config = json.loads(RAW)
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(nodes(config))
        container, key = places[data.draw(st.integers(0, len(places) - 1))]
        action = data.draw(st.sampled_from(["replace", "remove", "rename"]))
        if action == "replace":
            container[key] = data.draw(JUNK)
            continue
        value = container.pop(key)
        if action == "rename":
            container[data.draw(st.text(max_size=8)) + key[:4]] = value
    path.write_text(json.dumps(config))
    port = attempt(read_sonic, path)
    if port is not None:
        assert port.rate > 0
        assert all(text.isprintable() for text in (port.name, port.profile, *port.notes, *port.ignored))


@settings(max_examples=120)
@given(edits=EDITS, raw=st.sampled_from([DUMP, TEXT]))
def test_nic_bytes(path, edits, raw):
    path.write_bytes(edited(raw, edits))
    attempt(nic, path)


@settings(max_examples=120)
@given(value=JUNK, name=st.sampled_from(["dce_tcp_g", "RPG_GD_P1", "rp_time_reset", "roce_cc_algorithm", "x"]))
def test_nic_values(path, value, name):
    path.write_text(f"rpg_ai_rate = 5\n{name} = {value}\n", encoding="utf-8", errors="replace")
    attempt(nic, path)


@settings(max_examples=120)
@given(raw=st.binary(max_size=200))
def test_any_bytes(path, raw):
    path.write_bytes(raw)
    attempt(read_sonic, path)
    attempt(nic, path)


@settings(max_examples=120)
@given(raw=st.binary(max_size=20))
def test_any_bytes_in_a_folder(path, raw):
    folder = path.parent / "cc_params"
    folder.mkdir(exist_ok=True)
    (folder / "rp_ai_rate").write_bytes(raw)
    attempt(nic, folder)
