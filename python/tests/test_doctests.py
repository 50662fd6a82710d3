"""The examples of all docstrings and of docs/python.md."""
import doctest, os, pathlib, sys, unittest

import numpy

import hfsad
from hfsad import _data, _estimators, _loss, _run, _spec


def load_tests(loader, tests, pattern):
    for module in (hfsad, _data, _estimators, _loss, _run, _spec):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()
