"""The queue of seeding jobs: several workers as processes of their own, killed, stopped, without their database."""
import contextlib
import json
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import SOON, wait_until
from jobs_site import PROGRAM, Queue, boxes, last_line, seeded_alone, wms
from origin import Origin
from patience import patience
from postgres import Postgres
from pypi_pmtiles import reader as pmtiles_reader


@pytest.fixture(scope="module")
def database():
    with Postgres(settings=["max_connections=100"]) as server:
        yield server


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


@contextlib.contextmanager
def pmtiles_opened(path):
    with open(path, "rb") as file:
        yield pmtiles_reader.Reader(pmtiles_reader.MmapSource(file))


def end(workers):
    for worker in workers:
        worker.kill()
        worker.communicate()


def test_four_workers_draw_every_tile_once(tmp_path, database, origin):
    queue = Queue(tmp_path / "four", database, wms(origin))
    job = queue.enqueue("-z", "0,4")
    expected = seeded_alone(tmp_path / "alone", wms(origin), "0,4")
    drawn_alone = boxes(origin)
    results = [last_line(worker) for worker in [queue.worker("--drain", "-n", 2) for _ in range(4)]]
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["done"] == shown["metatiles"] == len(drawn_alone)
    assert shown["tiles"] == len(expected) and shown["skipped"] == shown["failed"] == 0
    assert queue.tiles() == expected
    drawn = boxes(origin)[len(drawn_alone):]
    assert sorted(drawn) == sorted(drawn_alone)  # each once, by whomever
    assert sum(result["done"] for result in results) == len(drawn) and sum(r["done"] > 0 for r in results) > 1
    assert queue.sql("select count(*) from @mapcache_job_units") == ["0"]
    assert queue.sql("select count(*) from @mapcache_job_workers") == ["0"]  # all have said good-bye


def test_workers_killed_at_random_in_namespaces_of_their_own(tmp_path, database):
    """Four workers that share no network; one after the other is killed; the result is that of one undisturbed seed."""
    chance = random.Random(5)
    queue = Queue(tmp_path / "killed", database, lease=5, local=True)
    before = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], check=False).returncode == 0 else []
    expected = seeded_alone(tmp_path / "alone", 'type="dummy"/>', "0,6")
    job = queue.enqueue("-z", "0,6", "--rate-limit", 1200)
    workers = [queue.worker("--drain", before=before) for _ in range(4)]
    for _ in range(8):
        time.sleep(chance.uniform(0.1, 0.6))
        number = chance.randrange(4)
        workers[number].kill()  # the word before the command has become the worker itself
        workers[number].communicate()
        workers[number] = queue.worker("--drain", before=before)
    for worker in workers:
        last_line(worker)
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["failed"] == 0
    assert shown["done"] + shown["skipped"] == shown["metatiles"]  # each counted once, whoever died over it
    assert queue.tiles() == expected


def test_values_that_a_dimension_does_not_have_are_refused(tmp_path, database):
    queue = Queue(tmp_path / "dimension", database, more="""<dimensions><dimension type="values" name="time" default="a"><value>a</value>
      <value>b</value></dimension></dimensions>""")
    for value, status in ("c", 1), ("b", 0):
        result = queue.run("enqueue", "-t", "world", "-z", "0,0", "-D", f"time={value}", check=False)
        assert result.returncode == status and ('has no value "c"' in result.stderr) == (status == 1), result.stderr


def test_an_interrupt_gives_back_what_is_leased(tmp_path, database, origin):
    queue = Queue(tmp_path / "stopped", database, wms(origin, "/late/30/pattern?"))
    job = queue.enqueue("-z", "0,4", "--side", 8)
    for number in signal.SIGTERM, signal.SIGINT:
        worker = queue.worker("-n", 2)
        so_far = len(boxes(origin))
        wait_until(lambda n=so_far: len(boxes(origin)) > n + 20, "work has begun")
        began = time.monotonic()
        worker.send_signal(number)
        result = last_line(worker)
        assert time.monotonic() - began < patience(SOON) and result["done"] > 0
        assert queue.sql("select count(*) from @mapcache_job_units where state = 'leased'") == ["0"]
    last_line(queue.worker("--drain", "-n", 4))
    drawn = boxes(origin)
    assert len(set(drawn)) == len(drawn) == queue.job(job)["done"]  # nothing was drawn twice


