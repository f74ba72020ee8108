"""A PostgreSQL that speaks its protocol wrongly, or without end: vector sources, tiles, dimensions and jobs answer with an
error in time, close the connection, keep their memory, and no thread of theirs goes on."""
import concurrent.futures
import contextlib
import ctypes
import random
import select
import socket
import ssl
import struct
import subprocess
import threading

import pytest
from conftest import GRID, wait_until
from fastcgi import Server
from patience import patience

DEADLINE = 1
MORE = 64 * 1024  # KB of memory above what the program had before
# Behind TLS nobody sees where a message begins: as much comes as a row may have.
MORE_ENCRYPTED = 80 * 1024
GARBAGE = random.Random(5).randbytes(1 << 16)
CANCEL, ENCRYPT = 80877102, 80877103  # the codes of a request to cancel, and of one for TLS


def message(kind, content=b""):
    return kind + struct.pack(">I", len(content) + 4) + content


def row_of(*fields):
    return message(b"D", struct.pack(">H", len(fields)) + b"".join(
        struct.pack(">i", -1) if field is None else struct.pack(">I", len(field)) + field for field in fields))


def columns(count):
    return message(b"T", struct.pack(">H", count) + b"".join(b"c%d\0" % i + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0) for i in range(count)))


def notice(kind):
    return message(kind, b"SERROR\0C58000\0Mall is lost\0\0")


def done(tag=b"SELECT 0"):
    return message(b"C", tag + b"\0")


READY = message(b"Z", b"I")
COPY = struct.pack(">BH", 0, 0)
COPY_ROWS = message(b"H", struct.pack(">BHH", 1, 1, 1))
PGCOPY = b"PGCOPY\n\377\r\n\0" + bytes(8)
# What the server sends instead of an answer: once, and then for ever.
BAD = {
    "silence": (b"", b""),
    "garbage": (GARBAGE, b""),
    "garbage for ever": (b"", GARBAGE),
    "copy out": (message(b"2") + message(b"H", COPY), b""),
    "copy out for ever": (message(b"2") + message(b"H", COPY), message(b"d", bytes(4096))),
    "copy in": (message(b"2") + message(b"G", COPY), b""),
    "copy both": (message(b"2") + message(b"W", COPY), b""),
    "copy out that ends": (message(b"2") + message(b"H", COPY) + message(b"c") + done() + READY, b""),
    "rows for ever": (message(b"2") + columns(1), row_of(b"x" * 900) * 64),
    "one row for ever": (message(b"2") + columns(1) + b"D" + struct.pack(">I", 1 << 30), bytes(1 << 16)),
    "copied rows for ever": (COPY_ROWS + message(b"d", PGCOPY), message(b"d", struct.pack(">hi", 1, 900) + bytes(900)) * 64),
    "a copied row for ever": (COPY_ROWS + b"d" + struct.pack(">I", 1 << 30), bytes(1 << 16)),
    "copied garbage": (COPY_ROWS, message(b"d", GARBAGE[:2000])),
    "copied rows of no fields": (COPY_ROWS + message(b"d", PGCOPY + struct.pack(">h", 0)), b""),
    "results for ever": (message(b"2"), (columns(1) + done()) * 64),
    "errors for ever": (b"", notice(b"E") * 64),
    "notices for ever": (b"", notice(b"N") * 64),
    "notifications for ever": (b"", message(b"A", struct.pack(">I", 1) + b"channel\0" + b"x" * 500 + b"\0") * 64),
    "settings for ever": (b"", None),
    "a row without columns": (message(b"2") + columns(0) + row_of() + done(b"SELECT 1") + READY, b""),
    "a row of nulls": (message(b"2") + columns(60) + row_of(*[None] * 60) + done(b"SELECT 1") + READY, b""),
    "short fields": (message(b"2") + columns(60) + row_of(*[b"\1"] * 60) + done(b"SELECT 1") + READY, b""),
    "its end": (None, b""),
}
# Likewise, of the rows of a map alone: "so many rows" has the next map come through COPY.
BAD_ROWS = {
    "no answer": (READY, b""),
    "so many rows": (message(b"2") + columns(1) + row_of(None) * 400 + done(b"SELECT 400") + READY, b""),
    "settings of a COPY and nothing behind them": (done(b"SET") * 2 + READY, b""),
}
# What libpq alone would take as fast as it comes, up to a gigabyte: it makes room for as much as a message says that it has.
LONG = {"garbage for ever", "one row for ever", "a copied row for ever"}
# libpq compares each setting with all before it. In TLS our own count of messages sees none of them: the turn of libpq during which
# the deadline comes may take some seconds.
LONG_TURNS = {"settings for ever": 10}
LAWFUL = {"so many rows", "a row without columns", "a row of nulls", "short fields", "copied rows of no fields"}  # rows, if strange ones


