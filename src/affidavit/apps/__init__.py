"""The edges: parse, call the use cases, render. No rules of their own."""
