"""SQL over stored rows: DuckDB reads a scan as it is, without a copy in a file."""

from __future__ import annotations

from datetime import timedelta

import duckdb
from small_fleet import DAY, small_fleet

QUERY = """
    SELECT tags['site'] AS site,
           time_bucket(INTERVAL 6 HOUR, time::TIMESTAMP_NS) AS since,
           round(avg(snr_db), 2) AS snr_db,
           count(*) FILTER (NOT up) AS minutes_down
    FROM rows
    GROUP BY ALL
    ORDER BY ALL
"""


def main() -> None:
    """Prints means of the sites over quarters of a day."""
    plane = small_fleet()
    rows = plane.scan(DAY, DAY + timedelta(days=1), measurements=["link"])
    connection = duckdb.connect()
    connection.register("rows", rows)
    print(connection.sql(QUERY))


if __name__ == "__main__":
    main()
