"""`python -m fleetcast` is `fleetcast`."""

from fleetcast.cli import main

main()
