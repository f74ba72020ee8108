"""The roads of benchmarks/postgis in the style that they have there, of any number of rows."""
from postgis import config as drawn
from postgis.data import SRID
from scale.data import name_of

ZOOMS = tuple(2 ** power for power in range(10))  # ten maps: from the whole table to a street
EDGE = 800


def write_ours(folder, database, rows):
    (folder / "roads.sld").write_text(drawn.sld("roads"))
    path = folder / "mapcache.xml"
    path.write_text(f"""<mapcache>{drawn.grid()}
  <cache name="disk" type="disk"><base>{folder}/cache</base></cache>
  <source name="roads" type="postgis"><layer name="roads"><connection>{database.connection()}</connection><table>{name_of(rows)}</table><id>gid</id>
    <transfer>binary</transfer><style>{folder}/roads.sld</style></layer></source>
  <tileset name="roads"><source>roads</source><cache>disk</cache><grid>country</grid><format>PNG</format></tileset>
  <default_format>PNG</default_format>
  <service type="wms" enabled="true"><full_wms>forward</full_wms><maxsize>4096</maxsize><format allow_client_override="true">PNG</format></service>
</mapcache>
""")
    return path


def write_theirs(folder, database, rows):
    source = (f'CONNECTIONTYPE POSTGIS\nCONNECTION "{database.connection()}"\nPROCESSING "CLOSE_CONNECTION=DEFER"\n'
              f'DATA "geom FROM {name_of(rows)} USING UNIQUE gid USING SRID={SRID}"')
    (folder / "roads.map").write_text(drawn.map_file("roads", source))


def query(box):
    return drawn.query("roads", box, EDGE)
