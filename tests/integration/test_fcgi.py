"""The FastCGI and CGI program behind real web servers, and alone."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import APACHE_MODULES, GRID, Program, fetch, free_port, listens, stored_tile, tile_path, wait_until
from patience import patience

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, GET_VALUES, GET_VALUES_RESULT, UNKNOWN = 1, 2, 3, 4, 5, 6, 9, 10, 11


def record(kind, content=b"", request=1, padding=0):
    return struct.pack(">BBHHBB", 1, kind, request, len(content), padding, 0) + content + b"\0" * padding


def pairs(**values):
    packed = b""
    for name, value in values.items():
        for size in (len(name), len(value.encode())):
            packed += bytes([size]) if size < 128 else struct.pack(">I", size | 0x80000000)
        packed += name.encode() + value.encode()
    return packed


def begin(keep=True, request=1, role=1):
    return record(BEGIN, struct.pack(">HB5x", role, keep), request)


def whole_request(path, keep=True, **more):
    return (begin(keep) + record(PARAMS, pairs(REQUEST_METHOD="GET", SCRIPT_NAME="/mc", PATH_INFO=path,
                                               QUERY_STRING="", SERVER_NAME="x", SERVER_PORT="80", **more), padding=5)
            + record(PARAMS) + record(STDIN))


class Raw:
    """A FastCGI connection in the hands of the test."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(address)
        self.left = b""

    def send(self, data):
        self.socket.sendall(data)

    def _take(self, size):
        while len(self.left) < size:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.left += more
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def record(self):
        _, kind, request, size, padding, _ = struct.unpack(">BBHHBB", self._take(8))
        content = self._take(size)
        self._take(padding)
        return kind, request, content

    def response(self):
        """Head and body of the response that comes next."""
        out = b""
        while True:
            kind, _, content = self.record()
            if kind == END:
                assert content[4] == 0
                head, _, body = out.partition(b"\r\n\r\n")
                return head.decode(), body
            assert kind == STDOUT
            out += content

    def ended(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.mark.parametrize("place", ["/mc", "/once"])
def test_behind_nginx(fcgi, nginx, site, place):
    web = nginx(fcgi().address)
    for z, x, y in [(0, 0, 0), (2, 1, 3), (3, 7, 0)]:
        reply = web.get(place + tile_path(z, x, y))
        assert reply.status == 200 and reply.body == site.tile(z, x, y), reply.body
        assert reply.headers["Content-Type"] == "image/png"
        assert reply.headers["Content-Length"] == str(len(reply.body))
        assert reply.headers["Last-Modified"] == "Thu, 02 Jan 2020 03:04:05 GMT"
    head = web.get(place + tile_path(), method="HEAD")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(site.tile(0, 0, 0)))
    tag = web.get(place + tile_path()).headers["ETag"]
    assert web.get(place + tile_path(), {"If-None-Match": tag}).status == 304
    assert web.get(place + tile_path(), {"If-Modified-Since": "Thu, 02 Jan 2020 03:04:05 GMT"}).status == 304
    assert web.get(place + tile_path(9, 1000, 0)).status == 404
    refused = web.get(place + tile_path(), method="PUT")
    assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD, POST, OPTIONS"
    assert f"http://127.0.0.1:{web.port}{place}".encode() in web.get(
        place + "?SERVICE=WMS&REQUEST=GetCapabilities").body
    assert web.get(place + tile_path(), method="POST", body=b"x" * 3_000_000).body == site.tile(0, 0, 0)


def test_slow_requests_do_not_hold_up_the_others(fcgi, nginx, site):
    """More origins are waited for than the program starts with threads."""
    site.hold()
    web = nginx(fcgi().address)
    replies = []

    def slow(x):
        replies.append(web.get("/mc" + tile_path(6, x, 0, "slow")))

    threads = [threading.Thread(target=slow, args=(x,)) for x in range(24)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(site.origin.requests()) == 24, "the origin is asked by all of them")
    assert web.get("/mc" + tile_path()).status == 200
    assert not replies
    site.origin.release("slow")
    for thread in threads:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 24


