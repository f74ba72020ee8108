"""What the programs of all benchmarks do at their beginning and end."""
import datetime
import json
import os
import pathlib
import resource
import shutil
import signal
import sys

from common.machine import describe
from common.report import write_whole
from common.servers import ROOT


def begin(cores=None, files=None):
    """Ends what was started when it is ended itself; on some processors (a text such as 2,3); with at least so many open files, if they are to be had."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(f"ended by {signal.Signals(got).name}"))
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if files:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = max(soft, files)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


def need(*programs):
    """Ends the run where one of them is missing: names, or paths of programs and modules."""
    missing = [str(program) for program in programs if not (os.path.exists(program) if "/" in str(program) else shutil.which(program))]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}. script/bootstrap bench installs what the benchmarks need, the peers too")


def some(names, words):
    """Those of the names that hold one of the words (with commas between; in any case); ends the run where none does."""
    found = [name for name in names if any(word.strip().lower() in name.lower() for word in words.split(","))]
    if not found:
        sys.exit(f"nothing is called {words}: there are {', '.join(names)}")
    return found


def earlier(folder, name, otherwise=None):
    """The result of the last run, or what is given."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else otherwise or {}


def publish(folder, name, result, markdown, draw, **programs):
    """Stores a result with where and when it was taken, its tables and plots, and prints the tables. programs: versions beside those that are always told."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    result.update(machine={**describe(ROOT), **programs}, taken=datetime.datetime.now().isoformat(" ", "seconds"))
    write_whole(folder / f"{name}.json", json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    write_whole(folder / f"{name}.md", text)
    draw(result, folder)
    print(text)