def test_an_origin_that_hangs_does_not_hold_up_an_interrupt(tmp_path, database, origin):
    queue = Queue(tmp_path / "hung", database, wms(origin, "/hold/it/pattern?"))
    queue.enqueue("-z", "3,3")
    worker = queue.worker("-n", 2)
    wait_until(lambda: boxes(origin), "a request")
    began = time.monotonic()
    worker.terminate()
    last_line(worker)
    assert time.monotonic() - began < patience(SOON)
    assert queue.sql("select count(*) from @mapcache_job_units where state = 'leased'") == ["0"]
    origin.release("it")


def test_a_database_that_hangs_does_not_hold_up_an_interrupt(tmp_path, origin):
    with Postgres() as own:
        queue = Queue(tmp_path / "stuck", own, wms(origin, "/late/50/pattern?"))
        queue.enqueue("-z", "0,6")
        worker = queue.worker("-n", 2)
        wait_until(lambda: len(boxes(origin)) > 5, "work has begun")
        servers = [own.process.pid, *map(int, subprocess.run(["pgrep", "-P", str(own.process.pid)], stdout=subprocess.PIPE, text=True, check=True).stdout.split())]
        try:
            for server in servers:
                os.kill(server, signal.SIGSTOP)
            time.sleep(2.5)  # it has begun to say something
            began = time.monotonic()
            worker.terminate()
            last_line(worker)
            assert time.monotonic() - began < patience(SOON)
        finally:
            for server in servers:
                os.kill(server, signal.SIGCONT)
            end([worker])


def test_a_database_that_goes_away_is_waited_for(tmp_path, origin):
    with Postgres() as own:
        queue = Queue(tmp_path / "away", own, wms(origin, "/late/20/pattern?"))
        job = queue.enqueue("-z", "0,4", "--side", 2)
        workers = [queue.worker("--drain", "-n", 2) for _ in range(2)]
        try:
            for _ in range(2):
                so_far = len(boxes(origin))
                wait_until(lambda n=so_far: len(boxes(origin)) > n + 15, "work goes on")
                own.stop()
                time.sleep(1.5)
                assert all(worker.poll() is None for worker in workers)
                own.start()
            for worker in workers:
                out, err = worker.communicate(timeout=patience(60))
                assert worker.returncode == 0, out + err
                assert "cannot be reached" in err and "is back" in err
        finally:
            end(workers)
        shown = queue.job(job)
        assert shown["state"] == "done" and shown["done"] + shown["skipped"] == shown["metatiles"]
        assert len(queue.tiles()) == 341
        drawn = boxes(origin)
        assert len(set(drawn)) == shown["metatiles"] and len(drawn) == len(set(drawn))


def test_the_job_with_the_higher_priority_comes_first(tmp_path, database, origin):
    queue = Queue(tmp_path / "order", database, wms(origin))
    queue.enqueue("-z", "4,4")
    queue.enqueue("-z", "3,3", "--priority", 7)
    last_line(queue.worker("--drain", "-n", 2))
    widths = [round(float(box.split(",")[2]) - float(box.split(",")[0])) for box, _ in boxes(origin)]
    assert len(widths) == 16 + 64 and widths == sorted(widths, reverse=True)  # all of level 3, then all of level 4


