"""Type hints: mypy reads the package without a complaint, and the stubs of the extensions are those of the extensions."""
import os, pathlib, subprocess, sys, tempfile, unittest

import hfsad

PACKAGE = pathlib.Path(hfsad.__file__).parent


class Types(unittest.TestCase):
    def run_tool(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "mypy.ini").write_text(f"[mypy]\nignore_missing_imports = True\ncache_dir = {folder}\n")
            done = subprocess.run([sys.executable, "-m", *(word.replace("@", folder) for word in words)], cwd=PACKAGE.parent,
                                  capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_package(self):
        self.run_tool("mypy", "--config-file", "@/mypy.ini", "-p", "hfsad")

    def test_stubs(self):
        self.run_tool("mypy.stubtest", "--mypy-config-file", "@/mypy.ini", "--ignore-missing-stub", "hfsad._core", "hfsad._net")


if __name__ == "__main__":
    unittest.main()
