"""Forecast models judged on real sets, and the endpoint that serves them."""