class BadPostgres:
    """`mode`: of BAD or BAD_ROWS; `stage`: from where on: "greeting", "first" (of the session's own statements), "query"; `tls`: the server's
    context, with which nobody is served without TLS."""

    def __init__(self, stage="query", tls=None):
        self.mode, self.stage, self.tls, self.open, self.told, self.lock = "its end", stage, tls, 0, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def connection(self):
        mode = "disable" if self.tls is None else "require"
        return f"host=127.0.0.1 port={self.port} user=mapcache dbname=none sslmode={mode} gssencmode=disable"

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._greet, args=(near,), daemon=True).start()

    def _greet(self, near):
        with contextlib.suppress(OSError, EOFError):
            if self.tls is not None and struct.unpack(">II", near.recv(8, socket.MSG_PEEK | socket.MSG_WAITALL))[1] == ENCRYPT:
                near.recv(8)
                near.sendall(b"S")
                near = self.tls.wrap_socket(near, server_side=True)
            self._talk(near)

    def _talk(self, near):
        with near, near.makefile("rb") as words:
            size, code = struct.unpack(">II", self._take(words, 8))
            self._take(words, size - 8)
            if code == CANCEL:
                near.recv(1)  # until the other side is tired of it
                return
            with self.lock:
                self.open += 1
            try:
                self._serve(near, words)
            finally:
                with self.lock:
                    self.open -= 1

    @staticmethod
    def _take(words, size):
        taken = words.read(size)
        if len(taken) < size:
            raise EOFError
        return taken

    def _serve(self, near, words):
        if self.stage == "greeting":
            self._misbehave(near)
            return
        near.sendall(message(b"R", bytes(4)) + message(b"S", b"server_version\x0015.0\0") + message(b"K", bytes(8)) + READY)
        batch = b""
        while True:
            kind = self._take(words, 1)
            content = self._take(words, struct.unpack(">I", self._take(words, 4))[0] - 4)
            if kind == b"X":
                return
            if kind == b"Q" and content.startswith(b"SET sync") and self.stage != "first":
                near.sendall(done(b"SET") * 5 + columns(1) + row_of(b"100") + done(b"SELECT 1") + READY)
            elif kind == b"Q" or kind == b"S" and b"E" in batch:
                self._misbehave(near)
                return
            elif kind == b"S":
                near.sendall(message(b"1") * (b"P" in batch) + (message(b"t", bytes(2)) + message(b"n")) * (b"D" in batch) + READY)
                batch = b""
            else:
                batch += kind

    def _misbehave(self, near):
        self.told += 1
        once, for_ever = {**BAD, **BAD_ROWS}[self.mode]
        near.sendall(once or b"")
        if once is None or self.mode in LAWFUL:
            return
        number = 0
        while for_ever != b"":
            number += 1
            near.sendall(for_ever or b"".join(message(b"S", b"setting%d.%d\0on\0" % (number, i)) for i in range(64)))
        while near.recv(65536):
            pass


