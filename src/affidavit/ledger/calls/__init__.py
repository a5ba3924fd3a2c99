"""The public calls of a ledger, a module a noun; `ledger.ledger` puts them together."""
