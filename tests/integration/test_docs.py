"""The documents say what the program does: the reference is the generated one, the sample shows every option and loads,
examples load. script/lint-references checks links, citations, and that each room has its pages."""

import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import Program, Web, free_port, listens, tile_path, wait_until
from patience import patience

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("*/**/*.md")]
                   if not {"build", ".git", "node_modules"} & set(p.relative_to(ROOT).parts))
SAMPLE = ROOT / "mapcache.xml.sample"
# The sample's comments mention them: older names of what it shows under today's name, what needs a file, a database or a
# server that exists, and what this build knows but does not have.
ONLY_MENTIONED = {"wmts", "xyz", "services", "merge_format", "lock_dir", "lock_retry", "hitstats", "dbname_template", "watermark",
                  "mod_tile", "extension",
                  "mapserver", "mapfile", "mapserv", "background", "processes", "layers", "subdimensions_read_only", "ogr", "postgis", "shapefile", "layer", "sqlite", "time",
                  "postgresql", "elasticsearch", "geopackage", "pmtiles", "bdb", "lmdb", "storage", "bundle", "mrf", "rok4", "cog", "MVT", "WEBP", "palette", "srs", "cube", "jobs", "none", "data", "style",
                  "style_name", "memcache", "redis", "connection", "host", "port", "socket", "user", "password", "password_file",
                  "database", "tls", "tls_name", "tls_authorities", "tls_certificate", "tls_key"}
KINDS_MENTIONED = ONLY_MENTIONED | {"tileset"}  # of which the name is also that of an element


def run(build, *arguments):
    return subprocess.run([build / "bin/mapcache", *map(str, arguments)], capture_output=True, text=True, timeout=patience(60))


@pytest.fixture(scope="module")
def reference(build):
    return run(build, "keys").stdout


def tables(reference):
    """(path of elements, type or None, names of the keys) of each table of the reference."""
    path = kind = None
    for line in reference.splitlines():
        heading = re.match(r'#+ `<?([\w/-]+)(?: type="(\w+)")?>?`$', line)
        if heading:
            path, kind = heading.group(1).split("/"), heading.group(2)
        row = re.match(r'\| (?:`(?:<([^>]+)>|(\w[^=]*)="")`|its text) \|', line)
        if row:
            yield path, kind, row.group(1), row.group(2)


def elements(tree, path, kind):
    found = list(tree.iter(path[0]))
    for name in path[1:]:
        found = [child for element in found for child in element.findall(name)]
    return [e for e in found if kind is None or e.get("type", "").lower() == kind.lower()]


def test_reference_is_the_generated_one(reference):
    assert (ROOT / "docs/configuration.md").read_text() == reference, \
        "write it again: build/release/bin/mapcache keys > docs/configuration.md"


def test_parameters_page_is_the_generated_one(build):
    assert (ROOT / "docs/parameters.md").read_text() == run(build, "parameters").stdout, \
        "write it again: build/release/bin/mapcache parameters > docs/parameters.md"


def test_parameters_page_has_every_operation(build):
    text = run(build, "parameters").stdout
    for heading in ["wms: GetMap", "wms: GetFeatureInfo", "wms: GetLegendGraphic", "wmts: GetTile", "tms: tiles",
                    "gmaps: tiles", "kml: documents", "ve: tiles", "mapguide: tiles", "jobs: the list of jobs"]:
        assert f"\n### {heading}\n" in text, heading


def test_reference_has_every_kind(reference):
    listed = list(tables(reference))
    assert len(listed) > 150
    for element, kind in [("source", "wms"), ("source", "gdal"), ("cache", "sqlite3"), ("cache", "disk"),
                          ("service", "wms"), ("dimension", "regex"), ("format", "PNG")]:
        assert any(path == [element] and of == kind for path, of, _, _ in listed), (element, kind)


