"""What the integration tests share: a site (configuration, a small tile cache, a slow origin) and the real server
programs around it, each with its own folder, ports and log. Programs come from the build folder that the environment
variable MAPCACHE_BUILD names, or from build/release."""

import contextlib
import functools
import http.client
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import zlib

import pytest
from origin import Origin
from patience import patience
from ports import free_port
from take_down import end_tidily

ROOT = pathlib.Path(__file__).resolve().parents[2]
APACHE_MODULES = pathlib.Path("/usr/lib/apache2/modules")
GRID = "GoogleMapsCompatible"
SOON = 40  # seconds: for what takes one or two where the disks are quiet


def pytest_configure():
    patience(0)  # measured once, before there are workers
    end_tidily()


def wait_until(condition, what, seconds=60):
    """What the condition says once that is true."""
    began = time.monotonic()
    while time.monotonic() < began + patience(seconds):
        if said := condition():
            return said
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {time.monotonic() - began:.0f} s")


def listens(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe:
        return probe.connect_ex(address) == 0


def png(width, height, pixel):
    """An RGB PNG; pixel(x, y) gives three bytes."""
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@functools.cache
def stored_tile(z, x, y):
    """A tile unlike every other, made once for all tests."""
    return png(256, 256, lambda i, j: (x * 31 % 256, (y * 57 + j // 8) % 256, z * 60) if i < 128 else (i, z, y))


class Reply:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body


def fetch(port, path, headers=None, method="GET", body=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience(timeout))
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Reply(response, response.read())
    finally:
        connection.close()


class Site:
    """A folder with a configuration: layer `base`, cached at levels 0 to 3, and layer `slow`, rendered by an origin."""

    origin_path = "/late/1000/wms?"

    def __init__(self, folder, origin):
        self.origin = origin
        self.folder = folder
        self.config = folder / "mapcache.xml"
        self.origin_url = origin.url(self.origin_path)
        self.tiles = {}
        self._fill_cache()
        self.write_config()

    def _fill_cache(self):
        database = sqlite3.connect(self.folder / "base.sqlite3")
        database.execute("create table tiles(tileset text, grid text, x integer, y integer, z integer, data blob,"
                         " dim text, ctime datetime, primary key(tileset, grid, x, y, z, dim))")
        for z in range(4):
            for x in range(2**z):
                for y in range(2**z):
                    data = stored_tile(z, x, y)
                    self.tiles[z, x, y] = data
                    database.execute("insert into tiles values('base', ?, ?, ?, ?, ?, '', '2020-01-02 03:04:05')",
                                     (GRID, x, y, z, data))
        database.commit()
        database.close()
        self.folder.chmod(0o777)

    def write_config(self, path=None, extra="", title="integration"):
        """Whole at once, as an administrator does who has a server reload it."""
        path = path or self.config
        draft = path.with_name(path.name + ".draft")
        draft.write_text(f"""<?xml version="1.0" encoding="UTF-8"?>
<mapcache>
  <metadata><title>{title}</title></metadata>
  <cache name="base" type="sqlite3"><dbfile>{self.folder}/base.sqlite3</dbfile></cache>
  <cache name="slow" type="disk"><base>{self.folder}/slow</base></cache>
  <source name="slow" type="wms">
    <getmap><params><FORMAT>image/png</FORMAT><LAYERS>any</LAYERS></params></getmap>
    <http><url>{self.origin_url}</url></http>
  </source>
  <tileset name="base"><cache>base</cache><grid>{GRID}</grid><expires>3600</expires></tileset>
  <tileset name="slow"><cache>slow</cache><source>slow</source><grid>{GRID}</grid><format>PNG</format>
    <metatile>1 1</metatile></tileset>
  <service type="wmts" enabled="true"/>
  <service type="wms" enabled="true"/>
  <service type="tms" enabled="true"/>
  <lock_dir>{self.folder}</lock_dir>
  {extra}
</mapcache>
""")
        draft.replace(path)

    def hold(self):
        """From now on the origin answers only after origin.release("slow")."""
        self.origin_url = self.origin.url("/hold/slow/wms?")
        self.write_config()

    def tile(self, z, x, y):
        """The stored bytes of a tile by WMTS row (from the top)."""
        return self.tiles[z, x, 2**z - 1 - y]


def tile_path(z=0, x=0, y=0, layer="base"):
    return f"/wmts/1.0.0/{layer}/default/{GRID}/{z}/{y}/{x}.png"


class Program:
    """A server process with its standard error in a file."""

    def __init__(self, command, log, environment=None, **options):
        self.log_file = log
        self.output = open(log, "ab")
        self.process = subprocess.Popen([str(part) for part in command], stderr=self.output, stdout=self.output,
                                        env={**os.environ, **(environment or {})},
                                        start_new_session=True, **options)  # httpd ends its whole process group

    def log(self):
        return self.log_file.read_text(errors="replace")

    def stop(self, seconds=60):
        """Ends it as an administrator would and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(patience(seconds))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            os.killpg(self.process.pid, signal.SIGKILL)  # its children, too
            self.process.wait()
            raise AssertionError(f"did not end within {patience(seconds):.0f} s:\n{self.log()}") from None
        finally:
            self.output.close()


def stop_all(programs):
    """Stops each of them, also where one does not end in time."""
    with contextlib.ExitStack() as stack:
        for program in programs:
            stack.callback(program.stop)


class Web:
    """A running web server."""

    def __init__(self, program, port, error_log):
        self.program = program
        self.port = port
        self.error_log = error_log

    def get(self, path, headers=None, **options):
        return fetch(options.pop("port", self.port), path, headers, **options)

    def log(self):
        written = self.error_log.read_text(errors="replace") if self.error_log.exists() else ""
        return self.program.log() + written


@pytest.fixture(scope="session")
def build():
    folder = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release")).resolve()
    for program in ("bin/mapcache.fcgi", "modules/mod_mapcache.so"):
        assert (folder / program).exists(), f"{folder / program} is missing: build first"
    return folder


def sanitizer_environment(build):
    """What a program needs that was not built with the sanitizer of a module that it loads."""
    if "MAPCACHE_SANITIZE:STRING=address" not in (build / "CMakeCache.txt").read_text():
        return {}
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True, check=True)
    return {"LD_PRELOAD": runtime.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}


@contextlib.contextmanager
def temporary_folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="mapcache-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder():
    with temporary_folder() as path:
        yield path


@pytest.fixture(scope="module")
def shared_folder():
    """A folder for all tests of a file."""
    with temporary_folder() as path:
        yield path


@pytest.fixture
def site(folder):
    with Origin() as origin:
        yield Site(folder, origin)


@pytest.fixture(scope="session")
def modules_environment(build):
    return {"MAPCACHE_MODULES": str(build / "modules"), "LD_LIBRARY_PATH": str(build / "lib")}


APACHE_BASE = """
ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
LogLevel warn
User www-data
Group www-data
KeepAlive On
MaxKeepAliveRequests 0
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
StartServers 2
DocumentRoot {folder}
<Directory {folder}>
  Require all granted
  AllowOverride None
</Directory>
{more}
"""


def apache_config(build, folder, port, mpm, more, module=True):
    if module:
        more = f"LoadModule mapcache_module {build}/modules/mod_mapcache.so\n" + more
    path = folder / "httpd.conf"
    path.write_text(APACHE_BASE.format(folder=folder, port=port, mpm=mpm, modules=APACHE_MODULES, more=more))
    return path


class Httpds:
    """Running httpds, each with its configuration in the folder; all end with the `with` statement."""

    def __init__(self, build, folder, environment):
        self.build, self.folder, self.environment = build, folder, environment
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_all(program for program, _ in self.running)
        for program, ours in self.running:
            assert program.process.returncode == 0 or not ours, program.log()

    def start(self, more, mpm="event", module=True, environment=None, ours=True):
        """`ours` False: how it ends is not our affair."""
        port = free_port()
        config = apache_config(self.build, self.folder, port, mpm, more, module)
        program = Program(["apache2", "-f", config, "-DFOREGROUND"], self.folder / "httpd.out",
                          {**self.environment, **(environment or {})})
        web = Web(program, port, self.folder / "error.log")
        self.running.append((program, ours))
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "httpd starts")
        assert program.process.poll() is None, web.log()
        return web


@pytest.fixture
def apache(build, folder, modules_environment):
    """apache(more, mpm="event", module=True): a running httpd with the module and further configuration."""
    with Httpds(build, folder, modules_environment) as httpds:
        yield httpds.start


@pytest.fixture(scope="module")
def shared_apache(build, shared_folder, modules_environment):
    """As apache, kept for all tests of a file: shared_apache(name, more, ...); each has its own folder."""
    with contextlib.ExitStack() as stack:

        def start(name, *arguments, **options):
            home = shared_folder / name
            home.mkdir(mode=0o755)
            return stack.enter_context(Httpds(build, home, modules_environment)).start(*arguments, **options)

        yield start


@pytest.fixture
def fcgi(build, folder, site, modules_environment):
    """fcgi(*options): the running FastCGI program on a local socket; .address is its path. spawned: the socket is
    descriptor 0, as of web servers that start the program."""
    running = []

    def start(*options, environment=None, spawned=False):
        address = str(folder / f"fcgi{len(running)}.sock")
        command = ([build / "bin/mapcache.fcgi", "--listen", address, *options] if not spawned else
                   ["spawn-fcgi", "-n", "-s", address, "--", build / "bin/mapcache.fcgi", *options])
        program = Program(command, folder / "fcgi.log",
                          {"MAPCACHE_CONFIG_FILE": str(site.config), **modules_environment, **(environment or {})}, umask=0)
        running.append(program)
        wait_until(lambda: listens(address) or program.process.poll() is not None, "mapcache.fcgi starts")
        assert program.process.poll() is None, program.log()
        program.address = address
        return program

    yield start
    stop_all(running)


NGINX_CONFIG = """
worker_processes 1;
daemon off;
user www-data;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_max_body_size 200m;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/nginx-body;
  fastcgi_temp_path {folder}/nginx-fastcgi;
  proxy_temp_path {folder}/nginx-proxy;
  uwsgi_temp_path {folder}/nginx-uwsgi;
  scgi_temp_path {folder}/nginx-scgi;
  upstream kept {{ server {address}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location ~ ^/mc(/.*)?$ {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_NAME /mc;
      fastcgi_param PATH_INFO $1;
      fastcgi_keep_conn on;
      fastcgi_pass kept;
    }}
    location ~ ^/once(/.*)?$ {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_NAME /once;
      fastcgi_param PATH_INFO $1;
      fastcgi_pass {address};
    }}
  }}
}}
"""


@pytest.fixture
def nginx(folder):
    """nginx(address): nginx in front of a FastCGI socket, with kept connections at /mc and new ones at /once."""
    running = []

    def start(address):
        port = free_port()
        config = folder / "nginx.conf"
        if address.startswith("/"):
            address = "unix:" + address
        config.write_text(NGINX_CONFIG.format(folder=folder, port=port, address=address))
        program = Program(["nginx", "-p", folder, "-c", config], folder / "nginx.out")
        running.append(program)
        wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
        return Web(program, port, folder / "nginx.log")

    yield start
    stop_all(running)