def test_threads_are_bounded(fcgi, nginx):
    program = fcgi("--threads", "2")
    web = nginx(program.address)
    threads = [threading.Thread(target=web.get, args=("/mc" + tile_path(6, x, 1, "slow"),)) for x in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [open(f"/proc/{program.process.pid}/task/{task}/comm", encoding="ascii").read()
             for task in os.listdir(f"/proc/{program.process.pid}/task")]
    assert len(names) < 40


def test_many_requests_on_one_connection(fcgi, site):
    raw = Raw(fcgi().address)
    for count in range(200):
        z, x, y = 3, count % 8, count // 8 % 8
        raw.send(whole_request(tile_path(z, x, y)))
        head, body = raw.response()
        assert body == site.tile(z, x, y) and "Content-Type: image/png" in head and "Status:" not in head.split()
    raw.send(whole_request(tile_path(), keep=False))
    raw.response()
    assert raw.ended()


def test_bytes_may_come_one_at_a_time_and_requests_behind_each_other(fcgi, site):
    raw = Raw(fcgi().address)
    for byte in whole_request(tile_path()):
        raw.send(bytes([byte]))
    assert raw.response()[1] == site.tile(0, 0, 0)
    raw.send(whole_request(tile_path(1, 0, 0)) + whole_request(tile_path(1, 1, 0)) + whole_request(tile_path(1, 1, 1)))
    assert [raw.response()[1] for _ in range(3)] == [site.tile(1, 0, 0), site.tile(1, 1, 0), site.tile(1, 1, 1)]


def test_management_records(fcgi, site):
    raw = Raw(fcgi().address)
    raw.send(record(GET_VALUES, pairs(FCGI_MPXS_CONNS="", FCGI_MAX_CONNS="", OTHER=""), request=0))
    kind, request, content = raw.record()
    assert (kind, request) == (GET_VALUES_RESULT, 0)
    assert pairs(FCGI_MPXS_CONNS="0") in content and b"FCGI_MAX_CONNS" in content and b"OTHER" not in content
    raw.send(record(77, b"abc", request=0))
    assert raw.record() == (UNKNOWN, 0, bytes([77]) + b"\0" * 7)
    raw.send(begin(request=5, role=2))
    assert raw.record() == (END, 5, b"\0\0\0\0\3\0\0\0")
    raw.send(begin() + begin(request=2))
    assert raw.record() == (END, 2, b"\0\0\0\0\1\0\0\0")
    raw.send(whole_request(tile_path())[16:])
    assert raw.response()[1] == site.tile(0, 0, 0)


def test_what_is_not_fastcgi_is_dropped_and_the_rest_served(fcgi, site):
    address = fcgi().address
    for nonsense in (b"GET / HTTP/1.0\r\n\r\n", record(STDIN) * 3 + b"\x02" * 8, begin() + record(STDIN),
                     begin() + begin(), record(BEGIN, b"\0\1")):
        raw = Raw(address)
        raw.send(nonsense)
        assert raw.ended()
    raw = Raw(address)
    raw.send(begin() + record(PARAMS, b"\xff\xff\xff\xffabc") + record(PARAMS) + record(STDIN))
    assert raw.response()[0].startswith("Status: 400")
    raw.send(begin() + record(PARAMS, b"x" * 65000) * 5 + record(PARAMS) + record(STDIN))
    assert raw.response()[0].startswith("Status: 431")
    raw.send(whole_request(tile_path()))
    assert raw.response()[1] == site.tile(0, 0, 0)


def test_aborted_requests(fcgi, site):
    program = fcgi()
    raw = Raw(program.address)
    raw.send(begin() + record(PARAMS, pairs(REQUEST_METHOD="GET")) + record(ABORT))
    assert raw.response()[1] == b""
    raw.send(whole_request(tile_path()))
    assert raw.response()[1] == site.tile(0, 0, 0)
    gone = Raw(program.address)
    gone.send(whole_request(tile_path(6, 40, 3, "slow")))
    gone.socket.close()
    raw.send(whole_request(tile_path(2, 1, 1)))
    assert raw.response()[1] == site.tile(2, 1, 1)


def test_a_reader_that_does_not_read_holds_up_nobody(fcgi, site):
    program = fcgi("--threads", "1")
    lazy = Raw(program.address)
    sender = threading.Thread(target=lazy.send, args=(whole_request(tile_path(3, 1, 1)) * 2000,))
    sender.start()
    time.sleep(0.3)
    for _ in range(20):
        raw = Raw(program.address)
        raw.send(whole_request(tile_path()))
        assert raw.response()[1] == site.tile(0, 0, 0)
    for _ in range(2000):
        assert lazy.response()[1] == site.tile(3, 1, 1)
    sender.join()


def test_idle_connections_are_closed(fcgi, site):
    """Also one that stops in the middle of a request; one that waits for its answer is not idle."""
    program = fcgi("--idle", "1")
    silent, half, asking = Raw(program.address), Raw(program.address), Raw(program.address)
    half.send(whole_request(tile_path())[:-20])
    asking.send(whole_request(tile_path(6, 50, 4, "slow")))
    assert "Content-Type: image/png" in asking.response()[0]
    assert silent.ended() and half.ended()
    again = Raw(program.address)
    again.send(whole_request(tile_path(2, 1, 1)))
    assert again.response()[1] == site.tile(2, 1, 1)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_lets_running_requests_finish(fcgi, site, how):
    site.hold()
    program = fcgi()
    raw = Raw(program.address)
    raw.send(whole_request(tile_path(6, 41, 3, "slow")))
    wait_until(lambda: len(site.origin.requests()) == 1, "the origin is asked")
    program.process.send_signal(how)
    time.sleep(0.2)
    assert program.process.poll() is None
    site.origin.release("slow")
    head, body = raw.response()
    assert "image/png" in head and body
    assert raw.ended()
    assert program.process.wait(patience(60)) == 0
    assert not os.path.exists(program.address)


def capabilities_title(program):
    raw = Raw(program.address)
    raw.send(begin(keep=False) + record(PARAMS, pairs(REQUEST_METHOD="GET", SCRIPT_NAME="/mc", PATH_INFO="/",
                                                      QUERY_STRING="SERVICE=WMS&REQUEST=GetCapabilities"))
             + record(PARAMS) + record(STDIN))
    head, body = raw.response()
    return re.search(b"<Title>([^<]*)", body).group(1).decode() if "Status:" not in head.split() else head


def test_auto_reload(fcgi, site):
    site.write_config(extra="<auto_reload>true</auto_reload>", title="one")
    program = fcgi()
    assert capabilities_title(program) == "one"
    site.config.write_text("<mapcache>")
    wait_until(lambda: capabilities_title(program) == "one" and "failed to reload config file" in program.log(),
               "the bad file is logged")
    time.sleep(1.2)
    assert capabilities_title(program) == "one"
    assert program.log().count("failed to reload config file") == 1
    site.write_config(extra="<auto_reload>true</auto_reload>", title="two")
    wait_until(lambda: capabilities_title(program) == "two", "the good file is served")


def test_without_auto_reload_nothing_is_reloaded(fcgi, site):
    program = fcgi()
    assert capabilities_title(program) == "integration"  # it has read its configuration
    site.write_config(title="other")
    time.sleep(1.2)
    assert capabilities_title(program) == "integration"


def test_an_unreadable_configuration_answers_500_until_it_is_there(fcgi, site):
    site.config.unlink()
    program = fcgi(spawned=True)
    assert capabilities_title(program).startswith("Status: 500 ")
    assert "failed to load config file" in program.log() and str(site.config) in program.log()
    site.write_config()
    wait_until(lambda: capabilities_title(program) == "integration", "the file is found")


def test_what_a_configuration_could_not_read_is_tried_again(fcgi, site):
    """As where memory or a database was away for a moment: nobody need touch the file."""
    mark = site.folder / "mark.png"
    site.write_config(extra=f"""<tileset name="marked"><source>slow</source><cache>slow</cache><grid>{GRID}</grid><format>PNG</format>
      <watermark>{mark}</watermark></tileset>""")
    program = fcgi(spawned=True)
    assert capabilities_title(program).startswith("Status: 500 ") and str(mark) in program.log()
    draft = site.folder / "draft.png"
    draft.write_bytes(stored_tile(0, 0, 0))
    draft.rename(mark)
    wait_until(lambda: capabilities_title(program) == "integration", "the file is loaded")
    assert program.log().count("failed to load config file") == 1


def test_without_a_configuration_the_program_ends(build, modules_environment):
    environment = {**os.environ, **modules_environment}
    environment.pop("MAPCACHE_CONFIG_FILE", None)
    ended = subprocess.run([build / "bin/mapcache.fcgi"], stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60),
                           env=environment, check=False)
    assert ended.returncode == 1 and ended.stdout == b"" and b"MAPCACHE_CONFIG_FILE" in ended.stderr


