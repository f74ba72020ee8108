"""Files of folders and of short forms that are not what their endings say: they name no other files and addresses, and nobody waits for them."""
import os
import socket

import pytest
from fastcgi import Server
from osgeo import gdal
from test_short_forms import check, photo, squares, tile_at

gdal.UseExceptions()
AT = tile_at(7.4515, 46.9605, 15)
BOX = (2600000, 1200000, 2602000, 1202000)
WEST = (2590000, 1200000, 2592000, 1202000)


def vrt_of(secret):
    """A raster of the bytes of a file."""
    return f"""<VRTDataset rasterXSize="32" rasterYSize="32"><SRS>EPSG:2056</SRS><GeoTransform>{BOX[0]},62.5,0,{BOX[3]},0,-62.5</GeoTransform>
<Metadata><MDI key="INTERNAL_MASK_FLAGS_1">2</MDI></Metadata><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">
<SourceFilename relativeToVRT="0">{secret}</SourceFilename><ImageOffset>0</ImageOffset><PixelOffset>1</PixelOffset><LineOffset>32</LineOffset></VRTRasterBand></VRTDataset>"""


def wms_of(port):
    return f"""<GDAL_WMS><Service name="TMS"><ServerUrl>http://127.0.0.1:{port}/${{z}}/${{x}}/${{y}}.png</ServerUrl></Service><DataWindow><UpperLeftX>{BOX[0]}</UpperLeftX>
<UpperLeftY>{BOX[3]}</UpperLeftY><LowerRightX>{BOX[2]}</LowerRightX><LowerRightY>{BOX[1]}</LowerRightY><TileLevel>1</TileLevel></DataWindow>
<Projection>EPSG:2056</Projection><BandsCount>3</BandsCount></GDAL_WMS>"""


@pytest.fixture
def inside():
    """A port on which nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def assert_nobody_called(inside):
    with pytest.raises(TimeoutError):
        inside.accept()


@pytest.fixture
def things(folder):
    (folder / "secret.txt").write_text("TOPSECRET!" * 200)
    (folder / "things").mkdir()
    photo(folder / "things" / "good.tif", WEST)
    return folder / "things"


def serve(build, folder, elements):
    config = folder / "mapcache.xml"
    config.write_text(f"<mapcache>\n{elements}\n</mapcache>\n")
    return config, Server(build, config, folder)


def plant_vrt(things, inside):
    (things / "bad.tif").write_text(vrt_of(things.parent / "secret.txt"))


def plant_wms(things, inside):
    (things / "bad.tif").write_text(wms_of(inside.getsockname()[1]))


def plant_jp2(things, inside):
    (things / "bad.jp2").write_text(vrt_of(things.parent / "secret.txt"))


def plant_geojson(things, inside):
    (things / "bad.geojson").write_text(vrt_of(things.parent / "secret.txt"))


def plant_ogr_vrt(things, inside):
    squares(things.parent / "hidden.shp")
    (things / "bad.geojson").write_text(f'<OGRVRTDataSource><OGRVRTLayer name="hidden"><SrcDataSource>{things.parent}/hidden.shp</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>')


def plant_wfs(things, inside):
    (things / "bad.geojson").write_text(f"<OGRWFSDataSource><URL>http://127.0.0.1:{inside.getsockname()[1]}/wfs</URL></OGRWFSDataSource>")


def plant_overviews(things, inside):
    photo(things / "bad.tif", size=64)
    (things / "bad.tif.ovr").write_text(vrt_of(things.parent / "secret.txt"))


def plant_mask(things, inside):
    photo(things / "bad.tif", size=32)
    (things / "bad.tif.msk").write_text(vrt_of(things.parent / "secret.txt"))


def plant_named_overviews(things, inside):
    photo(things / "bad.tif", size=64)
    raster = gdal.Open(str(things / "bad.tif"), gdal.GA_Update)
    raster.SetMetadataItem("OVERVIEW_FILE", vrt_of(things.parent / "secret.txt"), "OVERVIEWS")
    raster = None


def plant_named_overviews_beside(things, inside):
    photo(things / "bad.tif", size=64)
    (things / "bad.tif.aux.xml").write_text('<PAMDataset><Metadata domain="OVERVIEWS"><MDI key="OVERVIEW_FILE">../secret.vrt</MDI></Metadata></PAMDataset>')


def plant_overviews_of_overviews(things, inside):
    photo(things / "bad.tif", size=64)
    photo(things / "bad.tif.ovr", size=32)
    (things / "bad.tif.ovr.ovr").write_text(vrt_of(things.parent / "secret.txt"))


def plant_named_vrt(things, inside):
    (things / "bad.vrt").write_text(vrt_of(things.parent / "secret.txt"))


PLANTED = [plant_vrt, plant_wms, plant_jp2, plant_geojson, plant_ogr_vrt, plant_wfs, plant_overviews, plant_mask, plant_named_overviews,
           plant_named_overviews_beside, plant_overviews_of_overviews, plant_named_vrt]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_file_of_a_folder_is_what_its_ending_says(build, folder, things, inside, plant):
    plant(things, inside)
    config, server = serve(build, folder, f"<tileset><data>{things}</data></tileset>")
    try:
        for name in ("bad", "hidden", "things"):
            assert server.get(f"/gmaps/{name}/{AT}.png").status == 400, name  # no such layer
        assert server.get(f"/gmaps/good/{AT}.png").status == 200, server.log()
    finally:
        server.stop()
    said = check(build, config)[1]
    assert "errors: 0" in said and "warnings: 1" in said and "bad." in said, said
    assert_nobody_called(inside)


@pytest.mark.parametrize("plant", PLANTED[:-1])
def test_a_named_file_is_what_its_ending_says(build, folder, things, inside, plant):
    plant(things, inside)
    name = next(path.name for path in sorted(things.iterdir()) if path.name.startswith("bad."))
    config, server = serve(build, folder, f"<tileset><data>{things}/{name}</data></tileset><tileset><data>{things}/good.tif</data></tileset>")
    try:
        assert server.get(f"/gmaps/bad/{AT}.png").status != 200, server.log()
        assert server.get(f"/gmaps/good/{AT}.png").status == 200, server.log()
    finally:
        server.stop()
    assert_nobody_called(inside)


@pytest.mark.parametrize("form", ["file", "mosaic"])
@pytest.mark.parametrize("plant", [plant_vrt, plant_wms])
def test_a_file_that_is_replaced_is_still_what_its_ending_says(build, folder, things, inside, plant, form):
    photo(things / "bad.tif")
    config, server = serve(build, folder, f"<tileset name='a'><data>{things}{'/bad.tif' if form == 'file' else ''}</data></tileset>")
    try:
        good = server.get(f"/gmaps/a/{AT}.png")
        assert good.status == 200, server.log()
        (things / "bad.tif").unlink()
        plant(things, inside)
        now = server.get(f"/gmaps/a/{AT}.png")
        assert (now.status == 500) if form == "file" else (now.body != good.body), server.log()
    finally:
        server.stop()
    assert_nobody_called(inside)


def test_a_source_written_by_hand_opens_any_kind(build, folder, things):
    """The operator names the file, and answers for what it holds; <drivers> says otherwise."""
    (folder / "secret.txt").write_text("TOPSECRET!" * 200)
    plant_vrt(things, None)
    elements = "".join(f"""<source name="{name}" type="gdal"><data>{things}/bad.tif</data>{drivers}</source>
