"""The notebooks of examples/ run from the first cell to the last. --write: their outputs are put into the files."""
import os, pathlib, sys, unittest
from concurrent.futures import ThreadPoolExecutor

os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # a word of the debugger on stderr
import nbformat
from nbclient import NotebookClient

SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent.parent))
NOTEBOOKS = sorted((SOURCE / "examples").glob("*.ipynb"))
PROMISES = {"hospitals.ipynb": "hospital3 records further than 300 from the model: 27", "personal-models.ipynb": "right: True",
            "federation.ipynb": "the same bits: True"}


def execute(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(SOURCE / "examples")}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        cell.outputs = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"] if cell.cell_type == "code" else None
        if cell.outputs is None:
            del cell["outputs"]
    return notebook


class Notebooks(unittest.TestCase):
    def test_all(self):
        self.assertEqual({path.name for path in NOTEBOOKS}, set(PROMISES))
        with ThreadPoolExecutor(len(NOTEBOOKS)) as pool:
            for path, notebook in zip(NOTEBOOKS, pool.map(execute, NOTEBOOKS)):
                texts = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
                self.assertIn(PROMISES[path.name], texts, path.name)


if __name__ == "__main__":
    if "--write" in sys.argv:
        for path in NOTEBOOKS:
            nbformat.write(execute(path), path)
    else:
        unittest.main()
