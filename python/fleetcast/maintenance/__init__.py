"""Upkeep by the maintenance process: stores of tenants, forecasts, and shared records of nodes."""
