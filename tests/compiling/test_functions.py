"""Compiled functions: the same bits from files, never other physics, no more than the bound, once for all threads."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import fluidcc as fc
from fluidcc.compiling import folder, functions
from fluidcc.compiling.functions import per_shape
from fluidcc.schemes.dcqcn import fluid as dcqcn_fluid

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty folder, and a process that holds nothing."""
    kept = functions._held.copy()
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(folder, "_said", set())
    forget()
    yield tmp_path / "cache"
    functions._held.clear()
    functions._held.update(kept)


def forget() -> None:
    """As in the next process."""
    functions._held.clear()


def numbers(scenario: fc.Scenario) -> dict[str, Any]:
    trace = fc.simulate(scenario, "200us", estimate_error=False)
    values = {name: trace[name].values for name in trace.dataset}
    return values | {name: value for name, value in trace.summary.items() if name not in ("compile_s", "wall_s")}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        np.array_equal(a[n], b[n], equal_nan=True) if isinstance(a[n], np.ndarray) else a[n] == b[n] for n in a
    )


SCENARIOS = {
    "dcqcn": lambda: fc.incast(3, initial_rate=["24Gbps", "17Gbps", "5Gbps"]),
    "hpcc": lambda: fc.parking_lot(2, scheme=fc.HPCC(), rate="100Gbps", size=["40KB", float("inf")]),
}


@pytest.mark.parametrize("name", ["dcqcn", pytest.param("hpcc", marks=pytest.mark.slow)])
def test_the_same_bits_compiled_and_loaded_and_without_files(
    name: str, monkeypatch: pytest.MonkeyPatch, cold: Path
) -> None:
    compiled = numbers(SCENARIOS[name]())
    assert len(list(cold.glob("jax-*/fluidcc*"))) == 2
    forget()
    with monkeypatch.context() as patched:

        def traced(*_: Any, **__: Any) -> None:
            raise AssertionError("traced again")

        patched.setattr(jax, "jit", traced)
        loaded = numbers(SCENARIOS[name]())
    forget()
    monkeypatch.setenv("FLUIDCC_JAX", "off")
    alone = numbers(SCENARIOS[name]())
    assert same(compiled, loaded)
    assert same(compiled, alone)


def test_a_process_that_only_loads_has_linear_algebra(cold: Path) -> None:
    """JAX looks LAPACK up as it lowers; what was loaded called a function at address 0."""
    code = (
        "import fluidcc; from fluidcc.compiling.functions import per_shape; import jax.numpy as jnp, numpy as np;"
        "print(per_shape()(lambda x: jnp.linalg.eigvals(x))(np.diag([1.0, 2.0])).tolist())"
    )
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        assert len(list(cold.glob("jax-*/*"))) == 1
    assert said[0] == said[1]


def test_replaced_code_is_neither_given_nor_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who tries other physics in a session must get them, and the next session must not."""
    scenario = SCENARIOS["dcqcn"]
    published = numbers(scenario())
    original = dcqcn_fluid.derivative

    def slower(*arguments: Any, **keywords: Any) -> Any:
        return jax.tree.map(lambda slope: 0.5 * slope, original(*arguments, **keywords))

    forget()
    with monkeypatch.context() as patched:
        patched.setattr(dcqcn_fluid, "derivative", slower)
        other = numbers(scenario())
    forget()
    again = numbers(scenario())
    assert not np.array_equal(other["queue"], published["queue"])
    assert same(published, again)


@pytest.mark.slow
def test_a_replaced_constant_counts_too(monkeypatch: pytest.MonkeyPatch, cold: Path) -> None:
    from fluidcc.dde import stepping

    numbers(SCENARIOS["dcqcn"]())
    files = set(cold.rglob("*begin*"))
    forget()
    other = dataclasses.replace(stepping.HEUN, weights=(1.0, 0.0))
    monkeypatch.setitem(stepping.METHODS, "heun", other)
    numbers(SCENARIOS["dcqcn"]())
    assert set(cold.rglob("*begin*")) != files


@pytest.mark.slow
def test_the_name_of_a_file_is_the_same_in_every_process_whatever_it_did_before(cold: Path) -> None:
    code = "import fluidcc as fc\n{}\nfc.simulate(fc.incast(2), '50us', estimate_error=False)"
    before = "import fluidcc.plotting.traces, fluidcc.engines.packet.run; fc.measure(fc.incast(2), until='64us')"
    counts = []
    for first in (before, "pass"):
        subprocess.run([sys.executable, "-c", code.format(first)], check=True, cwd=ROOT)
        counts.append(len([path for path in cold.glob("jax-*/*") if "fluid.engine" in path.name]))
    assert counts == [2, 2]


@pytest.mark.parametrize("setting", ["jax_enable_compilation_cache", "jax_default_device"])
def test_nothing_is_kept_where_the_user_wants_none_or_computes_elsewhere(setting: str, cold: Path) -> None:
    before = jax.config.values[setting]
    add = per_shape()(lambda x: x + 1)
    try:
        jax.config.update(setting, False if before is True else jax.devices()[0])
        assert float(add(np.float32(1))) == 2
    finally:
        jax.config.update(setting, before)
    assert not list(cold.glob("jax-*/*"))
    functions._held.clear()
    add(np.float32(1))
    assert len(list(cold.glob("jax-*/*"))) == 1


def test_classes_from_elsewhere_are_compiled_but_not_kept(cold: Path) -> None:
    """Their code is not in the digest of ours."""

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Foreign:
        x: Any

    double = per_shape()(lambda value: 2 * value.x)
    double.function.__module__ = "fluidcc.somewhere"
    assert float(double(Foreign(jnp.float32(3)))) == 6
    assert not list(cold.glob("jax-*/*"))


def doubled() -> float:
    """A small function of one shape, compiled or loaded."""
    return float(per_shape()(lambda x: 2 * x)(np.float32(3)))


@pytest.fixture
def jaxs_own(tmp_path: Path) -> Iterator[None]:
    """JAX's own cache, switched on as a user may have it."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
             "jax_persistent_cache_min_entry_size_bytes")  # fmt: skip
    before = {name: jax.config.values[name] for name in names}
    for name, value in zip(names, (str(tmp_path / "jaxs"), 0.0, -1), strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_what_jaxs_own_cache_gives_is_not_kept(jaxs_own: None, cold: Path) -> None:
    """Written again it would lack its machine code: the next process could load it, and not call it."""
    assert doubled() == 6
    (path,) = cold.glob("jax-*/*")
    path.unlink()
    for _ in range(2):
        forget()
        assert doubled() == 6
        assert not list(cold.glob("jax-*/*"))


@pytest.mark.parametrize("damage", ["cut", "emptied", "altered"])
def test_damaged_files_are_made_anew_with_one_line(damage: str, cold: Path) -> None:
    doubled()
    (path,) = cold.glob("jax-*/*")
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "cut": content[:middle],
            "emptied": b"",
            "altered": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        }[damage]
    )
    forget()
    with pytest.warns(UserWarning, match="damaged") as said:
        assert doubled() == 6
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doubled() == 6


