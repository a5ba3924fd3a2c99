"""The worked examples in the core's docstrings are what its modules do."""

import doctest
import importlib
import pkgutil

import pytest

import affidavit.core

MODULES = [
    f"affidavit.core.{found.name}" for found in pkgutil.iter_modules(affidavit.core.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_holds(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
