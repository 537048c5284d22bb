"""Findings and the changes that cure them: names of files, pointers, patches and their way back."""

from __future__ import annotations

from typing import Any

import pytest

from fluidcc.errors import InputError
from fluidcc.operators.commands import Patcher
from fluidcc.operators.config_files import clip, decoded, number
from fluidcc.operators.finding import Change, Finding, set_fields, set_registers
from fluidcc.operators.nvidia_settings import register_of, registers_of, whole_of

BOTH = (*set_fields("QUEUE", "Ethernet1/1|3", wred_profile="W", size=5), *set_registers(RPG_AI_RATE=7))


def test_changes_go_where_they_say() -> None:
    assert (
        Change("switch", "/QUEUE/Ethernet1~11|3/wred_profile", "W"),
        Change("switch", "/QUEUE/Ethernet1~11|3/size", "5"),
        Change("nic", "RPG_AI_RATE_P1", 7),
    ) == BOTH


def test_a_change_of_a_nic_without_a_file_is_left_out() -> None:
    found = Finding("warn", "x", "y", "z", BOTH)
    assert [change.file for change in found.of_files("a.json", "nic.txt").apply] == ["a.json", "a.json", "nic.txt"]
    assert [change.file for change in found.of_files("a.json", None).apply] == ["a.json", "a.json"]


def test_an_asic_goes_before_the_switchs_paths_alone() -> None:
    found = Finding("warn", "x", "y", "z", BOTH)
    assert found.within("") is found
    assert [change.path for change in found.within("asic1").apply] == [
        "/asic1/QUEUE/Ethernet1~11|3/wred_profile",
        "/asic1/QUEUE/Ethernet1~11|3/size",
        "RPG_AI_RATE_P1",
    ]


def test_what_changes_at_a_port_changes_at_each_that_is_set_alike() -> None:
    """Only the first was changed, and Ethernet1 is no part of Ethernet10."""
    own = set_fields("PFC_WD", "Ethernet1", action="drop") + set_fields("WRED_PROFILE", "W", ecn="ecn_all")
    found = Finding("warn", "x", "y", "add PFC_WD|Ethernet1", own).of_ports(("Ethernet1", "Ethernet10", "a/b"))
    assert [change.path for change in found.apply] == [
        "/PFC_WD/Ethernet1/action",
        "/WRED_PROFILE/W/ecn",
        "/PFC_WD/Ethernet10/action",
        "/PFC_WD/a~1b/action",
    ]
    queues = Finding("bad", "x", "y", "", set_fields("BUFFER_PG", "Ethernet1|3-4", profile="p"))
    moved = queues.of_ports(("Ethernet1", "Ethernet2")).apply
    assert [change.path for change in moved] == [f"/BUFFER_PG/Ethernet{each}|3-4/profile" for each in (1, 2)]
    assert found.suggest == "add PFC_WD|Ethernet1; likewise for Ethernet10, a/b"
    assert Finding("warn", "x", "y", "set PFC_WD|Ethernet10").of_ports(("Ethernet1", "E2")).suggest[-1] == "0"
    many = Finding("warn", "x", "y", "at E0").of_ports([f"E{each}" for each in range(7)])
    assert many.suggest == "at E0; likewise for E1, E2, E3, E4 and 2 more"
    assert Finding("warn", "x", "y", "at E0", own).of_ports(("E0",)) == Finding("warn", "x", "y", "at E0", own)


def test_a_patch_changes_what_differs_and_its_undo_goes_backwards() -> None:
    patcher = Patcher({"T": {"k": {"a": "1"}}}, "/asic0")
    patcher.field("T", "k", "a", "1")  # is so already
    assert patcher.patch == patcher.undo == []
    patcher.field("T", "k", "a", "2")
    patcher.field("T", "k", "b", "3")
    assert patcher.patch == [
        {"op": "replace", "path": "/asic0/T/k/a", "value": "2"},
        {"op": "add", "path": "/asic0/T/k/b", "value": "3"},
    ]
    assert patcher.undo == [
        {"op": "remove", "path": "/asic0/T/k/b"},
        {"op": "replace", "path": "/asic0/T/k/a", "value": "1"},
    ]


def test_a_new_entry_keeps_the_fields_that_it_has() -> None:
    """Its old fields and the new ones replace it; so does one that was made just before."""
    patcher = Patcher({"T": {"k": {"a": "1"}}})
    patcher.new("T", "k", {"b": "2"})
    patcher.new("T", "m", {"a": "1"})
    patcher.new("T", "m", {"b": "2"})
    patcher.drop("T", "k")
    assert [(step["op"], step["path"], step.get("value")) for step in patcher.patch] == [
        ("replace", "/T/k", {"a": "1", "b": "2"}),
        ("add", "/T/m", {"a": "1"}),
        ("replace", "/T/m", {"a": "1", "b": "2"}),
        ("remove", "/T/k", None),
    ]
    assert [(step["op"], step["path"], step.get("value")) for step in patcher.undo] == [
        ("add", "/T/k", {"a": "1"}),
        ("replace", "/T/m", {"a": "1"}),
        ("remove", "/T/m", None),
        ("replace", "/T/k", {"a": "1"}),
    ]


