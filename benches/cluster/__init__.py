"""Three nodes on one PostgreSQL and one object store, beside the embedded store."""
