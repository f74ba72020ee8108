"""Processes beside the server that stop answering: requests end with their deadline, all others are served meanwhile, and
nothing is left locked when those processes go on."""

import concurrent.futures
import os
import signal
import socket
import subprocess

import pytest
from conftest import GRID, Program, wait_until
from fastcgi import Client, Server
from origin import Origin
from patience import patience
from stores import Memcached

DEADLINE = 3  # seconds
MANY = 40  # requests that wait at the same time


@pytest.fixture
def memcached(folder):
    running = Memcached(folder)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


def write_config(folder, origin, memcached):
    folder.chmod(0o777)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="store" type="disk"><base>{folder}/tiles</base></cache>
  <source name="origin" type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>red</LAYERS></params></getmap>
    <http><url>{origin.url("/wms?")}</url></http></source>
  <tileset name="layer"><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile>
    <source>origin</source></tileset>
  <service type="wmts" enabled="true"/>
  <service type="health" enabled="true"/>
  <locker type="memcache"><retry>0.05</retry><timeout>600</timeout><server><host>127.0.0.1</host>
    <port>{memcached.port}</port></server></locker>
  <deadline>{DEADLINE}</deadline>
</mapcache>
""")
    return path


def tile(number):
    return f"/wmts/1.0.0/layer/default/{GRID}/7/{number // 128}/{number % 128}.png"


def check_stopped_lock_server(memcached, get):
    """get(path): the status and the body of an answer."""
    assert get(tile(0))[0] == 200
    assert memcached.locks() == 0
    memcached.signal(signal.SIGSTOP)
    os.waitpid(memcached.program.process.pid, os.WUNTRACED)  # all of its threads have stopped
    with concurrent.futures.ThreadPoolExecutor(MANY) as threads:
        waiting = [threads.submit(get, tile(1 + number)) for number in range(MANY)]
        assert get("/health")[0] == 200
        for answer in waiting:  # a tile that was not asked for in time has no lock, and no answer without one
            assert answer.result()[0] in (500, 502, 503, 504), answer.result()
    assert get("/health")[0] == 200
    assert get(tile(0))[0] == 200  # cached tiles need no lock
    memcached.signal(signal.SIGCONT)
    for number in range(MANY + 1):
        wait_until(lambda path=tile(number): get(path)[0] == 200, f"tile {number} is drawn")
    wait_until(lambda: memcached.locks() == 0, "nothing is locked any more")


def test_a_stopped_lock_server_holds_no_fastcgi_program_up(build, folder, origin, memcached):
    server = Server(build, write_config(folder, origin, memcached), folder)

    def get(path):
        client = Client(server.address)
        try:
            answer = client.get(path.encode())
            return answer.status, answer.body
        finally:
            client.close()

    check_stopped_lock_server(memcached, get)
    assert f"memcached at 127.0.0.1:{memcached.port}: no answer in time" in server.program.log()
    server.stop()


def test_a_stopped_lock_server_holds_no_httpd_up(apache, folder, origin, memcached):
    config = write_config(folder, origin, memcached)
    web = apache(f'ServerLimit 1\nStartServers 1\nThreadsPerChild 64\nMaxRequestWorkers 64\nMapCacheAlias /mc "{config}"')

    def get(path):
        answer = web.get("/mc" + path)
        return answer.status, answer.body

    check_stopped_lock_server(memcached, get)


NEVER = """
#include <netdb.h>
#include <string.h>
#include <unistd.h>
#include <dlfcn.h>
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*original)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    int numeric = hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (name != NULL && !numeric && strcmp(name, "hangs.example") == 0)
        for (;;)
            pause();
    *(void **)&original = dlsym(RTLD_NEXT, "getaddrinfo");
    return original(name, service, hints, found);
}
"""


@pytest.fixture(scope="module")
def deaf(shared_folder):
    """A library that makes the C library wait for the address of hangs.example for ever, as if no name server answered."""
    source, library = shared_folder / "never.c", shared_folder / "never.so"
    source.write_text(NEVER)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


DEAF = {
    "origin": ('<source name="s" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap><http>'
               "<url>http://hangs.example/wms?</url></http></source>", ""),
    "lock server": ('<source name="s" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap><http>'
                    "<url>{origin}</url></http></source>",
                    '<locker type="memcache"><server><host>hangs.example</host></server></locker>'),
}


@pytest.mark.parametrize("what", DEAF)
def test_a_name_server_that_hangs_holds_nobody_up(build, folder, origin, deaf, what):
    source, locker = DEAF[what]
    folder.chmod(0o777)
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <cache name="store" type="disk"><base>{folder}/tiles</base></cache>
  {source.format(origin=origin.url("/wms?"))}
  <tileset name="layer"><cache>store</cache><grid>{GRID}</grid><format>PNG</format><metatile>1 1</metatile>
    <source>s</source></tileset>
  <service type="wmts" enabled="true"/>
  <service type="health" enabled="true"/>
  {locker or f"<lock_dir>{folder}</lock_dir>"}
  <deadline>1</deadline>
</mapcache>
""")
    server = Server(build, path, folder, environment=deaf)
    for number in range(3):
        answer = server.get(tile(number))
        assert answer.status in (500, 502, 503, 504), (answer.status, answer.body)
        assert answer.took < patience(20)
    assert server.get("/health").status == 200
    server.stop()
