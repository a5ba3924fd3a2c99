"""Where ledgers are kept. Each store speaks its engine's own SQL and keeps one contract."""