def preloaded(folder, build, source):
    """The environment of a program whose calls of the C library go through SOURCE first."""
    if "MAPCACHE_SANITIZE:STRING=" in (build / "CMakeCache.txt").read_text() and \
            "MAPCACHE_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text():
        pytest.skip("a sanitizer does not bear another library in front of it")
    (folder / "first.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "first.so", folder / "first.c", "-ldl"], check=True)
    return {"LD_PRELOAD": str(folder / "first.so")}


FEW_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data)
{
    static atomic_int asked;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    return ++asked % 20 == 0 ? EAGAIN : real(thread, attributes, run, data);
}
"""


def test_a_worker_that_gets_no_threads_gives_back_what_it_leased(tmp_path, database, build):
    """Whatever the worker leases, and however often: each twentieth thread is refused."""
    queue = Queue(tmp_path / "threads", database)
    job = queue.enqueue("-z", "0,2")
    worker = queue.worker("-n", 1000, env=preloaded(tmp_path, build, FEW_THREADS))
    refused = []
    while len(refused) < 2:
        line = worker.stderr.readline()
        assert line, "the worker has ended"
        refused += [line] if "cannot start a thread" in line else []
    worker.terminate()
    worker.communicate(timeout=patience(60))
    assert worker.returncode == 0
    assert queue.job(job)["state"] == "open" and {unit["state"] for unit in queue.units(job)} == {"returned"}
    assert last_line(queue.worker("--drain"))["done"] == queue.job(job)["metatiles"]


JUMPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* The wall clock is a day ahead for half a second, then a day behind, and so on; the monotonic one is right. */
static long offset(void)
{
    struct timespec now;
    static int (*real)(clockid_t, struct timespec *);
    if (real == 0)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    return now.tv_nsec < 500000000 ? 86400 : -86400;
}
int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == 0)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, time);
    if (id == CLOCK_REALTIME)
        time->tv_sec += offset();
    return status;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    static int (*real)(struct timeval *, void *);
    if (real == 0)
        real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int status = real(time, zone);
    time->tv_sec += offset();
    return status;
}
"""


def test_a_worker_whose_clock_jumps_does_no_harm(tmp_path, database, origin, build):
    queue = Queue(tmp_path / "clock", database, wms(origin, "/late/60/pattern?"), lease=5)
    job = queue.enqueue("-z", "0,4")
    workers = [queue.worker("--drain"), queue.worker("--drain", env=preloaded(tmp_path, build, JUMPS))]
    results = [last_line(worker) for worker in workers]
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["done"] == shown["metatiles"]
    assert all(result["lost"] == 0 and result["done"] > 0 for result in results), results
    # A jump may end the wait for the origin or the file early: that metatile is tried again, none is left out.
    assert len(set(boxes(origin))) == shown["metatiles"] and len(queue.tiles()) == shown["tiles"] == 341


def test_what_fails_is_tried_again_and_kept(tmp_path, database, origin):
    queue = Queue(tmp_path / "fails", database, wms(origin, "/flaky/6/pattern?"))
    job = queue.enqueue("-z", "2,2", "--attempts", 2)
    last_line(queue.worker("--drain"))  # the first try of each unit fails, the second one draws what is left
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["failed"] == 0 and shown["done"] == 4, shown

    queue = Queue(tmp_path / "dead", database, wms(origin, "/status/500"))
    job = queue.enqueue("-z", "0,1", "--attempts", 1)
    last_line(queue.worker("--drain"))
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["failed"] == 2 and shown["done"] == 0
    assert all(unit["state"] == "failed" and "500" in unit["message"] for unit in queue.units(job))
    assert "failed" in queue.run("show", job).stdout

    Queue(tmp_path / "dead", database, wms(origin))  # the origin is mended
    assert "open" in queue.run("retry", job).stdout
    last_line(queue.worker("--drain"))
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["failed"] == 0 and shown["done"] == 2 and queue.units(job) == []


def test_a_unit_that_ends_its_workers_fails_at_last(tmp_path, database):
    queue = Queue(tmp_path / "poison", database)
    job = queue.enqueue("-z", "0,0")
    queue.sql("insert into @mapcache_job_units(job, unit, state, lease, worker, until, lost) values"
              f" ({job}, 0, 'leased', 1, 'the tenth', now() - interval '1 second', 9)")
    queue.sql("update @mapcache_jobs set next_unit = 1")
    last_line(queue.worker("--drain"))
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["units_failed"] == 1
    assert "the tenth" in queue.units(job)[0]["message"]


