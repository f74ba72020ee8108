"""More is asked for than can be done: what needs no drawing is answered as ever, the rest is refused at once."""

import concurrent.futures
import contextlib
import ctypes
import os
import socket
import struct
import threading
import time

import pytest
from conftest import GRID, tile_path, wait_until
from fastcgi import BEGIN, PARAMS, Client, Server, pair, record
from patience import patience


@pytest.fixture
def serve(build, folder, site):
    """serve(elements of <mapcache>, options): the program on the site."""
    running = []

    def start(extra="", options=()):
        site.write_config(extra=extra)
        running.append(Server(build, site.config, folder, options=options))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def ask(server, path, client=b"192.0.2.1", query=b""):
    connection = Client(server.address)
    try:
        return connection.get(path.encode(), query, variables={b"REMOTE_ADDR": client})
    finally:
        connection.close()


@contextlib.contextmanager
def released(site):
    """Whatever happens, nobody is left waiting for the origin."""
    try:
        yield
    finally:
        site.origin.release("slow")


def slow(number):
    return tile_path(7, number % 8 * 16, number // 8 * 16, "slow")


def begin_slow(threads, server, site, numbers, client=b"192.0.2.1"):
    """Asks for tiles that the origin holds back; returns when it has been asked for all of them."""
    before = len(site.origin.requests())
    begun = [threads.submit(ask, server, slow(number), client) for number in numbers]
    wait_until(lambda: len(site.origin.requests()) >= before + len(begun), "the origin is asked")
    return begun


GET_SCHEDULE = {"x86_64": 315, "aarch64": 275}  # numbers of sched_getattr; sched_setattr has the one before it
SHORT = 5e5  # ns: slices below are short


class Schedule(ctypes.Structure):
    """struct sched_attr: how a thread gets processor time. runtime: ns of the slices that an ordinary one asks for."""
    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64), ("nice", ctypes.c_int32),
                ("priority", ctypes.c_uint32), ("runtime", ctypes.c_uint64), ("deadline", ctypes.c_uint64), ("period", ctypes.c_uint64)]


def schedules(pid):
    """Those of each thread."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        schedule = Schedule()
        if ctypes.CDLL(None).syscall(GET_SCHEDULE[os.uname().machine], int(thread), ctypes.byref(schedule), ctypes.sizeof(schedule), 0) == 0:
            found[int(thread)] = schedule
    return found


def usual(pid):
    """Threads whose slices are not short."""
    return {thread for thread, schedule in schedules(pid).items() if schedule.runtime >= SHORT}


def short(pid):
    return {thread for thread, schedule in schedules(pid).items() if 0 < schedule.runtime < SHORT}


def children(web):
    with open(f"/proc/{web.program.process.pid}/task/{web.program.process.pid}/children", encoding="ascii") as numbers:
        return [int(number) for number in numbers.read().split()]


def count_short(web):
    """Threads of the children with short slices."""
    return sum(len(short(pid)) for pid in children(web))


def can_choose_slices():
    """Whether the kernel lets an ordinary thread of a process with this one's policy have short slices: Linux 6.12 and later."""
    chosen = []

    def choose():
        number, schedule = GET_SCHEDULE[os.uname().machine], Schedule()
        call, size = ctypes.CDLL(None).syscall, ctypes.sizeof(Schedule)
        if call(number, 0, ctypes.byref(schedule), size, 0) == 0 and schedule.policy == os.SCHED_OTHER and schedule.runtime > SHORT:
            schedule.runtime = 100000
            call(number - 1, 0, ctypes.byref(schedule), 0)
            call(number, 0, ctypes.byref(schedule), size, 0)
            chosen.append(schedule.runtime < SHORT)

    thread = threading.Thread(target=choose)  # nobody else gets them
    thread.start()
    thread.join()
    return chosen == [True]


needs_numbers = pytest.mark.skipif(os.uname().machine not in GET_SCHEDULE, reason="the numbers of the calls are not known")


def check_policies(pid):
    """On every kernel: no thread has become more or less important than the one that has started all."""
    assert {(schedule.policy, schedule.nice) for schedule in schedules(pid).values()} == {(os.sched_getscheduler(0), os.nice(0))}


@needs_numbers
def test_threads_of_slow_requests_give_way_to_others(serve, site):
    site.hold()
    server = serve()
    pid = server.program.process.pid
    choose = can_choose_slices()
    with concurrent.futures.ThreadPoolExecutor(16) as threads, released(site):
        begun = begin_slow(threads, server, site, range(3))
        assert ask(server, tile_path()).status == 200
        check_policies(pid)
        if choose:
            wait_until(lambda: short(pid), "a thread that is free asks for short slices")
        else:
            assert not short(pid)
        meanwhile = usual(pid)
        site.origin.release("slow")
        assert [answer.result().status for answer in begun] == [200] * 3
    if choose:
        wait_until(lambda: len(meanwhile & short(pid)) >= 3, "the threads of slow requests ask for short slices again")
    check_policies(pid)


@needs_numbers
def test_threads_of_slow_requests_give_way_in_apache(apache, site):
    site.hold()
    site.write_config()
    web = apache(f'MaxRequestWorkers 1\nMapCacheAlias /mc "{site.config}"', mpm="prefork")
    assert web.get("/mc" + tile_path()).status == 200
    as_chosen = 1 if can_choose_slices() else 0
    wait_until(lambda: count_short(web) == as_chosen, "the only thread that answers asks for short slices")
    with concurrent.futures.ThreadPoolExecutor(1) as threads, released(site):
        begun = threads.submit(web.get, "/mc" + slow(1))
        wait_until(lambda: site.origin.requests() and count_short(web) == 0, "the thread has usual slices")
        for pid in children(web):
            check_policies(pid)
        site.origin.release("slow")
        assert begun.result().status == 200
    wait_until(lambda: count_short(web) == as_chosen, "the thread asks for short slices again")