def config(folder, bad, deadline=DEADLINE):
    connection = f"<connection>{bad.connection()}</connection>"
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>
  <deadline>{deadline}</deadline>
  <cache name="tiles" type="postgresql">{connection}</cache>
  <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
  <source name="any" type="dummy"/>
  <source name="rows" type="postgis"><layer name="rows">{connection}<query>SELECT * FROM rows</query><geometry>geom</geometry><srid>3857</srid>
    <transfer>binary</transfer></layer></source>
  <source name="table" type="postgis"><layer name="table">{connection}<table>rows</table></layer></source>
  <format name="mvt" type="MVT"/>
  <tileset name="rows"><source>rows</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="table"><source>table</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="vector"><source>rows</source><cache>disk</cache><grid>{GRID}</grid><format>mvt</format></tileset>
  <tileset name="tiles"><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <tileset name="times"><source>any</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format><dimensions>
    <dimension name="scene" type="postgresql" default="a">{connection}<validate_query>SELECT :dim</validate_query>
      <list_query>SELECT 1</list_query></dimension></dimensions></tileset>
  <default_format>PNG</default_format>
  <jobs>{connection}</jobs>
  <service type="jobs" enabled="true"><token>b07c2e9d51f84a6630ab42ce</token><public>true</public></service>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><maxsize>2048</maxsize></service><service type="wmts" enabled="true"/>
  <service type="gmaps" enabled="true"/>
  <lock_dir>{folder}</lock_dir></mapcache>""")
    return path


def map_of(layer):
    return "/", f"SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&STYLES=&LAYERS={layer}&SRS=EPSG:3857&FORMAT=image/png&BBOX=0,0,9,9&WIDTH=64&HEIGHT=64"


USES = {
    "rows": map_of("rows"),
    "table": map_of("table"),
    "vector": ("/gmaps/vector/5/3/%d.mvt", ""),
    "tiles": (f"/wmts/1.0.0/tiles/default/{GRID}/5/1/%d.png", ""),
    "times": (f"/wmts/1.0.0/times/default/b/{GRID}/5/1/%d.png", ""),
    "jobs": ("/jobs/api", ""),
}


def memory(server, what):
    with open(f"/proc/{server.program.process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(what))


def processor_time(server):
    with open(f"/proc/{server.program.process.pid}/stat") as line:
        return sum(map(int, line.read().rsplit(")", 1)[1].split()[11:13]))


def is_at_rest(server):
    """No thread of it does anything for a fifth of a second."""
    before = processor_time(server)
    select.select([], [], [], 0.2)
    return processor_time(server) - before <= 1


class Case:
    """A program of its own whose database is a bad one."""

    def __init__(self, build, folder, use, stage, tls):
        folder.mkdir()
        self.use, self.bad = use, BadPostgres(stage, tls)
        self.server = Server(build, config(folder, self.bad), folder)

    def stop(self):
        self.bad.listener.close()
        self.server.stop()

    def look(self, number, mode, limit):
        """Asks for what the database has bad news of."""
        bad, server = self.bad, self.server
        bad.mode, bad.told = mode, 0
        before = memory(server, "VmRSS")
        with open(f"/proc/{server.program.process.pid}/clear_refs", "w") as peak:
            peak.write("5")
        path, query = USES[self.use]
        answers = []
        # A server that could not be reached is left alone for a second.
        wait_until(lambda: answers.append(server.get(path.replace("%d", str(number)), query)) or bad.told > 0 or bad.stage == "query",
                   "the server is asked", 20)
        answer = answers[-1]
        # Of a tile's rows the first one is taken, whatever follows.
        lawful = mode in LAWFUL or (self.use, mode) == ("tiles", "rows for ever")
        assert answer.status in ((200, 204, 404) if lawful else ()) + (500, 502, 503, 504), (mode, answer.status, answer.body)
        assert bad.told > 0, mode
        assert answer.took < patience(DEADLINE + LONG_TURNS.get(mode, 3)), (mode, answer.took)
        if not lawful:
            wait_until(lambda: bad.open == 0, f"the connection is closed after {mode}", 20)
        wait_until(lambda: is_at_rest(server), f"no thread goes on after {mode}", 20)
        peak = memory(server, "VmHWM")
        assert limit is None or peak < before + limit, (mode, before, peak)


@pytest.fixture(scope="module")
def certificate(shared_folder):
    """The files of a certificate and of its key."""
    files = str(shared_folder / "certificate"), str(shared_folder / "key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=bad.example", "-days", "2",
                    "-out", files[0], "-keyout", files[1]], check=True, stderr=subprocess.DEVNULL)
    return files


@pytest.fixture(scope="module")
def certified(certificate):
    """The context of a server with a certificate of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture(scope="module")
def cases(build, shared_folder, certified):
    """Before the first query it is all the same what will be asked, and one use shows what TLS hides."""
    with contextlib.ExitStack() as stack:
        made = {}
        for use, stage, tls in [(use, "query", None) for use in USES] + [
                ("rows", "greeting", None), ("rows", "first", None), ("rows", "query", certified), ("rows", "greeting", certified)]:
            name = f"{use}, {stage}" + (", TLS" if tls else "")
            made[name] = Case(build, shared_folder / name.replace(", ", "-"), use, stage, tls)
            stack.callback(made[name].stop)
        yield made


@pytest.mark.parametrize("mode", BAD)
def test_whatever_it_says(build, cases, mode):
    sanitized = "MAPCACHE_SANITIZE:STRING=" in (build / "CMakeCache.txt").read_text() and \
        "MAPCACHE_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text()
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as threads:
        looks = {name: threads.submit(case.look, list(BAD).index(mode), mode,
                                      None if sanitized else MORE_ENCRYPTED if "TLS" in name else MORE)
                 for name, case in cases.items()}
    failures = {name: look.exception() for name, look in looks.items() if look.exception() is not None}
    assert failures == {}


def test_a_statement_without_an_answer(cases):
    """Last of these: the server remembers how many rows a map had."""
    for mode in BAD_ROWS:
        cases["rows, query"].look(0, mode, None)


TLS_1_2 = 0x0303
SET_LATEST = 124  # OpenSSL's SSL_CTRL_SET_MAX_PROTO_VERSION