def test_pause_resume_and_cancel_reach_workers(tmp_path, database, origin):
    queue = Queue(tmp_path / "change", database, wms(origin, "/late/50/pattern?"))
    job = queue.enqueue("-z", "0,7", "--side", 16)  # units larger than what is drawn meanwhile
    worker = queue.worker("-n", 2)
    try:
        wait_until(lambda: len(boxes(origin)) > 40, "work has begun")
        queue.run("pause", job)
        wait_until(lambda: queue.sql("select count(*) from @mapcache_job_units where state = 'leased'") == ["0"], "it rests")
        resting = len(boxes(origin))
        time.sleep(1.5)
        assert len(boxes(origin)) == resting
        queue.run("resume", job)
        wait_until(lambda: len(boxes(origin)) > resting + 10, "it goes on")
        assert queue.run("cancel", "--all").stdout == f"job {job}: cancelled\n"
        wait_until(lambda: queue.sql("select job from @mapcache_job_workers") == ["0"], "the worker waits again")
        shown = queue.job(job)
        assert shown["state"] == "cancelled" and shown["workers"] == 0 and shown["done"] > 0
        assert len(queue.tiles()) >= shown["tiles"] and len(boxes(origin)) == len(set(boxes(origin)))
        for action in "pause", "resume", "retry":
            refused = queue.run(action, job, check=False)
            assert refused.returncode == 1 and "is cancelled" in refused.stderr
    finally:
        end([worker])
    assert queue.run("prune", "--age", 0).stdout == "1 job removed\n"
    assert queue.run("show", job, check=False).returncode == 1


def test_modes(tmp_path, database, origin):
    queue = Queue(tmp_path / "modes", database, wms(origin))
    work = lambda: last_line(queue.worker("--drain", "-n", 2))  # noqa: E731
    queue.enqueue("-z", "0,3")
    assert work()["done"] == 1 + 1 + 4 + 16 and len(queue.tiles()) == 85
    queue.enqueue("-z", "0,3")
    assert work()["skipped"] == 22 and len(boxes(origin)) == 22
    queue.enqueue("-z", "0,3", "-m", "reseed")
    assert work()["done"] == 22 and len(boxes(origin)) == 44
    time.sleep(1.1)  # ages are seconds
    queue.enqueue("-z", "3,3", "-o", "now")
    assert work()["done"] == 16 and len(boxes(origin)) == 60
    queue.enqueue("-z", "0,3", "-m", "transfer", "-x", "copy")
    assert work()["done"] == 85 and queue.tiles("other", "copy") == queue.tiles()
    queue.enqueue("-z", "3,3", "-m", "delete", "-e", "-20037508,-20037508,0,0")
    work()
    assert len(queue.tiles()) == 85 - 16
    assert len(queue.tiles("other", "copy")) == 85


def test_the_last_unit_of_a_job_makes_the_archive(tmp_path, database):
    queue = Queue(tmp_path / "archive", database)
    archive = queue.folder / "tiles.pmtiles"
    queue.config.write_text(queue.config.read_text().replace(f'type="sqlite3"><dbfile>{queue.folder}/tiles.sqlite3</dbfile>',
                                                             f'type="pmtiles"><file>{archive}</file>'))
    job = queue.enqueue("-z", "0,4", "--side", 1)
    workers = [queue.worker("--drain") for _ in range(2)]
    assert sum(last_line(worker)["done"] for worker in workers) == queue.job(job)["metatiles"]
    assert archive.read_bytes()[:7] == b"PMTiles"
    with pmtiles_opened(archive) as found:
        assert found.header()["addressed_tiles_count"] == sum(4**z for z in range(5))


def test_all_are_all_jobs_however_many(tmp_path, database):
    queue = Queue(tmp_path / "many", database)
    queue.enqueue("-z", "0,1")
    columns = queue.sql("select string_agg(column_name, ', ') from information_schema.columns where table_name = 'mapcache_jobs'"
                        f" and table_schema = '{queue.schema}' and column_name not in ('id', 'request')")[0]
    queue.sql(f"insert into @mapcache_jobs(request, {columns}) select 'copy ' || n, {columns} from @mapcache_jobs, generate_series(1, 1003) n")
    for action, state in ("pause", "paused"), ("cancel", "cancelled"):
        assert len(queue.run(action, "--all").stdout.splitlines()) == 1004
        assert queue.sql("select state, count(*) from @mapcache_jobs group by state") == [f"{state}|1004"]