def test_sample_loads_without_complaint(build):
    """But for its rasters, which nobody has."""
    checked = run(build, "check", SAMPLE)
    complaints = [line for line in checked.stdout.splitlines() if "the raster cannot be opened: /data/" not in line]
    assert len(complaints) == 1 and "errors: 2, not built: 0, warnings: 0" in complaints[0], checked.stdout + checked.stderr


def test_sample_shows_every_option(reference):
    """Every kind of every element, and every element and attribute under some element of that name."""
    text = SAMPLE.read_text()
    tree = ElementTree.fromstring(text)
    mentioned = set(re.findall(r"[\w-]+", " ".join(re.findall(r"<!--.*?-->", text, re.S))))
    missing = set()
    for path, kind, child, attribute in tables(reference):
        hidden = [name for name in path if name in ONLY_MENTIONED]
        if hidden:
            missing.update({path[-1], child or attribute or path[-1]} - mentioned)
            continue
        if not elements(tree, path[:1], kind) and kind not in KINDS_MENTIONED & mentioned:
            missing.add(f"a {kind} {path[0]}")
        shown = elements(tree, path, None)
        if child is not None and any(e.find(child) is not None for e in shown):
            continue
        if attribute is not None and any(attribute in e.attrib for e in shown):
            continue
        name = child or attribute
        if name is None and shown or name in mentioned and (name in ONLY_MENTIONED or kind in KINDS_MENTIONED):
            continue
        missing.add(f"{name} of {'/'.join(path)}")
    assert not missing, "\n".join(sorted(missing))


