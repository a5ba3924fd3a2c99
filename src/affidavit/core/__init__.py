"""Pure rules: bytes and values in, bytes and values out. No clock, randomness, file or socket."""
