"""The command line: help, manual pages, completion and documents come from the same tables, and say what is wrong."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

BUILD = ROOT / os.environ.get("MAPCACHE_BUILD", "build/release")
PROGRAM = BUILD / "bin/mapcache"
COMMANDS = {"adopt": "adopt.md", "check": "operations.md", "compact": "operations.md", "copy": "seeding.md", "cube ingest": "datacube.md", "cube dates": "datacube.md",
            "cube overviews": "datacube.md", "detail": "operations.md", "doctor": "doctor.md", "purge": "seeding.md", "index": "drawing.md", "ingest": "ingest.md", "invalidate": "changes.md",
            **{f"jobs {name}": "jobs.md" for name in ("enqueue", "work", "list", "show", "watch", "cancel", "pause", "resume", "retry", "prune")},
            "overviews build": "overviews.md", "overviews update": "overviews.md", "overviews list": "overviews.md", "overviews drop": "overviews.md", "keys": "configuration.md",
            "parameters": "parameters.md", "seed": "seeding.md", "serve": "serve.md", "trace": "operations.md", "urls": "urls.md", "help": None, "version": None}


def run(*words, **options):
    return subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, text=True, timeout=60, **options)


def options_of(command):
    """Letter (or "") and name of each option that the help of a command lists."""
    shown = run(*command.split(), "--help")
    assert shown.returncode == 0 and shown.stdout.startswith(f"usage: mapcache {command}") and shown.stderr == ""
    found = re.findall(r"^  (?:-(\w),|   ) --([\w-]+)", shown.stdout, re.M)
    assert ("h", "help") in found
    return found


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    assert run("help", "--man", folder).returncode == 0
    return folder


def complete(*words):
    """What bash offers for the last word."""
    script = f"""source <({PROGRAM} help --completion bash)
COMP_WORDS=({' '.join(f'"{word}"' for word in words)}); COMP_CWORD={len(words) - 1}
_mapcache; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT / "docs")
    assert done.stderr == ""
    return set(done.stdout.split())


def test_the_list_has_every_command():
    listed = re.findall(r"^  (\w+) +\S", run("help").stdout, re.M)
    assert sorted(listed) == sorted({name.split()[0] for name in COMMANDS})
    for group in ("cube", "jobs", "overviews"):
        assert sorted(re.findall(r"^  (\w+) +\S", run(group, "--help").stdout, re.M)) == sorted(
            name.split()[1] for name in COMMANDS if name.startswith(group + " "))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_manual_and_the_completion(manual, command):
    page = (manual / f"mapcache-{command.split()[0]}.1").read_text().replace("\\", "")
    completed = complete("mapcache", *command.split(), "--")
    options = options_of(command)
    assert completed == {f"--{name}" for _, name in options}
    for letter, name in options:
        assert re.search(rf"^{f'fB-{letter}fR, ' if letter else ''}fB--{name}fR", page, re.M), name
    assert run("help", *command.split()).stdout == run(*command.split(), "--help").stdout