def test_threads_stay_free_for_what_is_stored(serve, site):
    site.hold()
    wrong = "SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=nothing&WIDTH=2000&HEIGHT=2000&FORMAT=image/png&EXCEPTIONS=INIMAGE"
    server = serve('<service type="health" enabled="true"/><service type="metrics" enabled="true"/>'
                   "<max_slow_requests>7</max_slow_requests>", ("--threads", "8"))
    with concurrent.futures.ThreadPoolExecutor(16) as threads, released(site):
        begun = begin_slow(threads, server, site, range(7))
        refused = ask(server, slow(7))
        assert refused.status == 503
        assert refused.header("Retry-After") == "1"
        assert ask(server, "/health").status == 200
        for _ in range(20):
            assert ask(server, tile_path()).body == site.tile(0, 0, 0)
        assert b"mapcache_refused_total 1\n" in ask(server, "/metrics").body
        assert b"ServiceException" in ask(server, "/", query=wrong.encode()).body, "no picture of an error is drawn meanwhile"
        site.origin.release("slow")
        assert [answer.result().status for answer in begun] == [200] * 7
    assert ask(server, slow(7)).status == 200
    assert ask(server, "/", query=wrong.encode()).header("Content-Type") == "image/png"
    assert "1 requests were refused" in server.program.log()


def test_one_client_has_its_share(serve, site):
    site.hold()
    server = serve("<max_slow_requests_per_client>2</max_slow_requests_per_client>")
    with concurrent.futures.ThreadPoolExecutor(16) as threads, released(site):
        begun = begin_slow(threads, server, site, range(2))
        assert ask(server, slow(2)).status == 503
        assert ask(server, tile_path()).status == 200
        begun += begin_slow(threads, server, site, [3], b"192.0.2.2")
        site.origin.release("slow")
        assert [answer.result().status for answer in begun] == [200] * 3


def test_a_map_asks_origins_so_often_at_most(serve, site):
    server = serve("<max_origin_requests>2</max_origin_requests>")
    world = "-20037508.34,-20037508.34,20037508.34,20037508.34"
    query = f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=slow&SRS=EPSG:3857&STYLES=&FORMAT=image/png&BBOX={world}"
    many = server.get("/", query + "&WIDTH=2048&HEIGHT=2048")
    assert many.status == 400 and b"more than 2 requests to origins" in many.body, many.body[:500]
    assert len(site.origin.requests()) == 2
    assert server.get("/", query + "&WIDTH=256&HEIGHT=256").status == 200


@pytest.fixture(scope="module", autouse=True)
def waiting(build, shared_folder):
    """A program with connections on which nothing has been asked, one for each byte of a head that has come; made before the tests
    of this file, so that none of them waits a minute for it."""
    config = shared_folder / "mapcache.xml"
    config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{shared_folder}/tiles</base></cache>
      <source name="any" type="dummy"/>
      <tileset name="base"><source>any</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
      <service type="wmts" enabled="true"/><lock_dir>{shared_folder}</lock_dir></mapcache>""")
    server = Server(build, config, shared_folder, options=("--idle", "3600"))
    assert server.get("/nothing").status == 404  # its own has had a request
    began, connections = time.monotonic(), []
    for size in (0, 1, 7):
        connections.append(socket.socket(socket.AF_UNIX))
        connections[-1].connect(server.address)
        connections[-1].sendall(record(BEGIN, struct.pack(">HB5x", 1, 1))[:size])
    yield server, connections, began
    for connection in connections:
        connection.close()
    server.stop()


def half_open(address, dribble):
    """A connection on which a request begins and does not go on; `dribble`: but for a byte now and then."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(patience(60))
    connection.connect(address)
    connection.sendall(record(BEGIN, struct.pack(">HB5x", 1, 1)) + record(PARAMS, pair(b"A", b"b" * 200))[:20 + dribble])
    return connection


def is_over(connection):
    connection.settimeout(1)
    try:
        connection.sendall(b"b")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_requests_that_do_not_get_beyond_their_variables_are_ended(serve, site):
    server = serve()
    connections = [half_open(server.address, number) for number in range(20)]
    assert ask(server, tile_path()).status == 200
    for connection in connections:
        wait_until(lambda c=connection: is_over(c), "a connection that is half open is closed")
        connection.close()
    assert server.get(tile_path()).status == 200  # its own connection had a request, and is kept


def test_threads_of_httpd_stay_free_for_what_is_stored(apache, site):
    """An eighth of 64 threads."""
    site.hold()
    site.write_config()
    web = apache(f'StartServers 1\nServerLimit 1\nThreadsPerChild 64\nMaxRequestWorkers 64\nMapCacheAlias /mc "{site.config}"')
    with concurrent.futures.ThreadPoolExecutor(64) as threads, released(site):
        begun = [threads.submit(web.get, "/mc" + slow(number)) for number in range(56)]
        wait_until(lambda: len(site.origin.requests()) >= 56, "the origin is asked")
        refused = web.get("/mc" + slow(56))
        assert refused.status == 503
        assert refused.headers["Retry-After"] == "1"
        assert web.get("/mc" + tile_path()).body == site.tile(0, 0, 0)
        site.origin.release("slow")
        assert [answer.result().status for answer in begun] == [200] * 56
    assert web.get("/mc" + slow(56)).status == 200


def test_connections_on_which_nothing_is_asked_are_ended(waiting):
    """After a minute; one that has had a request may be idle for longer."""
    server, connections, began = waiting
    for connection in connections:
        connection.settimeout(patience(100))
        assert connection.recv(1) == b""
    assert time.monotonic() - began > 59
    assert server.get("/nothing").status == 404
