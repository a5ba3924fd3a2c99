"""The use cases: what can be done with a ledger, whatever keeps it and whoever calls."""
