import numpy as np
import pytest

from fluidcc.proofs.hpcc import fig10, fig12
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.study import interval
from fluidcc.workloads.fabrics.traffic import Traffic
from tests.proofs.figures import made

PIXELS = {  # width and height of every picture
    "hpcc-fig2": (2340, 1125),
    "hpcc-fig3": (1755, 1125),
    "hpcc-fig10": (2340, 2175),
    "hpcc-fig11": (2340, 1125),
    "hpcc-fig12": (2340, 1125),
}


# One test per figure, so that each is made once however the tests are spread over processes.
@pytest.mark.parametrize("name", PIXELS)
def test_figure(name, tmp_path):
    result, data = made(name, tmp_path, PIXELS[name])
    values = result.values
    assert float(data["flows"].sum() + data["unfinished"].sum()) == values["flows"]
    assert float(data["unfinished"].sum()) == values["unfinished"]
    assert any("had not finished" in note for note in result.notes) == (values["unfinished"] > 0)
    # What a claim's interval says and its verdict go together, and both are told.
    judged = [key.removesuffix("_holds") for key in values if key.endswith("_holds")]
    assert judged
    for key in judged:
        assert not (values[f"{key}_holds"] and values[f"{key}_fails"])
    assert sum(" 95 % interval " in note for note in result.notes) == len(judged)
    # The same flows for every scheme.
    flows = (data["flows"] + data["unfinished"]).values
    assert (flows == flows[:, :1, :]).all()
    CHECKS[name](values, data)


def check_2(values, data):
    both = ["55us, 50us", "300us, 4us"]
    stopped = data["paused_s"].sel(traffic="30 % + incast").sum("tier")
    less = stopped.sel(scheme=both[0]) - stopped.sel(scheme=both[1])
    assert float(less.mean()) > 0  # what cuts its rate each 50 us pauses more than what does so each 4
    ports = 2 * (4 * 16 + 4 * 2)
    assert values["incast_paused_55_50_to_300_4"] == pytest.approx(float(less.mean()) / ports / 0.6e-3)


def check_3(values, data):
    # Marking sets in sooner, and queues are shorter.
    queues = data["queue_p99"].mean("seed")
    for traffic in data["traffic"].values:
        assert (np.diff(queues.sel(traffic=traffic).values) > 0).all()
    for at in ("30", "50"):
        assert values[f"p95_big_12_{at}"] > values[f"p95_big_100_{at}"] > values[f"p95_big_400_{at}"]


def check_10(values, data):
    for at, traffic in (("racks_30", "racks' links at 30 %"), ("nics_50", "NICs at 50 %")):
        found = data["queue_p99"].sel(traffic=traffic)
        mean, low, high = np.exp(interval(np.log(found.sel(scheme="HPCC") / found.sel(scheme="DCQCN"))))
        assert values[f"queue_p99_ratio_{at}"] == pytest.approx(mean)
        assert values[f"queue_p99_ratio_{at}_low"] == pytest.approx(low)
        assert values[f"queue_p99_ratio_{at}_high"] == pytest.approx(high)
        assert high < 0.1
    assert float(data["bin_flows"].isel(bin=0).min()) > 0
    assert float(data["to_bytes"].isel(traffic=0, bin=0)) == fig10.SHORT[1]
    # The racks' links carry what was asked for.
    topology = named_topology("testbed")
    rows = np.array(Traffic("web-search", load=fig10.TRAFFIC["racks' links at 50 %"][0], until="1s").rows(topology, 1))
    across = rows[:, 0] // fig10.NICS != rows[:, 1] // fig10.NICS
    up = rows[across, 3].sum() / fig10.RACKS / (fig10.UPLINK * 1e9 / 8)
    assert up == pytest.approx(0.5, rel=0.05)


def check_11(values, data):
    # Whatever limits what is under way keeps queues shorter than what does not.
    queues = data["queue_p99"].sel(traffic="50 %").mean("seed")
    for name in ("DCQCN", "TIMELY"):
        assert float(queues.sel(scheme=f"{name}+win")) < float(queues.sel(scheme=name))
    assert float(queues.sel(scheme="HPCC")) == float(queues.min())
    assert values["half_HPCC_over_DCQCN_p95_short_holds"]


def check_12(values, data):
    # The same flows drop nothing with PFC; without it they are sent again, IRN's window lets few be lost.
    drops = data["drops"].sel(traffic="30 % + incast").sum("seed")
    assert float(data["drops"].sel(traffic="50 %").sum()) == 0  # queues stay short
    assert float(drops.sel(scheme=["DCQCN_PFC", "HPCC_PFC"]).sum()) == 0
    assert float(drops.sel(scheme="DCQCN_GBN")) > 0
    assert float(drops.sel(scheme="DCQCN_IRN")) < float(drops.sel(scheme="DCQCN_GBN"))
    assert float(data["pfc_pauses"].sel(scheme=[f"DCQCN_{c}" for c in fig12.CONTROL if c != "PFC"]).sum()) == 0


CHECKS = {
    "hpcc-fig2": check_2,
    "hpcc-fig3": check_3,
    "hpcc-fig10": check_10,
    "hpcc-fig11": check_11,
    "hpcc-fig12": check_12,
}
