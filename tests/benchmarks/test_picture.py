"""The picture of a takeover: drawn from what was recorded, small, and nothing in it but text, colours and CSS."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from benchmarks.picture_svg import Moment, Recording, draw
from tests import ROOT

PICTURE = ROOT / "docs" / "picture.svg"
HALF = {"login": "w-0", "mail": "w-0"}
TOLD = Recording(
    keys=["cart", "search", "login", "mail"],
    lost=["cart", "search"],
    victim="w-1",
    killed_s=10.5,
    moments=[
        Moment(10.0, {}, ["cart", "search"]),
        Moment(10.1, {"cart": "w-1", "search": "w-1", **HALF}, []),
        Moment(10.502, HALF, ["cart", "search"]),
        Moment(10.51, {"cart": "w-2", **HALF}, ["search"]),
        Moment(10.52, {"cart": "w-2", "search": "w-3", **HALF}, []),
        Moment(11.2, {"cart": "w-2"}, []),
        Moment(11.5, {}, []),
        Moment(11.9, {"cart": "w-9"}, []),
    ],
    asked_for=120,
    created=120,
)


def test_the_times_are_those_of_the_recording() -> None:
    assert [round(ms) for ms in TOLD.taken_over_ms()] == [10, 20]
    drawn = draw(TOLD)
    assert "Taken over: cart 10 ms, search 20 ms after the SIGKILL." in drawn
    assert "asked for 120, created 120, too many 0" in drawn


def test_a_turn_about_a_status_afterwards_is_left_out() -> None:
    assert "worker 3" in draw(TOLD)
    assert "worker 9" not in draw(TOLD)


def test_the_drawing_stands_by_itself() -> None:
    for text in (draw(TOLD), PICTURE.read_text()):
        assert len(text) < 60_000
        parsed = ElementTree.fromstring(text)
        assert parsed.tag.endswith("svg")
        assert "SIGKILL" in parsed.attrib["aria-label"]
        assert not re.search(r"<script|href|@import|url\(", text)
        assert "prefers-color-scheme:dark" in text
        assert "prefers-reduced-motion" in text


def test_each_animation_has_its_beginning_and_its_end() -> None:
    for name, frames in re.findall(r"@keyframes (\w+)\{((?:[^{}]*\{[^{}]*\})*)\}", draw(TOLD)):
        stops = [float(each) for each in re.findall(r"([\d.]+)%\{", frames)]
        assert stops == sorted(stops), name
        assert (stops[0], stops[-1]) == (0.0, 100.0), name
