"""Figures that every run of the tests makes: one of each paper; `make test-slow` makes all of them."""

import pytest

KEPT = {"dcqcn-fig9", "hpcc-fig9ab", "acc-fig10", "fairness-fig8"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("name")
        if getattr(item, "originalname", "") in ("test_figure", "test_slowdowns") and name not in KEPT:
            item.add_marker(pytest.mark.slow)
