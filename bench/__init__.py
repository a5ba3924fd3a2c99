"""Figures beside a reference of the same run: `make bench`, `python -m bench --quick`."""
