"""Builds the wheel. CMake compiles the extension and the program; this file only takes what CMake has made."""
import os, pathlib, re, shutil, subprocess, sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(os.environ.get("HFSAD_ROOT", pathlib.Path(__file__).resolve().parent.parent))
BUILD = pathlib.Path(os.environ.get("HFSAD_BUILD", ROOT / "build")).resolve()


class FromCMake(build_ext):
    def build_extension(self, extension):
        if not os.environ.get("HFSAD_BUILT"):  # make wheel and the test have built it
            jobs = os.environ.get("JOBS", str(os.cpu_count() or 1))
            subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, f"-DHFSAD_PYTHON={sys.executable}", "--log-level=WARNING"],
                           check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["cmake", "--build", BUILD, "--parallel", jobs, "--target", "python_package"], check=True)
        to = pathlib.Path(self.get_ext_fullpath(extension.name))
        to.parent.mkdir(parents=True, exist_ok=True)
        for name in ("_core.abi3.so", "_net.abi3.so", "hfsad"):
            shutil.copy2(BUILD / "python" / "hfsad" / name, to.with_name(name))


def version():
    text = (ROOT / "include/hfsad/hfsad.h").read_text()
    return ".".join(re.findall(r"^#define HFSAD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M))


setup(
    version=version(),
    ext_modules=[Extension("hfsad._core", sources=[], py_limited_api=True)],
    cmdclass={"build_ext": FromCMake},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
