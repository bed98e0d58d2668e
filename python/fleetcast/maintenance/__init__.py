"""Upkeep by the maintenance process: stores of tenants, forecasts, and what nodes share."""
