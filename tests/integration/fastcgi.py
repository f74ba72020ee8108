"""A FastCGI client for tests that send what no web server would let through: any bytes in any variable, on one kept
connection."""

import pathlib
import socket
import struct
import time

from conftest import Program, listens, wait_until
from patience import patience

BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7


def record(kind, content=b""):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    sizes = b"".join(bytes([len(text)]) if len(text) < 128 else struct.pack(">I", len(text) | 0x80000000)
                     for text in (name, value))
    return sizes + name + value


class Answer:
    """What came back: `status`, `headers` as a list of (name, value) bytes, `body`."""

    def __init__(self, output):
        head, found, self.body = output.partition(b"\r\n\r\n")
        assert found, output[:200]
        self.headers = []
        for line in head.split(b"\r\n"):
            assert b"\r" not in line and b"\n" not in line and b"\0" not in line, line
            name, colon, value = line.partition(b": ")
            assert colon and name.replace(b"-", b"").isalnum(), line
            self.headers.append((name, value))
        self.status = int(self.header("Status", "200")[:3])

    def header(self, name, default=None):
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name.lower().encode()),
                    default)


class Client:
    """One connection to the program's socket."""

    def __init__(self, address, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience(timeout))
        self.socket.connect(address)
        self.left = bytearray()

    def close(self):
        self.socket.close()

    def _take(self, size):
        while len(self.left) < size:
            more = self.socket.recv(262144)
            if not more:
                raise EOFError("the program closed the connection")
            self.left += more
        taken = bytes(self.left[:size])
        del self.left[:size]
        return taken

    def send(self, path=b"/", query=b"", variables=None, body=b""):
        """Sends a GET, with a body a POST; path as PATH_INFO, which web servers decode, so that it may hold any byte."""
        method = {b"REQUEST_METHOD": b"POST", b"CONTENT_LENGTH": b"%d" % len(body)} if body else {b"REQUEST_METHOD": b"GET"}
        everything = {**method, b"SCRIPT_NAME": b"/mc", b"PATH_INFO": path, b"QUERY_STRING": query,
                      b"SERVER_NAME": b"tests.example", b"SERVER_PORT": b"80", **(variables or {})}
        params = b"".join(pair(name, value) for name, value in everything.items() if value is not None)
        parts = [params[at:at + 65535] for at in range(0, len(params), 65535)]
        self.socket.sendall(record(BEGIN, struct.pack(">HB5x", 1, 1))
                            + b"".join(record(PARAMS, part) for part in parts) + record(PARAMS)
                            + b"".join(record(STDIN, body[at:at + 65535]) for at in range(0, len(body), 65535)) + record(STDIN))

    def receive(self):
        output = bytearray()
        while True:
            _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", self._take(8))
            content = self._take(size)
            self._take(padding)
            if kind == END:
                return Answer(bytes(output))
            assert kind in (STDOUT, STDERR)
            if kind == STDOUT:
                output += content

    def get(self, path=b"/", query=b"", variables=None, body=b""):
        self.send(path, query, variables, body)
        return self.receive()


class Server:
    """The program on a configuration, and a kept connection to it. `started(...)` of the fixture below makes it. spawned: as web
    servers start it, with the socket as descriptor 0. before: words before the command."""

    def __init__(self, build, config, folder, user=None, environment=None, options=(), spawned=False, before=()):
        self.address = str(folder / "fcgi.sock")
        pathlib.Path(self.address).unlink(missing_ok=True)
        owner = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        command = ([build / "bin/mapcache.fcgi", "--listen", self.address, *options] if not spawned else
                   ["spawn-fcgi", "-n", "-s", self.address, "--", build / "bin/mapcache.fcgi", *options])
        self.program = Program([*before, *command], folder / "fcgi.log",
                               {"MAPCACHE_CONFIG_FILE": str(config), "LD_LIBRARY_PATH": str(build / "lib"),
                                "MAPCACHE_MODULES": str(build / "modules"), **(environment or {})}, umask=0, **owner)
        wait_until(lambda: listens(self.address) or self.program.process.poll() is not None,
                   "mapcache.fcgi starts", 30)
        assert self.program.process.poll() is None, self.log()
        self.client = Client(self.address)

    def log(self):
        return self.program.log()[-5000:]

    def get(self, path="/", query="", variables=None):
        """The answer, with the seconds that it took; a connection that ends without one is a failure."""
        path, query = (text.encode() if isinstance(text, str) else text for text in (path, query))
        began = time.monotonic()
        try:
            answer = self.client.get(path, query, variables)
        except (EOFError, OSError) as problem:
            raise AssertionError(f"{path[:200]}?{query[:200]}: {problem}\n{self.log()}") from problem
        answer.took = time.monotonic() - began
        return answer

    def alive(self):
        return self.program.process.poll() is None

    def stop(self):
        """Ends it in order; the log has no report of a sanitizer."""
        self.client.close()
        status = self.program.stop(30)
        log = self.program.log()
        assert status in (0, -15, 15), f"exit status {status}\n{log[-5000:]}"
        assert "Sanitizer" not in log and "runtime error" not in log, log[-8000:]
