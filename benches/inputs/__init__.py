"""The records that every benchmark sends."""
