"""The tutorials say what happens: the commands and files of each page of docs/tutorial, in their order and as printed, in an
empty folder and a network of its own, by an ordinary user. `mapcache serve` runs on behind the commands that follow."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import numpy
import pytest
from conftest import temporary_folder
from patience import patience
from PIL import Image
from postgres import Postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in (ROOT / "docs/tutorial").glob("*.md") if page.name != "README.md")
USER = "www-data"
# page -> folders and files that a page makes outside of its folder
ELSEWHERE = {"geotiff": ["/tmp/island-tiles.sqlite3"], "wms": ["/tmp/wms-tiles.sqlite3"], "moving": ["/tmp/moving"],
             "basemap": ["/tmp/basemap-tiles.sqlite3"]}
# page -> pictures that the page makes, with the least number of colours
PICTURES = {"geotiff": {"tile.jpg": 20, "island.png": 100, "kept.jpg": 20}, "postgis": {"districts.png": 20, "legend.png": 4, "green.png": 3},
            "wms": {"world.png": 2, "again.png": 1}, "moving": {"wmts.png": 2, "map.jpg": 2}, "basemap": {"basemap.png": 30, "tile.png": 5}}


# page -> the picture that the page shows, and that of PICTURES that it is
SHOWN = {"geotiff": ("tutorial-island.png", "island.png"), "postgis": ("tutorial-districts.png", "districts.png"),
         "wms": ("tutorial-wms.png", "world.png"), "moving": ("tutorial-moving.png", "map.jpg"),
         "basemap": ("tutorial-basemap.png", "basemap.png")}


def blocks(page):
    """(kind, name of the file or None, text) of each fenced block."""
    for match in re.finditer(r"(?:Save as `([^`]+)`:\n\n)?^```(\w+)\n(.*?)^```$", page.read_text(), re.M | re.S):
        yield match.group(2), match.group(1), match.group(3)


class Reader:
    """Somebody who follows a page."""

    def __init__(self, build, folder, environment):
        self.folder, self.servers = folder, []
        path = f"{build}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment}
        # a network without anything but its loopback, for the ports that the pages name
        self.network = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep 3600"],
                                        stdout=subprocess.PIPE, text=True)
        assert self.network.stdout.readline() == "up\n"

    def command(self, text):
        identity = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.getuid() == 0 else []
        return ["nsenter", "-t", str(self.network.pid), "-n", *identity, "bash", "-c", text]

    def run(self, text):
        done = subprocess.run(self.command("set -e -o pipefail\n" + text), cwd=self.folder, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=patience(120))
        logs = "".join(f"\n{log.name}:\n{log.read_text()}" for log in sorted(self.folder.glob("serve-*.log")))
        assert done.returncode == 0, f"{text}\nexit status {done.returncode}:\n{done.stdout}{logs}"
        return done.stdout

    def serve(self, line):
        log = self.folder / f"serve-{len(self.servers)}.log"
        with open(log, "wb") as output:
            server = subprocess.Popen(self.command("exec " + line), cwd=self.folder, env=self.environment, stdout=output,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.servers.append(server)
        end = time.monotonic() + patience(60)
        while "Ctrl-C stops it" not in log.read_text():
            assert server.poll() is None and time.monotonic() < end, f"{line}:\n{log.read_text()}"
            time.sleep(0.05)
        return log.read_text()

    def follow(self, text):
        """Lines up to a server, then the server, then what comes after it."""
        said = ""
        for part in re.split(r"^(mapcache serve .*)\n", text, flags=re.M):
            if part.startswith("mapcache serve "):
                said += self.serve(part)
            elif part.strip():
                said += self.run(part)
        return said

    def end(self):
        for server in self.servers:
            server.send_signal(signal.SIGINT)
        statuses = [server.wait(patience(30)) for server in self.servers]
        self.network.kill()
        self.network.wait()
        assert statuses == [0] * len(statuses)


def is_said(line, text):
    """Whether the text has a line with these words; `...` stands for any."""
    pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
    return re.search(pattern, text) is not None


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql(f'create role "{USER}" superuser login')
        yield {"PGHOST": str(server.folder), "PGPORT": str(server.port)}


@pytest.fixture
def reader(build, database):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        shutil.chown(folder, USER, USER)
        reader = Reader(build, folder, database)
        stack.callback(reader.end)
        yield reader


def clear(page):
    for path in map(pathlib.Path, ELSEWHERE.get(page.stem, [])):
        for each in (path, *path.parent.glob(path.name + "-*")):
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)


def colours(path):
    beginning = {".png": b"\x89PNG", ".jpg": b"\xff\xd8\xff"}[path.suffix]
    assert path.read_bytes().startswith(beginning), (path, path.read_bytes()[:500])
    with Image.open(path) as image:
        pixels = numpy.asarray(image.convert("RGBA")).reshape(-1, 4)
    return len(numpy.unique(pixels, axis=0))


def difference(one, other):
    """Of two pictures of any size: the mean of all channels, 0 to 255."""
    small = []
    for path in (one, other):
        with Image.open(path) as image:
            background = Image.new("RGBA", image.size, "white")
            background.alpha_composite(image.convert("RGBA"))
            small.append(numpy.asarray(background.convert("RGB").resize((200, 200), Image.Resampling.BOX), dtype=float))
    return abs(small[0] - small[1]).mean()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(reader, page):
    clear(page)
    said, ran = "", 0
    try:
        for kind, name, text in blocks(page):
            if name is not None:
                (reader.folder / name).write_text(text)
            elif kind == "sh":
                said, ran = reader.follow(text), ran + 1
            else:
                assert kind == "text", f"a block of {kind} without a name"
                for line in text.splitlines():
                    assert is_said(line, said), f"{line}\nis not said by:\n{said}"
        assert ran >= 2
        for name, least in PICTURES[page.stem].items():
            assert colours(reader.folder / name) >= least, name
        picture, made = SHOWN[page.stem]
        assert f"](../pictures/{picture})" in page.read_text()
        assert difference(ROOT / "docs/pictures" / picture, reader.folder / made) < 3, f"{picture} is not what the page makes"
        if keep := os.environ.get("MAPCACHE_TUTORIAL_PICTURES"):  # for docs/pictures
            for name in PICTURES[page.stem]:
                shutil.copy(reader.folder / name, pathlib.Path(keep) / f"{page.stem}-{name}")
    finally:
        clear(page)


def test_every_tutorial_is_listed_and_has_a_picture():
    listed = (ROOT / "docs/tutorial/README.md").read_text()
    assert len(PAGES) == 5
    for page in PAGES:
        assert f"]({page.name})" in listed and re.search(r"!\[.+\]\(\.\./pictures/tutorial-\w+\.png\)", page.read_text()), page.name


def test_words_that_were_not_said_are_noticed():
    assert is_said("one ... three", "zero\none two three\n") and not is_said("one ... four", "one two three")
    assert not is_said("a...c", "a\nc")
