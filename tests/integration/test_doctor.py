"""mapcache doctor: at real databases, files and logs it finds what is there to be found, and changes nothing."""
import json
import os
import pathlib
import random
import re
import shlex
import resource
import sqlite3
import subprocess
from collections import OrderedDict
from xml.sax.saxutils import escape

import pytest
from conftest import ROOT, sanitizer_environment
from patience import patience
from postgres import Postgres

ODD = "we\"ird 'one'; --"
STYLE = """<StyledLayerDescriptor version="1.0.0"><NamedLayer><Name>l</Name><UserStyle><FeatureTypeStyle><Rule><PointSymbolizer/></Rule>
</FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>"""
TABLES = """CREATE EXTENSION postgis; CREATE ROLE reader LOGIN PASSWORD 'reader';
CREATE TABLE bare AS SELECT n, repeat('x', 200) AS t, ST_SetSRID(ST_MakePoint(n % 150, n / 150), 4326)::geometry(Point, 4326) AS g
  FROM generate_series(0, 19999) n;
CREATE TABLE scattered AS SELECT * FROM bare ORDER BY md5(n::text); CREATE INDEX "scattered ""g"" 1" ON scattered USING gist (g);
CREATE TABLE ordered AS SELECT * FROM bare ORDER BY g; CREATE INDEX ON ordered USING gist (g);
CREATE TABLE "we""ird 'one'; --" AS SELECT * FROM bare;
CREATE TABLE unread AS SELECT * FROM ordered; CREATE INDEX ON unread USING gist (g);
GRANT SELECT ON bare, scattered, ordered, "we""ird 'one'; --" TO reader;
ALTER ROLE reader SET random_page_cost = 1.1"""


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["max_connections=20"]) as server:
        server.sql(TABLES)
        server.sql("ANALYZE bare, scattered, ordered, unread")
        server.sql("CREATE TABLE dead AS SELECT * FROM ordered ORDER BY g; CREATE INDEX ON dead USING gist (g)")
        server.sql("DELETE FROM dead WHERE n % 3 = 0")
        yield server


def doctor(build, config, *options):
    done = subprocess.run([build / "bin/mapcache", "doctor", "-c", config, "--json", *map(str, options)], capture_output=True, text=True,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60), check=False)
    assert done.returncode in (0, 2, 3), done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (2 if report["findings"] else 3 if report["not_checked"] else 0)
    return report


def findings(report, check):
    return [one for one in report["findings"] if one["check"] == check]


def write_config(folder, tables=(), connection="", cache=None, more=""):
    (folder / "l.sld").write_text(STYLE)
    source = "" if not tables else f'<source name="s" type="postgis"><connection>{escape(connection)}</connection>' + "".join(
        f'<layer name="l{i}"><table>{escape(table)}</table><style>l.sld</style></layer>' for i, table in enumerate(tables)) + "</source>"
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{source}
  {cache or f'<cache name="c" type="disk"><base>{folder}/tiles</base></cache>'}
  <tileset name="t">{'<source>s</source>' if tables else ''}<cache>c</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
  <service type="tms" enabled="true"/><service type="wmts" enabled="true"/><service type="wms" enabled="true"/>{more}
