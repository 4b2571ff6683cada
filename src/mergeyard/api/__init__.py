"""The HTTP door: translates between the wire and the service, and decides nothing."""
