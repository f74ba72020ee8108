"""What the benchmarks share; some of it with the integration tests, whose modules are found, too."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "integration"))
