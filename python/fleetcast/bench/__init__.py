"""`fleetcast bench`: one seeded fleet against several databases, each a file in `drivers`."""
