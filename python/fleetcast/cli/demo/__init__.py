"""`fleetcast demo`: the whole service on a temporary directory, and a tour of its endpoints."""
