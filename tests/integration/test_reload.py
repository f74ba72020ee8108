"""The FastCGI program and who supervises it: SIGHUP loads the configuration again without a lost request, a service manager is
told of each state, what cannot be served ends with its reason, and a load balancer sees an end coming."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import GRID, tile_path, wait_until
from fastcgi import Client
from patience import patience

READY = '<service type="ready" enabled="true"/>'


def title(client):
    answer = client.get(b"/", b"SERVICE=WMS&REQUEST=GetCapabilities")
    return re.search(b"<Title>([^<]*)", answer.body)[1].decode()


def ready(client):
    answer = client.get(b"/ready")
    return answer.status, answer.body


def test_sighup_loses_no_request(fcgi, site):
    """20 reloads; MAPCACHE_RELOADS=1000: as many. Each one is seen in what is served before the next one is asked for."""
    reloads = int(os.environ.get("MAPCACHE_RELOADS", "20"))
    site.write_config(title="first", extra=READY)
    program = fcgi()
    ended, broken, titles = threading.Event(), [], set()
    assert title(Client(program.address)) == "first"

    def ask():
        client = Client(program.address)
        while not ended.is_set():
            try:
                titles.add(title(client))
                for path in (tile_path().encode(), b"/ready"):
                    answer = client.get(path)
                    if answer.status != 200 or b'"reload_failed":true' in answer.body:
                        broken.append((path, answer.status, answer.body[:100]))
            except (EOFError, OSError) as problem:
                broken.append(problem)
                return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for name in (f"edition {number}" for number in range(reloads)):
            site.write_config(title=name, extra=READY)
            program.process.send_signal(signal.SIGHUP)
            wait_until(lambda name=name: name in titles or broken, f"configuration {name} is served")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert broken == [] and program.process.poll() is None
    wait_until(lambda: program.log().count("reloaded config file") >= reloads, "the last reload is logged")
    assert program.log().count("reloaded config file") == reloads


def test_files_of_the_configuration_are_read_again(fcgi, site):
    """A reload reads everything anew, also where the configuration file itself is as before."""
    mark = site.folder / "mark.png"
    extra = f'<tileset name="marked"><source>slow</source><cache>slow</cache><grid>{GRID}</grid><format>PNG</format><watermark>{mark}</watermark></tileset>'
    mark.write_bytes(site.tile(0, 0, 0))
    site.write_config(extra=extra + READY)
    program = fcgi()
    client = Client(program.address)
    assert ready(client)[0] == 200  # it listens before it has read the configuration, and answers after that
    mark.unlink()
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "failed to reload config file" in program.log(), "the missing file is logged")
    assert str(mark) in program.log() and program.process.poll() is None
    status, body = ready(client)
    said = json.loads(body)
    assert status == 200 and said["status"] == "degraded" and said["reload_failed"] is True and said["failing"] == []
    assert re.fullmatch(r"mapcache\.xml:[0-9]+:[0-9]+", said["configuration"]["where"]) and said["configuration"]["loaded"] <= said["configuration"]["failed"]
    mark.write_bytes(site.tile(0, 0, 0))
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: json.loads(ready(client)[1])["reload_failed"] is False, "the file is read again")


def test_a_reload_leaves_the_environment_alone(fcgi, site):
    """Threads may be reading it: another value counts after a restart, and the log says so."""
    purge = '<service type="purge" enabled="true"><token_env>SITE_TOKEN</token_env></service>'

    def write(token):
        site.write_config(extra=f"<environment><SITE_TOKEN>{token}</SITE_TOKEN></environment>{purge}{READY}")

    def accepted(client, token):
        return client.get(b"/purge", b"", {b"HTTP_AUTHORIZATION": b"Bearer " + token.encode()}, b"{}").status != 401

    first, second = "first-token-of-the-site", "second-token-of-the-site"
    write(first)
    program = fcgi()
    client = Client(program.address)
    assert accepted(client, first) and not accepted(client, second)
    write(first)
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: program.log().count("reloaded config file") == 1, "the same configuration is loaded")
    assert "restart" not in program.log()
    write(second)
    program.process.send_signal(signal.SIGHUP)
    wait_until(lambda: program.log().count("reloaded config file") == 2, "the new configuration is loaded")
    assert "SITE_TOKEN is as it was" in program.log() and second not in program.log()
    assert accepted(client, first) and not accepted(client, second)


def test_readiness_ends_before_the_process(fcgi, site):
    site.hold()
    site.write_config(extra=READY)
    program = fcgi()
    slow, kept = Client(program.address), Client(program.address)
    assert ready(kept)[0] == 200 and json.loads(ready(kept)[1])["status"] == "ready"
    slow.send(tile_path(6, 41, 3, "slow").encode())
    wait_until(lambda: len(site.origin.requests()) == 1, "the origin is asked")
    program.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not os.path.exists(program.address) or not _accepts(program.address), "no connection is accepted any more")
    status, body = ready(kept)
    assert status == 503 and b"ending" in body
    site.origin.release("slow")
    assert slow.receive().status == 200
    assert program.process.wait(patience(60)) == 0


def _accepts(address):
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.connect(address)
    except OSError:
        return False
    finally:
        probe.close()
    return True


@pytest.fixture
def manager(folder):
    """A service manager; .path is where it listens."""
    class Manager(socket.socket):
        path = str(folder / "notify.sock")

    with Manager(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(made.path)
        os.chmod(made.path, 0o666)
        made.settimeout(patience(30))
        yield made


def test_the_service_manager_is_told(fcgi, manager):
    program = fcgi(environment={"NOTIFY_SOCKET": manager.path})
    assert manager.recv(4096) == b"READY=1"
    program.process.send_signal(signal.SIGHUP)
    assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[0-9]+", manager.recv(4096))
    assert manager.recv(4096) == b"READY=1"
    program.process.send_signal(signal.SIGTERM)
    assert manager.recv(4096) == b"STOPPING=1"
    assert program.process.wait(patience(60)) == 0


def begin_reload(program, site, manager):
    """A reload that takes as long as nobody writes to the file of the configuration, which is a pipe."""
    assert manager.recv(4096) == b"READY=1"
    site.config.rename(site.folder / "whole.xml")
    os.mkfifo(site.config)
    os.chmod(site.config, 0o666)
    program.process.send_signal(signal.SIGHUP)
    assert manager.recv(4096).startswith(b"RELOADING=1")


def said_at_the_end(manager):
    manager.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            yield manager.recv(4096)


def test_a_reload_under_way_does_not_hold_the_end_up(fcgi, site, manager):
    program = fcgi(environment={"NOTIFY_SOCKET": manager.path})
    begin_reload(program, site, manager)
    began = time.monotonic()
    program.process.send_signal(signal.SIGTERM)
    program.process.send_signal(signal.SIGHUP)
    assert program.process.wait(patience(60)) == 0
    assert time.monotonic() - began < patience(15)
    assert not os.path.exists(program.address)
    assert "a reload of the configuration was not finished in time" in program.log()
    assert list(said_at_the_end(manager)) == [b"STOPPING=1"]


def test_a_reload_that_ends_in_time_is_waited_for(fcgi, site, manager):
    program = fcgi(environment={"NOTIFY_SOCKET": manager.path})
    begin_reload(program, site, manager)
    program.process.send_signal(signal.SIGTERM)
    assert manager.recv(4096) == b"STOPPING=1"
    site.config.write_bytes((site.folder / "whole.xml").read_bytes())
    assert program.process.wait(patience(60)) == 0
    assert not os.path.exists(program.address)
    assert "reloaded config file" in program.log() and "in time" not in program.log()
    assert list(said_at_the_end(manager)) == []


@pytest.mark.parametrize("broken", ["missing", "malformed", "refused"])
def test_what_cannot_be_served_ends_with_the_reason(build, site, folder, modules_environment, broken):
    if broken == "missing":
        site.config.unlink()
    else:
        site.config.write_text("<mapcache>\n<tile" if broken == "malformed" else '<mapcache>\n<cache name="a" type="nothing"/></mapcache>')
    address = folder / "ended.sock"
    ended = subprocess.run([build / "bin/mapcache.fcgi", "--config", site.config, "--listen", address], capture_output=True, text=True,
                           timeout=patience(60), check=False, env={**os.environ, **modules_environment})
    assert ended.returncode == 1 and not address.exists()
    assert "failed to load config file" in ended.stderr and str(site.config) in ended.stderr
    if broken == "refused":
        assert f"{site.config}:2:" in ended.stderr and "nothing" in ended.stderr
