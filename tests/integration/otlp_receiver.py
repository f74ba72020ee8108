"""A receiver of OTLP/HTTP that reads what it gets by the messages of opentelemetry-proto, and can be told to misbehave."""
import contextlib
import pathlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "build" / "otlp"))
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse  # noqa: E402


def attributes(message):
    """The attributes of a span or a resource as a dictionary; a key stands once."""
    pairs = [(pair.key, getattr(pair.value, pair.value.WhichOneof("value"))) for pair in message.attributes]
    assert len(pairs) == len(dict(pairs)), pairs
    return dict(pairs)


class Receiver:
    """.spans(), .requests; .answer(path, number) -> (status, headers) or None to hang up may be replaced."""

    def __init__(self):
        self.requests = []  # path, headers, body, in the order of their arrival
        self.answer = lambda path, number: (200, {})
        self.released = threading.Event()
        self.lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.requests.append((self.path, dict(self.headers.items()), body))
                    number = len(receiver.requests)
                told = receiver.answer(self.path, number)
                if told is None:
                    self.close_connection = True
                    return
                status, headers = told
                answer = headers.pop("body", ExportTraceServiceResponse().SerializeToString())
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/x-protobuf")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def messages(self):
        """What has arrived, each read by the schema: nothing may be left over."""
        with self.lock:
            requests = list(self.requests)
        messages = []
        for _, headers, body in requests:
            assert headers["Content-Type"] == "application/x-protobuf"
            message = ExportTraceServiceRequest()
            assert message.ParseFromString(body) == len(body)
            check_known(message)
            messages.append(message)
        return messages

    def spans(self):
        return [span for message in self.messages() for resource in message.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def check_known(message):
    """No field that the schema does not have, at any depth."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if field.is_repeated else [value]:
            check_known(inner)
