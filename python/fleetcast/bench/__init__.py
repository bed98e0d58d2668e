"""`fleetcast bench`: one seeded fleet against several databases, a file in `drivers` each."""