def test_options(build):
    def run(*options):
        return subprocess.run([build / "bin/mapcache.fcgi", *options], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=patience(60), check=False, env={**os.environ, "MAPCACHE_CONFIG_FILE": "/none"})

    assert run("--help").returncode == 0 and "--listen" in run("--help").stdout
    for wrong in (["--threads", "0"], ["--threads", "x"], ["--backlog", "70000"], ["--idle", "0"],
                  ["--listen", "nonsense"],
                  ["--listen", "127.0.0.1:99999"], ["extra"], ["--unknown"]):
        ended = run(*wrong)
        assert ended.returncode == 1 and ended.stderr and ended.stdout == "", wrong


def cgi_environment(site, **variables):
    return {"PATH": os.environ["PATH"], "MAPCACHE_CONFIG_FILE": str(site.config), "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "/cgi-bin/mapcache", "SERVER_NAME": "here.example", "SERVER_PORT": "8080",
            "QUERY_STRING": "", **variables}


def test_plain_cgi(build, site, modules_environment):
    def run(**variables):
        ended = subprocess.run([build / "bin/mapcache.fcgi"], stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60),
                               env={**modules_environment, **cgi_environment(site, **variables)}, check=True)
        head, _, body = ended.stdout.partition(b"\r\n\r\n")
        return head.decode(), body

    head, body = run(PATH_INFO=tile_path())
    assert body == site.tile(0, 0, 0)
    assert f"Content-Length: {len(body)}" in head and not head.startswith("Status")
    tag = re.search('ETag: (".*")', head).group(1)
    head, body = run(PATH_INFO=tile_path(), HTTP_IF_NONE_MATCH=tag)
    assert head.startswith("Status: 304 Not Modified") and body == b""
    assert run(PATH_INFO=tile_path(), REQUEST_METHOD="DELETE")[0].startswith("Status: 405")
    capabilities = run(PATH_INFO="/", QUERY_STRING="SERVICE=WMS&REQUEST=GetCapabilities")[1]
    assert b"http://here.example:8080/cgi-bin/mapcache" in capabilities
    capabilities = run(PATH_INFO="/", QUERY_STRING="SERVICE=WMS&REQUEST=GetCapabilities", HTTPS="on",
                       SERVER_PORT="443", HTTP_HOST="there.example")[1]
    assert b"https://there.example/cgi-bin/mapcache" in capabilities
    capabilities = run(PATH_INFO="/", QUERY_STRING="SERVICE=WMS&REQUEST=GetCapabilities",
                       HTTP_HOST="there.example:90")[1]
    assert b"http://there.example:90/cgi-bin/mapcache" in capabilities
    forged = run(PATH_INFO="/", QUERY_STRING="SERVICE=WMS&REQUEST=GetCapabilities", HTTP_HOST='x"><script>')[1]
    assert b"script>" not in forged and b"here.example:8080" in forged


