"""Whatever a person types or hands over: an answer, or exit status 2 and one helpful line. Never a traceback."""

import contextlib
import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluidcc.cli.app import run
from tests.operators.short_audits import short_audits

EXAMPLE = Path(__file__).parents[2] / "examples" / "leaf-100g"
RELAXED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

numbers = st.one_of(
    st.sampled_from(
        ["0", "-1", "1e999", "nan", "inf", "1/0", "9**9**9", "", " ", "1e-320", "٣", "0x10", "1_000", "--", "="]
    ),
    st.floats().map(str),
    st.integers().map(str),
    st.text(max_size=12),
)
suffixes = st.sampled_from(["", "KB", "Gbps", "us", "%", "kb", "GBps", "s", "B", "KiB", "us us"])
quantities = st.tuples(numbers, suffixes).map("".join)
names = st.one_of(
    st.sampled_from(["g", "kmin", "kmax", "pmax", "timer", "byte_counter", "feedback_delay", "rate", "flows", "size",
                     "hyper_increase", "cnp_interval", "min_rate", "packet_size", "header_bytes", "start", "delay",
                     "buffer", "pfc", "xoff", "alpha", "timing",
                     "ack_interval", "mark_on", "bursts"]),
    st.text(max_size=8),
)  # fmt: skip


def check(arguments):
    """Run a command: an answer in JSON, or one line on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
    assert status in (0, 2), err.getvalue()
    if status == 0:
        json.loads(out.getvalue(), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
    else:
        assert out.getvalue() == ""
        assert err.getvalue().startswith("fluidcc: ")
        assert err.getvalue().count("\n") == 1
        assert len(err.getvalue()) > 20
    return status


@settings(RELAXED, max_examples=15)
@given(st.lists(st.tuples(names, quantities), max_size=3))
def test_parameters(pairs):
    sets = [part for name, value in pairs for part in ("--set", f"{name}={value}")]
    check(["equilibrium", "dcqcn", *sets, "--json"])


@settings(RELAXED, max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["--rate", "--delay", "--packet-size", "--start", "--initial-rate", "--size", "--flows",
                             "--feedback-delay", "--preset", "--topology", "--from", "--port", "--save-scenario"]),
            quantities,
        ),
        max_size=3,
    )
)  # fmt: skip
def test_options(tmp_path, pairs):
    with contextlib.chdir(tmp_path):
        check(["equilibrium", "dcqcn", *[part for pair in pairs for part in pair], "--json"])
        for left in tmp_path.iterdir():  # a file is whole or absent
            assert not left.name.startswith("."), left
            left.unlink()


@RELAXED
@given(
    st.lists(
        st.tuples(names, st.one_of(quantities, st.tuples(quantities, quantities, numbers).map(":".join))), max_size=2
    )
)
def test_axes(pairs):
    overs = [part for name, value in pairs for part in ("--over", f"{name}={value}")]
    # A horizon of one step: what is feasible is computed, but at no length.
    check(["sweep", "dcqcn", *overs, "--set", "g=2", "--json"])


@settings(RELAXED, max_examples=12)
@given(
    st.sampled_from(["--until", "--window", "--dt", "--method", "--dtype", "--sample-interval", "--seed"]), quantities
)
def test_run_options(option, value):
    check(["simulate", "dcqcn", "--until", "20us", option, value, "--json"])


def mutated(text: bytes, seed: int) -> bytes:
    """A file with a few bytes, lines or values changed."""
    draw = random.Random(seed)
    data = bytearray(text)
    for _ in range(draw.randint(1, 6)):
        at, kind = draw.randrange(len(data)), draw.randrange(6)
        if kind == 0:
            data[at] = draw.randrange(256)
        elif kind == 1:
            del data[at : at + draw.randint(1, 400)]
        elif kind == 2:
            data[at:at] = draw.choice([b"{", b"}", b'"', b"\x00", b"-", b"9" * 40, b"null", b"[]", b"\xff\xfe"])
        elif kind == 3:
            piece = data[at : at + draw.randint(1, 400)]
            data[at:at] = piece
        else:  # swap a number for another
            import re

            found = list(re.finditer(rb"\d+", bytes(data)))
            if found:
                span = draw.choice(found).span()
                data[slice(*span)] = draw.choice(
                    [b"0", b"-5", b"1e400", b"99999999999999999999", b"x", b"", b"1.5", b"\xc2\xb2"]
                )
        if not data:
            data = bytearray(b" ")
    return bytes(data)


@pytest.mark.parametrize("seed", range(2))
def test_mutated_files(tmp_path, seed):
    switch, nic = (EXAMPLE / name for name in ("config_db.json", "nic.txt"))
    bad = 0
    for k in range(75):
        target, source = ((tmp_path / "c.json", switch), (tmp_path / "n.txt", nic))[k % 2]
        target.write_bytes(mutated(source.read_bytes(), 1000 * seed + k))
        bad += check(["equilibrium", "dcqcn", "--from", str(target), "--json"]) == 2
        if k % 50 == 0:  # the audit reads more of the same files, and simulates
            with short_audits(1, "2.5ms", "5ms"):
                check(["audit", "--sonic", str(tmp_path / "c.json"), "--packets", "0", "--json"])
    assert bad > 10
