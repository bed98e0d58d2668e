"""A process that compacts a plane without end, a line on stdout for each time.

python -m tests.cluster.compactor DATABASE OBJECTS CACHE PLANE
"""

from __future__ import annotations

import sys

from fleetcast.engine import Cluster, Planes

from .load import KEY


def main(database: str, objects: str, cache: str, name: str) -> None:
    planes = Planes.in_cluster(Cluster(database, objects=objects, cache=cache))
    plane = planes.open(name, KEY, "acme")
    while True:
        print(plane.compact(whole=True), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
