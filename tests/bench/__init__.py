"""The cost of decisions, requests and test branches: ratios that hold everywhere, and the times on this machine."""
