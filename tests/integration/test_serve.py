"""`mapcache serve`: how it starts, tells and ends."""
import concurrent.futures
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import fetch, listens, tile_path, wait_until
from patience import patience
from ports import free_port
from serving import SERVERS, Serving, nothing_is_left, processes, run_folder


def run(build, *words, **options):
    return subprocess.run([str(build / "bin/mapcache"), "serve", *map(str, words)], capture_output=True, text=True,
                          timeout=patience(60), stdin=subprocess.DEVNULL, **options)


@pytest.mark.parametrize("server", SERVERS)
def test_a_configuration_is_served_as_it_stands(build, site, server):
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        told = serving.told
        assert told["url"] == f"http://127.0.0.1:{told['port']}/" and told["server"].lower() == server
        assert [layer["name"] for layer in told["layers"]] == ["base", "slow"]
        assert told["layers"][0]["grids"] == [{"name": "GoogleMapsCompatible", "minzoom": 0, "maxzoom": 21}]
        reply = serving.get(tile_path(3, 2, 1))
        assert reply.status == 200 and reply.body == site.tile(3, 2, 1)
        assert f"http://127.0.0.1:{told['port']}/wmts/" in serving.get("/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
        tag = reply.headers["ETag"]
        assert serving.get(tile_path(3, 2, 1), headers={"If-None-Match": tag}).status == 304
        assert serving.end() == 0
    assert serving.all("stopped")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_stays_behind_whatever_ends_it(build, site, server, number):
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        folder, port = run_folder(serving), serving.port
        assert folder.stat().st_mode & 0o777 == 0o700 and serving.get(tile_path()).status == 200
        assert serving.end(number) == (-9 if number == signal.SIGKILL else 0)
        wait_until(lambda: nothing_is_left(folder, port), "everything has ended")


@pytest.mark.parametrize("server", SERVERS)
def test_the_server_ends_where_all_that_watches_it_was_killed(build, site, server):
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        folder, port = run_folder(serving), serving.port
        keepers = [number for number, parent, line in processes() if parent == serving.process.pid and "mapcache serve" in line]
        assert len(keepers) == 1
        os.kill(keepers[0], signal.SIGKILL)
        serving.end(signal.SIGKILL)
        wait_until(lambda: not listens(("127.0.0.1", port)) and not [line for _, _, line in processes() if str(folder) in line],
                   "the server has ended")
    shutil.rmtree(folder)


def test_an_interrupt_of_the_terminal_ends_it_at_once(build, site):
    """Ctrl-C goes to the whole group in the foreground; closing the terminal, too."""
    for how in ("interrupt", "close"):
        port = free_port()
        child, terminal = pty.fork()
        if child == 0:
            os.execv(build / "bin/mapcache", ["mapcache", "serve", str(site.config), "--port", str(port)])
        wait_until(lambda: listens(("127.0.0.1", port)), "it listens")
        wait_until(lambda: b"Ctrl-C" in os.read(terminal, 65536), "it tells")
        folder = next(word.rpartition("/")[0] for _, parent, line in processes() if parent == child
                      for word in line.split() if "/mapcache-serve-" in word)
        began = time.monotonic()
        if how == "interrupt":
            os.write(terminal, b"\x03")
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert time.monotonic() - began < patience(5)
            os.close(terminal)
        else:
            os.close(terminal)
            os.waitpid(child, 0)
        wait_until(lambda: not os.path.exists(folder) and not listens(("127.0.0.1", port)), f"all has ended after the {how}")


def test_the_next_free_port_is_taken_unless_one_is_wanted(build, site):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8080))
            taken.listen()
        except OSError:
            pass  # somebody else has it: just as well
        with Serving(build, site.config) as serving:
            assert serving.port > 8080 and serving.get(tile_path()).status == 200
            assert any("port 8080 is taken" in note["text"] for note in serving.all("note"))
            for server in SERVERS:
                refused = run(build, site.config, "--port", serving.port, f"--{server}")
                assert refused.returncode == 1 and refused.stdout == ""
                assert re.search(rf"port {serving.port} is taken by apache2 \(process \d+\)", refused.stderr), refused.stderr


