"""Planes of an installation that many processes share."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from fleetcast.engine import Cluster, Planes, encode_records
from fleetcast.errors import StoreError, StoreMissing

if TYPE_CHECKING:
    from pathlib import Path

KEY = bytes(32)


def _records(count: int) -> bytes:
    return encode_records(
        {
            "measurement": "link",
            "time": f"2026-01-01T00:00:{number:02}Z",
            "tags": {"entity_id": "e1"},
            "fields": {"snr_db": float(number)},
        }
        for number in range(count)
    )


@pytest.fixture
def two_planes(database_url: str, tmp_path: Path) -> tuple[Planes, Planes]:
    """The planes of one installation as two nodes see them, each with a cache of its own."""

    def node(number: int) -> Cluster:
        objects = f"file://{tmp_path}/objects"
        return Cluster(database_url, objects=objects, cache=tmp_path / f"cache{number}")

    first, second = node(1), node(2)
    first.install("test", b"check")
    return Planes.in_cluster(first), Planes.in_cluster(second)


def test_a_plane_is_the_same_on_both_nodes(two_planes: tuple[Planes, Planes]) -> None:
    first, second = two_planes
    name = str(uuid.uuid4())
    first.create(name, KEY)
    own, other = (planes.open(name, KEY, "acme") for planes in two_planes)
    own.write_json(_records(50))
    assert other.stats().stored_rows == 50
    expected = own.answers_hash()
    assert other.answers_hash() == expected
    compacted = other.compact(whole=True)
    assert compacted is not None
    assert compacted.blocks == 1
    anew = second.open(name, KEY, "acme")
    assert own.answers_hash() == anew.answers_hash() == expected
    assert first.counts(name).stored_rows == 50


def test_a_plane_goes_into_a_folder_and_back(
    two_planes: tuple[Planes, Planes], tmp_path: Path
) -> None:
    planes, other = two_planes
    embedded = Planes.in_directory(tmp_path / "planes")
    names = [str(uuid.uuid4()) for _ in range(3)]
    embedded.create(names[0], KEY)
    plane = embedded.open(names[0], KEY, "acme")
    plane.write_json(_records(30))
    plane.compact(whole=True)
    plane.write_json(_records(20))
    expected = plane.answers_hash()
    plane.close()
    for number, (source, target) in enumerate([(embedded, planes), (other, embedded)]):
        backup = tmp_path / f"backup{number}"
        backup.mkdir()
        saved = source.save(names[number], KEY, str(backup), 1, [])
        assert saved is not None
        target.restore(
            names[number + 1], KEY, names[number], KEY, str(backup), saved.files, saved.content
        )
        assert target.open(names[number + 1], KEY, "acme").answers_hash() == expected


def test_a_plane_that_was_destroyed_is_missing(two_planes: tuple[Planes, Planes]) -> None:
    first, second = two_planes
    name = str(uuid.uuid4())
    first.create(name, KEY)
    plane = second.open(name, KEY, "acme")
    first.destroy(name)
    with pytest.raises(StoreMissing):
        plane.write_json(_records(1))
    with pytest.raises(StoreMissing):
        first.open(name, KEY, "acme")


def test_planes_need_objects_to_be_compacted(database_url: str) -> None:
    cluster = Cluster(database_url)
    cluster.install("test", b"check")
    planes = Planes.in_cluster(cluster)
    name = str(uuid.uuid4())
    planes.create(name, KEY)
    plane = planes.open(name, KEY, "acme")
    plane.write_json(_records(1))
    with pytest.raises((StoreError, ValueError), match="objects"):
        plane.compact(whole=True)