</mapcache>""")
    return path


def test_tables(build, folder, database):
    connection = f"host={database.folder} port={database.port} dbname=postgres user=mapcache"
    config = write_config(folder, ["bare", "scattered", "ordered", ODD, "absent", "dead"], connection)
    before = database.sql("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables")
    script = folder / "fix.sh"
    report = doctor(build, config, "--processes", 10, "--fix", script)
    quoted = '"public"."we""ird \'one\'; --" of database postgres'
    assert {one["subject"] for one in findings(report, "spatial-index")} == {'"public"."bare" of database postgres', quoted}
    bare = next(one for one in findings(report, "spatial-index") if "bare" in one["subject"])
    assert bare["factor"] > 10
    (scattered,) = findings(report, "clustering")
    assert scattered["subject"].startswith('"public"."scattered"') and scattered["factor"] > 4 and "measured" in scattered["found"]
    assert {one["subject"] for one in findings(report, "statistics")} == {quoted, '"public"."dead" of database postgres'}
    (dead,) = findings(report, "dead-rows")
    assert dead["subject"].startswith('"public"."dead"') and 1.4 < dead["factor"] < 1.6
    assert not findings(report, "overviews")
    assert findings(report, "connections") and findings(report, "random-page-cost")
    assert any("absent" in gap["reason"] for gap in report["not_checked"])
    factors = [one["factor"] for one in report["findings"]]
    assert factors == sorted(factors, reverse=True)
    assert database.sql("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables") == before
    assert not any((folder / name).exists() for name in ("tiles",))
    repair(build, config, script, connection)


def repair(build, config, script, connection):
    """What the script is for is not found any more after it. Settings that need a restart are left out."""
    text = script.read_text()
    parts = [part for part in text.split("\n\n") if re.match("# (spatial-index|clustering|statistics|dead-rows)", part)]
    assert len(parts) == 6 and "ALTER SYSTEM SET max_connections" in text and connection not in text
    subprocess.run(["sh", "-e"], input="\n".join(parts), text=True, check=True, capture_output=True,
                   env={**os.environ, "DATABASE_1": connection}, timeout=patience(60))
    after = doctor(build, config)
    assert not findings(after, "spatial-index") and not findings(after, "statistics") and not findings(after, "dead-rows")
    assert all("scattered" not in one["subject"] for one in findings(after, "clustering")), after


def test_overviews(build, folder, database):
    """A table of many rows, as PostgreSQL estimates them, until it has levels that maps are read from."""
    connection = f"host={database.folder} port={database.port} dbname=postgres user=mapcache"
    plain = write_config(folder, ["absent", "ordered", "scattered"], connection)
    config = plain.with_name("Bob's maps; $(touch made).xml")
    config.write_text(plain.read_text().replace("GoogleMapsCompatible", "WGS84"))  # the CRS of the tables
    database.sql("UPDATE pg_class SET reltuples = 250000 WHERE relname = 'ordered'")
    (finding,) = findings(doctor(build, config), "overviews")
    assert finding["subject"] == "layer l1 of tileset t" and "250000 rows" in finding["found"] and shlex.split(finding["do"]) == ["mapcache", "overviews", "build", "-c", str(config), "-t", "t"]
    config.write_text(config.read_text().replace('<layer name="l0"><table>absent</table><style>l.sld</style></layer>', ""))
    made = subprocess.run([build / "bin/mapcache", "overviews", "build", "-c", config, "-t", "t", "--static"], capture_output=True, text=True, check=True,
                          env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60))
    assert not findings(doctor(build, config), "overviews"), made.stdout
    database.sql("ALTER TABLE ordered ADD COLUMN further int; UPDATE pg_class SET reltuples = 250000 WHERE relname = 'ordered'")
    (finding,) = findings(doctor(build, config), "overviews")
    assert "the columns of the table have changed" in finding["found"], made.stdout
    database.sql("ALTER TABLE ordered DROP COLUMN further; ANALYZE ordered")


def test_drawing(build, folder, database):
    connection = f"host={database.folder} port={database.port} dbname=postgres user=mapcache"
    report = doctor(build, write_config(folder, ["ordered"], connection), "--draw")
    costs = {one["what"]: one for one in report["costs"]}
    assert {f"metatile {n} x {n}" for n in (1, 2, 4, 8)} | {"format PNG", "format JPEG"} <= set(costs), report
    assert all(one["wall_ms"] > 0 and one["processor_ms"] > 0 for one in costs.values())
    assert 100 < costs["format PNG"]["bytes"] < 256 * 256 * 4 and not (folder / "tiles").exists()


def test_rights_and_silence(build, folder, database):
    connection = f"host={database.folder} port={database.port} dbname=postgres user=reader"
    report = doctor(build, write_config(folder, ["ordered", "unread"], connection))
    assert any("unread" in gap["reason"] and "right" in gap["reason"] for gap in report["not_checked"])
    assert not findings(report, "clustering") and not findings(report, "random-page-cost")
    report = doctor(build, write_config(folder, ["ordered"], f"host={folder} dbname=none password=secret-of-nobody"))
    assert [gap for gap in report["not_checked"] if "database" in gap["reason"]]
    assert "secret-of-nobody" not in json.dumps(report)


def test_sqlite(build, folder):
    path = folder / "tiles' odd.sqlite3"
    with sqlite3.connect(path) as made:
        made.executescript("PRAGMA page_size = 1024; CREATE TABLE tiles (tileset text, grid text, x int, y int, z int, data blob, dim text,"
                           " ctime datetime)")
        made.executemany("INSERT INTO tiles VALUES ('t', 'GoogleMapsCompatible', ?, 0, 9, ?, '', '2020-01-01')",
                         ((x, b"x" * 5000) for x in range(200)))
    made.close()
    bytes_before, names = path.read_bytes(), sorted(os.listdir(folder))
    config = write_config(folder, cache=f'<cache name="c" type="sqlite3"><dbfile>{path}</dbfile></cache>')
    script = folder / "fix.sh"
    report = doctor(build, config, "--fix", script)
    found = " ".join(one["found"] for one in findings(report, "sqlite"))
    assert "page size is 1024" in found and "no index" in found
    assert path.read_bytes() == bytes_before
    assert set(os.listdir(folder)) - set(names) == {"mapcache.xml", "l.sld", "fix.sh"}
    for one in findings(report, "sqlite"):
        assert one["fix"].startswith("sqlite3 '") and "'\\''" in one["fix"]
    with sqlite3.connect(path) as changed:
        changed.executescript("PRAGMA page_size = 4096; VACUUM; CREATE INDEX i ON tiles (x, y, z)")
    changed.close()
    assert not findings(doctor(build, config), "sqlite")


def test_descriptors(build, folder):
    """A limit that leaves no room for the clients; without one there is nothing to do."""
    command = [build / "bin/mapcache", "doctor", "-c", write_config(folder), "--json", "--clients"]
    for clients, expected in ((1000000, 1), (1, 0)):
        done = subprocess.run([*command, str(clients)], capture_output=True, text=True, check=False, timeout=patience(60),
                              env={**os.environ, **sanitizer_environment(build)},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000)))
        assert len(findings(json.loads(done.stdout), "descriptors")) == expected, done.stdout


def lru(requests, room):
    held, hits = OrderedDict(), 0
    for one in requests:
        if one in held:
            held.move_to_end(one)
            hits += 1
        else:
            held[one] = True
            if len(held) > room:
                held.popitem(last=False)
    return hits / len(requests)


def test_access_log(build, folder):
    """1,000 tiles of 10,000 bytes, some of them often: the sizes of the report are those of an exact simulation."""
    choose = random.Random(7)
    requests = [int(1000 ** choose.random()) for _ in range(6000)]
    log = folder / "access.log"
    with open(log, "wb") as out:
        for i, one in enumerate(requests):
            status, size = (200, b"10000") if i % 3 else (304, b"-")
            out.write(b'127.0.0.1 - - [28/Nov/2026:22:00:00 +0000] "GET /maps/tms/1.0.0/t@GoogleMapsCompatible/10/%d/5.png HTTP/1.1" %d %s "-" "x"\n'
                      % (one, status, size))
        out.write(b"\x00\xff" * 20000 + b"\n" + b'h - - [t] "GET /maps/tms/1.0.0/t@nowhere/1/1/1.png HTTP/1.1" 200 5\n' + b'"' * 300 + b"\n[] \"GET ")
    config = write_config(folder, more="<memory_cache>1M</memory_cache>")
    report = doctor(build, config, "--access-log", log)
    assert report["access_log"]["tiles"] == len(requests) and report["access_log"]["tile_bytes"] == 10000
    assert len(report["access_log"]["memory"]) == 7
    for size in report["access_log"]["memory"]:
        assert abs(size["hit_ratio"] - lru(requests, int(size["bytes"] / 10128))) < 0.01, size
    (memory,) = findings(report, "memory")
    recommended = int(re.search(r"<memory_cache>(\d+)M", memory["do"]).group(1))
    best = lru(requests, 10 ** 6)
    assert lru(requests, recommended * 1048576 // 10128) > best - 0.02 and recommended < 16
    missing = subprocess.run([build / "bin/mapcache", "doctor", "-c", config, "--access-log", folder / "none"], capture_output=True,
                             text=True, env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60), check=False)
    assert missing.returncode == 1 and "none" in missing.stderr


def test_list_is_documented(build):
    listed = subprocess.run([build / "bin/mapcache", "doctor", "--list", "--json"], capture_output=True, text=True, check=True,
                            env={**os.environ, **sanitizer_environment(build)}, timeout=patience(60))
    page = pathlib.Path(ROOT, "docs/doctor.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.M)
    assert rows == [(check["id"], check["help"]) for check in json.loads(listed.stdout)["checks"]]
