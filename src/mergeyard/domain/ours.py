"""What we call ourselves at a host: our status, and what the names of our test branches begin with."""

STATUS = "mergeyard"
BRANCHES = f"{STATUS}/"
