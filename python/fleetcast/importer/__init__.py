"""Import of files: records out of their lines, in batches into a tenant's data plane."""
