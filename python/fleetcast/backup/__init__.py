"""Backups of an installation: saving one beside whatever runs, checking it, restoring out of it."""
