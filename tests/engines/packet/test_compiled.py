"""The same physics from plain Python, which checks every index, and from machine code; no missing helper."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding
from numba.core.codegen import CPUCodegen

import fluidcc as fc
from fluidcc.engines.common.jit import sources
from fluidcc.engines.packet.engine import run

ROOT = Path(__file__).parents[3]

# A parking lot with all there is: marking, TCD, PFC, a storm, CNPs, telemetry, classes.
SMALL = """
import dataclasses, json, sys
import fluidcc as fc
marking = fc.RED("3KB", "30KB", 0.2, max_on="7us")
scenario = fc.parking_lot(4, rate="40Gbps", delay="300ns", scheme=fc.HPCC(), marking=marking,
                          buffer="300KB", pfc=fc.PFC(alpha=1 / 16), header_bytes=48, start=["0s", "2us", "5us"],
                          size=["40KB", float("inf")], classes=(fc.TrafficClass(), fc.TrafficClass(1, 2)),
                          storms=(fc.Storm("link 2", "10us", "6us"), fc.Storm("link 3", "30us", "4us")))
scheme = fc.DCQCN(timer="10us", cnp_interval="5us", alpha_timer="7us", byte_counter="9KB", hyper_increase=True,
                  tcd=True)
others = {1: scheme, 2: fc.ACC(extension="inflight"), 3: fc.TIMELY(tcd=True, t_low="5us", t_high="20us")}
flows = [dataclasses.replace(f, scheme=others.get(i, f.scheme), traffic_class=i % 2)
         for i, f in enumerate(scenario.flows)]
trace = fc.simulate(dataclasses.replace(scenario, flows=tuple(flows)), UNTIL, engine="packet", seed=3, log=True)
summary = {k: v for k, v in trace.summary.items() if k not in ("compile_s", "wall_s")}
log = trace.dataset[[n for n in trace.dataset if n.startswith("event_")]].to_dataframe().to_csv()
import hashlib
found = [summary, hashlib.sha256(log.encode()).hexdigest(), len(log)]
"""


# And what a fabric has: flows in order, sprayed packets, loss and IRN.
SPRAYED = """
import hashlib, json
import fluidcc as fc
from fluidcc.workloads.fabrics import named_topology
fabric = named_topology("leaf-spine:2x2x2", fabric_rate="100Gbps")
rows = [(0, 2, 0, "60KB"), (1, 3, 0, "60KB"), (2, 0, "1us", "20KB", (0, 1)), (1, 2, 0, "20KB", (0,), "receipt")]
scenario = fabric.scenario(rows, scheme="hpcc", preset="hpcc-eval", load_balancing="packet", loss_recovery="irn",
                           loss=0.02, failures=(fc.Failure("4->6", "4us", "2us"),))
trace = fc.simulate(scenario, UNTIL, engine="packet", seed=3, log=True)
summary = {k: v for k, v in trace.summary.items() if k not in ("compile_s", "wall_s")}
log = trace.dataset[[n for n in trace.dataset if n.startswith("event_")]].to_dataframe().to_csv()
found = [summary, hashlib.sha256(log.encode()).hexdigest(), len(log)]
"""


# Trimmed headers, beside loss and several classes; windows in payload.
TRIMMED = """
import hashlib, json
import fluidcc as fc
from fluidcc.workloads.fabrics import named_topology
fabric = named_topology("leaf-spine:2x2x4", fabric_rate="100Gbps")
rows = [(source, 4, 0, "30KB") for source in (0, 1, 2, 5)]
scenario = fabric.scenario(rows, scheme="nscc", preset="paper", load_balancing="packet", loss_recovery="trimming",
                           trim_above="5KB", loss=0.01, buffer="60KB", window_unit="payload", header_bytes=48,
                           classes=(fc.TrafficClass(), fc.TrafficClass(1, 2)))
