"""What the tests of `mapcache adopt` share: the command, the configurations of tests/adopt, and a server of what was written."""
import json
import os
import pathlib
import re
import subprocess

from conftest import ROOT
from patience import patience

BUILD = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release")).resolve()
PROGRAM = str(BUILD / "bin" / "mapcache")
CONFIGURATIONS = ROOT / "tests" / "adopt"
MARK = re.compile(r"(?:[#;]|<!--)!\s*(.*?)\s*(?:-->)?$")


def adopt(*words, cwd=None, seconds=60):
    return subprocess.run([PROGRAM, "adopt", *map(str, words)], capture_output=True, text=True, timeout=patience(seconds), cwd=cwd, check=False)


def check(path):
    done = subprocess.run([PROGRAM, "check", str(path)], capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def adopted(folder, *files, status=(0, 2)):
    """(mapcache.xml, notes) of files that are adopted into a folder."""
    path = folder / "mapcache.xml"
    done = adopt(*files, "--json", "--force", "--output", path)
    assert done.returncode in status, done.stdout + done.stderr
    check(path)
    return path, json.loads(done.stdout)["notes"]


def compare_notes(notes, *files):
    """Lines with a mark have a note with its words, and no other line has one. Folders of tiles that are not there are passed over: the configurations name those of other machines."""
    wanted = {}
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            mark = MARK.search(line)
            if mark:
                wanted[str(file), number] = mark.group(1)
    said = {}
    for note in notes:
        if "there is no folder" in note["text"]:
            continue
        said.setdefault((os.path.normpath(note["file"]), note["line"]), []).append(note["text"])
    assert set(said) == set(wanted), (set(said) ^ set(wanted), said)
    for place, words in wanted.items():
        assert any(words in text for text in said[place]), (place, words, said[place])


def requests(config, paths):
    """The answers of one process of the CGI program each: (status, media type, body)."""
    for path in paths:
        name, _, query = path.partition("?")
        environment = {**os.environ, "MAPCACHE_CONFIG_FILE": str(config), "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": name, "QUERY_STRING": query,
                       "SERVER_NAME": "localhost", "SERVER_PORT": "80", "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": "HTTP/1.1"}
        done = subprocess.run([str(BUILD / "bin" / "mapcache.fcgi")], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60), check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        status = re.search(rb"Status: (\d+)", head)
        media = re.search(rb"(?i)Content-Type: ([^\r\n;]+)", head)
        yield int(status.group(1)) if status else 200, media.group(1).decode() if media else None, body
