"""The sets that models learn from and are judged on, as files in a directory of real data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fleetcast.forecast.families import DEMAND, SNR
from fleetcast.forecast.rows import Rows, rows_by_entity
from fleetcast.transfer.foreign_files import read_by_polars, read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleetcast.forecast.families import Family

_NO_SAMPLE = -32768


@dataclass(frozen=True)
class Span:
    """Issue times from `start_ns` on, before `end_ns`."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class DataSet:
    """A data set: origin times are split in order of time into `train`, `calibrate` and `test`.

    `learned` is false if the licence forbids training, or if the set is to stay unseen.
    """

    name: str
    family: Family
    origin: str
    licence: str
    learned: bool
    train: Span
    calibrate: Span
    test: Span
    files: tuple[str, ...]
    read: Callable[[Path], dict[str, Rows]]

    def rows(self, directory: Path) -> dict[str, Rows]:
        """Rows of each entity. Raises `OSError`, `OperatorError`."""
        with read_by_polars(directory, f"the files of the set {self.name} are of another form"):
            return self.read(directory)

    def sha256(self, directory: Path) -> str:
        """Hash of the files of this set, in order."""
        digest = hashlib.sha256()
        for name in self.files:
            digest.update((directory / name).read_bytes())
        return digest.hexdigest()


def _span(start: str, end: str) -> Span:
    return Span(*(int(np.datetime64(time, "ns").astype(np.int64)) for time in (start, end)))


_ESNO = "links/satellite_esno_30s.csv.gz"
_RECEIVED = "links/microwave_rsl_decidbm_1min.parquet"
_SENT = "links/microwave_tsl_decidbm_1min.parquet"
_GNSS = "links/gnss_snr_elevation_azimuth_30s.parquet"
_HOSTING = "pools/hosting_pools_offered_bytes_15min.parquet"
_MENTIONS = "pools/mentions_5min.csv.gz"
_TIME_COLUMN = "__index_level_0__"


def _csv(
    name: str, family: Family, entity: pl.Expr, value: str
) -> Callable[[Path], dict[str, Rows]]:
    """Reads a file with a column `timestamp`, and a column of values."""

    def read(directory: Path) -> dict[str, Rows]:
        frame = read_table(directory / name).select(
            entity.alias("entity_id"),
            pl.col("timestamp").str.to_datetime(time_unit="ns").alias("time"),
            pl.col(value).alias(family.target),
        )
        return rows_by_entity(frame, family.fields)

    return read


def _microwave(directory: Path) -> dict[str, Rows]:
    received = read_table(directory / _RECEIVED)
    sent = read_table(directory / _SENT)
    times = received[_TIME_COLUMN].cast(pl.Datetime("ns")).cast(pl.Int64).to_numpy()
    result = {}
    for link in received.columns:
        if link != _TIME_COLUMN:
            levels = [frame[link].cast(pl.Float64).to_numpy() for frame in (received, sent)]
            values = (levels[0] - levels[1]) / 10
            values[(levels[0] == _NO_SAMPLE) | (levels[1] == _NO_SAMPLE)] = np.nan
            result[link] = Rows(times, {"snr_db": values})
    return result


def _gnss(directory: Path) -> dict[str, Rows]:
    frame = read_table(directory / _GNSS)
    signals = [name for name in ("s1", "s2", "s5") if name in frame.columns]
    frame = frame.unpivot(
        signals, index=["time", "sat", "elevation_deg", "azimuth_deg"], value_name="snr_db"
    ).select(
        pl.format("{}-{}", "sat", "variable").alias("entity_id"),
        "time",
        pl.col("snr_db").replace(0.0, None),
        "elevation_deg",
        "azimuth_deg",
    )
    return rows_by_entity(frame, SNR.fields)


def _hosting(directory: Path) -> dict[str, Rows]:
    frame = read_table(directory / _HOSTING).unpivot(
        index="t", variable_name="entity_id", value_name="offered_bytes"
    )
    return rows_by_entity(frame.rename({"t": "time"}), DEMAND.fields)


SETS = (
    DataSet(
        name="satellite",
        family=SNR,
        origin="Es/N0 of a GEO downlink, OpenSenseAction/training_school_opensene_2023",
        licence="BSD-3-Clause",
        learned=True,
        train=_span("2021-11-17T00", "2021-12-02T00"),
        calibrate=_span("2021-12-02T00", "2021-12-07T00"),
        test=_span("2021-12-07T00", "2021-12-13T20"),
        files=(_ESNO,),
        read=_csv(_ESNO, SNR, pl.lit("esno"), "esno"),
    ),
    DataSet(
        name="microwave",
        family=SNR,
        origin="rsl - tsl of 500 terrestrial links, example data of pycomlink 0.6.0",
        licence="BSD-3-Clause",
        learned=True,
        train=_span("2018-05-10T03", "2018-05-15T00"),
        calibrate=_span("2018-05-15T00", "2018-05-16T00"),
        test=_span("2018-05-16T00", "2018-05-17T23"),
        files=(_RECEIVED, _SENT),
        read=_microwave,
    ),
    DataSet(
        name="gnss",
        family=SNR,
        origin="C/N0 of navigation satellites, test data of kristinemlarson/gnssrefl",
        licence="GPL-3.0: judged on, never learned from",
        learned=False,
        train=_span("2025-01-10T00", "2025-01-10T00"),
        calibrate=_span("2025-01-10T00", "2025-01-10T00"),
        test=_span("2025-01-10T00", "2025-01-12T00"),
        files=(_GNSS,),
        read=_gnss,
    ),
    DataSet(
        name="hosting",
        family=DEMAND,
        origin="50 pools of servers, GWA-T-12 Bitbrains of the Grid Workloads Archive, by way of"
        " JessieRayeBauer/Time-Series-Forecasting-",
        licence="BSD-2-Clause",
        learned=True,
        train=_span("2013-07-08T00", "2013-08-14T00"),
        calibrate=_span("2013-08-14T00", "2013-08-20T00"),
        test=_span("2013-08-20T00", "2013-08-30T00"),
        files=(_HOSTING,),
        read=_hosting,
    ),
    DataSet(
        name="mentions",
        family=DEMAND,
        origin="counts of mentions, numenta/NAB",
        licence="MIT",
        learned=True,
        train=_span("2015-03-05T22", "2015-03-22T00"),
        calibrate=_span("2015-03-22T00", "2015-03-28T00"),
        test=_span("2015-03-28T00", "2015-04-04T00"),
        files=(_MENTIONS,),
        read=_csv(_MENTIONS, DEMAND, pl.col("series"), "value"),
    ),
)


def sets_of(family: Family) -> list[DataSet]:
    """The sets of one family."""
    return [one for one in SETS if one.family is family]