def test_an_area_limits_a_job(tmp_path, database):
    queue = Queue(tmp_path / "area", database)
    triangle = {"type": "Polygon", "coordinates": [[[1, 1], [40, 1], [1, 40], [1, 1]]]}
    (tmp_path / "area.json").write_text(json.dumps(triangle))
    alone = seeded_alone(tmp_path / "alone", 'type="dummy"/>', "0,7", "--area", str(tmp_path / "area.json"))
    job = queue.enqueue("-z", "0,7", "--area", tmp_path / "area.json", "--side", 4)
    for worker in [queue.worker("--drain") for _ in range(2)]:
        last_line(worker)
    shown = queue.job(job)
    assert shown["state"] == "done" and shown["done"] == shown["metatiles"] and shown["area"] is True
    assert queue.tiles() == alone
    assert 50 < len(alone) < 400
    for text, message in ("nonsense", "bad:1: "), ("", "bad has no polygon"), ("POLYGON EMPTY", "bad has no polygon"):
        (tmp_path / "bad").write_text(text)
        refused = queue.run("enqueue", "-t", "world", "--area", tmp_path / "bad", check=False)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr


def test_areas_of_ogr_as_the_seeder_takes_them(tmp_path, database):
    queue = Queue(tmp_path / "ogr", database)
    squares = [("north", 100000.3, 200000.7), ("south", 3000000.1, -7000000.9), ("west", 1e9, 1e9)]  # the last one: nowhere
    features = [{"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [
        [[x, y], [x + 4e6, y], [x, y + 3e6], [x, y]], [[x + 1e5, y + 1e5], [x + 1e6, y + 1e5], [x + 1e5, y + 1e6], [x + 1e5, y + 1e5]]]}}
        for name, x, y in squares]
    features += [{"type": "Feature", "properties": {"name": "way"}, "geometry": {"type": "LineString", "coordinates": [[-1e7, 1e6], [-9e6, 4e6]]}}]
    source = tmp_path / "source.json"
    source.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    for number, options in enumerate((["-d", source], ["-d", source, "-w", "name = 'south' or name = 'way'"],
                                      ["-d", source, "-s", "select * from source where name = 'north'"])):
        alone = seeded_alone(tmp_path / f"alone{number}", 'type="dummy"/>', "0,6", *map(str, options))
        job = queue.enqueue("-z", "0,6", "--order", "hilbert", "--side", 2, *options)
        last_line(queue.worker("--drain", "-n", 2))
        shown = queue.job(job)
        assert shown["state"] == "done" and shown["done"] == shown["metatiles"] and shown["order"] == "hilbert"
        assert queue.tiles() == alone
        assert 30 < len(alone) < 2000
        queue.enqueue("-z", "0,6", "-m", "delete")
        last_line(queue.worker("--drain"))
    degrees = tmp_path / "degrees.wkt"
    degrees.write_text("POLYGON((1 1, 40 1, 1 40, 1 1))")
    assert "WARNING: the area seems to be in degrees" in queue.run("enqueue", "-t", "world", "--area", degrees).stderr
    for options, message in ((["-d", source, "-w", "name = 'none'"], "has no features"), (["-d", "nowhere"], "cannot be used"),
                             (["-w", "x"], "need --ogr-datasource"), (["-d", source, "--area", degrees], "one of --area and"),
                             (["-d", source, "-e", "0,0,1,1"], "one of --extent and"), (["--order", "down"], "--order cannot be")):
        refused = queue.run("enqueue", "-t", "world", *options, check=False)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr


