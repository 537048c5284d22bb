"""What was measured, from tables and traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.studies.fitting.measured import Measured, measured_of

TIME = np.arange(1, 101)


def table(tmp_path: Path, header: str, *columns: np.ndarray, name: str = "m.csv") -> str:
    """A table of columns, as a file."""
    rows = "\n".join(",".join(f"{value:g}" for value in row) for row in zip(*columns, strict=True))
    (tmp_path / name).write_text(f"{header}\n{rows}\n")
    return str(tmp_path / name)


@pytest.mark.parametrize(
    ("header", "time", "queue", "rate"),
    [
        ("time_us,queue_bytes,rate_Gbps", 1e-6, 1.0, 1.25e8),
        ("t,q,f0", 1.0, 1.0, 1.0),
        ("time [ms],queue [KB],rate [Mbps]", 1e-3, 1e3, 1.25e5),
        ("t_ns,q_bytes_0_1,f0_Mbps", None, 1.0, 1.25e5),
    ],
)
def test_columns_have_the_units_that_their_names_say(
    header: str, time: float | None, queue: float, rate: float, tmp_path: Path
) -> None:
    found = measured_of(table(tmp_path, header, TIME, 2.0 * TIME, 3.0 * TIME))
    assert found.queue is not None
    assert found.rates is not None
    np.testing.assert_allclose(found.time, TIME * (time or 1e-9))
    np.testing.assert_allclose(found.queue, 2 * TIME * queue)
    np.testing.assert_allclose(found.rates[:, 0], 3 * TIME * rate)
    assert not found.paced


def test_pacing_rates_and_gzip_and_gaps(tmp_path: Path) -> None:
    text = "# a comment\ntime_us,pacing_rate_Gbps,pacing_rate_Gbps\n" + "".join(f"{t},8,\n" for t in TIME)
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    found = measured_of(path)
    assert found.rates is not None
    assert found.paced
    assert found.queue is None
    assert found.rates.shape == (100, 2)
    assert (found.rates[:, 0] == 1e9).all()
    assert np.isnan(found.rates[:, 1]).all()


def test_a_trace_and_its_file_are_the_same(tmp_path: Path) -> None:
    trace = fc.simulate(fc.incast(2), "1ms", engine="packet", sample_interval="10us")
    trace.save(tmp_path / "t.nc")
    one, other = measured_of(trace), measured_of(tmp_path / "t.nc")
    assert one.link == other.link
    assert one.queue is not None
    assert one.rates is not None
    np.testing.assert_array_equal(one.queue, other.queue)
    np.testing.assert_array_equal(one.rates, other.rates)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no samples"),
        ("time_us,speed\n1,2\n", "cannot tell what column 'speed'"),
        ("queue_bytes\n1\n", "0 columns of time"),
        ("time_us,q,queue\n1,2,3\n", "2 columns of queue"),
        ("time_us,q\n1,2,3\n", "line 2 has 3 entries"),
        ("time_us,q\n1,x\n", "is no number"),
        ("time_us,rate,pacing_rate\n" + "".join(f"{t},1,1\n" for t in TIME), "both rates and pacing rates"),
        ("time_us\n" + "".join(f"{t}\n" for t in TIME), "neither a queue nor rates"),
        ("time_us,q\n1,2\n2,3\n", "2 samples are too few"),
        ("time_us,q\n" + "".join(f"{100 - t},1\n" for t in TIME), "times do not grow"),
        ("time_us,q\n" + "".join(f"{t},-1\n" for t in TIME), "a queue is negative"),
        ("time_us,q\n" + "".join(f"{t},0\n" for t in TIME), "empty throughout"),
        ("time_us,rate\n" + "".join(f"{t},inf\n" for t in TIME), "a rate is negative or infinite"),
        ("time_parsecs,q\n1,2\n", "time_parsecs"),
    ],
)
def test_a_table_that_is_none_is_refused_in_a_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(fc.InputError, match=r"m\.csv") as caught:
        measured_of(tmp_path / "m.csv")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("trace", ["gone.csv", "m.txt", "gone.nc", 3, None])
def test_what_is_no_trace_is_refused(trace: object) -> None:
    with pytest.raises(fc.InputError):
        measured_of(trace)


def test_rates_at_other_times_keep_the_bytes() -> None:
    random = np.random.default_rng(1)
    time = np.arange(1, 1001) * 1e-6
    fine = Measured(time, None, random.uniform(0, 1e9, (1000, 2)))
    coarse = fine.at(time[9::10])
    assert coarse.rates is not None
    assert fine.rates is not None
    np.testing.assert_allclose(coarse.rates[5], fine.rates[50:60].mean(axis=0), rtol=1e-9)
