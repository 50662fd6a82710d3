"""The examples of all docstrings and of docs/python.md."""
import doctest, importlib.util, os, pathlib, subprocess, sys, unittest

import hfsad
from hfsad import _core, _data, _estimators, _federation, _loss, _run, _spec

SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])


class Examples(unittest.TestCase):
    def test_every_name_has_one(self):
        for name in hfsad.__all__:
            self.assertIn(">>>", getattr(hfsad, name).__doc__, name)

    def test_own_loss(self):
        """The loss in numpy, and the one in PyTorch if that is installed: 134 MB are too much for CI."""
        told = subprocess.run([sys.executable, SOURCE / "examples/own-loss.py"], check=True, capture_output=True, text=True).stdout
        errors = [float(line.split()[-1]) for line in told.splitlines() if "relative error" in line]
        self.assertLess(max(errors[1:]), 0.2 * errors[0])
        self.assertEqual(len(errors), 2 if "not installed" in told else 3)
        self.assertEqual("not installed" in told, importlib.util.find_spec("torch") is None)


def load_tests(loader, tests, pattern):
    for module in (hfsad, _data, _estimators, _federation, _loss, _run, _spec):
        tests.addTests(doctest.DocTestSuite(module))
    finder = doctest.DocTestFinder()  # a class of the extension, whose module is not seen as hfsad
    tests.addTests(doctest.DocTestCase(test) for test in finder.find(_core.DivergedError, "DivergedError", module=False))
    tests.addTests(doctest.DocFileSuite(str(SOURCE / "docs/python.md"), module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()
