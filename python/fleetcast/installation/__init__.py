"""Data directory of an installation, its audit log, and the checks of its soundness."""
