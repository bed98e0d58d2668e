"""`fleetcast mqtt`: a bridge that stores what a broker has for it (integrations/mqtt/README.md).

A message is acknowledged to the broker only when it is stored, or lies synced in the spool where
the settings say so. Order of the files: settings, topics, messages, spool, session, delivery,
bridge.
"""
