"""Figures beside a reference measured in the same run. `make bench`, or `python -m bench --quick`."""