def test_plain_cgi_starts_no_thread(build, site, modules_environment):
    trace = shutil.which("strace")
    if trace is None:  # what cannot be watched from outside is seen in the process's own count of clones
        ended = subprocess.run(["valgrind", "-q", "--trace-syscalls=yes", build / "bin/mapcache.fcgi"],
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(60), check=True,
                               env={**modules_environment, **cgi_environment(site, PATH_INFO=tile_path())})
        calls = ended.stderr.decode(errors="replace")
    else:
        ended = subprocess.run([trace, "-f", "-e", "trace=clone,clone3", build / "bin/mapcache.fcgi"],
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=patience(30), check=True,
                               env={**modules_environment, **cgi_environment(site, PATH_INFO=tile_path())})
        calls = ended.stderr.decode(errors="replace")
    assert site.tile(0, 0, 0) in ended.stdout
    assert "clone" not in calls


def test_spawn_fcgi(build, site, folder, nginx, modules_environment):
    address = str(folder / "spawned.sock")
    program = Program(["spawn-fcgi", "-n", "-s", address, "-M", "0666", "--", build / "bin/mapcache.fcgi"],
                      folder / "spawned.log", {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment})
    try:
        wait_until(lambda: os.path.exists(address) and listens(address), "spawn-fcgi listens")
        os.chmod(address, 0o666)
        assert nginx(address).get("/mc" + tile_path()).body == site.tile(0, 0, 0)
    finally:
        assert program.stop() == 0


