"""The package as others see it. Type hints: mypy reads the package without a complaint, and the stubs of the extensions are those of the extensions."""
import os, pathlib, shutil, subprocess, sys, tempfile, unittest, zipfile

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


class Wheel(unittest.TestCase):
    """The wheel of `make wheel`: its name, and that it works where it is unpacked."""

    def test_wheel(self):
        source = pathlib.Path(os.environ["SOURCE_DIR"])
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            shutil.copytree(source / "python", folder / "python")
            done = subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, folder / "python"],
                                  capture_output=True, text=True, env={**os.environ, "HFSAD_BUILT": "yes", "HFSAD_ROOT": str(source),
                                                                       "HFSAD_BUILD": str(PACKAGE.parent.parent)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            (wheel,) = folder.glob("*.whl")
            self.assertRegex(wheel.name, r"^hfsad-[0-9.]+-cp311-abi3-linux_\w+\.whl$")
            subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, folder / "installed"], check=True)
            code = ("import hfsad, numpy as np; hfsad.Federation; assert hfsad.__file__.startswith(__import__('sys').argv[1])\n"
                    "print(hfsad.run({'loss': 'absolute'}, (np.eye(3), [1., 2, 3])).coef.round(3))\n")
            told = subprocess.run([sys.executable, "-c", code, folder / "installed"], capture_output=True, text=True, check=True,
                                  env={**os.environ, "PYTHONPATH": str(folder / "installed")}).stdout
            self.assertEqual(told, "[1. 2. 3.]\n")
            self.assertIn("hfsad/hfsad", zipfile.ZipFile(wheel).namelist())


if __name__ == "__main__":
    unittest.main()
