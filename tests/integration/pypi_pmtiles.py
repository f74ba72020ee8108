"""The reader and writer of PMTiles by the format's makers, from PyPI: script/bootstrap puts them into build/python."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build" / "python"))
from pmtiles import reader, tile, writer  # noqa: E402, F401
