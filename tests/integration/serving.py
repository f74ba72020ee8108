"""`mapcache serve` as a person types it, for tests."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading

from conftest import fetch, listens, wait_until
from patience import patience

SERVERS = ["apache", "nginx"]


class Serving:
    """A running `mapcache serve --json`; each line that it prints is an event."""

    def __init__(self, build, *things, server="apache", environment=None, port=None, cwd=None, options=()):
        words = [str(build / "bin/mapcache"), "serve", "--json", f"--{server}", *options]
        words += ["--port", str(port)] if port else []
        self.events, self.output = [], ""
        self.process = subprocess.Popen([*words, *map(str, things)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd,
                                        stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            text = line.decode(errors="replace")
            self.output += text
            with contextlib.suppress(ValueError):
                self.events.append(json.loads(text))

    def __enter__(self):
        wait_until(lambda: self.process.poll() is not None or self.all("serving"), "mapcache serve serves")
        assert self.all("serving"), self.output
        return self

    def __exit__(self, *_):
        self.end()

    def all(self, event):
        return [one for one in self.events if one["event"] == event]

    def errors(self):
        return [one["text"] for one in self.all("error")]

    @property
    def told(self):
        return self.all("serving")[0]

    @property
    def port(self):
        return self.told["port"]

    def get(self, path, **options):
        return fetch(self.port, path, **options)

    def end(self, number=signal.SIGINT):
        """Ends it; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(patience(30))
        finally:
            self.process.kill()
            self.process.wait()
        self.reader.join(patience(30))
        self.process.stdout.close()
        return status


def processes():
    """(number, parent, command line) of each process that is no zombie."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found.append((int(folder.name), int(parent), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")))
    return found


def run_folder(serving):
    """The private folder of a run, from the command line of its server."""
    for _, parent, line in processes():
        if parent == serving.process.pid:
            for word in line.split():
                if "/mapcache-serve-" in word:
                    path = pathlib.Path(word)
                    while "mapcache-serve-" not in path.name:
                        path = path.parent
                    return path
    raise AssertionError("no server of the run is there")


def nothing_is_left(folder, port):
    """Whether a run has left neither its folder nor a process nor a listener."""
    return (not folder.exists() and not listens(("127.0.0.1", port))
            and not [line for _, _, line in processes() if str(folder) in line])
