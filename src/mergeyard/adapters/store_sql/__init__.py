"""What the two stores have in common: queries that both databases understand, and what they read and write.

- `statements`: reads the files with queries and migrations, and turns writes into statements
- `reads`: the reads of the port `Store`; each store adds how it runs a query
"""