trace = fc.simulate(scenario, UNTIL, engine="packet", seed=3, log=True)
summary = {k: v for k, v in trace.summary.items() if k not in ("compile_s", "wall_s")}
assert summary["trims"] > 10 and None not in summary["fct_s"]
log = trace.dataset[[n for n in trace.dataset if n.startswith("event_")]].to_dataframe().to_csv()
found = [summary, hashlib.sha256(log.encode()).hexdigest(), len(log)]
"""


def python(code: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CASES = {"pfc": (SMALL, "60us"), "sprayed": (SPRAYED, "1ms"), "trimmed": (TRIMMED, "1ms")}


def text(code: str, until: str) -> str:
    return code.replace("UNTIL", repr(until))


@cache
def small(code: str, until: str) -> Any:
    """Results found in this process, from machine code."""
    names: dict[str, Any] = {}
    exec(text(code, until), names)
    return json.loads(json.dumps(names["found"]))


def elsewhere(*cases: tuple[str, str], **environment: str) -> list[Any]:
    """The same in another process, all cases in one."""
    lines = (f"exec({text(*case)!r}, names := {{}}); print(json.dumps(names['found']))" for case in cases)
    return [json.loads(line) for line in python("\n".join(["import json", *lines]), **environment).splitlines()]


@pytest.mark.slow
def test_plain_python_gives_the_same_bits() -> None:
    for name, plain in zip(CASES, elsewhere(*CASES.values(), NUMBA_DISABLE_JIT="1"), strict=True):
        compiled = small(*CASES[name])
        assert compiled[0]["packets"] > 100, name
        assert plain == compiled, name


def test_the_second_case_has_all_of_it() -> None:
    summary = small(*CASES["sprayed"])[0]
    assert summary["reordered"] > 0 < summary["retransmissions"]
    assert None not in summary["fct_s"] + summary["began_s"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the symbols of an ELF file")
def test_machine_code_calls_only_what_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM may emit a call of a helper that nobody provides (__udivti3): a null call, and a crash."""
    fc.simulate(fc.incast(1), "1us", engine="packet")
    loaded: list[Any] = []
    unserialize = CPUCodegen.unserialize_library

    def noted(codegen: Any, serialized: Any) -> Any:
        loaded.append(serialized)
        return unserialize(codegen, serialized)

    monkeypatch.setattr(CPUCodegen, "unserialize_library", noted)
    loop: Any = run
    (arguments,) = loop.overloads
    loop._cache.load_overload(arguments, loop.targetctx)  # the file from which other processes take it
    ((_, kind, (code, _)),) = loaded
    assert kind == "object"
    outside = undefined_symbols(code)
    assert "log" in outside  # the search finds calls
    assert [name for name in outside if binding.address_of_symbol(name) is None] == []
    assert [name for name in outside if re.fullmatch(r"__\w*(div|mod|mul)[dt]i\d", name)] == []  # here by chance


def undefined_symbols(code: bytes) -> set[str]:
    """What an object file of 64-bit ELF leaves to others: its symbols of no section."""
    sections = {each.name(): each.data() for each in binding.object_file.ObjectFileRef.from_data(code).sections()}
    symbol = np.dtype([("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8", 2)])
    starts = [each["name"] for each in np.frombuffer(sections[b".symtab"], symbol) if each["section"] == 0]
    return {sections[b".strtab"][start:].split(b"\0", 1)[0].decode() for start in starts if start}


def test_an_edited_scheme_gets_a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fluidcc.engines.common import jit

    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    jit.cache_folder.cache_clear()
    before = jit.cache_folder()
    assert str(ROOT) not in before
    edited = tmp_path / "packet.py"
    edited.write_text("# other physics")
    kept = sources("fluidcc.engines.packet.engine")
    monkeypatch.setattr(jit, "sources", lambda *_: [*kept, edited])
    jit.cache_folder.cache_clear()
    assert jit.cache_folder() != before
    monkeypatch.undo()
    jit.cache_folder.cache_clear()


def test_memory_is_that_of_packets_in_flight() -> None:
    """Ten times the time, ten times the packets, the same pool."""
    from fluidcc.engines.packet.build import prepare
    from fluidcc.engines.packet.run import execute, times_of
    from fluidcc.scenario.model import resolve

    pools = []
    for until in ("1ms", "10ms"):
        scenario = resolve(fc.incast(4, rate="100Gbps", scheme=fc.HPCC()))
        sim, _ = execute(prepare(scenario, times_of(scenario, until, None, None), 0), 0)
        pools.append((len(sim.packets), len(sim.calendar)))
    assert pools[0] == pools[1]
