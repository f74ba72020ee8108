"""The way of an administrator: Debian's MapCache answers, our package takes its place, theirs is purged, ours is upgraded, removed,
installed again, and theirs comes back. Maps answer throughout, where they should."""

import http.client
import os
import re
import shutil
import subprocess
import threading

import pytest
from conftest import GRID, free_port, wait_until
from package_root import Root
from patience import patience

OURS, THEIRS = "mapcache", "libapache2-mod-mapcache"
CONFIGURATION = f"""<mapcache>
  <cache name="tiles" type="sqlite3"><dbfile>/var/cache/mapcache/tiles.sqlite3</dbfile></cache>
  <tileset name="base"><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <service type="wmts" enabled="true"/>
</mapcache>"""
TILE = f"/maps/wmts/1.0.0/base/default/{GRID}/0/0/0.png"


class Machine:
    def __init__(self, root, site):
        self.root, self.port = root, free_port()
        files = root.path
        (files / "etc/apache2/ports.conf").write_text(f"Listen 127.0.0.1:{self.port}\n")
        (files / "etc/apache2/conf-enabled/maps.conf").write_text(
            "ServerName localhost\n<IfModule mapcache_module>\nMapCacheAlias /maps /etc/mapcache/mapcache.xml\n</IfModule>\n")
        (files / "etc/mapcache").mkdir(exist_ok=True)
        (files / "etc/mapcache/mapcache.xml").write_text(CONFIGURATION)
        (files / "var/cache/mapcache").mkdir(parents=True, exist_ok=True)
        shutil.copy(site.folder / "base.sqlite3", files / "var/cache/mapcache/tiles.sqlite3")
        root.run("chown", "-R", "www-data:", "/var/cache/mapcache")

    def get(self, path=TILE):
        """Status and body; None where nobody listens (a restart)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(30))
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return None
        finally:
            connection.close()

    def loaded(self):
        """The files of MapCache's module that the server has mapped, and whether they are ours."""
        pid = (self.root.path / "run/apache2/apache2.pid").read_text().strip()
        maps = self.root.run("cat", f"/proc/{pid}/maps")
        return "ours" if "libmapcache.so.2" in maps else "theirs" if "mod_mapcache.so" in maps else "none"

    def answers(self, status=200):
        try:
            wait_until(lambda: (self.get() or (0,))[0] == status, f"maps answer {status}")
        except AssertionError as late:
            log = self.root.run("tail", "-n", "30", "/var/log/apache2/error.log", check=False)
            raise AssertionError(f"{late}; the last answer: {self.get()}; Apache's log:\n{log}") from late


class Watch:
    """Asks for a tile again and again; `wrong`: answers that were no tile. A refused connection is a restart."""

    def __init__(self, machine):
        self.machine, self.wrong, self.seen, self.ended = machine, [], 0, threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        while not self.ended.is_set():
            answer = self.machine.get()
            if answer is not None and answer[0] != 200:
                self.wrong.append(answer)
            self.seen += answer is not None

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        seen = self.seen
        wait_until(lambda: self.seen > seen + 2 or not self.thread.is_alive(), "tiles are asked for after the change")
        self.ended.set()
        self.thread.join()


@pytest.fixture(scope="module")
def packages(build, tmp_path_factory):
    """Our package, and the same as a later version."""
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run(["cpack", "-G", "DEB", "-B", folder], cwd=build, check=True, capture_output=True, timeout=patience(300))
    first = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-R", first, folder / "later"], check=True)
    control = folder / "later/DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 99.0", control.read_text()))
    subprocess.run(["dpkg-deb", "-b", "-Zgzip", "-z1", "--root-owner-group", folder / "later", folder / "later.deb"], check=True, capture_output=True)
    return first, folder / "later.deb"


@pytest.fixture
def machine(site, tmp_path):
    if os.getuid() != 0:
        pytest.fail("a system of its own needs root")
    root = Root(tmp_path / "system")
    try:
        root.run("apt-get", "install", "-y", "--no-install-recommends", "apache2", "systemd")
        root.run("dpkg", "--purge", OURS, THEIRS, "mapcache-cgi", "mapcache-tools")
        # Of another program on this machine: now and then it ends a start of Apache, as its shared memory is there already.
        root.run("a2dismod", "--force", "tile", check=False)
        yield Machine(root, site)
        root.run("apache2ctl", "-k", "stop", check=False)
    finally:
        root.stop()


def install(machine, package):
    shutil.copy(package, machine.root.path / "root/mapcache.deb")
    return machine.root.run("apt-get", "install", "-y", "--no-install-recommends", "--allow-downgrades", "/root/mapcache.deb")


def test_from_debian_and_back(machine, packages):
    first, later = packages
    root = machine.root
    root.run("apt-get", "install", "-y", "--no-install-recommends", THEIRS)
    root.run("apache2ctl", "-k", "start")
    machine.answers()
    tile = machine.get()[1]
    assert machine.loaded() == "theirs"

    install(machine, first)
    machine.answers()
    assert machine.loaded() == "ours" and machine.get()[1] == tile

    with Watch(machine) as watch:
        root.run("dpkg", "--purge", THEIRS)
    assert watch.wrong == [] and machine.loaded() == "ours"
    root.run("apache2ctl", "-k", "restart")
    machine.answers()

    with Watch(machine) as watch:
        install(machine, later)
    assert watch.wrong == [] and machine.loaded() == "ours"

    root.run("apt-get", "remove", "-y", OURS)
    machine.answers(404)
    assert machine.loaded() == "none"
    install(machine, later)
    machine.answers()
    assert machine.loaded() == "ours" and machine.get()[1] == tile

    root.run("apt-get", "install", "-y", "--no-install-recommends", THEIRS)
    machine.answers()
    assert machine.loaded() == "theirs" and machine.get()[1] == tile
    root.run("dpkg", "--purge", OURS)
    root.run("apache2ctl", "-k", "restart")
    machine.answers()
    assert (root.path / "var/cache/mapcache/tiles.sqlite3").exists()


def test_what_the_administrator_disabled_stays_so(machine, packages):
    first, later = packages
    root = machine.root
    install(machine, first)
    root.run("apache2ctl", "-k", "start")
    machine.answers()
    root.run("a2dismod", "mapcache-server")
    root.run("apache2ctl", "-k", "restart")
    machine.answers(404)
    install(machine, later)
    root.run("apache2ctl", "-k", "restart")
    assert machine.get()[0] == 404
    enabled = ["mapcache.socket", "mapcache@two.socket", "mapcache-jobs@maps.service", "mapcache-seed@maps.timer"]
    root.run("systemctl", "enable", *enabled)
    links = root.run("find", "/etc/systemd/system", "-type", "l", "-name", "mapcache*").split()
    assert sorted(link.rsplit("/", 1)[1] for link in links) == sorted(enabled)
    root.run("apt-get", "remove", "-y", OURS)
    assert root.run("find", "/etc/systemd/system", "-type", "l", "-name", "mapcache*").split() == links, "kept for who installs it again"
    root.run("dpkg", "--purge", OURS)
    left = root.run("find", "/etc/apache2", "/usr/lib/apache2", "/lib/systemd", "/etc/systemd", "/etc/logrotate.d", "-name", "*mapcache*")
    assert left == ""


def test_lintian_has_nothing_to_say(packages):
    said = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", packages[0]], capture_output=True, text=True,
                          timeout=patience(300), check=False)
    assert said.returncode == 0, said.stdout + said.stderr
