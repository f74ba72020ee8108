"""The catalogue benchmark itself, on its small data: it runs from end to end, and both servers draw the same."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(results, *options):
    command = [sys.executable, ROOT / "benchmarks" / "catalog" / "run.py", "--work", ROOT / "build" / "bench", "--results", results, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((results / "catalog.json").read_text())["parts"]


def test_small_run(tmp_path):
    run(tmp_path, "--only", "unfiltered,opened", "--rounds", "2", "--cold-rounds", "1")
    parts = run(tmp_path, "--only", "compare", "--maps", "40", "--cases", "aligned")
    assert set(parts) == {"unfiltered", "opened", "compare"}
    for record in parts["unfiltered"]["records"] + parts["opened"]["records"]:
        assert set(record["servers"]) == {"MapCache", "ours"} and not record["errors"], record
        assert all(figures["p50"] > 0 for figures in record["servers"].values())
    drawn = [entry for entry in parts["compare"]["pixels"] if all(entry["drawn"])]
    assert len(drawn) > 10
    assert not [entry for entry in drawn if entry["figures"]["max"] > 3]
    assert "| ratio |" in (tmp_path / "catalog.md").read_text()
    assert (tmp_path / "unfiltered.svg").exists() and (tmp_path / "unfiltered.png").exists()
