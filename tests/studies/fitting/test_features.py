"""Numbers of a stretch of samples, of signals whose moments, quantiles and spectra are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.studies.fitting.measured import Measured
from fluidcc.studies.fitting.moments import Features, _bands, even, features_of

COUNT, PACKET = 4096, 1e3
TIMES = 1e-5 * np.arange(COUNT)
RAMP = np.linspace(0.0, 1e6, COUNT)


def numbers(features: Features, stretch: Measured) -> dict[str, float]:
    found = features(stretch)
    assert len(found) == len(features.names) == len(set(features.names))
    return dict(zip(features.names, found, strict=True))


def test_a_queue_that_takes_every_value_as_often() -> None:
    """From 0 to 1 MB: mean a half, deviation 1/sqrt(12), quantiles their shares; packets of 1 KB keep logarithms up."""
    stretch = Measured(TIMES, RAMP, None)
    found = numbers(features_of(stretch, PACKET), stretch)
    assert found["queue mean"] == pytest.approx(math.log(501e3), rel=1e-6)
    assert found["queue std"] == pytest.approx(math.log(1e6 / math.sqrt(12) + 1e3), rel=1e-4)
    for share in (5, 25, 50, 75, 95, 99):
        assert found[f"queue p{share}"] == pytest.approx(math.log(share * 1e4 + 4e3), rel=1e-6)
    assert math.sin(found["time without queue"]) ** 2 == pytest.approx(0.004, abs=1 / COUNT)  # below 4 packets


def test_a_tone_is_in_its_band() -> None:
    """Mean of squares A^2/2 in one of eight bands of equal ratio; all others near the floor of 4 packets' squares."""
    amplitude = 100.0
    for tone, band in ((3, 0), (8, 1), (20, 2), (1500, 7)):
        wave = amplitude * np.sin(2 * np.pi * tone * np.arange(COUNT) / COUNT)[:, None]
        found = _bands(7.0 + wave, 0.5)
        assert found.argmax() == band
        edges = np.round(np.geomspace(2, COUNT // 2, 9)).astype(int)
        edges[0] = 0
        size = int(edges[band + 1] - edges[band])
        power = COUNT / 2 * amplitude**2 / 2  # of one sided periodogram, spread over the band's lines
        assert math.exp(found[band]) == pytest.approx(power / size + 1, rel=1e-6)
        assert np.delete(found, band) == pytest.approx(0.0, abs=8.0)
        assert math.exp(found[(band + 3) % 8]) < 1e-3 * power


def test_rates_of_flows() -> None:
    """Two steady flows of 1 and 3 GB/s: sum 4, no steps, a spread of 1; a step up by a tenth is one of arsinh(10 x)."""
    rates = np.ones((COUNT, 1)) * [1e9, 3e9]
    stretch = Measured(TIMES, None, rates)
    features = features_of(stretch, PACKET)
    assert features.width == round(48 * PACKET / 2e9 / 1e-5) == 2
    found = numbers(features, stretch)
    assert found["rate mean"] == pytest.approx(math.log(4e9 + 2e6), rel=1e-9)
    assert found["rate std"] == pytest.approx(math.log(2e6), rel=1e-6)
    assert found["spread of flows"] == pytest.approx(math.log(1e9 + 0.02e9 + 2e6), rel=1e-9)
    assert all(found[f"rate step p{100 * q:g}"] == 0 for q in (0.02, 0.1, 0.5, 0.9, 0.98))
    grown = Measured(TIMES, None, (1e6 * 1.02 ** (np.arange(COUNT) // 2 % 8))[:, None], paced=True)
    one = numbers(features_of(grown, PACKET), grown)
    assert "spread of flows" not in one
    mean = float(np.mean(1e6 * 1.02 ** np.arange(8)))
    low = math.asinh(10 * 0.02 * 1e6 / (1e6 + 0.051 * mean))
    high = math.asinh(10 * 0.02 * 1.02**6 * 1e6 / (1.02**6 * 1e6 + 0.051 * mean))
    assert low < one["rate step p90"] < high
    assert one["rate step p50"] == 0  # each is held for two samples


def test_the_width_of_rates_is_48_packets() -> None:
    for rate, paced, width in ((1e9, False, 5), (1e9, True, 1), (1e12, False, 1), (1e5, False, COUNT // 64)):
        found = features_of(Measured(TIMES, None, np.full((COUNT, 1), rate), paced=paced), PACKET)
        assert (found.width, found.has_queue, found.rates) == (width, False, 1)
    found = features_of(Measured(TIMES, RAMP, None), PACKET)
    assert found == Features(found.interval, PACKET, 1, True, 0)
    assert found.interval == pytest.approx(1e-5)


def test_errors_are_two_packets_and_a_part_of_the_model() -> None:
    """Of a queue far above packets 2 %, of rates 0.5 %; of one of a packet, what up to two more change in the mean."""
    rates = np.full((COUNT, 1), 1e9)
    large = Measured(TIMES, 1e9 + 1e8 * np.sin(TIMES * 1e4), rates)
    features = features_of(large, PACKET)
    errors = dict(zip(features.names, features.errors(large), strict=True))
    assert errors["queue mean"] == pytest.approx(0.02, rel=1e-3)
    assert errors["time without queue"] == pytest.approx(0.02)
    assert all(size == pytest.approx(0.005) for name, size in errors.items() if name.startswith("rate"))
    small = Measured(TIMES, np.full(COUNT, PACKET), rates)
    features = features_of(small, PACKET)
    shift = math.log(3 / 2)  # from 1 and 1 for the floor, to 2 and 1
    found = dict(zip(features.names, features.errors(small), strict=True))
    assert found["queue mean"] == pytest.approx(math.hypot(shift, 0.02), rel=0.02)
    assert found["queue p99"] == pytest.approx(math.hypot(math.log(6.98 / 5), 0.02), rel=0.02)


def test_uneven_samples_are_made_even_and_many_are_thinned() -> None:
    steady = Measured(TIMES, RAMP, None)
    assert even(steady) is steady
    bent = np.r_[TIMES[:100], TIMES[101:]]
    found = even(Measured(bent, np.interp(bent, TIMES, RAMP), None))
    assert np.allclose(np.diff(found.time), 1e-5, rtol=1e-9)
    assert (found.time[0], len(found.time)) == (0.0, COUNT)
    times = 1e-6 * np.arange((1 << 15) + 1)
    assert even(Measured(times[:-1], times[:-1], None)).time.size == 1 << 15
    many = even(Measured(times, 2 * times, None))
    assert np.allclose(np.diff(many.time), 1e-6 * math.ceil(len(times[1:]) / (1 << 15)))
    assert many.time[-1] <= times[-1]