def test_every_option_is_in_the_documents():
    text = (ROOT / "docs/commands.md").read_text()
    for command in COMMANDS:
        part = text.split(f"# mapcache {command}\n")[1].split("\n## mapcache ")[0].split("\n### mapcache ")[0]
        for letter, name in options_of(command):
            assert f"| `{f'-{letter}, ' if letter else ''}--{name}" in part, (command, name)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_and_how_it_ends(manual, command):
    """In the help and in the manual page: sentences between the usage and the options, and every exit status."""
    shown = run(*command.split(), "--help").stdout
    about = re.search(r"\Ausage: [^\n]*\n\n([A-Z].*?\.)\n\n[A-Z][\w ]*:\n  ", shown, re.S)
    statuses = re.search(r"\nExit status:\n((?:  \d \S.*\n)+)\nSee also:\n  mapcache\(1\) .*\n\Z", shown)
    assert about and statuses, shown
    page = (manual / f"mapcache-{command.split()[0]}.1").read_text().replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`")
    if " " in command:
        page = page.split(f'.SH "MAPCACHE {command.upper()}"\n')[1].split("\n.SH ")[0]
    for part in (*about[1].split("\n"), *re.findall(r"  \d (.*)\n", statuses[1])):
        assert part in page, part
    assert ".SH DESCRIPTION\n" in page or " " in command
    assert re.search(r'^\.S[HS] "EXIT STATUS"$', page, re.M)


@pytest.mark.parametrize("name,other", [("mapcache_seed", "seed"), ("mapcache_detail", "detail")])
def test_the_names_of_mapcache_have_the_help_and_the_page_of_their_command(manual, name, other):
    shown = subprocess.run([PROGRAM.with_name(name), "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown.startswith(f"usage: {name} ") and "--color" not in shown
    page = (manual / f"mapcache-{other}.1").read_text()
    assert f"The program {name} " in page.split('.SH "NAME OF MAPCACHE"\n')[1]
    text = (manual / f"{name}.1").read_text().replace("\\", "")
    for letter, option in re.findall(r"^  (?:-(\w),|   ) --([\w-]+)", shown, re.M):
        assert re.search(rf"^{f'fB-{letter}fR, ' if letter else ''}fB--{option}fR", text, re.M), option


def test_manual_pages_render_without_warnings(manual):
    pages = sorted(manual.glob("*.1"))
    assert {page.name for page in pages} >= {"mapcache.1", "mapcache-seed.1", "mapcache-jobs.1"}
    macros = re.compile(r"\.(TH|SH|SS|TP|PP|B|I|BR|br)( |$)")
    for page in pages:
        assert [line for line in page.read_text().splitlines() if line.startswith((".", "'")) and not macros.match(line)] == [], page
        if not shutil.which("groff"):  # the macros are all that can be known without
            continue
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == "", page
        assert "mapcache" in done.stdout


def test_completion_of_commands_values_and_files():
    assert complete("mapcache", "s") == {"seed", "serve"} and complete("mapcache", "see") == {"seed"}
    assert {"enqueue", "work", "prune"} <= complete("mapcache", "jobs", "")
    assert complete("mapcache", "seed", "-m", "") >= {"seed", "delete", "transfer"}
    assert complete("mapcache", "ingest", "--resample", "n") == {"nearest"}
    assert "--retry-failed" in complete("mapcache_seed", "--r") and "--grid" in complete("mapcache_detail", "--")
    assert complete("mapcache", "seed", "-c", "operat") == {"operations.md"}


@pytest.mark.parametrize("words,message", [
    (["sed"], 'there is no command "sed": did you mean "seed"?'), (["jobs", "wrok"], 'there is no command "wrok": did you mean "work"?'),
    (["seed", "--tilest", "x"], '"--tilest" is no option: did you mean "--tileset"?'), (["ingest", "-k"], '"-k" is no option'),
    (["detail", "--zoom"], '"--zoom" lacks its value: --zoom MIN[,MAX]'), (["compact", "--quiet=1"], "--quiet takes no value"),
    (["seed", "-c", "x"], "the option --tileset is required"), (["keys", "more"], '"more" is no option'),
    (["seed", "-qz", "5,3"], '--zoom cannot be "5,3"'), (["check"], "FILE"), (["check", "a", "b"], "FILE"), (["index"], "FILE.shp"),
    (["check", "--processes", "0", "x"], '--processes cannot be "0"'), (["trace", "--summary", "--html", "x"], "--summary and --html"),
    (["cube", "dates", "-c", "x", "--cube", "y", "image.png"], "only ingest takes images"),
    (["seed", "-c", "x", "-t", "y", "-n", "2", "-p", "2"], "threads (-n) or processes (-p)"),
])
def test_mistakes_are_named(words, message):
    done = run(*words)
    assert done.returncode == 1 and done.stdout == "" and message in done.stderr, done.stderr
    assert done.stderr.startswith("mapcache")


@pytest.mark.parametrize("words,line,hint", [
    (["sed"], 'mapcache: there is no command "sed": did you mean "seed"?', "`mapcache --help` lists the commands."),
    (["qqqqqqqq"], 'mapcache: there is no command "qqqqqqqq"', "`mapcache --help` lists the commands."),
    (["jobs", "wrok"], 'mapcache jobs: there is no command "wrok": did you mean "work"?', "`mapcache jobs --help` lists the commands."),
    (["help", "sede"], 'mapcache help: there is no command "sede": did you mean "seed"?', "`mapcache help` lists the commands."),
    (["help", "nosuch"], 'mapcache help: there is no command "nosuch"', "`mapcache help` lists the commands."),
])
def test_what_may_be_meant_is_not_buried_below_a_list(words, line, hint):
    assert run(*words).stderr.splitlines() == [line, hint]


def test_commands_are_listed_by_topic_with_serve_first():
    """In the help, in the manual page and in the documents in the same order."""
    shown = run("--help").stdout
    topics = re.findall(r"(?m)^([A-Z][\w ]+):\n((?:  \w.*\n)+)", shown)
    names = [name for _, lines in topics for name in re.findall(r"(?m)^  (\w+)", lines)]
    assert len(topics) >= 4 and names[0] == "serve" and len(names) == len(set(names)) >= 15
    assert all(1 < len(lines.splitlines()) < 7 for _, lines in topics)
    table = (ROOT / "docs/commands.md").read_text().split("| command | |")[1].split("\n## ")[0]
    assert re.findall(r"(?m)^\| \*\*(.*?)\*\* \|", table) == [topic for topic, _ in topics]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == names


def test_letters_and_values_are_written_in_every_usual_way(tmp_path):
    """--name=VALUE, --name VALUE, -lVALUE, -l VALUE, letters together; behind -- all are arguments."""
    for words in (["--config=none.xml", "-qtworld"], ["-qv", "-c", "none.xml", "--tileset", "world"], ["-t=x", "-cnone.xml"]):
        done = run("seed", *words, cwd=tmp_path)
        assert done.returncode == 1 and "none.xml" in done.stderr, done.stderr
    assert "--json" in run("check", "--", "--json", cwd=tmp_path).stdout


def test_pages_that_cannot_be_written(tmp_path):
    done = run("help", "--man", tmp_path / "nowhere")
    assert done.returncode == 1 and "cannot be written" in done.stderr


def test_quiet_says_only_what_fails(tmp_path):
    (tmp_path / "bad.xml").write_text("<mapcache><nonsense/><tileset name='a'/></mapcache>")
    (tmp_path / "warned.xml").write_text("<mapcache><log_level>loud</log_level><service type='wms' enabled='true'/></mapcache>")
    bad = run("check", "-q", tmp_path / "bad.xml")
    assert bad.returncode == 1 and bad.stdout == "" and "error: " in bad.stderr and str(tmp_path / "bad.xml") in bad.stderr
    warned = run("check", tmp_path / "warned.xml")
    silent = run("check", "-q", tmp_path / "warned.xml")
    assert silent.returncode == warned.returncode and (warned.returncode == 1 or silent.stderr == "") and silent.stdout == ""
    for words in (["version"], ["keys"], ["parameters"], ["help"], ["help", "seed"]):
        assert run(*words).stdout
        done = run(*words, "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words


def test_json_of_tables():
    """`keys --json` has a row for each element or attribute of the page, `parameters --json` for each parameter."""
    for command, page in (("keys", "configuration.md"), ("parameters", "parameters.md"), ("urls", "urls.md")):
        rows = [json.loads(line) for line in run(command, "--json").stdout.splitlines()]
        text = (ROOT / "docs" / page).read_text()
        assert len(rows) == len(re.findall(r"^\| `|^\| its text", text, re.M)) > 50
        assert all({"heading", "meaning", "answer" if command == "urls" else "default"} <= set(row) for row in rows)
    assert json.loads(run("version", "--json").stdout)["version"] == run("version").stdout.split()[1]


