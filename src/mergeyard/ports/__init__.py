"""What the service needs from the outside, as protocols that adapters fulfil."""