def snippets():
    for document in DOCUMENTS:
        indented = re.findall(r"(?:^    .*\n|^\s*\n)+", document.read_text(), re.M)
        for number, block in enumerate(indented):
            match = re.search(r"<mapcache>.*</mapcache>", block, re.S)
            if match:
                yield pytest.param(match.group(0), id=f"{document.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize("text", snippets())
def test_configurations_in_documents_load(build, folder, text):
    file = folder / "mapcache.xml"
    file.write_text(text)
    for name in re.findall(r"<style>([^/<]+)</style>", text):  # styles beside the configuration
        (folder / name).write_text('<FeatureTypeStyle xmlns="http://www.opengis.net/sld"><Rule/></FeatureTypeStyle>')
    checked = run(build, "check", file)
    complaints = [line for line in checked.stdout.splitlines() if not re.search(r": (errors|databases): \d|: note: ", line)]
    rasters = [line for line in complaints if "the raster cannot be opened: /data/" in line]  # nobody has them
    others = [line for line in complaints if line not in rasters and not re.search(r'there is no (file "/srv/|/srv/|\S+/[^/ ]+\.shp)', line)]
    waiting = [line for line in complaints if "answers 503 until its data are there" in line]  # short forms of /srv
    others = [line for line in others if line not in waiting]
    assert not others and f"errors: {len(rasters)}, not built: {len(waiting)}" in checked.stdout, checked.stdout + checked.stderr


def test_the_readme_has_a_configuration():
    assert any("README.md" in parameter.id for parameter in snippets())


def test_figures_of_the_readme_were_measured():
    """Each number of "Why this one" stands in the page of benchmarks, and the ratios are those of the two beside them."""
    part = re.search(r"## Why this one\n.*?(?=^## )", (ROOT / "README.md").read_text(), re.M | re.S).group(0)
    measured = (ROOT / "benchmarks/README.md").read_text()
    ratios = {"**3.4 times**": 3.4, "**4 times**": 4, "**One sixth**": 1 / 6}
    for line in part.splitlines():
        for number in re.findall(r"\d+(?:[,.]\d+)+", line.replace("3.4 times", "")):
            assert re.search(rf"(?<![\d,.]){re.escape(number)}(?![\d])", measured), number
        for said, ratio in ratios.items():
            if said in line:
                ours, theirs = (float(text.replace(",", "")) for text in re.findall(r"(\d[\d,.]*\d)(?= (?:a|ms|instead)|\D*$)", line.split(":", 1)[1])[:2])
                assert abs(ours / theirs / ratio - 1) < 0.08, line
    assert all(said in part for said in ratios)


def test_every_folder_says_what_it_is():
    folders = [ROOT / name for name in ("lib", "include/mapcache", "apache", "cgi", "cli", "tests", "tests/unit",
                                        "tests/integration", "tests/fuzz", "script", "benchmarks", "docs", "demo")]
    for place in folders:
        page = place / "README.md"
        assert page.exists(), f"{page.relative_to(ROOT)} is missing"
        if place.name not in ("benchmarks", "docs"):
            assert len(page.read_text().splitlines()) <= 15, f"{page.relative_to(ROOT)} is longer than 15 lines"


BROKEN_PAGE = """# Page

## 1 First

| # | what |
|---|---|
| 1 | a row |

[a file](absent.md), [a heading](page.md#second), [a section](page.md) 2, [all right](page.md) 1 and `lib/absent.c`;
[another](page.md#1-first).
"""
BROKEN_SOURCE = """/* docs/page.md 1, docs/page.md
 * 7 and docs/page.md 1 row 1, docs/page.md 1 row 2; spec 4.3; mc_absent, mc_there; room.c, absent.h; LIMITS.md. */
int mc_there;
"""


def test_lint_of_references_names_each_that_leads_nowhere(folder):
    for name, text in {"docs/page.md": BROKEN_PAGE, "lib/room/room.c": BROKEN_SOURCE,
                       "lib/rooms.txt": "room | | what it is\nother | | what it is\n", "lib/room/README.md": "# lib/room\n",
                       "docs/architecture.md": "     lib/room  what it is\n", "docs/internals/README.md": "`room`\n",
                       "docs/internals/room.md": "line\n" * 81}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    lint = subprocess.run([ROOT / "script/lint-references", folder], capture_output=True, text=True, timeout=60)
    page, source = "docs/page.md:9: ", "lib/room/room.c:2: "
    assert lint.returncode == 1
    assert sorted(lint.stdout.splitlines()) == sorted([
        page + "the link absent.md leads nowhere",
        page + "the link page.md#second names a heading that is not there",
        page + "docs/page.md has no section 2",
        page + "there is no file lib/absent.c",
        "lib/room/room.c:1: docs/page.md has no section 7",
        source + "docs/page.md 1 has no row 2",
        source + '"spec 4.3" is not in the tree: cite docs/reference',
        source + "there is no mc_absent",
        source + "there is no file absent.h",
        source + "there is no page LIMITS.md",
        "lib/other has no README.md",
        "docs/internals/README.md does not name the room other",
        "docs/architecture.md does not draw lib/other",
        "docs/internals/room.md: 81 lines, a page of design has at most 80",
    ]), lint.stdout + lint.stderr


def readme_block(start):
    """The indented block of README.md that begins with a line of that text."""
    match = re.search(rf"(?:^    .*\n|^\s*\n)*?^    {re.escape(start)}.*\n(?:    .*\n|\s*\n(?=    ))*", (ROOT / "README.md").read_text(),
                      re.M)
    return match.group(0)


def test_nginx_of_the_readme(fcgi, site, folder):
    port, address = free_port(), fcgi().address
    block = readme_block("upstream mapcache")
    block = block[block.index("upstream"):]
    assert "/run/mapcache/mapcache.sock" in block
    block = block.replace("/run/mapcache/mapcache.sock", address).replace("server {\n", f"server {{ listen 127.0.0.1:{port};\n", 1)
    block = block.replace("include fastcgi_params", "include /etc/nginx/fastcgi_params")
    config = folder / "nginx.conf"
    config.write_text(f"""daemon off; user www-data; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ }}
http {{ access_log off; client_body_temp_path {folder}/a; fastcgi_temp_path {folder}/b; proxy_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
{block}
}}
""")
    program = Program(["nginx", "-p", folder, "-c", config], folder / "nginx.out")
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "nginx starts")
        web = Web(program, port, folder / "nginx.log")
        assert web.get("/mapcache" + tile_path(1, 0, 1)).body == site.tile(1, 0, 1), web.log()
        assert web.get("/mapcache?SERVICE=WMS&REQUEST=GetCapabilities").status == 200
        assert f"http://127.0.0.1:{port}/mapcache" in web.get("/mapcache/wmts/1.0.0/WMTSCapabilities.xml").body.decode()
    finally:
        program.stop()


