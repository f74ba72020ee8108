"""Servers under test: start, stop, processor time and memory of the whole process tree."""
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from common import keeper
from peers import peer

HTTPD_MODULES = "/usr/lib/apache2/modules"
PEER_MODULE, PEER_CGI = peer("/usr/lib/apache2/modules/mod_mapcache.so"), peer("/usr/lib/cgi-bin/mapcache")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("MAPCACHE_BUILD", "build/release")


def free_port():
    """Below those that the kernel hands out to whoever connects: it stays free until its server listens."""
    while True:
        port = random.randrange(29000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def descendants(pid):
    """The process and all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry))
            except (FileNotFoundError, ProcessLookupError):
                pass
    found, queue = [], [pid]
    while queue:
        p = queue.pop()
        found.append(p)
        queue.extend(children.get(p, []))
    return found


def waited_seconds(pid):
    """Processor time of the children of a process that have ended and were waited for."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids):
    """Processor time of the processes in nanoseconds' resolution, threads that have ended included: the kernel's clock of each process. That of
    children that have ended (in hundredths) counts too, where their parent waits for them: Apache's daemon for CGI programs does not, mod_cgi does."""
    total = 0.0
    for pid in pids:
        try:
            total += time.clock_gettime((~pid << 3) | 2)
        except OSError:
            pass
        total += waited_seconds(pid)
    return total


def pss_bytes(pids):
    """Proportional set size of each process that can be read."""
    sizes = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                for line in f:
                    if line.startswith("Pss:"):
                        sizes[pid] = int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return sizes


class Server:
    """A server program in a folder of its own. Use as a context manager. It is ready when its URL answers."""

    def __init__(self, command, url, folder, env=None, companions=()):
        self.command, self.url, self.folder = command, url, folder
        self.env = dict(os.environ, **(env or {}))
        self.companions = companions
        self.process = None

    def __enter__(self):
        try:
            for companion in self.companions:
                companion.__enter__()
            with open(self.folder / "stderr.log", "ab") as log:
                self.process = keeper.start(self.command, env=self.env, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=log)
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def ready(self):
        try:
            urllib.request.urlopen(self.url, timeout=5).read()
        except urllib.error.HTTPError:
            pass
        except OSError:
            return False
        return True

    def wait(self):
        end = time.monotonic() + 60
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                said = "".join(path.read_text(errors="replace")[-2000:] for path in sorted(pathlib.Path(self.folder).glob("*.log")))
                raise RuntimeError(f"{' '.join(map(str, self.command))} did not start: {said}")
            time.sleep(.05)

    def __exit__(self, *_):
        if self.process is not None:
            keeper.end(self.process)
            self.process = None
        for companion in self.companions:
            companion.__exit__()

    def pids(self):
        found = descendants(self.process.pid)
        for companion in self.companions:
            found += companion.pids()
        return found

    def cpu(self):
        return cpu_seconds(self.pids())


class Workers:
    """So many processes of a FastCGI program on one socket, which each of them has as its standard input. `patience`: seconds for them to end."""

    def __init__(self, command, sock, count, folder, env=None, patience=10):
        self.command, self.sock, self.count, self.folder, self.patience = command, sock, count, folder, patience
        self.env = dict(os.environ, **(env or {}))
        self.processes = []

    def __enter__(self):
        with socket.socket(socket.AF_UNIX) as listener, open(self.folder / "stderr.log", "ab") as log:
            listener.bind(str(self.sock))
            self.sock.chmod(0o777)
            listener.listen(1024)
            for _ in range(self.count):
                self.processes.append(keeper.start(self.command, env=self.env, cwd=self.folder, stdin=listener, stdout=subprocess.DEVNULL, stderr=log))
        return self

    def __exit__(self, *_):
        while self.processes:
            keeper.end(self.processes.pop(), self.patience)

    def pids(self):
        return [pid for process in self.processes for pid in descendants(process.pid)]


def make_folder(name, within=None):
    """Gone at the end of the run."""
    folder = keeper.folder(tempfile.mkdtemp(prefix=f"mapcache-{name}-", dir=within))
    folder.chmod(0o755)
    return folder


def apache(name, lines, path="/", mpm="event", processes=2, threads=25, log_level="warn"):
    """An Apache with nothing of the system's configuration: `lines` are added to a bare one."""
    folder = make_folder(name)
    port = free_port()
    conf = folder / "httpd.conf"
    workers = (f"MaxRequestWorkers {processes}\nMinSpareServers 1\nMaxSpareServers {processes}" if mpm == "prefork" else
               f"ThreadLimit {max(threads, 64)}\nThreadsPerChild {threads}\nMaxRequestWorkers {processes * threads}\n"
               f"MinSpareThreads 1\nMaxSpareThreads {processes * threads}")
    conf.write_text(f"""ServerRoot "{folder}"
PidFile "{folder}/httpd.pid"
ServerName localhost
Listen 127.0.0.1:{port}
LoadModule mpm_{mpm}_module {HTTPD_MODULES}/mod_mpm_{mpm}.so
LoadModule authz_core_module {HTTPD_MODULES}/mod_authz_core.so
User www-data
Group www-data
<Directory />
  AllowOverride None
</Directory>
StartServers {processes}
ServerLimit {processes}
{workers}
KeepAlive On
MaxKeepAliveRequests 0
ErrorLog "{folder}/error.log"
LogLevel {log_level}
{lines}
""")
    return Server(["apache2", "-f", str(conf), "-DFOREGROUND"], f"http://127.0.0.1:{port}{path}", folder)


def nginx_fastcgi(name, program, prefix, env=None, workers=1, params=None, keep=True, patience=10, connections=1024):
    """nginx in front of `workers` processes of a FastCGI program. Connections between them are kept unless `keep`
    is false: a program whose processes each answer one connection leaves the others waiting. `params` go with each request.
    `connections`: of each of nginx's two processes, those to the program included."""
    more = " ".join(f"fastcgi_param {key} {value};" for key, value in (params or {}).items())
    folder = make_folder(name)
    port = free_port()
    sock = folder / "fcgi.sock"
    backend = Workers(program, sock, workers, folder, env, patience)
    for kind in ("body", "proxy", "fcgi", "uwsgi", "scgi"):
        (folder / kind).mkdir()
    conf = folder / "nginx.conf"
    conf.write_text(f"""user www-data;
worker_processes 2;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
worker_rlimit_nofile {max(2048, connections + 512)};
events {{ worker_connections {connections}; }}
http {{
  access_log off; keepalive_requests 10000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream app {{ server unix:{sock};{" keepalive 64;" if keep else ""} }}
  server {{
    listen 127.0.0.1:{port};
    location ~ ^{prefix}(/.*)?$ {{
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_NAME {prefix}; fastcgi_param PATH_INFO $1;
      {more}
      fastcgi_keep_conn {"on" if keep else "off"}; fastcgi_pass app;
    }}
  }}
}}
""")
    return Server(["nginx", "-c", str(conf)], f"http://127.0.0.1:{port}{prefix}", folder, companions=[backend])


def wrk(url, paths, seconds, connections):
    """Runs wrk over the paths of a file; requests/s, percentiles in ms, errors, number of requests."""
    script = pathlib.Path(__file__).with_name("wrk.lua")
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), url, "--", str(paths)],
                         capture_output=True, text=True, check=True).stdout
    line = next(l for l in out.splitlines() if l.startswith("RESULT"))
    return {k: float(v) for k, v in (item.split("=") for item in line.split()[1:])}


def remove(server):
    shutil.rmtree(server.folder, ignore_errors=True)
