"""xmllint with the published schemas, which lie beside the checkout or where MAPCACHE_SCHEMAS says."""
import os
import pathlib
import subprocess

from conftest import ROOT
from patience import patience

SCHEMAS = pathlib.Path(os.environ.get("MAPCACHE_SCHEMAS", ROOT.parent / "shared" / "schemas"))
WMS_130, WMS_130_ERROR = "wms/1.3.0/capabilities_1_3_0.xsd", "wms/1.3.0/exceptions_1_3_0.xsd"
WMTS, OWS = "wmts/1.0/wmtsGetCapabilities_response.xsd", "ows/1.1.0/owsExceptionReport.xsd"


def validator(folder):
    """validate(bytes, schema or None for the document's own DTD): fails with what xmllint says."""
    catalogue = folder / "catalogue.xml"
    rules = "".join(f'<rewrite{kind} {start}StartString="{address}" rewritePrefix="file://{place}"/>'
                    for address, place in [("http://schemas.opengis.net/", f"{SCHEMAS}/"),
                                           ("http://www.w3.org/1999/xlink.xsd", f"{SCHEMAS}/w3/xlink.xsd"),
                                           ("http://www.w3.org/2001/xml.xsd", f"{SCHEMAS}/w3/xml.xsd")]
                    for kind, start in [("URI", "uri"), ("System", "systemId")])
    catalogue.write_text(f'<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">{rules}</catalog>')

    def run(document, schema):
        path = folder / "document.xml"
        path.write_bytes(document)
        how = ["--valid"] if schema is None else ["--schema", SCHEMAS / schema]
        done = subprocess.run(["xmllint", "--nonet", "--noout", *how, path], capture_output=True, text=True, timeout=patience(60),
                              check=False, env={**os.environ, "XML_CATALOG_FILES": str(catalogue)})
        assert done.returncode == 0, done.stderr[:2000] + document.decode(errors="replace")[:1000]

    return run
