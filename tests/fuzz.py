"""Generated inputs over all commands, files and the Python API: an answer, or one line that says what to type.

``python -m tests.fuzz --count 2000 --seconds 900`` tells what fails, by a number that ``--only`` runs again.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import math
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.errors import InputError
from fluidcc.operators import dcqcn_of, read_nic, read_sonic
from fluidcc.scenario.parameters import specs

EXAMPLE = Path(__file__).parents[1] / "examples" / "leaf-100g"
HANG = 60  # s for one input; the first compiles
SHORT = ["--until", "100us"]
SCHEMES = {
    each.name: each for each in (fc.DCQCN, fc.HPCC, fc.Swift, fc.ACC, fc.TIMELY, fc.DCTCP, fc.NoControl, fc.HPCCRx)
}
WORDS = ["", " ", "nan", "inf", "-1", "0", "1e999", "1/0", "--", "=", "٣", "0x10", "1_000", "x" * 300, "\0", "\udcff",
         "1e-320", "99999999999999999999", "none", "auto", "on", "5KB", "1us", "40Gbps", "1/256",
         "1%", "a,b", "1:2"]  # fmt: skip
OPTIONS = ["--rate", "--delay", "--packet-size", "--start", "--initial-rate", "--size", "--flows", "--feedback-delay",
           "--preset", "--topology", "--from", "--port", "--set", "--save-scenario", "--bogus"]  # fmt: skip
RUN = ["--window", "--dt", "--method", "--dtype", "--sample-interval", "--seed", "--engine", "--out", "--plot"]
OBJECTS = [
    None, True, np.True_, math.nan, math.inf, -1, 0, 1, 2.5, 10**400, 1j, b"1us", [], [1, 2], (), {}, object, "", "1us",
    np.array(2.0), np.array([1.0]), np.array([1.0, 2.0]), np.zeros((2, 2)), np.array([]), np.array("1us"),
    np.array(None),
    np.float32(1.0), np.int64(3), jnp.array(1.0), jnp.array([1.0, 2.0]), jnp.array(True), fc.DCQCN, fc.DCQCN(),
    fc.RED, fc.PFC, lambda: 1, "x" * 300, "\0", "\udcff", float("1e308"), np.float64("nan"), np.datetime64("2020"),
]  # fmt: skip


# Of TOML: what is too long, too large, too deep or of another kind.
VALUES = ["9" * 400, "0x7fffffffffffffffffff", "9223372036854775808", "1e308", "-1e308", "1e-320", "nan", "-inf",
          "true", '"' + "y" * 100_000 + '"', "[" + "1," * 5_000 + "1]", "[" * 500 + "]" * 500, "{a = 1}", "1979-05-27",
          "[]", '"\\u0000"', '"ñ雪"', '"1/0"', '"1e999Gbps"']  # fmt: skip
LONGEST = 1500  # characters of a line that somebody is to read


class WrongError(Exception):
    """An input that was not answered as it should be."""


def mutated(draw: random.Random, text: bytes) -> bytes:
    """A file with a few bytes, stretches or numbers changed."""
    data = bytearray(text)
    for _ in range(draw.randint(1, 5)):
        at, kind = draw.randrange(len(data) + 1), draw.randrange(4)
        if kind == 0:
            data[at : at + draw.randint(0, 300)] = b""
        elif kind == 1:
            data[at:at] = draw.choice(
                [b"{", b"}", b'"', b"\0", b"-", b"9" * 40, b"null", b"[]", b"\xff\xfe", b"nan", b"\n"]
            )
        elif kind == 2:
            data[at : at + 1] = bytes([draw.randrange(256)])
        else:
            piece = data[at : at + draw.randint(1, 200)]
            data[at:at] = piece
    return bytes(data)


def command(arguments: list[str], statuses: tuple[int, ...] = (0, 2)) -> None:
    """Run a command in this process: an answer in JSON, or one line on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
    if status not in statuses:
        raise WrongError(f"status {status}: {err.getvalue()[:200]}")
    said = err.getvalue()
    if status == 2 and not (said.startswith("fluidcc: ") and said.count("\n") == 1 and 20 < len(said) < LONGEST):
        raise WrongError(f"not one line: {said[:300]!r}")
    if status != 2 and "--json" in arguments:
        json.loads(
            out.getvalue(), parse_constant=lambda constant: (_ for _ in ()).throw(WrongError(f"{constant} in JSON"))
        )
    if status == 2 and out.getvalue():
        raise WrongError(f"status 2 and an answer: {out.getvalue()[:100]!r}")