def test_two_at_the_same_moment_get_two_ports(build, site):
    several = [Serving(build, site.config, server=server) for server in (*SERVERS, *SERVERS)]
    try:
        for serving in several:
            serving.__enter__()
        assert len({serving.port for serving in several}) == len(several)
        assert all(serving.get(tile_path()).status == 200 for serving in several)
    finally:
        assert [serving.end() for serving in several] == [0] * len(several)


@pytest.mark.parametrize("words,said", [
    ([], "no THING is named"),
    (["/nowhere/at/all.tif"], "/nowhere/at/all.tif cannot be read: No such file or directory"),
    (["s3://bucket/key.tif"], "addresses begin with postgresql://, http:// or https://"),
    (["SITE", "--apache", "--nginx"], "do not go together"),
    (["SITE", "--force"], "--force goes with --save"),
    (["SITE", "SITE"], "is served alone"),
    (["SITE", "--port", "0"], "--port"),
    (["SITE", "--port", "70000"], "--port"),
    (["SITE", "--listen", "300.1.1.1"], "--listen 300.1.1.1"),
    (["SITE", "--listen", "203.0.113.7"], "is no address of this machine"),
    (["SITE", "--port", "80"], "port"),
])
def test_what_cannot_be_done_is_said(build, site, words, said):
    done = run(build, *[site.config if word == "SITE" else word for word in words])
    assert done.returncode == 1 and said in done.stderr and done.stdout == "", done.stderr


def test_a_configuration_that_is_wrong_is_refused_with_its_place(build, site):
    site.config.write_text(site.config.read_text().replace("<grid>", "<grid>No", 1))
    done = run(build, site.config)
    assert done.returncode == 1 and re.search(rf"{site.config}:\d+:\d+: ", done.stderr) and "NoGoogle" in done.stderr


def broken_twice(text):
    """A configuration with two mistakes, at two places."""
    return text.replace("<grid>", "<grid>No", 1).replace("<cache>", "<cache>no\x9b31m", 1)


def test_each_mistake_of_a_configuration_has_its_line(build, site):
    """The name of the file holds what terminals obey, and a line break."""
    file = site.config.with_name("m\x1b[31m\nmapcache serve: all is well.xml")
    file.write_text(broken_twice(site.config.read_text()))
    file.chmod(0o644)
    done = run(build, file)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].startswith("mapcache serve: ") and len([line for line in lines if "<tileset " in line or "<grid>" in line]) == 2, lines
    assert all(line.startswith("  ") for line in lines[1:]) and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr), lines


def test_a_file_that_may_not_be_read(build, site):
    site.config.chmod(0o600)
    done = run(build, site.config)
    assert done.returncode == 1 and f"{site.config} cannot be read: the user that serves (www-data) may not read it" in done.stderr


