"""docs/compatibility.md: what each word of MapCache's vocabulary comes to is found out anew."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"


def test_the_page_is_what_the_programs_say(build):
    done = subprocess.run([ROOT / "script" / "compatibility", build, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rows():
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            yield [part.strip() for part in line.strip("|").split(" | ")]


def test_little_is_not_in_this_build():
    """Besides what no MapCache of today has: TIFF files behind HTTP."""
    lacking = {row[0] for row in rows() if row[1] == "not in this build"}
    assert lacking <= {'`type="riak"`', '`type="couchbase"`', '`type="tokyocabinet"`', '`storage type="rest"`', '`storage type="google"`'}
    assert not [row for row in rows() if row[1] == "lacking"] and len(list(rows())) > 250


def test_named_tests_are_there():
    names = {path.name for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".c")}
    for row in rows():
        for name in row[-1].strip(" |").split(", "):
            assert not name.endswith((".py", ".c")) or name in names, row