def called(make: Any, *arguments: Any, **options: Any) -> Any:
    """Call a public function: a value, or an `InputError` of one line."""
    try:
        return make(*arguments, **options)
    except InputError as error:
        if "\n" in str(error) or not 15 <= len(str(error)) < LONGEST:
            raise WrongError(f"not one line: {str(error)[:200]!r}") from None


def options_of(draw: random.Random) -> list[str]:
    """A few options with values that are rarely good."""
    found = []
    for _ in range(draw.randint(0, 2)):
        option, value = draw.choice(OPTIONS), draw.choice(WORDS)
        if option == "--set":
            value = f"{draw.choice([*specs(fc.DCQCN), *specs(fc.RED), *specs(fc.PFC), 'bogus'])}={value}"
        found += [option, value]
    return found


# -- kinds of input ------------------------------------------------------------------------------------------


def a_run(draw: random.Random, folder: Path) -> None:
    engine = draw.choice(["fluid", "packet", "packet"])
    # Fluids are compiled for each shape, so that only one scheme of them is run.
    scheme = "dcqcn" if engine == "fluid" else draw.choice([*SCHEMES, "bogus"])
    own = [draw.choice(RUN), draw.choice(WORDS)] if draw.random() < 0.5 else []
    command(["simulate", scheme, *SHORT, "--engine", engine, *options_of(draw), *own, "--json"])


def an_analysis(draw: random.Random, folder: Path) -> None:
    name = draw.choice(["equilibrium", "stability"])
    command([name, "dcqcn", *options_of(draw), "--json"])


def a_comparison(draw: random.Random, folder: Path) -> None:
    command(
        ["crosscheck", "dcqcn", *SHORT, "--seeds", draw.choice(["1", "0", "x"]), *options_of(draw), "--json"], (0, 1, 2)
    )


def a_sweep(draw: random.Random, folder: Path) -> None:
    name, values = (
        draw.choice(["g", "kmin", "flows", "pmax", "bogus", ""]),
        ["1/256,1/16", "1:2:3", "log:1:0:3", *WORDS],
    )
    axis = f"{name}={draw.choice(values)}"
    more = [draw.choice(["--metric", "--subject-to", "--store", "--memory", "--out", "--plot"]), draw.choice(WORDS)]
    command(["sweep", "dcqcn", *SHORT, "--over", axis, *more[: 2 * draw.randint(0, 1)], "--json"])


def a_name(draw: random.Random, folder: Path) -> None:
    word = draw.choice([*WORDS, *SCHEMES])
    told = [[name, word or "?"] for name in ("show", "reproduce", "verify")]
    more = [
        ["show", "dcqcn", "--preset", word],
        ["audit", "--sonic", word],
        ["verify", "--list"],
        ["reproduce", "list"],
    ]
    command(draw.choice([*told, *more, [word]]))


def a_value_out_of_range(draw: random.Random, folder: Path) -> None:
    """What the declaration of a parameter forbids is status 2, and the line names it."""
    scheme = draw.choice([*SCHEMES])
    known = {name: spec for name, spec in specs(SCHEMES[scheme]).items() if not spec.static}
    name = draw.choice([*known])
    spec = known[name]
    beyond = [str(spec.low - 1)] if math.isfinite(spec.low) else []
    beyond += [str(spec.high * 2 + 1)] if math.isfinite(spec.high) else []
    value = draw.choice([*beyond, "nan", "1/0", "1xB", "--", "1e999"])
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        status = run(["equilibrium", scheme, "--set", f"{name}={value}", "--json"])
    if status != 2 or name not in err.getvalue() or err.getvalue().count("\n") != 1:
        raise WrongError(f"--set {name}={value}: status {status}: {err.getvalue()[:200]!r}")


def a_configuration(draw: random.Random, folder: Path) -> None:
    switch, nic = folder / "c.json", folder / "n.txt"
    switch.write_bytes(mutated(draw, (EXAMPLE / "config_db.json").read_bytes()))
    nic.write_bytes(mutated(draw, (EXAMPLE / "nic.txt").read_bytes()))
    if draw.random() < 0.5:
        called(read_sonic, switch)
        called(lambda: dcqcn_of(read_nic(nic)))
    else:
        command(["equilibrium", "dcqcn", "--from", str(draw.choice([switch, nic])), "--json"])


def a_scenario_file(draw: random.Random, folder: Path) -> None:
    path = folder / "s.toml"
    fc.save_scenario(fc.incast(2, scheme=draw.choice([*SCHEMES])), path)
    if draw.random() < 0.5:
        path.write_bytes(mutated(draw, path.read_bytes()))
    else:
        lines = path.read_text().splitlines()
        at = draw.choice([at for at, line in enumerate(lines) if " = " in line])
        lines[at] = f"{draw.choice([lines[at].split(' = ')[0], 'x' * 3000])} = {draw.choice(VALUES)}"
        path.write_text("\n".join(lines))
    called(fc.load_scenario, path)
    command(["simulate", "dcqcn", "--topology", str(path), *SHORT, "--engine", "packet", "--json"])


