"""The seeder before a real origin: slow for a while, failing, hanging; the clock set forth and back."""
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import SOON, wait_until
from origin import png
from patience import patience
from postgres import Postgres
from test_seed_resume import Site

WORKERS = 8
FAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Slow(ThreadingHTTPServer):
    """A WMS that answers after `delay` seconds, all at once or (`alone`) one after the other, and counts how many ask."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        self.delay, self.status, self.now, self.most, self.lock, self.asked = 0.02, 200, 0, 0, threading.Lock(), 0
        self.alone, self.line = False, threading.Lock()
        self.free = threading.Event()  # ends what hangs
        body, server = png(512, 512, (10, 20, 30, 255)), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one write for head and body

            def do_GET(self):
                wanted = {name.upper(): values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                with server.lock:
                    server.now += 1
                    server.asked += 1
                    server.most = max(server.most, server.now)
                if server.alone:  # overloaded: one after the other
                    with server.line:
                        server.free.wait(server.delay)
                else:
                    server.free.wait(server.delay)
                with server.lock:
                    server.now -= 1
                answer = body if (wanted["WIDTH"], wanted["HEIGHT"]) == ("512", "512") else png(256, 256, (1, 2, 3, 255))
                try:
                    self.send_response(server.status)
                    self.send_header("Content-Type", "image/png")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # it has gone

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Clients leave early here."""

    def __exit__(self, *_):
        self.free.set()
        self.shutdown()
        self.server_close()

    def site(self, folder):
        return Site(folder, f"""type="wms"><getmap><params><FORMAT>image/png</FORMAT><LAYERS>x</LAYERS></params></getmap>
    <http><url>http://127.0.0.1:{self.server_port}/?</url></http></source>""")


class Lines:
    """The lines of JSON that a run writes, as they come."""

    def __init__(self, run):
        self.last, self.all = {"workers": WORKERS, "done": 0}, []
        threading.Thread(target=self.read, args=(run.stdout,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            self.last = json.loads(line)
            self.all.append(self.last)


def test_a_slow_origin_is_let_alone_until_it_has_recovered(tmp_path):
    with Slow() as origin:
        site = origin.site(tmp_path)
        run = site.start("-z", "0,10", "-p", WORKERS, "--json")
        lines = Lines(run)
        wait_until(lambda: lines.last["done"] > 100, "the first metatiles")
        assert lines.last["workers"] == WORKERS and origin.most == WORKERS
        origin.delay, origin.alone = 0.4, True
        wait_until(lambda: lines.last["workers"] < WORKERS, "fewer workers", 120)
        wait_until(lambda: origin.now < WORKERS, "fewer requests at once")
        origin.delay, origin.alone, origin.most = 0.02, False, 0
        wait_until(lambda: lines.last["workers"] == WORKERS, "all workers again", 120)
        wait_until(lambda: origin.most == WORKERS, "as many requests at once")
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=patience(60)) == 0
        wait_until(lambda: "exit" in lines.last, "the last line")
        spent = lines.last["time"]
        assert set(spent) == {"origin", "decode", "draw", "encode", "store", "waiting"}
        assert spent["origin"] > max(spent["decode"], spent["draw"], spent["encode"], spent["store"]) > 0


def test_a_failing_origin_too_but_not_without_backoff(tmp_path):
    with Slow() as origin:
        origin.status = 500
        for options, expected in ([], 1), (["--no-backoff"], WORKERS):
            folder = tmp_path / str(expected)
            folder.mkdir()
            result = origin.site(folder).seed("-z", "0,3", "-n", WORKERS, "-P", "100", "--json", *options)
            last = json.loads(result.stdout.splitlines()[-1])
            assert result.returncode == 0 and (last["failed"], last["workers"]) == (22, expected)


@pytest.mark.parametrize("workers, end", [("-n", signal.SIGINT), ("-p", signal.SIGTERM)])
def test_it_ends_soon_although_the_origin_hangs(tmp_path, workers, end):
    with Slow() as origin:
        site = origin.site(tmp_path)
        run = site.start("-z", "0,10", workers, "4", "--checkpoint", site.place)
        wait_until(lambda: site.place.exists() and site.done() > 20, "some metatiles")
        origin.delay = 50
        wait_until(lambda: origin.now == 4, "all to wait")
        began = time.monotonic()
        if workers == "-p" and end == signal.SIGTERM:  # as a service manager does it: all processes at once
            for child in subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split():
                os.kill(int(child), end)
        run.send_signal(end)
        out, err = run.communicate(timeout=patience(60))
        assert time.monotonic() - began < patience(SOON)
        assert run.returncode == 0 and "failed" not in err, out + err
        assert 0 < site.done() * 4 <= len(site.tiles()) + 12
        origin.free.set()
        origin.delay = 0
        result = site.seed("-z", "0,3", workers, "4")
        assert result.returncode == 0 and len(site.tiles()) >= sum(4 ** z for z in range(4))


class Clock:
    """The time of day of programs that run in `environment`; the monotonic clock stays as it is."""
    def __init__(self, folder):
        self.file = folder / "clock"
        self.set("+0")
        self.environment = os.environ | {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # which ends every wait by the monotonic clock at once
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}

    def set(self, offset):
        self.file.write_text(offset)

    def start(self, command):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)


