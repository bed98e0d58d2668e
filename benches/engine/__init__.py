"""The engine alone, beside the same work in Python."""
