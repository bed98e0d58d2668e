"""`fleetcast mqtt`: a bridge that stores the messages of a broker (integrations/mqtt/README.md).

A message is acknowledged to the broker when it is stored. If the settings say so, it is
acknowledged when it is synced in the spool. Order of the files: settings, topics, messages, spool,
session, delivery, bridge.
"""
