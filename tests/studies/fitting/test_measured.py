"""What was measured, from tables and traces."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.studies.fitting.measured import Measured, _column, checked, measured_of

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


def test_an_interval_keeps_both_of_its_ends() -> None:
    time = 1e-3 * np.arange(1.0, 6.0)
    whole = Measured(time, np.arange(5.0), np.arange(10.0).reshape(5, 2), "l", True)
    part = whole.between(2e-3, 4e-3)
    assert part.time.tolist() == time[1:4].tolist()
    assert part.queue is not None
    assert part.rates is not None
    assert part.queue.tolist() == [1.0, 2.0, 3.0]
    assert part.rates.tolist() == [[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert (part.link, part.paced) == ("l", True)
    assert whole.between(2e-3 + 5e-13, 4e-3 - 5e-13).time.tolist() == part.time.tolist()  # as text rounds them
    assert whole.between(2.1e-3, 3.9e-3).time.tolist() == [time[2]]
    assert Measured(time, None, None).between(0.0, 1.0).queue is None
    assert Measured(time, None, None).interval == pytest.approx(1e-3)
    assert Measured(np.array([0.0, 1.0, 2.0, 7.0]), None, None).interval == 1.0  # the usual one


def test_at_other_times_queues_are_between_and_rates_keep_bytes() -> None:
    """A rate is that of the second before its sample: 2 and 6 bytes make 4 a second over both; gaps carry nothing."""
    fine = Measured(np.arange(1.0, 7.0), 10 * np.arange(1.0, 7.0), np.array([[2.0], [6.0], [1.0], [3.0], [5.0], [9.0]]))
    coarse = fine.at(np.array([2.0, 4.0, 5.5]))
    assert coarse.queue is not None
    assert coarse.rates is not None
    assert coarse.time.tolist() == [2.0, 4.0, 5.5]
    assert coarse.queue.tolist() == [20.0, 40.0, 55.0]
    assert coarse.rates[:, 0] == pytest.approx([2.0, 2.0, (5.0 + 9.0 / 2) / 1.5])  # the first has none before it
    assert fine.at(np.array([1.0, 2.0])).rates == pytest.approx(np.array([[6.0], [6.0]]))
    hole = Measured(np.arange(1.0, 4.0), None, np.array([[2.0], [np.nan], [4.0]]))
    found = hole.at(np.array([1.0, 3.0]))
    assert found.queue is None
    assert found.rates == pytest.approx(np.array([[2.0], [2.0]]))
    assert Measured(np.arange(3.0), np.arange(3.0), None).at(np.array([0.5])).rates is None


def samples(count: int = 50, queue: Any = 1.0, rates: Any = None) -> Measured:
    """Samples of a queue of 1 byte, or with another at the last."""
    column = None if queue is None else np.r_[np.ones(count - 1), queue]
    return Measured(np.arange(float(count)), column, rates)


@pytest.mark.parametrize(
    "found",
    [
        samples(50),  # just enough
        samples(50, queue=0.0),
        samples(50, None, np.zeros((50, 2))),  # a sender may be silent
        samples(50, None, np.full((50, 1), np.nan)),
        Measured(np.arange(50.0), np.zeros(50), np.ones((50, 1))),  # an empty queue beside rates
    ],
)
def test_samples_that_can_be_fitted_pass_as_they_are(found: Measured) -> None:
    assert checked(found, "here") is found


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (samples(49), "here: 49 samples are too few; give 50 or more"),
        (samples(50, queue=-1.0), "queue is negative or no number"),
        (samples(50, queue=np.nan), "queue is negative or no number"),
        (samples(50, queue=np.inf), "queue is negative or no number"),
        (samples(50, None, np.r_[np.ones(49), -1.0][:, None]), "rate is negative or infinite"),
        (samples(50, None, np.r_[np.ones(49), np.inf][:, None]), "rate is negative or infinite"),
        (Measured(np.arange(50.0), np.zeros(50), None), "empty throughout"),
        (Measured(np.r_[np.arange(49.0), 48.0], np.ones(50), None), "times do not grow"),  # twice the same
        (Measured(np.r_[np.arange(49.0), np.nan], np.ones(50), None), "times do not grow"),
        (Measured(np.r_[np.arange(49.0), np.inf], np.ones(50), None), "times do not grow"),
        (Measured(np.arange(50.0), None, None), "neither a queue nor rates"),
    ],
)
def test_samples_that_cannot_be_fitted_are_refused(found: Measured, says: str) -> None:
    with pytest.raises(fc.InputError, match=says):
        checked(found, "here")


@pytest.mark.parametrize(
    ("text", "role", "factor"),
    [
        ("time", "time", 1.0),
        ("t_us", "time", 1e-6),
        ("Time [ms]", "time", 1e-3),
        ("time_seconds", "time", 1.0),
        ("queue_bytes", "queue", 1.0),
        ("q_KB", "queue", 1e3),
        ("queue_bytes_2", "queue", 1.0),  # a name, not a unit
        ("f3_Gbps", "rate", 1.25e8),
        ("rate [bytes/s]", "rate", 1.0),
        ("pacing_rate_Mbps", "pacing", 1.25e5),
    ],
)
def test_a_columns_name_says_its_role_and_unit(text: str, role: str, factor: float) -> None:
    found = _column(text, Path("m.csv"))
    assert found == (role, pytest.approx(factor))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """The system's word where it has one, and else that it is no table."""
    (tmp_path / "junk.csv.gz").write_bytes(b"no gzip at all")
    (tmp_path / "odd.csv").write_bytes(b"time,q\n\xff\xfe\n")
    for name, says in (("gone.csv", "No such file"), ("junk.csv.gz", "no table"), ("odd.csv", "no table")):
        with pytest.raises(fc.InputError, match=rf"{name}: {says}.*; give NetCDF"):
            measured_of(tmp_path / name)


def test_comments_and_empty_lines_are_no_samples(tmp_path: Path) -> None:
    rows = "".join(f"{t},1\n" for t in TIME)
    (tmp_path / "m.csv").write_text(f"# made by hand\n\ntime_us,q\n  # and so on\n{rows}")
    assert len(measured_of(tmp_path / "m.csv").time) == 100
    (tmp_path / "m.csv").write_text("time_us,q\n")
    with pytest.raises(fc.InputError, match="holds no samples"):
        measured_of(tmp_path / "m.csv")