def test_apache_of_the_readme(apache, site):
    lines = re.findall(r"^    (MapCacheAlias .*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(lines) == 2
    web = apache("\n".join(lines).replace("/etc/mapcache/mapcache.xml", str(site.config)))
    for alias in ("/mapcache", "/tiles"):
        assert web.get(alias + tile_path(1, 1, 0)).body == site.tile(1, 1, 0), web.log()


def commands_in_documents():
    """(document, command, options) of `mapcache COMMAND ...` in blocks and between backticks; without what follows a #."""
    for document in DOCUMENTS:
        text = document.read_text()
        indent = "" if document.parent.name == "tutorial" else "    "
        blocks = re.findall(rf"^{indent}(?:\S*/)?(mapcache [a-z].*)$", text, re.M) + re.findall(r"`(?:\S*/)?(mapcache [a-z][^`]*)`", text)
        for line in blocks:
            words = re.split(r"  +#|[|;<>&(]|`", line)[0].split()
            name = words[1] if words[1] not in ("jobs", "cube", "overviews") or len(words) < 3 or not words[2].isalpha() else " ".join(words[1:3])
            yield document, name, [word.split("=")[0].strip("[].,:") for word in words[2:] if re.match(r"\[?-\D", word)]


def test_commands_of_documents_have_the_options_that_documents_name(build):
    helps, wrong, seen = {}, [], 0
    for document, name, options in commands_in_documents():
        if name not in helps:
            done = run(build, *name.split(), "--help")
            helps[name] = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", done.stdout)) if done.returncode == 0 else None
        if helps[name] is None:
            wrong.append(f"{document.relative_to(ROOT)}: there is no command {name}")
            continue
        wrong += [f"{document.relative_to(ROOT)}: mapcache {name} has no {option}" for option in options if option not in helps[name]]
        seen += len(options)
    assert not wrong, "\n".join(wrong)
    assert len(helps) > 20 and seen > 200


def test_the_index_of_documents_has_every_page():
    """docs/README.md has each page of docs, and each folder's own index the pages of that folder."""
    for index in [ROOT / "docs/README.md", ROOT / "docs/tutorial/README.md", ROOT / "docs/reference/README.md"]:
        linked = set(re.findall(r"\]\(([^)#]+)[)#]", index.read_text()))
        missing = {page.name for page in index.parent.glob("*.md")} - linked - {"README.md"}
        folders = {f"{page.parent.name}/README.md" for page in index.parent.glob("*/README.md")} | {
            path.name for path in index.parent.iterdir() if path.suffix == ".json"}
        assert not missing and folders <= linked, (index, missing, folders - linked)


def test_documents_name_options_that_exist(build):
    """Elements in the documents for administrators are in the reference; metrics, health and the like would be lies."""
    reference = (ROOT / "docs/configuration.md").read_text()
    allowed = {"off", "mapcache", "target"}
    unknown = set()
    for name in ("README.md", "docs/operations.md", "docs/migration.md", "docs/architecture.md"):
        for element in re.findall(r"`<([a-z_-]+)>", (ROOT / name).read_text()):
            if f"<{element}>" not in reference and f"<{element} " not in reference and element not in allowed:
                unknown.add(f"{name}: <{element}>")
    assert not unknown, "\n".join(sorted(unknown))


def test_the_page_of_commands_is_the_generated_one(build):
    """docs/commands.md is what `mapcache help --markdown` prints."""
    assert (ROOT / "docs/commands.md").read_text() == run(build, "help", "--markdown").stdout