@pytest.mark.parametrize("words", [["seed", "--help"], ["help"], ["help", "jobs"], ["jobs", "--help"]])
def test_colors_only_where_they_are_wanted(words):
    plain = run(*words)
    assert "\033" not in plain.stdout
    colored = run(*words, "--color=always")
    assert re.sub(r"\033\[[\d;]*m", "", colored.stdout) == plain.stdout and "\033[1m" in colored.stdout
    assert run(*words, "--color", "never").stdout == plain.stdout
    assert "auto|always|never" in run("help", "--color=blue").stderr or "--color cannot be" in run("help", "--color=blue").stderr


REFUSED_TYPES = {
    '<service type="xyz" enabled="true"/>': 'did you mean "gmaps"?', '<service type="wmtx" enabled="true"/>': 'did you mean "wmts"?',
    '<service enabled="true"/>': "types are tms, wmts", '<cache name="a" type="sqlite"/>': 'did you mean "sqlite3"?',
    '<cache name="a" type="files"/>': 'did you mean "disk"?', '<cache name="a" type="couchbase"/>': "it has disk, sqlite3",
    '<source name="a" type="geotiff"/>': 'did you mean "gdal"?', '<source name="a" type="nonsense"/>': "it is one of wms, wmts, xyz, tileset, mapserver, gdal",
    '<format name="a" type="JPG"/>': 'did you mean "JPEG"?', '<format name="a" type="AVIF"/>': "it is one of PNG, JPEG, WEBP, MIXED, RAW, MVT",
    '<locker type="file"/>': "is not one of disk, memcache, fallback, redis, postgresql", '<cube name="a" type="zarr"/>': "it is one of postgresql, sqlite3",
    '<tileset name="a"><source>none</source><cache>none</cache><grid>GoogleMaps</grid></tileset>': "there is GoogleMapsCompatible, WGS84, g",
    '<tileset name="a"><source>on</source><cache>stor</cache><grid>GoogleMapsCompatibel</grid><format>PNG9</format></tileset>':
        'did you mean "GoogleMapsCompatible"?|did you mean "one"?|did you mean "PNG"?',
    '<tileset name="a"><cache>store</cache><grid>g</grid><dimensions><dimension type="timerange" name="x" default="1"/></dimensions></tileset>': "it is one of values, regex",
    '<metatil>4 4</metatil>': "metatil", '<tileset name="a"><metatil>4 4</metatil></tileset>': 'metatile',
}