def make_stores(folder):
    """A folder where only its owner, root, may write."""
    folder.mkdir()
    for name in ("its", "theirs", "mixed", "mixed/mixed", "mixed/mixed/GoogleMapsCompatible", "closed"):
        (folder / name).mkdir(mode=0o755)
    for name in ("theirs", "mixed", "mixed/mixed"):
        (folder / name).chmod(0o777)
    (folder / "theirs/file.sqlite3").touch(0o644)
    return {"its": ("disk", f"<base>{folder}/its</base>"), "new": ("disk", f"<base>{folder}/a's/b</base>"), "theirs": ("disk", f"<base>{folder}/theirs</base>"),
            "mixed": ("disk", f"<base>{folder}/mixed</base>"), "file": ("sqlite3", f"<dbfile>{folder}/theirs/file.sqlite3</dbfile>"),
            "journal": ("mbtiles", f"<dbfile>{folder}/closed/journal.mbtiles</dbfile>"), "still": ("disk", f"<base>{folder}/its</base>"),
            "many": ("sqlite3", f"<dbfile>{folder}/closed/{{tileset}}/{{grid}}.sqlite3</dbfile>"), "none": ("none", "")}


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone serves as another user")
def test_root_is_told_where_the_server_cannot_write(build, site):
    """One line for each store with the remedy, and the remedy works."""
    place = site.folder / "stores"
    stores = make_stores(place)
    tilesets = "".join(f"""<cache name="{name}" type="{kind}">{where}</cache>
      <tileset name="{name}"><source>slow</source><cache>{name}</cache><grid>GoogleMapsCompatible</grid><format>PNG</format>
      <read-only>{str(name == "still").lower()}</read-only></tileset>
      <tileset name="{name}2"><source>slow</source><cache>{name}</cache><grid>WGS84</grid><format>PNG</format>
      <read-only>{str(name == "still").lower()}</read-only></tileset>""" for name, (kind, where) in stores.items())
    site.write_config(extra=tilesets)

    def told_at_start_and_later():
        with Serving(build, site.config, port=free_port()) as serving, concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert [reply.status for reply in threads.map(lambda name: serving.get(tile_path(layer=name)), expected)] == [200] * len(expected)
            serving.end()
            at_start = serving.events[:serving.events.index(serving.told)]
            return [one["text"] for one in at_start if "cannot write" in one.get("text", "")], serving.errors()

    missing = f"'{place}/a'\\''s/b'"
    expected = {"its": (f"{place}/its", f"chown -R www-data {place}/its"), "new": (f"{place}/a's/b", f"mkdir -p {missing} && chown -R www-data {missing}"),
                "mixed": (f"{place}/mixed/mixed/GoogleMapsCompatible", f"chown -R www-data {place}/mixed"),
                "file": (f"{place}/theirs/file.sqlite3", f"chown www-data {place}/theirs/file.sqlite3"),
                "journal": (f"{place}/closed", f"chown www-data {place}/closed"), "many": (f"{place}/closed", f"chown -R www-data {place}/closed")}
    told, errors = told_at_start_and_later()
    assert len(told) == len(expected), told
    assert len(errors) == len(expected), errors
    for name, (where, remedy) in expected.items():
        assert len([text for text in told if text.startswith(f'cache "{name}": the user www-data cannot write {where}, ') and f"`{remedy}`" in text]) == 1, (name, told)
    for text in told:
        subprocess.run(["sh", "-c", text.split("`")[1]], check=True, timeout=patience(60))
    assert told_at_start_and_later() == ([], [])


@pytest.mark.parametrize("server", SERVERS)
def test_a_changed_configuration_is_served_and_a_broken_one_is_not(build, site, server):
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        page = "/wmts/1.0.0/WMTSCapabilities.xml"
        assert "integration" in serving.get(page).body.decode()
        site.write_config(title="another title")
        wait_until(lambda: "another title" in serving.get(page).body.decode(), "the change shows")
        for broken, said in (("<mapcache><tileset", "what was served before still is"),
                             (site.config.read_text().replace("<grid>", "<grid>No", 1), "NoGoogleMapsCompatible")):
            site.config.write_text(broken)
            wait_until(lambda: any(said in text and str(site.config) in text for text in serving.errors()), "the mistake is told")
            assert "another title" in serving.get(page).body.decode()
        site.write_config(title="mended")
        wait_until(lambda: "mended" in serving.get(page).body.decode(), "the mended one shows")
        assert serving.process.poll() is None and serving.end() == 0


def test_what_it_prints_beside_the_configuration_is_no_change(build, site):
    """The same name with another ending, as of a style beside a shapefile."""
    log = site.config.with_suffix(".log")
    with open(log, "wb") as output:
        serving = subprocess.Popen([build / "bin/mapcache", "serve", "--json", site.config], stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: "serving" in log.read_text(), "mapcache serve serves")
            site.write_config(title="another")
            wait_until(lambda: '"reloaded"' in log.read_text(), "the change is seen")
            time.sleep(2)  # four looks: nobody can be asked whether they have come
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(patience(30))
    assert log.read_text().count('"reloaded"') == 1, log.read_text()


@pytest.mark.parametrize("server", SERVERS)
def test_errors_of_requests_are_told_in_words(build, site, server):
    site.origin_url = "http://127.0.0.1:1/wms?"
    site.write_config()
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        for _ in range(3):
            assert serving.get(tile_path(layer="slow")).status == 502
        wait_until(serving.errors, "the error is told")
        text = serving.errors()[0]
        assert 'source "slow"' in text and "Could" in text and "[pid" not in text and "mapcache:error" not in text
        serving.end()
        assert len([one for one in serving.errors() if 'source "slow"' in one]) <= 2, "the same is not said again and again"


