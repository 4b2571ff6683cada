"""GitHub as a host: as an app that people install, or with somebody's token."""