<tileset name="{name}"><source>{name}</source><cache>none</cache><grid>GoogleMapsCompatible</grid><format>PNG</format></tileset>"""
                       for name, drivers in (("any", ""), ("some", "<drivers>GTiff COG</drivers>")))
    config, server = serve(build, folder, f'<cache name="none" type="none"/>{elements}<service type="gmaps" enabled="true"/>')
    try:
        assert server.get(f"/gmaps/any/{AT}.png").status == 200, server.log()
        assert server.get(f"/gmaps/some/{AT}.png").status == 500
        assert server.get(f"/gmaps/any/{AT}.png").status == 200, server.log()
    finally:
        server.stop()


def test_a_vrt_is_served_where_it_is_named(build, folder, things):
    gdal.Translate(str(things / "named.vrt"), gdal.Open(str(things / "good.tif")), format="VRT")
    config, server = serve(build, folder, f"<tileset><data>{things}/named.vrt</data></tileset>")
    try:
        assert server.get(f"/gmaps/named/{AT}.png").status == 200, server.log()
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["pipe.tif", "pipe.shp", "pipe.geojson", "pipe.mbtiles"])
def test_a_pipe_that_is_named_is_refused(build, folder, name):
    os.mkfifo(folder / name)
    (folder / "mapcache.xml").write_text(f"<mapcache><tileset><data>{folder}/{name}</data></tileset></mapcache>")
    assert "neither a file nor a folder" in check(build, folder / "mapcache.xml")[1]


@pytest.mark.parametrize("beside", ["bad.tif.aux.xml", "bad.tfw", "bad.tif.ovr", "bad.tif.msk", "bad.aux", "bad.IMD", "bad.wld", "bad.shp", "lines.dbf", "lines.prj",
                                    "lines.shx", "lines.qix", "lines.cpg", "areas.gpkg-journal", "areas.gpkg-wal", "areas.gpkg.aux.xml", "areas.geojson.aux.xml"])
def test_pipes_beside_files_keep_nobody_waiting(build, folder, things, beside):
    if beside.startswith("bad."):
        photo(things / "bad.tif", WEST)
    elif beside.startswith("lines."):
        squares(things / "lines.shp")
    else:
        end = "gpkg" if "gpkg" in beside else "geojson"
        squares(things / f"areas.{end}", driver={"gpkg": "GPKG", "geojson": "GeoJSON"}[end])
    (things / beside).unlink(missing_ok=True)
    os.mkfifo(things / beside)
    config, server = serve(build, folder, f"<tileset><data>{things}</data></tileset>")
    try:
        name = "things" if beside == "bad.shp" else "good"
        assert server.get(f"/gmaps/{name}/{AT}.png").status == 200, server.log()
    finally:
        server.stop()
