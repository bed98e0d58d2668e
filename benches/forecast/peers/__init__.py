"""Forecasters of others, beside the models of this project, on the same samples."""