@pytest.mark.parametrize("server", SERVERS)
def test_the_server_never_waits_for_somebody_to_read_its_log(build, site, server):
    """However long the data are looked at: here a file that is a pipe, into which nobody writes yet."""
    line = b"a line of the log, as long as lines of a log are: " + b"x" * 150 + b"\n"
    whole = site.config.read_bytes()
    with Serving(build, site.config, server=server, port=free_port()) as serving, concurrent.futures.ThreadPoolExecutor(1) as threads:
        pid = next(number for number, parent, text in processes() if parent == serving.process.pid and "mapcache serve" not in text)
        pipe = site.config.with_suffix(".pipe")
        os.mkfifo(pipe, 0o666)
        pipe.rename(site.config)
        with open(site.config, "wb", buffering=0) as config:  # waits for who reads
            with open(f"/proc/{pid}/fd/2", "wb", buffering=0) as log:
                os.set_blocking(log.fileno(), False)
                left = bytearray(line * 40000)

                def is_written():
                    while left and (written := log.write(left)):
                        del left[:written]
                    return not left

                wait_until(is_written, "8 MB of log are taken")
            assert threads.submit(serving.get, tile_path()).result().status == 200
            assert not serving.errors(), "the data are still looked at"
            pipe.write_bytes(whole)
            pipe.rename(site.config)
            config.write(whole)
        wait_until(lambda: any(re.search(r"\d+ more lines in a second|the same \d+ times more", text) for text in serving.errors()), "lines are counted")
        assert serving.end() == 0


def age_of(process):
    """Seconds since it was started."""
    started = int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    return float(pathlib.Path("/proc/uptime").read_text().split()[0]) - started / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_was_killed_is_started_again(build, site, server):
    with Serving(build, site.config, server=server, port=free_port()) as serving:
        victims = [number for number, parent, line in processes() if parent == serving.process.pid and "mapcache serve" not in line]
        wait_until(lambda: min(map(age_of, victims)) > 5.5, "they have lasted: one that ends earlier cannot work, and is not started again")
        for number in victims:
            os.kill(number, signal.SIGKILL)
        wait_until(lambda: any("started again" in text for text in serving.errors()), "it is told")
        wait_until(lambda: serving.process.poll() is not None or
                   listens(("127.0.0.1", serving.port)) and serving.get(tile_path()).status == 200, "it answers again")
        assert serving.process.poll() is None, serving.output
        assert serving.end() == 0


def test_words_for_people(build, site):
    port = free_port()
    process = subprocess.Popen([build / "bin/mapcache", "serve", site.config, "--port", str(port)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: listens(("127.0.0.1", port)), "it listens")
    wait_until(lambda: fetch(port, tile_path()).status == 200, "it answers")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=patience(30))
    assert process.returncode == 0 and out.endswith("stopped\n")
    assert re.search(r"^  base +zooms 0 to 21 of GoogleMapsCompatible", out, re.M)
    assert f"\n  http://127.0.0.1:{port}/\n" in out and "Ctrl-C stops" in out


def test_quiet_is_silent(build, site):
    port = free_port()
    process = subprocess.Popen([build / "bin/mapcache", "serve", "-q", site.config, "--port", str(port)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: listens(("127.0.0.1", port)), "it listens")
    assert fetch(port, tile_path()).status == 200
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=patience(30)) == ("", "") and process.returncode == 0


def test_saving_writes_over_nothing(build, site, folder):
    saved = folder / "saved.xml"
    with Serving(build, site.config, options=["--save", saved], port=free_port()) as serving:
        assert saved.read_text() == site.config.read_text() and serving.get(tile_path()).status == 200
    refused = run(build, site.config, "--save", saved)
    assert refused.returncode == 1 and "is there already" in refused.stderr and "--force" in refused.stderr
    saved.write_text("something longer than nothing" * 1000)
    with Serving(build, site.config, options=["--save", saved, "--force"], port=free_port()):
        assert saved.read_text() == site.config.read_text()


