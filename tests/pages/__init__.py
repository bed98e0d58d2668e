"""Tests of the pages: their commands exist, and the steps of the pages by task work."""
