"""`mapcache trace`: its text against the published parser's rules, its sums, and its page in a browser."""
import ast
import datetime
import json
import os
import pathlib
import random
import re
import subprocess

import pytest

import parser_rules
from patience import patience

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAPCACHE = pathlib.Path(os.environ.get("MAPCACHE_BUILD", ROOT / "build" / "release")) / "bin" / "mapcache"
EPOCH = datetime.datetime(2020, 1, 15, 12, 17, 50)


def line(at, event, pid=4322, tid=139713776170752, where="mod_mapcache.c(346): ", trailer=""):
    moment = EPOCH + datetime.timedelta(microseconds=at)
    return (f"[{moment:%a %b %d %H:%M:%S.%f %Y}] [mapcache:debug] [pid {pid}:tid {tid}] {where}"
            f"[client 127.0.0.1:38854] MOCKUP {event}{trailer}\n")


def trace(log, *arguments):
    return subprocess.run([MAPCACHE, "trace", *arguments], input=log, capture_output=True, text=True, timeout=patience(60))


PUBLISHED = (line(503563, "BEGIN mapcache_handler") + line(513563, "BEGIN mapcache_core_get_tile") +
             line(534147, "END mapcache_core_get_tile") + line(541130, "END mapcache_handler"))


def test_prints_what_was_published():
    result = trace(PUBLISHED)
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout == ("Thread #4322:139713776170752:0:\n"
                             "   {'BEGIN:mapcache_handler': 37567}\n"
                             "     {'BEGIN:mapcache_core_get_tile': 20584}\n"
                             "     {'END..:mapcache_core_get_tile': 20584}\n"
                             "   {'END..:mapcache_handler': 37567}\n\n")


