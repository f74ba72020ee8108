"""Runs a benchmark on little data, as its command does."""
import json
import os
import subprocess
import sys

from conftest import ROOT, temporary_folder
from patience import patience


def run(name, results, *options):
    """What it has found, as JSON. It leaves no folder behind."""
    with temporary_folder() as folder:
        done = subprocess.run([sys.executable, ROOT / "benchmarks" / name / "run.py", "--results", results, *options], capture_output=True, text=True,
                              timeout=patience(600), check=False, env={**os.environ, "TMPDIR": str(folder)})
        assert done.returncode == 0, done.stderr
        assert not list(folder.iterdir()), "left behind"
    return json.loads((results / f"{name}.json").read_text())