def test_a_file_of_somebody_else_is_not_loaded(monkeypatch: pytest.MonkeyPatch, cold: Path) -> None:
    doubled()
    forget()
    loaded: list[Any] = []
    monkeypatch.setattr(functions.pickle, "loads", lambda content: loaded.append(content))
    monkeypatch.setattr(folder.os, "getuid", lambda: 4321)
    with pytest.warns(UserWarning, match="belongs to somebody else"):
        assert doubled() == 6
    assert loaded == []


# -- what a process holds ------------------------------------------------------------------------------------


def test_the_least_recently_used_are_let_go_and_the_user_s_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MOST", 3)
    traced = []

    @jax.jit
    def own(x: Any) -> Any:
        traced.append(1)
        return 2 * x

    add = per_shape()(lambda x, *, n: x + n)
    for n in (0, 1, 2, 0, 3):
        assert float(add(np.float32(1), n=n)) == 1 + n
        own(1.0)
        assert functions.held() <= 3
    made = functions.made
    add(np.float32(1), n=0)  # used after 1 and 2
    assert functions.made == made
    add(np.float32(1), n=1)
    assert functions.made == made + 1
    assert traced == [1]


def test_threads_that_ask_for_the_same_shape_compile_it_once() -> None:
    traced, gate = [], threading.Barrier(8)

    def slow(x: Any) -> Any:
        traced.append(1)
        return jnp.sin(x)

    shared = per_shape()(slow)

    def ask(_: int) -> float:
        gate.wait()
        return float(shared(np.float32(0.5)))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(set(found)) == 1
    assert traced == [1]


def test_a_failure_is_raised_and_the_next_may_try() -> None:
    broken = [True]

    def sometimes(x: Any) -> Any:
        if broken[0]:
            raise ValueError("not now")
        return x

    tried = per_shape()(sometimes)
    for _ in range(2):
        with pytest.raises(ValueError, match="not now"):
            tried(np.float32(1))
    broken[0] = False
    assert float(tried(np.float32(1))) == 1


def test_inside_a_user_s_transformation_it_is_traced_like_any_function() -> None:
    square = per_shape()(lambda x: x * x)
    assert float(jax.grad(square)(3.0)) == 6.0
    assert jax.vmap(square)(jnp.arange(3.0)).tolist() == [0, 1, 4]


def test_measure_compiles_once_per_shape() -> None:
    with jax.enable_x64(True):
        first = fc.measure(fc.incast(2), until="50us")
        made = functions.made
        second = fc.measure(fc.incast(2, marking=fc.RED("6KB", "200KB", "1%")), until="50us")
    assert functions.made == made
    assert first.keys() == second.keys()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="counts the memory maps of Linux")
@pytest.mark.slow
def test_a_long_session_does_not_use_up_its_memory_maps() -> None:
    """Of each shape of problem the machine code was kept for ever; a process that had run a thousand tests crashed.

    Once the bound is reached, within the first half, the maps stay. (300 shapes with 40 held:
    `python -m benchmarks.memory_maps`.)
    """
    command = [sys.executable, "-m", "benchmarks.memory_maps", "12", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    counts = [int(count) for count in done.stdout.split()]
    assert max(counts[6:]) < 1.3 * max(counts[:6]), counts


def test_what_is_compiled_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its kind and how long it takes; what is held already is not."""
    said: list[str] = []

    @contextlib.contextmanager
    def waiting(text: str, **options: object) -> Iterator[None]:
        said.append(text)
        yield

    monkeypatch.setattr(functions, "waiting", waiting)
    made = functions.PerShape(lambda x: x + 1.0, (), (), {})
    assert [float(made(np.float64(k))) for k in range(2)] == [1.0, 2.0]
    (text,) = said
    assert text.startswith("compiling ")
    assert text.endswith("(1 to 10 s, once for scenarios of this shape)")
