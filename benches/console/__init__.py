"""Figures of the console's pages in a browser."""