def test_a_worker_of_several_processes(tmp_path, database, origin):
    queue = Queue(tmp_path / "processes", database, wms(origin, "/late/30/pattern?"), lease=5)
    job = queue.enqueue("-z", "0,5", "--side", 2)
    worker = queue.worker("--drain", "-p", 3, "-n", 2)
    names = "select name from @mapcache_job_workers order by 1"
    wait_until(lambda: len(queue.sql(names)) == 3, "three workers")
    wait_until(lambda: len(boxes(origin)) > 30, "work has begun")
    first = int(queue.sql(names)[0].rpartition(":")[2])
    os.kill(first, signal.SIGKILL)
    out, err = worker.communicate(timeout=patience(100))
    last = json.loads(out.splitlines()[-1])
    assert worker.returncode == 1 and "ended by signal 9" in err and last["exit"] == 1, out + err
    shown = queue.job(job)  # the others have taken over
    assert shown["state"] == "done" and shown["done"] + shown["skipped"] == shown["metatiles"]
    assert len(queue.tiles()) == sum(4 ** z for z in range(6)) and 0 < last["tiles"] <= 1365


@pytest.mark.parametrize("way", ["terminal", "service", "killed"])
def test_an_interrupt_ends_all_processes(tmp_path, database, origin, way):
    queue = Queue(tmp_path / f"interrupt_{way}", database, wms(origin, "/late/30/pattern?"))
    job = queue.enqueue("-z", "0,5", "--side", 2)
    worker = queue.worker("-p", 3, start_new_session=True)
    wait_until(lambda: len(boxes(origin)) > 30, "work has begun")
    children = [int(name.rpartition(":")[2]) for name in queue.sql("select name from @mapcache_job_workers")]
    if way == "killed":  # nobody is left to show anything, but the leases go back
        worker.kill()
        worker.communicate(timeout=patience(60))
    else:
        os.killpg(worker.pid, signal.SIGINT if way == "terminal" else signal.SIGTERM)
        out, err = worker.communicate(timeout=patience(60))
        last = json.loads(out.splitlines()[-1])
        assert worker.returncode == 0 and err == "" and last["exit"] == 0, out + err
    wait_until(lambda: queue.sql("select count(*) from @mapcache_job_workers") == ["0"], "all have said good-bye")
    wait_until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children), "all have gone")
    assert queue.sql("select count(*) from @mapcache_job_units where state = 'leased'") == ["0"]
    shown = queue.job(job)
    assert shown["state"] == "open" and (way == "killed" or last["done"] == shown["done"])


def test_a_stop_in_the_midst_of_a_statement_is_no_outage(tmp_path, database):
    """A worker that holds nothing is stopped while its question for work waits: it says good-bye all the same."""
    queue = Queue(tmp_path / "midst", database)
    queue.enqueue("-z", "0,1")
    waiting = ("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and clock_timestamp() - query_start < interval '1 s'"
               " and query like 'WITH best AS%'")
    lock = database.locked(f"{queue.schema}.mapcache_jobs")
    try:
        worker = queue.worker()
        wait_until(lambda: database.sql(waiting) == ["1"] and queue.sql("select count(*) from @mapcache_job_workers") == ["1"], "it asks")
        worker.send_signal(signal.SIGTERM)
        assert last_line(worker)["done"] == 0
        assert queue.sql("select count(*) from @mapcache_job_workers") == ["0"]
    finally:
        lock.release()


def test_a_rate_is_shared_by_all_workers(tmp_path, database):
    queue = Queue(tmp_path / "rate", database)
    job = queue.enqueue("-z", "4,4", "--rate-limit", 120)
    for worker in [queue.worker("--drain", "-n", 2) for _ in range(2)]:
        last_line(worker)
    shown = queue.job(job)
    # 256 tiles; a worker hears of the other after two seconds at most, so that they may be twice as fast until then
    assert shown["done"] == 64 and shown["ended"] - shown["started"] > 1


def test_the_same_request_makes_one_job(tmp_path, database):
    queue = Queue(tmp_path / "once", database)
    assert queue.enqueue("--request", "nightly") == queue.enqueue("--request", "nightly") != queue.enqueue()
    assert len(queue.run("list", "--json").stdout.splitlines()) == 2
    assert len(queue.run("list", "--json", "--limit", 1).stdout.splitlines()) == 1
    assert queue.run("list", "--state", "paused").stdout == ""


