"""What benchmarks fetch, in versions whose checksums are known; what is there already is kept."""
import pathlib
import subprocess
import sys

from common.servers import ROOT


def run(*command, said=subprocess.PIPE):
    """What the command prints. It says itself what went wrong."""
    done = subprocess.run(command, stdout=said, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return (done.stdout or "").strip()


def npm(folder, package, *files):
    """The folder with these files of the package in it."""
    run(ROOT / "demo" / "npm", folder, package, *files, said=sys.stderr)
    return pathlib.Path(folder) / "npm"


def wheel(folder, package):
    """The file."""
    return run(ROOT / "demo" / "wheel", folder, package)
