#!/usr/bin/python3
"""A tile from a web server through libcurl alone, libcurl that signs, and the caches `rest` and `s3`: build/micro/bin/micro_far on nginx.

    far.py [ROUNDS]"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.run import begin, need  # noqa: E402
from common.servers import ROOT  # noqa: E402
from http_stores import running_dav  # noqa: E402


def main():
    begin()
    programs = [ROOT / "build" / name / "bin/micro_far" for name in ("micro", "release")]
    program = next((path for path in programs if path.exists()), programs[0])
    need("nginx", program)
    with tempfile.TemporaryDirectory() as folder, running_dav(pathlib.Path(folder)) as (port, _, _):
        before = os.getloadavg()[0]
        subprocess.run([program, f"http://127.0.0.1:{port}", *sys.argv[1:2]], check=True)
        print(f"load of the machine: {before:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