def test_sockets_passed_as_systemd_does(build, site, folder, nginx, modules_environment):
    port = free_port()
    environment = {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment}
    passed = [f"--setenv={name}={value}" for name, value in environment.items()]
    program = Program(["systemd-socket-activate", "-l", f"127.0.0.1:{port}", *passed, build / "bin/mapcache.fcgi"],
                      folder / "activated.log")
    try:
        wait_until(lambda: "Listening on" in program.log(), "the socket is made")
        web = nginx(f"127.0.0.1:{port}")
        assert web.get("/mc" + tile_path()).body == site.tile(0, 0, 0)
    finally:
        assert program.stop() == 0


def test_listening_on_a_port(build, site, folder, nginx, modules_environment):
    port = free_port()
    program = Program([build / "bin/mapcache.fcgi", "--listen", f"127.0.0.1:{port}"], folder / "port.log",
                      {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment})
    try:
        wait_until(lambda: listens(("127.0.0.1", port)), "it listens")
        assert nginx(f"127.0.0.1:{port}").get("/mc" + tile_path()).body == site.tile(0, 0, 0)
    finally:
        assert program.stop() == 0


def test_a_stale_socket_is_replaced_and_a_live_one_refused(build, fcgi, site, folder, modules_environment):
    program = fcgi()
    second = subprocess.run([build / "bin/mapcache.fcgi", "--listen", program.address], capture_output=True, timeout=patience(60),
                            check=False, env={**os.environ, **modules_environment,
                                              "MAPCACHE_CONFIG_FILE": str(site.config)})
    assert second.returncode == 1 and b"another process" in second.stderr
    program.process.kill()
    program.process.wait()
    again = Program([build / "bin/mapcache.fcgi", "--listen", program.address], folder / "again.log",
                    {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment})
    try:
        wait_until(lambda: listens(program.address), "the stale socket is replaced")
    finally:
        assert again.stop() == 0


def test_mod_fcgid(build, apache, site, folder, modules_environment):
    variables = {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment}
    initial = "".join(f"FcgidInitialEnv {name} {value}\n" for name, value in variables.items())
    program = folder / "mc.fcgi"
    program.symlink_to(build / "bin/mapcache.fcgi")
    web = apache(f"""LoadModule fcgid_module {APACHE_MODULES}/mod_fcgid.so
LoadModule alias_module {APACHE_MODULES}/mod_alias.so
FcgidIPCDir {folder}/fcgid
FcgidProcessTableFile {folder}/fcgid.shm
{initial}
ScriptAlias /mc {program}
<Location /mc>
  SetHandler fcgid-script
  Options +ExecCGI
</Location>
""", module=False)
    for z, x, y in [(0, 0, 0), (3, 7, 0)]:
        assert web.get("/mc" + tile_path(z, x, y)).body == site.tile(z, x, y), web.log()
    assert f"http://127.0.0.1:{web.port}/mc".encode() in web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities").body
    assert web.get("/mc" + tile_path(), method="HEAD").headers["Content-Length"] == str(len(site.tile(0, 0, 0)))


