"""Backups of an installation: saving while the service runs, checking, restoring."""