def random_log(seed, groups=60):
    """Well-formed traces of several threads, interleaved; no function calls itself, where the published pairing errs."""
    rng = random.Random(seed)
    threads = []
    for tid in range(1, 6):
        lines, at = [], rng.randrange(1000000)

        def call(name, depth, used):
            nonlocal at
            lines.append((at, tid, f"BEGIN {name}"))
            for _ in range(rng.randrange(4) if depth < 5 else 0):
                at += rng.randrange(300)
                inner = f"step_{depth}_{rng.randrange(3)}"
                if inner not in used:
                    call(inner, depth + 1, used | {inner})
            at += rng.randrange(2000)
            lines.append((at, tid, f"END {name}" + rng.choice(["", " CACHE_MISS", " ERROR"])))

        for _ in range(groups // 5):
            call(rng.choice(parser_rules.ROOTS), 0, frozenset())
            at += rng.randrange(500)
        threads.append(lines)
    events = sorted((event for lines in threads for event in lines), key=lambda e: e[0])
    noise = "[Wed Jan 15 12:17:50.503563 2020] [core:notice] [pid 1:tid 2] AH00094: Command line: 'apache2'\n"
    out = [line(at, text, tid=tid, trailer=rng.choice(["", ", referer: http://x/"])) for at, tid, text in events]
    for _ in range(20):
        out.insert(rng.randrange(len(out)), noise)
    return "".join(out)


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_the_published_rules(seed):
    log = random_log(seed)
    expected = parser_rules.text(parser_rules.parse(log.splitlines(keepends=True)))
    assert expected.count("Thread #") >= 50
    assert trace(log).stdout == expected


def test_nested_calls_of_one_function_keep_their_times():
    log = "".join(line(at, event) for at, event in [
        (0, "BEGIN mapcache_handler"), (10, "BEGIN mapcache_cache_tile_get"), (20, "BEGIN mapcache_cache_tile_get"),
        (25, "END mapcache_cache_tile_get"), (100, "END mapcache_cache_tile_get"), (200, "END mapcache_handler")])
    entries = [ast.literal_eval(row.strip()) for row in trace(log).stdout.splitlines()[1:-1]]
    assert [list(entry.values())[0] for entry in entries] == [200, 90, 5, 5, 90, 200]
    # The published pairing gives the outer call the inner one's time: this is the difference that is wanted.
    published = [row[2] for row in parser_rules.parse(log.splitlines())[0][1]]
    assert published == [200, 15, 80, 15, 80, 200]


def test_unclosed_events_and_midnight():
    def at_midnight(second, event):
        return line(0, event).replace("Wed Jan 15 12:17:50.000000 2020", second)
    log = (at_midnight("Tue Dec 31 23:59:59.999990 2019", "BEGIN mapcache_handler") +
           at_midnight("Tue Dec 31 23:59:59.999995 2019", "BEGIN _mapcache_cache_disk_get") +
           at_midnight("Wed Jan 01 00:00:00.000010 2020", "END mapcache_handler") +
           line(0, "BEGIN mapcache_handler"))
    result = trace(log)
    assert "{'BEGIN:mapcache_handler': 20}" in result.stdout
    assert "     {'begin:_mapcache_cache_disk_get': None}\n" in result.stdout
    assert "Thread #4322:139713776170752:1:\n   {'begin:mapcache_handler': None}\n" in result.stdout
    with pytest.raises(KeyError):
        parser_rules.parse(log.splitlines())


def test_children_come_before_their_parent():
    log = (line(0, "BEGIN mapcache_handler", tid=1) + line(5, "BEGIN _thread_get_tile", tid=2) +
           line(9, "END _thread_get_tile", tid=2) + line(20, "END mapcache_handler", tid=1))
    assert re.findall(r"#(\S+):$", trace(log).stdout, re.M) == ["4322:2:0", "4322:1:0"]


def said(at, text, tid=139713776170752):
    """The line that names the request of a thread."""
    return line(at, "BEGIN x", tid=tid).replace("MOCKUP BEGIN x", "REQUEST " + text)


NAMED = (line(0, "BEGIN mapcache_handler", tid=1) + line(5, "BEGIN _thread_get_tile", tid=2) +
         said(6, 'method=GET url="/mc/a b?x=\\"1\\"" tileset=base', tid=2) + line(9, "END _thread_get_tile", tid=2) +
         said(15, 'method=GET url="/mc/a b?x=\\"1\\"" tileset=base tile=g/3/1/2 status=404', tid=1) +
         line(20, "END mapcache_handler ERROR", tid=1))


def test_requests_are_named_and_the_published_text_stays_as_it_is():
    unnamed = "".join(row for row in NAMED.splitlines(keepends=True) if "REQUEST" not in row)
    assert trace(NAMED).stdout == trace(unnamed).stdout == parser_rules.text(parser_rules.parse(NAMED.splitlines(keepends=True)))
    assert trace(NAMED).stderr == ""
    groups = [json.loads(row) for row in trace(NAMED, "--json").stdout.splitlines()]
    assert [group["request"].split()[-1] for group in groups] == ["tileset=base", "status=404"]
    outside = said(1, "url=/x") + said(2, "") + PUBLISHED  # of no group; and without a text
    assert trace(outside).stdout == trace(PUBLISHED).stdout
    assert "request" not in json.loads(trace(outside, "--json").stdout)


def test_the_page_names_the_request(tmp_path):
    page, driven = tmp_path / "trace.html", tmp_path / "driven.html"
    hostile = said(15, 'url="/</script><script>alert(1)</script>" status=200', tid=3)
    log = NAMED + line(30, "BEGIN mapcache_handler", tid=3) + hostile + line(40, "END mapcache_handler", tid=3)
    assert trace(log, "--html", str(page)).returncode == 0
    text = page.read_text()
    assert text.count("<script") == 2
    look = """<script>addEventListener('load', () => {
      const seen = [...document.querySelectorAll('#list button')].map(row => {
        row.click();
        const field = name => (document.querySelector(`#detail dd[data-field="${name}"]`) || {}).textContent;
        return [row.querySelector('.url').textContent, document.querySelector('#heading .url').textContent, field('Status') || '', field('Tile') || ''];
      });
      const result = document.createElement('pre');
      result.id = 'seen', result.textContent = JSON.stringify(seen);
      document.body.replaceChildren(result);
    });</script></body>"""
    driven.write_text(text.replace("</body>", look))
    dom = browse(driven, "--dump-dom", "--virtual-time-budget=4000", profile=tmp_path / "profile").stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
    assert found, dom[-2000:]
    seen = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    url = '/mc/a b?x="1"'
    assert sorted(seen) == sorted([["404 " + url, url, "404", "g/3/1/2"], [url, url, "", ""],
                                   ["200 /</script><script>alert(1)</script>", "/</script><script>alert(1)</script>", "200", ""]])


def test_clients_cannot_write_events():
    forged = ("[Wed Jan 15 12:17:50.503563 2020] [core:error] [pid 1:tid 2] [client 1.2.3.4:5] File does not exist: "
              "/x[client y] MOCKUP BEGIN mapcache_handler\n")
    assert trace(forged).stdout == ""


def test_stray_events_are_told_and_left_out():
    result = trace(line(0, "END mapcache_core_get_tile") + line(1, "BEGIN something") + PUBLISHED)
    assert result.returncode == 0
    assert "left out 2 events" in result.stderr
    assert result.stdout == trace(PUBLISHED).stdout


def test_summary():
    log = ""
    for i in range(1, 101):
        start = i * 1000000
        log += (line(start, "BEGIN mapcache_handler") + line(start + 10, "BEGIN mapcache_cache_tile_get") +
                line(start + 10 + i, "END mapcache_cache_tile_get") + line(start + 10 + i + 5, "END mapcache_handler"))
    rows = trace(log, "--summary").stdout.splitlines()
    assert len({len(row) for row in rows}) == 1, "columns are aligned"
    cells = {row.split()[0]: [int(cell) for cell in row.split()[1:]] for row in rows[1:]}
    assert cells["mapcache_cache_tile_get"] == [100, 5050, 5050, 50, 95]
    assert cells["mapcache_handler"][:4] == [100, 6550, 1500, 65]


def test_memory_does_not_grow_with_the_log():
    """A million lines in well under 100 MB."""
    process = subprocess.Popen([MAPCACHE, "trace", "--summary"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    block = PUBLISHED * 5000
    for _ in range(50):
        process.stdin.write(block)
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    assert int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) < 100 * 1024
    output, _ = process.communicate(timeout=patience(60))
    assert "250000" in output


def test_wrong_use_and_missing_files():
    assert trace("", "--nonsense").returncode == 1
    assert trace("", "/nowhere/at.log").returncode == 1
    assert trace("", "--html", "/nowhere/at.html").returncode == 1


# What a visitor does, run inside the page: every span is clicked, and what the page then says is written down.
DRIVER = """
<script>
addEventListener('load', () => {
  const seen = { requests: [], errors: [] };
  for (const row of [...document.querySelectorAll('#list button')]) {
    row.click();
    const request = { label: row.querySelector('span').textContent, spans: [] };
    for (const index of [...document.querySelectorAll('#chart button[data-span]')].map(b => b.dataset.span)) {
      const box = document.querySelector(`#chart button[data-span="${index}"]`), before = box.getBoundingClientRect();
      box.click();
      const field = name => document.querySelector(`#detail dd[data-field="${name}"]`).textContent;
      request.spans.push({ index: +index, depth: +box.dataset.depth, duration: +box.dataset.duration, width: before.width,
        left: before.left, name: field('Span'), shown: field('Duration'), self: field('Self time'), note: field('Note') });
    }
    seen.requests.push(request);
  }
  const result = document.createElement('pre');
  result.id = 'seen', result.textContent = JSON.stringify(seen);
  document.body.replaceChildren(result);
});
</script>
"""


def browse(page, *arguments, profile):
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
               f"--user-data-dir={profile}", "--window-size=1500,900", *arguments, f"file://{page}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=patience(120))


def sample_page(tmp_path):
    log = ("".join(line(at, event) for at, event in [
        (0, "BEGIN mapcache_handler"), (1000, "BEGIN mapcache_core_get_map"), (1500, "BEGIN mapcache_assemble_maps"),
        (2000, "BEGIN mapcache_prefetch_tiles"), (5000, "END mapcache_prefetch_tiles"),
        (5200, "BEGIN mapcache_tileset_assemble_map_tiles"), (9000, "END mapcache_tileset_assemble_map_tiles EMPTY"),
        (9500, "END mapcache_assemble_maps"), (10000, "BEGIN _mapcache_imageio_jpeg_encode"),
        (14000, "END _mapcache_imageio_jpeg_encode"), (14500, "END mapcache_core_get_map"), (15000, "END mapcache_handler")])
        + line(20000, "BEGIN mapcache_handler") + line(20010, "BEGIN </script><script>alert(1)</script>")
        + line(30000, "END mapcache_handler ERROR"))
    page = tmp_path / "trace.html"
    result = trace(log, "--html", str(page))
    assert result.returncode == 0 and result.stdout == ""
    return page


def test_the_page_asks_no_other_host_and_holds_no_markup_of_the_log(tmp_path):
    text = sample_page(tmp_path).read_text()
    assert not re.search(r"https?://|src=|@import|url\(", text)
    assert text.count("<script") == 2 and "alert(1)<" not in text


def test_the_page_in_a_browser(tmp_path):
    page = sample_page(tmp_path)
    driven = tmp_path / "driven.html"
    driven.write_text(page.read_text().replace("</body>", DRIVER + "</body>"))
    dom = browse(driven, "--dump-dom", "--virtual-time-budget=4000", profile=tmp_path / "profile").stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
    assert found, dom[-2000:]
    seen = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    first, second = seen["requests"]
    assert [span["name"] for span in first["spans"]] == [
        "mapcache_handler", "mapcache_core_get_map", "mapcache_assemble_maps", "mapcache_prefetch_tiles",
        "mapcache_tileset_assemble_map_tiles", "_mapcache_imageio_jpeg_encode"]
    # Widths are to scale, and what stands on one level adds up to the handler less what it spends itself.
    handler = first["spans"][0]
    for span in first["spans"]:
        assert span["width"] == pytest.approx(handler["width"] * span["duration"] / 15000, rel=0.01)
    own = {span["name"]: span["self"] for span in first["spans"]}
    assert own == {"mapcache_handler": "1.50 ms", "mapcache_core_get_map": "1.50 ms", "mapcache_assemble_maps": "1.20 ms",
                   "mapcache_prefetch_tiles": "3.00 ms", "mapcache_tileset_assemble_map_tiles": "3.80 ms",
                   "_mapcache_imageio_jpeg_encode": "4.00 ms"}
    assert sum(float(value.split()[0]) for value in own.values()) == pytest.approx(15.0, rel=0.01)
    assert first["spans"][4]["note"] == "EMPTY" and first["spans"][0]["shown"] == "15.00 ms (100.0 %)"
    assert second["spans"][1]["shown"] == "not closed"
    assert second["spans"][1]["name"] == "</script><script>alert(1)</script>"


def test_a_large_request_stays_usable(tmp_path):
    """6,000 short spans: neighbours share boxes, which together hold every span."""
    log = [line(0, "BEGIN mapcache_handler")]
    for i in range(6000):
        log += [line(10 + i * 20, "BEGIN mapcache_cache_tile_get"), line(25 + i * 20, "END mapcache_cache_tile_get")]
    log.append(line(130000, "END mapcache_handler"))
    page = tmp_path / "large.html"
    assert trace("".join(log), "--html", str(page)).returncode == 0
    count = ("<script>addEventListener('load', () => { let n = document.querySelectorAll('#chart button[data-span]').length;"
             "document.querySelectorAll('#chart button[data-crowd]').forEach(b => n += +b.dataset.crowd);"
             "const boxes = document.querySelectorAll('#chart button').length;"
             "document.title = n + ' ' + boxes; document.body.textContent = '' });</script>")
    page.write_text(page.read_text().replace("</body>", count + "</body>"))
    dom = browse(page, "--dump-dom", "--virtual-time-budget=4000", profile=tmp_path / "profile").stdout
    spans, boxes = map(int, re.search(r"<title>(\d+) (\d+)</title>", dom).groups())
    assert spans == 6001 and boxes < 1500