def test_mod_proxy_fcgi(apache, fcgi, site):
    program = fcgi()
    web = apache(f"""LoadModule proxy_module {APACHE_MODULES}/mod_proxy.so
LoadModule proxy_fcgi_module {APACHE_MODULES}/mod_proxy_fcgi.so
<Location /mc>
  ProxyPass unix:{program.address}|fcgi://localhost/ enablereuse=on
  ProxyFCGISetEnvIf "reqenv('SCRIPT_NAME') =~ m#^/mc(/.*)?$#" PATH_INFO "$1"
  ProxyFCGISetEnvIf true SCRIPT_NAME /mc
</Location>
""", module=False)
    for z, x, y in [(0, 0, 0), (3, 7, 0)] * 5:
        assert web.get("/mc" + tile_path(z, x, y)).body == site.tile(z, x, y), web.log()
    assert f"http://127.0.0.1:{web.port}/mc".encode() in web.get("/mc?SERVICE=WMS&REQUEST=GetCapabilities").body


@pytest.mark.parametrize("mpm, module", [("prefork", "cgi"), ("event", "cgid")])
def test_cgi_in_httpd(build, apache, site, folder, modules_environment, mpm, module):
    program = folder / "mc.cgi"
    program.symlink_to(build / "bin/mapcache.fcgi")
    variables = {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment}
    initial = "".join(f"SetEnv {name} {value}\n" for name, value in variables.items())
    socket_line = f"ScriptSock {folder}/cgid.sock\n" if module == "cgid" else ""
    web = apache(f"""LoadModule {module}_module {APACHE_MODULES}/mod_{module}.so
LoadModule alias_module {APACHE_MODULES}/mod_alias.so
LoadModule env_module {APACHE_MODULES}/mod_env.so
{socket_line}{initial}
ScriptAlias /mc {program}
""", mpm, module=False)
    assert web.get("/mc" + tile_path(3, 2, 5)).body == site.tile(3, 2, 5), web.log()
    assert web.get("/mc" + tile_path(9, 1000, 0)).status == 404


def test_trace_lines_on_standard_error(fcgi, site):
    site.write_config(extra="<log_level>debug</log_level>")
    program = fcgi()
    raw = Raw(program.address)
    raw.send(whole_request(tile_path(), REMOTE_ADDR="10.1.2.3", REMOTE_PORT="4321"))
    raw.response()
    pattern = r"\[mapcache:debug\] \[pid \d+:tid \d+\] \S+\(\d+\): \[client 10\.1\.2\.3:4321\] MOCKUP (BEGIN|END) mapcache_handler"
    wait_until(lambda: len(re.findall(pattern, program.log())) == 2, "both trace lines are written")


def test_the_grid_name_of_the_site_is_used(site):
    """The site's own arithmetic: rows count from the top in WMTS and from the bottom in the cache."""
    assert tile_path(1, 0, 1).endswith(f"/{GRID}/1/1/0.png") and site.tile(1, 0, 1) == site.tiles[1, 0, 0]


def identity(pid):
    """Real, effective, saved and file-system user; the groups."""
    lines = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return set(lines["Uid"].split()), set(lines["Gid"].split()), set(lines["Groups"].split())


def test_a_program_that_root_starts_becomes_another_user(fcgi, site):
    www = pwd.getpwnam("www-data")
    program = fcgi("--user", "www-data")
    raw = Raw(program.address)
    raw.send(whole_request(tile_path(2, 1, 1)))
    assert raw.response()[1] == site.tile(2, 1, 1)
    users, groups, others = identity(program.process.pid)
    assert users == {str(www.pw_uid)} and groups == {str(www.pw_gid)} and "0" not in others
    assert os.stat(program.address).st_uid == www.pw_uid
    assert "runs as root" not in program.log()


def test_a_program_that_stays_root_says_so(fcgi):
    program = fcgi()
    wait_until(lambda: "mapcache.fcgi runs as root: --user NAME" in program.log(), "the log warns")


def test_users_that_cannot_be_are_refused(build, site, modules_environment):
    environment = {**os.environ, **modules_environment, "MAPCACHE_CONFIG_FILE": str(site.config)}

    def refused(name, **how):
        command = [build / "bin/mapcache.fcgi", "--listen", str(site.folder / "refused.sock"), "--user", name]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience(60), **how)
        assert ended.returncode == 1
        return ended.stderr

    assert "there is no such user" in refused("nobody-of-that-name")
    assert "only root can become another user" in refused("root", user="www-data", group="www-data", extra_groups=[])
