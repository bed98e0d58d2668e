"""Data in and out: import of files into a tenant's data plane, export out of it."""