def old_library():
    """OpenSSL's own functions: Python's ssl has none to ask for another handshake."""
    library = ctypes.CDLL(f"libssl.so.{ssl.OPENSSL_VERSION_INFO[0]}")
    for name in ("TLS_server_method", "SSL_CTX_new", "SSL_new"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


class OldTls:
    """The server's end of a connection with TLS 1.2. Before the sentence of that number the server asks for another handshake
    (RFC 5246 section 7.4.1.1); `takes_part`: the server goes on with that handshake."""

    def __init__(self, library, context, near, number, takes_part):
        self.library, self.near, self.left, self.takes_part = library, near, number, takes_part
        self.tls = ctypes.c_void_p(library.SSL_new(context))
        library.SSL_set_fd(self.tls, near.fileno())
        self._check(library.SSL_accept(self.tls))

    @staticmethod
    def _check(result):
        if result <= 0:
            raise EOFError
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.SSL_free(self.tls)
        self.near.close()

    def makefile(self, _):
        return contextlib.nullcontext(self)

    def read(self, size):
        taken = b""
        while len(taken) < size:
            taken += self.recv(size - len(taken))
        return taken

    def recv(self, size):
        if self.left < 0 and not self.takes_part:
            while self.near.recv(65536):
                pass
            raise EOFError
        piece = ctypes.create_string_buffer(size)
        taken = self._check(self.library.SSL_read(self.tls, piece, size))
        return piece.raw[:taken]

    def sendall(self, data):
        if self.left == 0:
            self._check(self.library.SSL_renegotiate(self.tls))
            self._check(self.library.SSL_do_handshake(self.tls))
        self.left -= 1
        if data:
            self._check(self.library.SSL_write(self.tls, data, len(data)))


class OldPostgres(BadPostgres):
    """A server with TLS 1.2 that wants a password, and that shakes hands again before the sentence of that number."""

    def __init__(self, certificate, number, takes_part):
        self.library, self.number, self.takes_part = old_library(), number, takes_part
        self.context = ctypes.c_void_p(self.library.SSL_CTX_new(ctypes.c_void_p(self.library.TLS_server_method())))
        self.library.SSL_CTX_ctrl(self.context, SET_LATEST, ctypes.c_long(TLS_1_2), None)
        for use, file in ((self.library.SSL_CTX_use_certificate_file, certificate[0]), (self.library.SSL_CTX_use_PrivateKey_file, certificate[1])):
            assert use(self.context, file.encode(), 1) == 1
        super().__init__("query", self)

    def wrap_socket(self, near, server_side):
        assert server_side
        return OldTls(self.library, self.context, near, self.number, self.takes_part)

    def connection(self):
        return super().connection() + " password=wordless"

    def _serve(self, near, words):
        near.sendall(message(b"R", struct.pack(">I", 3)))
        self._take(words, 1)
        self._take(words, struct.unpack(">I", self._take(words, 4))[0] - 4)
        super()._serve(near, words)

    def _misbehave(self, near):
        """For once as one wants it: there are no rows."""
        near.sendall(message(b"2") + columns(1) + done() + READY)


# What is said behind the request for another handshake; the answer cannot be sent before that handshake.
SENTENCES = ["the request for a password", "the greeting", "the settings of the session", "the statement is prepared"]


def answer_of_old_postgres(build, folder, certificate, number, takes_part):
    deadline = round(patience(10)) if takes_part else DEADLINE
    with OldPostgres(certificate, number, takes_part) as old:
        server = Server(build, config(folder, old, deadline), folder)
        try:
            answer = server.get(*USES["rows"])
            if not takes_part:
                wait_until(lambda: old.open == 0, "the connection is closed", 20)
            wait_until(lambda: is_at_rest(server), "no thread goes on", 20)
        except BaseException:
            server.program.process.kill()  # a thread that never ends does not end in order either
            raise
        server.stop()
        return answer


@pytest.mark.parametrize("number", range(len(SENTENCES)), ids=SENTENCES)
def test_another_handshake_that_never_ends(build, folder, certificate, number):
    answer = answer_of_old_postgres(build, folder, certificate, number, False)
    assert answer.status in (502, 503, 504), (answer.status, answer.body)
    assert answer.took < patience(DEADLINE + 3), answer.took


@pytest.mark.parametrize("number", range(1, len(SENTENCES)), ids=SENTENCES[1:])
def test_another_handshake_of_a_server_that_goes_on(build, folder, certificate, number):
    answer = answer_of_old_postgres(build, folder, certificate, number, True)
    assert answer.status == 200, (answer.status, answer.body)