def test_a_large_job_has_few_rows(tmp_path, database):
    queue = Queue(tmp_path / "large", database)
    job = queue.enqueue("-z", "0,15")
    shown = queue.job(job)
    assert shown["metatiles"] > 3e8 and shown["units"] <= 400000
    assert queue.sql("select count(*) from @mapcache_job_units") == ["0"]
    worker = queue.worker()
    wait_until(lambda: queue.job(job)["done"] > 0, "progress")
    worker.terminate()
    last_line(worker)
    assert int(queue.sql("select count(*) from @mapcache_job_units")[0]) <= 3


def test_a_worker_leaves_jobs_alone_that_mean_other_tiles_here(tmp_path, database):
    queue = Queue(tmp_path / "model", database)
    strange = queue.enqueue("-z", "0,1")
    fitting = queue.enqueue("-z", "0,2")
    queue.sql(f"update @mapcache_jobs set model = 'of another grid' where id = {strange}")
    worker = queue.worker("--drain")
    out, err = worker.communicate(timeout=patience(60))
    assert worker.returncode == 0 and "is another one here" in err, err
    assert queue.job(fitting)["state"] == "done" and queue.job(strange)["state"] == "open"
    assert all(unit["state"] == "returned" for unit in queue.units(strange))


def test_tables_of_another_version_are_left_alone(tmp_path, database):
    queue = Queue(tmp_path / "version", database)
    queue.enqueue("-z", "0,0")
    queue.sql("update @mapcache_jobs_schema set version = 99")
    for command in ["enqueue", "-t", "world"], ["work", "--drain"]:
        refused = queue.run(*command, check=False)
        assert refused.returncode == 1 and "version 99" in refused.stderr


def test_who_may_only_read_sees_the_jobs(tmp_path, database):
    queue = Queue(tmp_path / "reader", database)
    assert queue.run("list").stdout == ""  # nobody has made tables yet
    queue.enqueue("-z", "0,1")
    database.sql(f"create role looker login; grant usage on schema {queue.schema} to looker;"
                 f" grant select on all tables in schema {queue.schema} to looker")
    queue.config.write_text(queue.config.read_text().replace(database.connection(), f"host={database.folder} port={database.port}"
                                                             " dbname=postgres user=looker"))
    assert "open" in queue.run("list").stdout
    for command in ["enqueue", "-t", "world"], ["cancel", "1"], ["prune"]:
        refused = queue.run(*command, check=False)
        assert refused.returncode == 1 and "refuses" in refused.stderr


def test_a_schema_that_was_made_for_us_and_a_connection_of_the_command_line(tmp_path, database):
    queue = Queue(tmp_path / "tenant", database)
    database.sql(f"create role tenant login; create schema {queue.schema} authorization tenant")
    own = f"host={database.folder} port={database.port} dbname=postgres user=tenant"
    done = queue.run("enqueue", "-t", "world", "-z", "0,1", "--connection", own)  # may make tables there, but no schemas
    assert "job 1:" in done.stdout
    assert "open" in queue.run("list", "--connection", own).stdout
    assert "open" in queue.run("list").stdout


@pytest.mark.parametrize("before", ["", "x"])  # one of them is cut within a character
def test_long_messages_are_told(tmp_path, database, before):
    """What the database would refuse would be told again and again, and the unit would never end."""
    queue = Queue(tmp_path / f"words{before}", database)
    path = "/dev/null/" + before + "/".join(["\u00e9" * 100] * 4)
    queue.config.write_text(queue.config.read_text().replace(
        f'type="sqlite3"><dbfile>{queue.folder}/tiles.sqlite3</dbfile>', f'type="disk"><base>{path}</base>'))
    number = queue.enqueue("-z", "0,0", "--attempts", "1")
    assert last_line(queue.worker("--drain"))["failed"] == 1
    assert queue.job(number)["state"] == "done" and len(queue.units(number)[0]["message"].encode()) > 400


