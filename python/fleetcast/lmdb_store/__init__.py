"""LMDB for the control store and the prediction store: small environments of JSON records."""

from fleetcast.lmdb_store.environment import FORMAT_KEY
from fleetcast.lmdb_store.store import LmdbStore, LmdbUnavailable, View

__all__ = ["FORMAT_KEY", "LmdbStore", "LmdbUnavailable", "View"]
