"""One suite per port, over every adapter that fulfils it."""
