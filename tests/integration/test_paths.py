"""Relative paths: our own keys are seen from the file that names them, MapCache's from the working directory."""
import os
import shutil
import subprocess

import pytest
from conftest import temporary_folder
from studio import Studio, rule, style


@pytest.fixture
def studio(build, modules_environment):
    with temporary_folder() as folder:
        yield Studio(folder, build, modules_environment)


POINT = style(rule('<se:PointSymbolizer><se:Graphic><se:ExternalGraphic><se:OnlineResource xlink:href="icons/a.svg"/>'
                   "<se:Format>image/svg+xml</se:Format></se:ExternalGraphic><se:Size>20</se:Size></se:Graphic></se:PointSymbolizer>"))
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10" fill="#ff0000"/></svg>'


def relative(studio, base=None):
    """The studio's configuration with relative paths, in a folder of its own beside style and data."""
    studio.shapes([("POINT(50 50)", {"n": 1})]).write(POINT)
    (studio.folder / "styles/icons").mkdir(exist_ok=True)
    (studio.folder / "styles/icons/a.svg").write_text(SVG)
    text = (studio.folder / "map.xml").read_text()
    text = text.replace(f"<data>{studio.folder}/data.shp", "<data>../data.shp").replace(f"<style>{studio.folder}/styles", "<style>../styles")
    if base is not None:
        text = text.replace(f"<base>{studio.folder}/cache", f"<base>{base}")
    (studio.folder / "site").mkdir(exist_ok=True)
    (studio.folder / "site/map.xml").write_text(text)
    shutil.copy(studio.folder / "site/map.xml", studio.folder / "map.xml")
    (studio.folder / "map.xml").unlink()
    os.symlink("site/map.xml", studio.folder / "map.xml")


def check(studio, path, folder):
    run = subprocess.run([studio.build / "bin" / "mapcache", "check", path], capture_output=True, text=True, cwd=folder,
                         env={**os.environ, **studio.environment})
    return run.returncode, run.stdout + run.stderr


def test_styles_data_and_graphics_are_seen_from_their_files(studio):
    relative(studio)
    (studio.folder / "map.xml").unlink()
    for folder in ("/", studio.folder, studio.folder / "site"):
        code, said = check(studio, studio.folder / "site/map.xml", folder)
        assert code == 0, said
    code, said = check(studio, "map.xml", studio.folder / "site")
    assert code == 0, said
    code, said = check(studio, "site/map.xml", studio.folder)
    assert code == 0, said


def test_a_server_that_is_started_elsewhere_draws_them(studio):
    relative(studio)
    (studio.folder / "map.xml").unlink()
    shutil.move(studio.folder / "site/map.xml", studio.folder / "map.xml")
    (studio.folder / "map.xml").write_text((studio.folder / "map.xml").read_text().replace("../", ""))
    for folder in ("/", studio.folder / "styles"):
        assert tuple(studio.draw(None, 100, 100, folder=folder)[50, 50]) == (255, 0, 0, 255)


def test_relative_paths_of_mapcaches_keys_are_warned_of(studio):
    relative(studio, "tiles")
    code, said = check(studio, studio.folder / "site/map.xml", studio.folder)
    assert code == 2 and 'the path "tiles" depends on the folder in which a program is started' in said, said
    assert said.count("depends on the folder") == 1, said


@pytest.mark.parametrize("text, relative_path", [("a.tif", True), ("rasters/a.vrt", True), ("/srv/a.tif", False),
                                                 ("PG:dbname=gis table=dem", False), ("/vsicurl/https://a.example/b.tif", False),
                                                 ("NETCDF:a.nc:t", False), ("&lt;GDAL_WMS/&gt;", False)])
def test_strings_of_gdal_are_no_paths(studio, text, relative_path):
    (studio.folder / "map.xml").write_text(f"""<mapcache><cache name="disk" type="disk"><base>{studio.folder}/cache</base></cache>
      <source name="a" type="gdal"><data>{text}</data></source>
      <tileset name="a"><source>a</source><cache>disk</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>
      <service type="wmts" enabled="true"/></mapcache>""")
    said = check(studio, studio.folder / "map.xml", "/")[1]
    assert ("depends on the folder" in said) == relative_path, said
