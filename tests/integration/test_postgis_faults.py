"""A database that is far, slow, restarted, full, changed, and clients that leave: what clients see, and what the server's
list of activities says."""
import os
import re
import socket
import subprocess
import threading
import time

import numpy
import pytest
from conftest import sanitizer_environment, temporary_folder, wait_until
from patience import patience
from postgres import PASSWORD, Postgres
from vector_maps import Maps, covered, difference, pixels, query_of

BOX = (0.0, 0.0, 1000.0, 1000.0)


class ThinLine:
    """A way to a server over which so many bytes come in a second, in small pieces."""

    def __init__(self, port, rate):
        self.target, self.rate, self.listener = port, rate, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self._pass, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, self.rate), daemon=True).start()

    @staticmethod
    def _pass(source, sink, rate):
        due = time.monotonic()
        try:
            while data := source.recv(4096):
                if rate is not None:
                    due = max(due, time.monotonic()) + len(data) / rate
                    time.sleep(max(0, due - time.monotonic()))
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["max_connections=24", "log_statement=all"]) as server:
        server.sql(f"""CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT pg_read_all_data TO reader""")
        server.sql("""CREATE EXTENSION postgis;
          CREATE TABLE plain(id int, name text, geom geometry(Polygon, 3857));
          INSERT INTO plain VALUES (1, 'one', ST_MakeEnvelope(100, 100, 900, 500, 3857));
          CREATE TABLE rich AS SELECT i AS id, ST_Buffer(ST_SetSRID(ST_MakePoint(i * 7919 % 1000, i * 104729 % 997), 3857), 9, 8)::geometry(Polygon, 3857)
            AS geom FROM generate_series(1, 2000) i;
          CREATE INDEX ON rich USING gist(geom); ANALYZE rich;
          CREATE VIEW slow AS SELECT plain.* FROM plain, pg_sleep(300);
          CREATE VIEW late AS SELECT plain.* FROM plain, pg_sleep(3)""")
        yield server


def as_reader(database, port=None):
    """Who is no superuser, for whom places are reserved."""
    return re.sub(r"port=\d+", f"port={port or database.port}", database.connection()).replace("user=mapcache", "user=reader")


@pytest.fixture(scope="module")
def maps(database, build):
    with temporary_folder() as folder, ThinLine(database.port, 1250000) as line, \
            Maps(folder, build, as_reader(database)) as made:
        for name in ("plain", "rich", "slow", "late"):
            made.add(name, f"<table>{name}</table><srid>3857</srid>")
        made.add("steady", "<table>rich</table><transfer>binary</transfer>")
        made.add("stored", "<table>late</table><srid>3857</srid>")
        made.add("hurried", "<table>slow</table><srid>3857</srid>", source="<deadline>1</deadline>")
        for transfer in ("auto", "binary", "twkb"):
            made.add(f"far_{transfer}", f"<table>rich</table><transfer>{transfer}</transfer>",
                     connection=as_reader(database, line.port))
        yield made.serve()


def asked(database, before=0):
    """The statements for layers that the server was asked."""
    return re.findall(r"(?:LOG:  execute \S+|LOG:  statement): (?:SET LOCAL enable_\w+=off;)*((?:COPY|SELECT).* AS layer(?! ON false).*)", database.log()[before:])


def bytes_of(maps, layer, box=BOX):
    before = maps.counter("postgres_bytes_total")
    maps.draw(layer, box)
    return maps.counter("postgres_bytes_total") - before


def test_auto_packs_over_a_thin_line_and_not_over_a_short_one(maps, database):
    for layer in ("far_binary", "far_twkb", "rich"):
        maps.draw(layer, BOX)
    plain, packed = bytes_of(maps, "far_binary"), bytes_of(maps, "far_twkb")
    assert plain > 4 * packed
    for _ in range(3):
        maps.draw("far_auto", BOX)
    before = len(database.log())
    sizes = [bytes_of(maps, "far_auto") for _ in range(3)]
    assert all(abs(size - packed) < 500 for size in sizes), (sizes, packed)  # now and then the column is asked for again
    assert all("ST_AsTWKB" in text for text in asked(database, before)) and len(asked(database, before)) == 3

    def last_are_plain():
        """A busy machine can make the short line look thin for a while."""
        before = len(database.log())
        sizes = [bytes_of(maps, "rich") for _ in range(4)]
        return all(abs(size - plain) < 500 for size in sizes) and not any("ST_AsTWKB" in text for text in asked(database, before))

    wait_until(last_are_plain, "maps over the short line come plain", 90)


def active(database):
    """Queries for maps: before each first one the columns are asked for, which is over at once."""
    return int(database.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mapcache' AND state = 'active' "
                            "AND query NOT LIKE '%pg\\_attribute%'")[0])


def wait_for_rest(database):
    wait_until(lambda: active(database) == 0, "queries end", 30)


