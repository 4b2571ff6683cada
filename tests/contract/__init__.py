"""One contract test suite per port, run against every adapter that implements it."""
