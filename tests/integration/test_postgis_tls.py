"""PostGIS behind TLS: what the server sends in many small records is read to its end, however the records arrive."""
import contextlib
import select
import socket
import threading

import pytest
from conftest import temporary_folder, wait_until
from postgres import Postgres
from vector_maps import Maps, covered

BOX = (0.0, 0.0, 1000.0, 1000.0)
NOTICES = 10
QUIET = 0.1  # seconds in which the server sends nothing more
PIECE = 8192  # bytes that libpq asks its socket for at least
APPLICATION_DATA = 23  # kind of a TLS record, RFC 8446 section 5.1


def records_of(data):
    """How many whole TLS records it is."""
    count = 0
    while data:
        assert data[0] == APPLICATION_DATA and len(data) >= 5 + int.from_bytes(data[3:5], "big")
        data = data[5 + int.from_bytes(data[3:5], "big"):]
        count += 1
    return count


class Collector:
    """A way to a server by which all that the server sends until it waits arrives at once. `deliveries`: what arrived, in the order."""

    def __init__(self, port):
        self.target, self.deliveries, self.listener = port, [], socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        collected = b""
        with near, socket.create_connection(("127.0.0.1", self.target)) as far, contextlib.suppress(OSError):
            while True:
                ready, _, _ = select.select([near, far], [], [], QUIET if collected else None)
                if near in ready:
                    if not (asked := near.recv(65536)):
                        return
                    far.sendall(asked)
                if far in ready:
                    if not (said := far.recv(65536)):
                        return
                    collected += said
                elif collected:
                    self.deliveries.append(collected)
                    near.sendall(collected)
                    collected = b""


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.certify()
        server.sql(f"""CREATE EXTENSION postgis; CREATE TABLE plain(id int, geom geometry(Polygon, 3857));
          INSERT INTO plain VALUES (1, ST_MakeEnvelope(0, 0, 1000, 500, 3857));
          CREATE FUNCTION noisy() RETURNS SETOF plain LANGUAGE plpgsql AS $$ BEGIN
            FOR i IN 1..{NOTICES} LOOP RAISE NOTICE 'row %', i; END LOOP;
            RETURN QUERY SELECT * FROM plain; END $$""")
        yield server


@pytest.mark.parametrize("transfer", ["binary", "twkb"])
def test_many_small_records_that_arrive_at_once(database, build, transfer):
    with temporary_folder() as folder, Collector(database.port) as way, Maps(folder, build, "") as maps:
        connection = database.connection().replace("sslmode=disable", "sslmode=require").replace(str(database.port), str(way.port))
        maps.add("noisy", f"<query>SELECT * FROM noisy()</query><geometry>geom</geometry><srid>3857</srid><transfer>{transfer}</transfer>",
                 connection=connection)
        maps.serve("<deadline>20</deadline>")

        def have_come_at_once():
            before = len(way.deliveries)
            assert covered(maps.draw("noisy", BOX)) > 0
            return any(len(data) < PIECE and data[0] == APPLICATION_DATA and records_of(data) >= NOTICES
                       for data in way.deliveries[before:])

        wait_until(have_come_at_once, "a delivery of many records", 60)