@pytest.mark.parametrize("options,message", [
    (["-t", "nowhere"], 'no tileset "nowhere"'), (["-t", "world", "-g", "WGS84"], 'has no grid "WGS84"'),
    (["-t", "world", "-z", "40,50"], "none of these zoom levels"), (["-t", "world", "-D", "time=1"], 'no dimension "time"'),
    (["-t", "copy"], "has no source"), (["-t", "world", "-m", "transfer"], "needs the tileset"),
    (["-t", "world", "-m", "reseed", "-o", "now"], "any age"), (["-t", "world", "--priority", "high"], "--priority cannot be"),
    (["-t", "world", "-e", "1,1,0,0"], "--extent cannot be"), (["-t", "world", "--side", "0"], "--side cannot be"),
    (["-t", "world", "-e", "9e7,9e7,9.1e7,9.1e7"], "no tile"), ([], "needs --tileset"), (["-t", "world", "7"], '"7" is no option'),
    (["-t", "world", "--rate-limit", "nan"], "--rate-limit cannot be"),
])
def test_what_cannot_be_a_job_is_refused(tmp_path, database, options, message):
    queue = Queue(tmp_path / "bad", database)
    done = queue.run("enqueue", *options, check=False)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert queue.run("list").stdout == ""


def test_help_and_errors_of_the_command(tmp_path, database):
    queue = Queue(tmp_path / "help", database)
    program = ["mapcache", "jobs"]
    for words in [["--help"], *([command, "--help"] for command in ("enqueue", "work", "list", "show", "watch", "cancel", "prune"))]:
        done = subprocess.run([PROGRAM, "jobs", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.startswith("usage: " + " ".join(program)), done
    for words in [], ["dance"], ["show"], ["cancel", "-c", "x"], ["list"], ["work", "--connection", "host=x"], ["show", "-c", "x", "many"]:
        done = subprocess.run([PROGRAM, "jobs", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stderr and not done.stdout, done
    job = queue.enqueue("-z", "0,1")
    watching = subprocess.Popen([PROGRAM, "jobs", "watch", "--json", "-c", str(queue.config)], stdout=subprocess.PIPE, text=True)
    assert json.loads(watching.stdout.readline())["id"] == job
    last_line(queue.worker("--drain"))
    assert watching.wait(patience(30)) == 0  # no open job is left
    watching.stdout.close()


PARTS = "".join(f'<cache name="{name}" type="disk"><base>@/{name}</base></cache>' for name in "ab")
CACHES = {"disk": "<base>@/disk</base>", "mbtiles": "<dbfile>@/a.mbtiles</dbfile>", "geopackage": "<dbfile>@/a.gpkg</dbfile>",
          "postgresql": "<connection>#</connection>", "multitier": "<cache>a</cache><cache>b</cache>",
          "composite": '<cache max-zoom="1">a</cache><cache min-zoom="2">b</cache>', "fallback": "<cache>a</cache><cache>b</cache>"}


@pytest.mark.parametrize("kind", CACHES)
def test_workers_of_one_host_fill_any_kind_of_cache(tmp_path, database, kind):
    queue = Queue(tmp_path / kind, database)
    text = queue.config.read_text()
    main = f'<cache name="main" type="sqlite3"><dbfile>{queue.folder}/tiles.sqlite3</dbfile></cache>'
    assert main in text
    cache = PARTS + f'<cache name="main" type="{kind}">{CACHES[kind]}</cache>'
    queue.config.write_text(text.replace(main, cache.replace("@", str(queue.folder)).replace("#", database.connection())))
    job = queue.enqueue("-z", "0,2")
    for worker in [queue.worker("--drain") for _ in range(2)]:
        last_line(worker)
    shown = queue.job(job)
    assert (shown["state"], shown["tiles"], shown["failed"]) == ("done", 21, 0)
    again = queue.enqueue("-z", "0,2")
    last_line(queue.worker("--drain"))
    assert queue.job(again)["skipped"] == queue.job(again)["metatiles"]  # the store has them all


def test_a_cache_that_keeps_nothing_has_no_jobs(tmp_path, database):
    queue = Queue(tmp_path / "none", database)
    text = queue.config.read_text()
    queue.config.write_text(text.replace(f'type="sqlite3"><dbfile>{queue.folder}/tiles.sqlite3</dbfile></cache>', 'type="none"/>'))
    done = queue.run("enqueue", "-t", "world", "-z", "0,2", check=False)
    assert done.returncode == 1 and "keeps nothing" in done.stderr
