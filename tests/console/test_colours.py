"""Colours of lines and of the map, as people with colour blindness see them."""

from __future__ import annotations

import itertools
import math
import re
from importlib.resources import files

import pytest

STYLE = (files("fleetcast.console") / "static/console.css").read_text()
LIGHT, DARK = STYLE.split("@media (prefers-color-scheme: dark)", 1)
BACKGROUNDS = {"light": "#ffffff", "dark": "#191d21"}
APART = 0.05  # in OKLab, some five steps that an eye just tells apart
CONTRAST = 3.0  # of graphics, WCAG 1.4.11
# Machado, Oliveira and Fernandes (2009), at full severity, in linear RGB.
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
TO_CONES = ((0.41222, 0.53633, 0.05145), (0.21190, 0.68070, 0.10740), (0.08830, 0.28172, 0.62998))
TO_LAB = ((0.21045, 0.79362, -0.00407), (1.97800, -2.42859, 0.45060), (0.02590, 0.78277, -0.80868))


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def lab(colour, matrix):
    cones = times(TO_CONES, times(matrix, linear(colour)))
    return times(TO_LAB, [math.copysign(abs(c) ** (1 / 3), c) for c in cones])


def contrast(one, other):
    darker, lighter = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(of), strict=True)) + 0.05
        for of in (one, other)
    )
    return lighter / darker


def colours(scheme, name, count):
    text = {"light": LIGHT, "dark": DARK}[scheme]
    return [re.search(rf"--{name}-{n}: (#\w+)", text)[1] for n in range(1, count + 1)]


@pytest.mark.parametrize("scheme", BACKGROUNDS)
@pytest.mark.parametrize(("name", "count"), [("line", 8), ("ramp", 5)])
def test_any_two_colours_stay_apart_for_each_kind_of_colour_blindness(scheme, name, count):
    found = colours(scheme, name, count)
    assert all(contrast(each, BACKGROUNDS[scheme]) >= CONTRAST for each in found)
    near = {
        (kind, one, other): distance
        for kind, matrix in SEEN.items()
        for one, other in itertools.combinations(found, 2)
        if (distance := math.dist(lab(one, matrix), lab(other, matrix))) < APART
    }
    assert near == {}


@pytest.mark.parametrize("scheme", BACKGROUNDS)
def test_the_colours_of_a_field_on_the_map_grow_in_one_direction(scheme):
    lightness = [lab(each, SEEN["all"])[0] for each in colours(scheme, "ramp", 5)]
    assert lightness == sorted(lightness, reverse=scheme == "light")
