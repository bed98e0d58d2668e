"""Puts the parts together: settings, stores, and the processes of the service."""
