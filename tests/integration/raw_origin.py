"""An origin that answers with given bytes, whatever they are."""
import contextlib
import socket
import threading


@contextlib.contextmanager
def raw_origin(answer):
    """Answers every connection with these bytes, or with those of a function of its number; gives its port and what it was
    asked."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve_all():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        asked.append(connection.recv(65536))
                        connection.sendall(answer(len(asked) - 1) if callable(answer) else answer)

        thread = threading.Thread(target=serve_all)
        thread.start()
        try:
            yield server.getsockname()[1], asked
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