# -- numbers of files and registers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "integer", "read"),
    [
        (1, False, 1.0),
        (9, False, 9.0),
        ("1", False, 1.0),
        (" 9 ", False, 9.0),
        ("2.5", False, 2.5),
        ("2.5", True, None),
        ("2.0", True, 2.0),
        (0.999, False, None),
        (9.001, False, None),
        (True, False, None),
        (None, False, None),
        ("2x", False, None),
    ],
)
def test_a_number_of_a_file_is_within_its_range(value: Any, integer: bool, read: float | None) -> None:
    if read is not None:
        assert number(value, "f", "a size", 1, 9, integer=integer) == read
        return
    with pytest.raises(InputError, match=f"^f: .*; write a size, {'a whole number ' * integer}from 1 to 9$"):
        number(value, "f", "a size", 1, 9, integer=integer)


@pytest.mark.parametrize(("value", "read"), [("0" * 63 + "5", 5.0), ("0" * 64 + "5", None), (10**18, 1e18)])
def test_a_number_of_a_file_has_at_most_so_many_digits(value: Any, read: float | None) -> None:
    if read is not None:
        assert number(value, "f", "a size", 1, 1e20) == read
        return
    with pytest.raises(InputError, match="is not a number"):
        number(value, "f", "a size", 1, 1e20)


def test_text_of_a_file_is_repeated_to_forty_characters() -> None:
    assert clip("a" * 40) == f"'{'a' * 40}'"
    assert clip("a" * 41) == f"'{'a' * 40}...'"
    assert (clip({}), clip([1]), clip(5)) == ("a nested object", "a list", "5")


@pytest.mark.parametrize(
    ("exact", "raw", "said"),
    [
        (99.01, 99, False),
        (101.1, 101, False),
        (2.5e3 + 0.4, 2500, False),
        (1.02, 1, True),
        (0.9, 1, True),
        (-4.4, -4, True),
    ],
)
def test_what_is_rounded_by_more_than_a_hundredth_is_said(exact: float, raw: int, said: bool) -> None:
    notes: list[str] = []
    assert whole_of("timer", exact, notes, "us") == raw
    assert len(notes) == said
    assert whole_of("timer", 1e-7, notes, "us") == 0  # is 0 but for rounding
    with pytest.raises(InputError, match="rounded to 0"):
        whole_of("timer", 1e-5, notes, "us")


@pytest.mark.parametrize(
    ("parameter", "value", "register"),
    [
        ("timer", 1e-6, ("rpg_time_reset", 1)),
        ("timer", 131071e-6, ("rpg_time_reset", 131071)),
        ("timer", 131072e-6, None),
        ("timer", 0.0, None),
        ("byte_counter", 32767.0, ("rpg_byte_reset", 32767)),
        ("byte_counter", 32768.0, None),
        ("byte_counter", 1e12, ("rpg_byte_reset", 0)),
        ("g", 1.0, ("dce_tcp_g", 0)),
        ("g", 1 / 1024, ("dce_tcp_g", 1023)),
        ("g", 0.0, None),  # 1024 would freeze alpha
        ("decrease_gain", 1.0, ("rpg_gd", 10)),
        ("decrease_gain", 2.0**-5, ("rpg_gd", 15)),
        ("decrease_gain", 2.0**-6, None),
        ("max_decrease", 0.25, ("rpg_min_dec_fac", 75)),
        ("rate_decrease_interval", 20.0, ("rate_reduce_monitor_period", 20_000_000)),
    ],
)
def test_a_registers_range_ends_where_its_field_does(
    parameter: str, value: float, register: tuple[str, int] | None
) -> None:
    if register is not None:
        assert register_of(parameter, value) == register
        assert registers_of({parameter: value, "kmin": 1.0}) == dict([register])
        return
    with pytest.raises(InputError, match=f"^{parameter}: "):
        register_of(parameter, value)


@pytest.mark.parametrize(
    "raw",
    [b"k\xc3\xbc", b"\xef\xbb\xbfk\xc3\xbc", b"\xff\xfek\x00\xfc\x00", b"\xfe\xff\x00k\x00\xfc"],
    ids=["UTF-8", "UTF-8 with a mark", "UTF-16, low byte first", "UTF-16, high byte first"],
)
def test_a_byte_order_mark_says_how_a_file_is_read(raw: bytes) -> None:
    assert decoded(raw) == "kü"