def test_a_query_ends_with_its_client_fastcgi(maps, database):
    for way in ("closed", "aborted"):
        client = maps.client()
        client.send(b"/", query_of("slow", BOX).encode())
        wait_until(lambda: active(database) == 1, "the query runs")
        if way == "closed":
            client.close()
        else:
            client.socket.sendall(bytes([1, 2, 0, 1, 0, 0, 0, 0]))  # FCGI_ABORT_REQUEST
        wait_for_rest(database)
        client.close()
    assert maps.counter("postgres_cancels_total") >= 2
    assert maps.draw("plain", BOX).any()


def test_a_query_ends_with_its_client_apache(maps, database, build, apache):
    web = apache(f"MapCacheAlias /mc {maps.folder}/maps.xml\n", environment=sanitizer_environment(build))
    with socket.create_connection(("127.0.0.1", web.port)) as client:
        client.sendall(f"GET /mc?{query_of('slow', BOX)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until(lambda: active(database) == 1, "the query runs")
    wait_for_rest(database)
    assert covered(pixels(web.get(f"/mc?{query_of('plain', BOX)}").body)) > 0.3


def test_what_will_be_stored_is_drawn_to_its_end(maps, database):
    """For the next one who asks, although its client has gone."""
    client = maps.client()
    path = b"/wmts/1.0.0/stored/default/GoogleMapsCompatible/0/0/0.png"
    client.send(path)
    wait_until(lambda: active(database) == 1, "the query runs")
    client.close()
    wait_for_rest(database)
    # The database is done before the tile is drawn and stored.
    wait_until(lambda: len(list((maps.folder / "cache" / "stored").rglob("*.png"))) == 1, "the tile is stored")
    assert maps.server.get(path).status == 200


def test_the_deadline_ends_the_query_too(maps, database):
    began = time.monotonic()
    reply = maps.reply("hurried", BOX)
    assert reply.status in (503, 504) and time.monotonic() - began < patience(30)
    wait_for_rest(database)


class Load:
    """Clients that ask for the same map again and again, each answer looked at."""

    def __init__(self, maps, layer, clients):
        self.maps, self.layer, self.ending = maps, layer, threading.Event()
        self.wanted = maps.draw(layer, BOX)
        self.statuses, self.wrong = [], []
        self.threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def _ask(self):
        client = self.maps.client()
        while not self.ending.is_set():
            reply = self.maps.reply(self.layer, BOX, client=client)
            self.statuses.append(reply.status)
            if reply.status == 200 and not numpy.array_equal(pixels(reply.body), self.wanted):
                self.wrong.append(reply.body)
            if reply.status == 503 and reply.header("Retry-After") is None:
                self.wrong.append(reply.headers)
            if reply.status != 200:
                time.sleep(0.02)
        client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def answered(self, count):
        target = len(self.statuses) + count
        wait_until(lambda: len(self.statuses) >= target, "answers", 60)

    def succeeds(self):
        """All are answered as they should again."""
        wait_until(lambda: (self.answered(20), set(self.statuses[-16:]) == {200})[1], "recovery", 60)


def test_a_restart_under_load(maps, database):
    with Load(maps, "steady", 8) as load:
        load.answered(20)
        for _ in range(2):
            database.stop()
            load.answered(20)
            assert 503 in load.statuses[-20:]
            database.start()
            load.succeeds()
    assert set(load.statuses) == {200, 503} and not load.wrong


def test_backends_that_are_ended_under_load(maps, database):
    with Load(maps, "steady", 8) as load:
        for _ in range(20):
            load.answered(4)
            database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mapcache'")
        load.succeeds()
    assert set(load.statuses) <= {200, 503} and not load.wrong


def test_a_server_without_a_free_place(maps, database):
    """Its places are taken by others: who has no connection waits for one of ours, or for a place."""
    wanted = maps.draw("steady", BOX)
    database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mapcache'")
    taken = []
    try:
        for _ in range(19):  # of 24, 3 are reserved
            taken.append(subprocess.Popen(["psql", "-X", "-h", str(database.folder), "-p", str(database.port), "-U", "reader",
                                           "-d", "postgres", "-c", "SELECT pg_sleep(60)"], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
        wait_until(lambda: int(database.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")[0]) == 19,
                   "places are taken")
        with Load(maps, "steady", 12) as load:
            load.answered(100)
        assert set(load.statuses) == {200} and not load.wrong
    finally:
        for program in taken:
            program.kill()
            program.wait()
        subprocess.run(["psql", "-X", "-q", "-h", str(database.folder), "-p", str(database.port), "-U", "mapcache", "-d", "postgres", "-c",
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"], check=True,
                       stdout=subprocess.DEVNULL)
    assert numpy.array_equal(maps.draw("steady", BOX), wanted)


@pytest.mark.parametrize("change, back", [
    ("ALTER TABLE shifting RENAME COLUMN geom TO shape", None),
    ("ALTER TABLE shifting ALTER COLUMN geom TYPE geometry(MultiPolygon, 3857) USING ST_Multi(geom)", None),
    ("ALTER TABLE shifting ALTER COLUMN geom TYPE geometry(Polygon, 4326) USING ST_Transform(geom, 4326)", None),
    ("ALTER TABLE shifting ADD COLUMN more text; ALTER TABLE shifting DROP COLUMN name", None),
    ("ALTER TABLE shifting ALTER COLUMN id TYPE bigint", None),
    ("ALTER TABLE shifting ALTER COLUMN geom TYPE geography USING ST_Transform(geom, 4326)::geography", None),
    ("DROP TABLE shifting", "CREATE TABLE shifting AS SELECT * FROM plain"),
    ("ALTER TABLE shifting DROP COLUMN geom", "ALTER TABLE shifting ADD COLUMN geom geometry(Polygon, 3857);"
     " UPDATE shifting SET geom = (SELECT geom FROM plain)"),
    ("TRUNCATE shifting", "INSERT INTO shifting SELECT * FROM plain"),
    ("ALTER TABLE shifting RENAME TO elsewhere; CREATE VIEW shifting AS SELECT * FROM elsewhere", None)])
def test_a_table_that_changes_under_its_layer(database, build, folder, change, back):
    """An error at most, and only until the table is whole again; what gives no error shows within ten seconds."""
    database.sql("DROP SCHEMA IF EXISTS mine CASCADE; CREATE SCHEMA mine; CREATE TABLE mine.shifting AS SELECT * FROM plain")
    change, back = (None if text is None else f"SET search_path = mine, public; {text}" for text in (change, back))
    with Maps(folder, build, as_reader(database)) as maps:
        maps.add("shifting", "<table>mine.shifting</table><id>id</id>")
        maps.serve()
        wanted = maps.draw("shifting", BOX)
        for _ in range(8):
            maps.draw("shifting", BOX)
        database.sql(change)
        replies = [maps.reply("shifting", BOX) for _ in range(3)]
        assert {reply.status for reply in replies} <= {200, 502}, replies[0].body
        if back is not None:
            assert replies[-1].status == (200 if "TRUNCATE" in change else 502)
            assert not maps.server.get("/metrics").body.count(b"swordfish")
            database.sql(back)
            maps.reply("shifting", BOX)
        wait_until(lambda: difference(maps.draw("shifting", BOX), wanted) < 0.003, "the layer is whole", 30)


def test_the_first_map_of_another_srid_is_right(database, build, folder):
    """In all ways to read a table: whole, the half of it, a few rows. The layers' queries have an SRID of their own, and ask for no column."""
    database.sql("CREATE TABLE turning AS SELECT * FROM rich; CREATE INDEX ON turning USING gist(geom); ANALYZE turning")
    boxes = {"whole": (-20.0, -20.0, 1020.0, 1020.0), "half": (0.0, 500.0, 1000.0, 1000.0), "few": (800.0, 800.0, 850.0, 850.0)}
    ways = [(f"{name}_{transfer}", box, f"<table>turning</table><transfer>{transfer}</transfer>")
            for name, box in boxes.items() for transfer in ("binary", "twkb", "hex")]
    with Maps(folder, build, as_reader(database)) as maps:
        for name, _, layer in ways:
            maps.add(name, layer)
        for srid in (3857, 3395):
            maps.add(f"told_{srid}", f"<query>SELECT * FROM turning ORDER BY id</query><geometry>geom</geometry><srid>{srid}</srid>")
        maps.serve()
        wanted = {box: maps.draw("told_3857", box) for box in boxes.values()}
        assert all(covered(image) > 0.2 for image in wanted.values())
        for name, box, _ in ways * 2:  # the second map knows how many rows there are
            assert difference(maps.draw(name, box), wanted[box]) < 0.003, name
        assert any("string_agg" in text and "turning" in text for text in asked(database))
        for change in ("ALTER TABLE turning ALTER COLUMN geom TYPE geometry(Polygon, 4326) USING ST_Transform(geom, 4326)",
                       "ALTER TABLE turning ALTER COLUMN geom TYPE geometry(Polygon, 3857) USING ST_Transform(geom, 3857)",
                       "SELECT UpdateGeometrySRID('public', 'turning', 'geom', 3395)"):
            database.sql(change)
            if "3395" in change:
                wanted = {box: maps.draw("told_3395", box) for box in boxes.values()}
                assert all(difference(maps.draw("told_3857", box), wanted[box]) > 0.01 for box in boxes.values())
            for name, box, _ in ways:
                assert difference(maps.draw(name, box), wanted[box]) < 0.003, (name, change)


def memory(maps, name):
    status = (open(f"/proc/{maps.server.program.process.pid}/status")).read()
    return int(re.search(rf"{name}:\s+(\d+) kB", status).group(1)) / 1024


def test_memory_stays_bounded_however_much_comes(database, build, folder, modules_environment):
    """A gigabyte of rows, and a single geometry of 48 MB."""
    database.sql("""CREATE TABLE IF NOT EXISTS wide AS SELECT 1 AS id, ST_SetSRID(ST_MakeLine(ARRAY(SELECT ST_MakePoint(i / 3.0, (i * 7 % 1000) / 1.0)
        FROM generate_series(0, 2999) i)), 3857)::geometry(LineString, 3857) AS geom;
      CREATE TABLE IF NOT EXISTS huge AS SELECT 1 AS id, ST_SetSRID(ST_MakeLine(ARRAY(SELECT ST_MakePoint(i / 3000.0, i % 1000)
        FROM generate_series(0, 2999999) i)), 3857)::geometry(LineString, 3857) AS geom""")
    with Maps(folder, build, as_reader(database)) as maps:
        for transfer in ("binary", "twkb"):
            maps.add(f"rows_{transfer}", "<query>SELECT wide.* FROM wide, generate_series(1, 20000)</query><geometry>geom</geometry>"
                     f"<srid>3857</srid><transfer>{transfer}</transfer>")
            maps.add(f"huge_{transfer}", f"<table>huge</table><transfer>{transfer}</transfer>")
        maps.serve(options=("--threads", "4"))
        # seen from far away: every vertex is read and nearly none painted
        far = (-3e6, -3e6, 3e6, 3e6)
        for layer in ("rows_binary", "rows_twkb"):
            assert maps.draw(layer, far, (64, 64)).any()
        sanitized = "MAPCACHE_SANITIZE:STRING=address" in (build / "CMakeCache.txt").read_text()
        if not sanitized:
            assert memory(maps, "VmHWM") < 200
        before = memory(maps, "VmRSS")
        for layer in ("huge_binary", "huge_twkb"):
            assert maps.draw(layer, BOX, (64, 64)).any()
        if not sanitized:
            assert memory(maps, "VmRSS") < before + 60


def test_away_at_the_start_and_coming(build, folder):
    with Postgres(start=False) as server, Maps(folder, build, server.connection()) as maps:
        maps.add("plain", "<table>plain</table>")
        maps.serve()
        for _ in range(5):
            reply = maps.reply("plain", BOX)
            assert reply.status == 503 and int(reply.header("Retry-After")) >= 1
            assert b"swordfish" not in reply.body and b"127.0.0.1" not in reply.body
        server.start()
        server.sql("CREATE EXTENSION postgis; CREATE TABLE plain AS SELECT 1 AS id, ST_MakeEnvelope(100, 100, 900, 500, 3857) AS geom")
        wait_until(lambda: maps.reply("plain", BOX).status == 200, "the layer comes", 30)
        assert "swordfish" not in maps.server.log()


def test_check_tells_what_a_database_lacks(database, build, folder, modules_environment):
    maps = Maps(folder, build, as_reader(database))
    for name, table in (("good", "rich"), ("bare", "plain"), ("gone", "nowhere"), ("seen", "late")):
        maps.add(name, f"<table>{table}</table>{'<srid>3857</srid>' if name == 'seen' else ''}")
    maps.add("query", "<query>SELECT * FROM rich WHERE id::text = !NUMBER! AND moment</query><geometry>geom</geometry><srid>3857</srid>")
    config = maps.configure()

    def check(*options):
        return subprocess.run([build / "bin/mapcache", "check", *options, config], env={**os.environ, **modules_environment},
                              timeout=patience(120), capture_output=True, text=True, check=False)

    quiet = check()
    assert quiet.returncode == 0 and "databases: 1, connections to each: 64 (1 process x 64)" in quiet.stdout, quiet.stdout
    loud = check("--connect", "--processes", "16")
    said = loud.stdout + loud.stderr
    assert loud.returncode == 2 and "connections to each: 64 (16 processes x 4)" in said
    assert 'layer "bare": there is no spatial index: CREATE INDEX ON "plain" USING gist ("geom")' in said
    assert 'layer "gone"' in said and "nowhere" in said and 'layer "query"' in said and "moment" in said
    assert 'layer "good"' not in said and 'layer "seen"' not in said and PASSWORD not in said
    assert "has room for 21 connections" in said and "64 may be wanted, 4 by each process" in said
    assert check("--processes", "none").returncode == 1
    away = config.read_text().replace(f"port={database.port}", "port=1")
    config.write_text(away)
    assert check("--connect").returncode == 2


def test_a_server_that_is_too_small_is_named_in_the_log(maps):
    maps.draw("plain", BOX)
    assert maps.server.program.log().count("has room for 21 connections") >= 1