def test_the_clock_may_be_set(tmp_path):
    """An hour back and two forth: rate, commits and checkpoint go on as if nothing had happened."""
    with Slow() as origin:
        origin.delay = 0
        site, clock = origin.site(tmp_path), Clock(tmp_path)
        began = time.monotonic()
        run = clock.start(site.command("-z", "5,5", "-n", "2", "--rate-limit", "256", "--json", "--checkpoint", site.place))
        for at, offset in (20, "-3600"), (60, "+7200"), (110, "+0"):
            wait_until(lambda at=at: run.poll() is not None or (site.place.exists() and site.done() >= at), f"{at} metatiles")
            clock.set(offset)
        out, err = run.communicate(timeout=patience(60))
        took = time.monotonic() - began
        last = json.loads(out.splitlines()[-1])
        assert run.returncode == 0 and err == "", out + err
        assert last["done"] == 256 and last["workers"] == 2
        assert 255 * 4 / 256 - 0.1 <= took < patience(30) and last["seconds"] < patience(30)
        assert sum(last["time"].values()) < 60 and re.search(r'"exit":0', out)
        assert len(site.tiles()) == 1024


@pytest.mark.parametrize("workers", ["-n", "-p"])
def test_an_interrupt_ends_a_run_that_has_handed_out_everything(tmp_path, workers):
    """A small run is with its workers as a whole, in a moment."""
    with Slow() as origin:
        site = origin.site(tmp_path)
        origin.delay = 2
        run = site.start("-z", "0,3", workers, "2", "--checkpoint", site.place)
        wait_until(lambda: origin.asked > 2, "the second metatiles")
        run.terminate()
        out, err = run.communicate(timeout=patience(60))
        assert run.returncode == 0 and origin.asked < 12, (origin.asked, out, err)  # of 22
        assert site.done() < 12


def interrupted(folder, origin, more):
    """The exit status of a run whose origin hangs, and which is interrupted: `more` does so again."""
    folder.mkdir()
    run = origin.site(folder).start("-z", "0,3", "-n", "2")
    wait_until(lambda: origin.now > 0, "a request")
    run.send_signal(signal.SIGTERM)
    said = ""
    while "press ctrl-C" not in said:  # it has noticed
        said += run.stderr.readline()
    more(run)
    run.communicate(timeout=patience(60))
    wait_until(lambda: origin.now == 0, "nobody asks any more")
    return run.returncode


def test_interrupts_that_come_together_are_one(tmp_path):
    """timeout(1) sends its signal to the process and to its group. Whoever loses half a second between them tries again."""
    with Slow() as origin:
        origin.delay = 1.5
        assert any(interrupted(tmp_path / str(n), origin, lambda run: run.send_signal(signal.SIGTERM)) == 0 for n in range(10))


def test_an_interrupt_long_after_the_first_ends_it_at_once(tmp_path):
    with Slow() as origin:
        origin.delay = 3

        def until_it_ends(run):
            while run.poll() is None:
                run.send_signal(signal.SIGINT)
                time.sleep(0.02)
        assert any(interrupted(tmp_path / str(n), origin, until_it_ends) == 2 for n in range(10))


def test_the_clock_may_be_set_while_an_origin_is_waited_for(tmp_path):
    """Deadlines are no times of day: two hours later is not too late."""
    with Slow() as origin:
        origin.delay = 1000
        site, clock = origin.site(tmp_path), Clock(tmp_path)
        run = clock.start(site.command("-z", "0,1", "-n", "2"))
        wait_until(lambda: origin.now == 2, "two requests")
        clock.set("+7200")
        time.sleep(0.5)  # for a wait that would end; none does
        origin.delay = 0
        origin.free.set()
        out, err = run.communicate(timeout=patience(60))
        assert run.returncode == 0 and err == "" and len(site.tiles()) == 5, out + err


def test_the_clock_may_be_set_while_a_database_is_waited_for(tmp_path):
    with Postgres() as database:
        store = f"<connection>{database.connection()}</connection><table>kept</table>"
        site, clock = Site(tmp_path, cache="postgresql", store=store), Clock(tmp_path)
        assert site.seed("-z", "0,0").returncode == 0
        holder = subprocess.Popen(["psql", "-q", "-X", database.connection()], stdin=subprocess.PIPE, text=True)
        holder.stdin.write("begin; lock table kept in access exclusive mode;\n")
        holder.stdin.flush()
        waiting = "select count(*) from pg_locks where not granted"
        wait_until(lambda: database.sql("select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and "
                                        "relation = 'kept'::regclass") == ["1"], "the lock")
        run = clock.start(site.command("-z", "1,2", "-n", "2"))
        wait_until(lambda: database.sql(waiting) == ["2"], "two that wait")
        clock.set("+7200")
        time.sleep(0.5)
        assert database.sql(waiting) == ["2"]
        holder.communicate("commit;\n", timeout=patience(60))
        out, err = run.communicate(timeout=patience(60))
        assert run.returncode == 0 and err == "", out + err
        assert database.sql("select count(*) from kept") == ["21"]