def a_result_file(draw: random.Random, folder: Path) -> None:
    whole = folder / "t.nc"
    if not whole.exists():
        fc.simulate(fc.incast(2), "100us", engine="packet").save(whole)
    text = whole.read_bytes()
    (folder / "cut.nc").write_bytes(text[: draw.randrange(len(text))] if draw.random() < 0.3 else mutated(draw, text))
    found = called(fc.load, folder / "cut.nc")
    if found is not None:
        repr(found)
        found._repr_html_()


def an_object(draw: random.Random, folder: Path) -> None:
    """Anything in place of a value, of a builder, a scheme or a part of the network."""
    junk = draw.choice(OBJECTS)
    kind = draw.choice([*SCHEMES.values(), fc.RED, fc.PFC, "incast", "parking_lot", "chain", "simulate", "network"])
    if kind is fc.RED:
        given = {"kmin": "5KB", "kmax": "200KB", draw.choice([*specs(fc.RED)]): junk}
        called(lambda: fc.incast(2, marking=fc.RED(**given)))
    elif kind is fc.PFC:
        called(lambda: fc.incast(2, pfc=fc.PFC(**{draw.choice([*specs(fc.PFC)]): junk})))
    elif kind == "simulate":
        name = draw.choice(["until", "window", "engine", "seed", "dt", "method", "dtype", "sample_interval"])
        until = junk if name == "until" else "100us"
        if (name == "until" and isinstance(junk, (int, float, np.number, np.ndarray))) or hasattr(junk, "devices"):
            until = "100us"  # a second and more
        options = {} if name == "until" else {name: junk}
        called(lambda: fc.simulate(fc.incast(2), until, **{"engine": "packet", **options}))
    elif isinstance(kind, str):
        names = ["rate", "delay", "scheme", "marking", "start", "size", "initial_rate", "feedback_delay", "pfc",
                 "packet_size", "header_bytes", "buffer", "classes", "failures", "storms", "preset"]  # fmt: skip
        make = {"parking_lot": fc.parking_lot, "chain": fc.chain}.get(kind, fc.incast)
        called(lambda: make(**{draw.choice(names): junk}))
    else:
        called(lambda: fc.incast(2, scheme=kind(**{draw.choice([*specs(kind)]): junk})))


def a_part(draw: random.Random, folder: Path) -> None:
    """Anything in place of a field of a link, a flow or a scenario, which is then run."""
    scenario = fc.incast(2)
    link, flow = scenario.links[0], scenario.flows[0]
    whole = draw.choice([scenario, link, flow])
    names = [field.name for field in dataclasses.fields(whole)]
    junk = draw.choice(OBJECTS)

    def resolved() -> Any:
        changed: Any = dataclasses.replace(whole, **{draw.choice(names): junk})
        if whole is link:
            changed = dataclasses.replace(scenario, links=(changed,))
        elif whole is flow:
            changed = dataclasses.replace(scenario, flows=(changed,))
        fc.save_scenario(changed, folder / "p.toml")

    called(resolved)


KINDS = [a_run, an_analysis, a_comparison, a_sweep, a_name, a_value_out_of_range, a_configuration, a_scenario_file,
         a_result_file, an_object, an_object, an_object, a_part, a_part]  # fmt: skip


@contextlib.contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """An alarm, where the system has one."""

    def late(*_: object) -> None:
        raise WrongError(f"no answer within {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(numbers: Iterator[int], seconds: float) -> tuple[Counter[str], list[str]]:
    """Try inputs by their numbers until time is up; how many of which kind, and what was wrong."""
    began, tried, wrong = time.monotonic(), Counter[str](), []
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for number in numbers:
            if time.monotonic() - began > seconds:
                break
            draw = random.Random(number)
            kind = KINDS[number % len(KINDS)]
            tried[kind.__name__] += 1
            try:
                with bounded(HANG):
                    kind(draw, Path(name))
            except (Exception, SystemExit) as error:
                wrong.append(f"{number} {kind.__name__}: {type(error).__name__}: {str(error)[:300]}")
    return tried, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count) if given.only is None else [given.only]
    tried, wrong = fuzz(iter(numbers), given.seconds)
    print(f"{sum(tried.values())} inputs: {dict(tried)}")
    print("\n".join(wrong) or "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