@pytest.mark.parametrize("part", REFUSED_TYPES)
def test_what_is_refused_says_what_there_is(tmp_path, part):
    (tmp_path / "mapcache.xml").write_text(f'<mapcache><source name="one" type="dummy"/>'
                                           f'<cache name="store" type="disk"><base>/nowhere</base></cache>{part}</mapcache>')
    said = run("check", tmp_path / "mapcache.xml").stdout
    for words in REFUSED_TYPES[part].split("|"):
        assert words in said, said


def test_names_on_the_command_line_are_suggested(tmp_path):
    (tmp_path / "mapcache.xml").write_text('<mapcache><source name="any" type="dummy"/><cache name="store" type="disk"><base>/nowhere</base></cache>'
                                           '<tileset name="world"><source>any</source><cache>store</cache><grid>WGS84</grid><format>PNG</format></tileset></mapcache>')
    config = tmp_path / "mapcache.xml"
    assert 'did you mean "world"?' in run("seed", "-c", config, "-t", "word").stderr
    assert 'did you mean "WGS84"?' in run("seed", "-c", config, "-t", "world", "-g", "WGS48").stderr
    assert 'did you mean "store"?' in run("compact", "-c", config, "-C", "stor").stderr
    assert 'did you mean "jobs work"?' in run("help", "jobs", "wrok").stderr
