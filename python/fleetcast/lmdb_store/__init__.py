"""LMDB for the control store and the prediction store: small environments of JSON records."""

from fleetcast.lmdb_store.environment import DATA_FILE, FORMAT_KEY
from fleetcast.lmdb_store.store import LmdbStore, LmdbUnavailable, View

__all__ = ["DATA_FILE", "FORMAT_KEY", "LmdbStore", "LmdbUnavailable", "View"]
