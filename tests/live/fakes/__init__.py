"""Our fakes with the requests of administrators: the kit creates and protects repositories there as at a real host."""
