"""A small HTTP client that measures: kept connections, several requests at once from one thread, nothing between send and receive."""
import select
import socket
import struct
import time

TIMEOUT = 120


class Reply:
    """Status, headers (names in lower case) and body of one answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


class Connection:
    """One kept connection; several of them are driven from one thread through send() and feed()."""

    def __init__(self, port):
        self.port, self.socket = port, None
        self.buffer, self.head_end, self.end = bytearray(), None, None

    def open(self):
        if self.socket is not None and select.select([self.socket], [], [], 0)[0]:
            self.close()  # the server dropped the idle connection
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def send(self, request):
        self.buffer, self.head_end, self.end = bytearray(), None, None
        self.socket.sendall(request)

    def parse_head(self):
        """Once the head is complete: where the body begins and ends. Both servers name its length."""
        head_end = self.buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        lines = bytes(self.buffer[:head_end]).decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        self.head_end = head_end + 4
        if "content-length" not in self.headers:
            raise ConnectionError(f"an answer without Content-Length: {lines[0]}")
        self.end = self.head_end + int(self.headers["content-length"])

    def feed(self):
        """Reads once; True when the answer is complete."""
        data = self.socket.recv(1 << 18)
        if not data:
            self.close()
            raise ConnectionError("closed before the answer was complete")
        self.buffer += data
        if self.head_end is None:
            self.parse_head()
        return self.end is not None and len(self.buffer) >= self.end

    def reply(self):
        if self.headers.get("connection", "").lower() == "close":
            self.close()
        return Reply(self.status, self.headers, bytes(self.buffer[self.head_end:self.end]))


class Client:
    """Fetches from one server of this machine."""

    def __init__(self, port):
        self.port, self.connections = port, []

    def close(self):
        for connection in self.connections:
            connection.close()
        self.connections = []

    def request(self, path):
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n".encode()

    def open(self, count):
        """So many connections, opened if they are not yet."""
        while len(self.connections) < count:
            self.connections.append(Connection(self.port))
        for connection in self.connections[:count]:
            connection.open()
        return self.connections[:count]

    def fetch(self, paths):
        """All paths at once, each on a connection of its own: (seconds from the first send to the last byte, replies)."""
        used = self.open(len(paths))
        requests = [self.request(path) for path in paths]
        try:
            started = time.perf_counter()
            if len(used) == 1:
                used[0].send(requests[0])
                while not used[0].feed():
                    pass
            else:
                self.drive(used, requests)
            seconds = time.perf_counter() - started
        except OSError:
            self.close()
            raise
        return seconds, [connection.reply() for connection in used]

    @staticmethod
    def drive(connections, requests):
        poll, waiting = select.poll(), {}
        for connection, request in zip(connections, requests):
            connection.send(request)
            waiting[connection.socket.fileno()] = connection
            poll.register(connection.socket, select.POLLIN)
        while waiting:
            ready = poll.poll(TIMEOUT * 1000)
            if not ready:
                raise TimeoutError(f"{len(waiting)} answers missing after {TIMEOUT} s")
            for descriptor, _ in ready:
                if waiting[descriptor].feed():
                    poll.unregister(descriptor)
                    del waiting[descriptor]


def image_size(body):
    """Type and size of a picture by its own header: ("png", (w, h)), ("jpeg", (w, h)) or (None, None)."""
    if body[:8] == b"\x89PNG\r\n\x1a\n" and len(body) > 24:
        return "png", struct.unpack(">II", body[16:24])
    if body[:2] == b"\xff\xd8":
        at = 2
        while at + 9 < len(body) and body[at] == 0xff:
            marker, length = body[at + 1], struct.unpack(">H", body[at + 2:at + 4])[0]
            if 0xc0 <= marker <= 0xcf and marker not in (0xc4, 0xc8, 0xcc):
                height, width = struct.unpack(">HH", body[at + 5:at + 9])
                return "jpeg", (width, height)
            at += 2 + length
    return None, None