def test_a_saved_file_is_its_owners_and_replaces_no_link(build, site, folder):
    """--force makes a new file in the place of one that all can read; a link and what it points to stay as they are."""
    saved, link = folder / "saved.xml", folder / "link.xml"
    saved.write_text("old")
    saved.chmod(0o644)
    with saved.open() as opened_before:
        with Serving(build, site.config, options=["--save", saved, "--force"], port=free_port()):
            assert saved.stat().st_mode & 0o777 == 0o600 and saved.read_text() == site.config.read_text()
        assert opened_before.read() == "old"
    target = folder / "target.xml"
    target.write_text("target")
    link.symlink_to(target)
    refused = run(build, site.config, "--save", link, "--force")
    assert refused.returncode == 1 and "no plain file" in refused.stderr
    assert target.read_text() == "target" and link.is_symlink()


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_save_that_fails_leaves_nothing(build, folder, force):
    folder.chmod(0o755)
    place = folder / "place"
    place.mkdir()
    saved, broken = place / "saved.xml", folder / "broken.tif"
    broken.write_bytes(b"II*\0 no image")
    broken.chmod(0o644)
    if force:
        saved.write_text("old")
    refused = run(build, broken, "--save", saved, *force)
    assert refused.returncode == 1 and "broken.tif" in refused.stderr
    assert [path.name for path in place.iterdir()] == (["saved.xml"] if force else [])
    assert not force or saved.read_text() == "old"


def test_a_browser_is_opened_and_never_by_root(build, site, folder):
    """A program called xdg-open gets the address."""
    programs = folder / "programs"
    programs.mkdir()
    opened = folder / "opened"
    (programs / "xdg-open").write_text(f'#!/bin/sh\necho "$1" > {opened}.draft && mv {opened}.draft {opened}\n')
    (programs / "xdg-open").chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "DISPLAY": ":99"}
    with Serving(build, site.config, options=["--open"], environment=environment, port=free_port()) as serving:
        wait_until(lambda: serving.all("note"), "a note is told")
        assert any("root opens no browser" in note["text"] for note in serving.all("note")) and not opened.exists()
    port = free_port()
    process = subprocess.Popen(["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", build / "bin/mapcache", "serve",
                                "--open", "--port", str(port), site.config], env={**os.environ, **environment}, stdout=subprocess.PIPE)
    wait_until(opened.exists, "the browser is opened")
    assert opened.read_text() == f"http://127.0.0.1:{port}/\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=patience(30))
    assert process.returncode == 0


def test_a_program_without_its_servers_says_what_to_install(build, folder):
    """Alone in a folder, with Apache and nginx there; and where there is no web server at all."""
    shutil.copy(build / "bin/mapcache", folder / "mapcache")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib")}
    for server, name in (("apache", "mod_mapcache.so"), ("nginx", "mapcache.fcgi")):
        done = subprocess.run([folder / "mapcache", "serve", f"--{server}", "/etc/hostname"], capture_output=True, text=True, env=environment,
                              timeout=patience(60))
        assert done.returncode == 1 and f"{name} is not installed with this program" in done.stderr, done.stderr
    hidden = "mount -t tmpfs none /usr/sbin && mount -t tmpfs none /usr/local/sbin && exec \"$0\" \"$@\""
    for options, said in (([], "apt install apache2-bin`, or `sudo apt install nginx-light`"), (["--apache"], "Apache is not installed"),
                          (["--nginx"], "nginx is not installed")):
        done = subprocess.run(["unshare", "-m", "sh", "-c", hidden, build / "bin/mapcache", "serve", *options, "/etc/hostname"],
                              capture_output=True, text=True, timeout=patience(60), env={**os.environ, "PATH": "/usr/bin:/bin"})
        assert done.returncode == 1 and said in done.stderr, done.stderr


def test_json_is_one_object_on_each_line(build, site):
    with Serving(build, site.config, port=free_port()) as serving:
        serving.end()
    assert [json.loads(line)["event"] for line in serving.output.splitlines() if "note" not in line] == ["serving", "stopped"]
