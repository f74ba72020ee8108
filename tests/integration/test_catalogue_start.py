"""What a server finds out about its catalogues before anybody asks: it looks at the products when its process begins, in whatever state they are."""
import os
import shutil
import sqlite3
import time

import pytest
import stack_catalogue as catalogue
from changes_site import counter
from conftest import wait_until
from fastcgi import Server

PRODUCTS = 300
SIDE = catalogue.WORLD / 4
BOX = (-catalogue.WORLD, catalogue.WORLD - SIDE, -catalogue.WORLD + SIDE, catalogue.WORLD)  # 2 x 2 tiles of level 4


class Shelf:
    """A folder of products that are alike, and a server of them."""

    def __init__(self, build, folder, count=PRODUCTS):
        self.build, self.folder, self.server = build, folder, None
        folder.chmod(0o777)
        self.names = [f"product_{number:04d}" for number in range(count)]
        with catalogue.create(self.path(self.names[0])) as database:
            catalogue.put(database, 4, 9, 9, catalogue.encode(catalogue.Product("a", "box", BOX, (1, 2, 3), 0).draw(BOX, 256), "box", 0))
        database.close()
        for name in self.names[1:]:
            shutil.copy(self.path(self.names[0]), self.path(name))
        catalogue.write_catalogue(folder, [catalogue.Product(name, "any", BOX, None, 0) for name in self.names])
        self.config = folder / "mapcache.xml"
        self.config.write_text(catalogue.configuration(catalogue.layer(folder, "stack", where=""),
                                                       top=f'<service type="metrics" enabled="true"/><lock_dir>{folder}</lock_dir>'))

    def path(self, name):
        return self.folder / f"{name}.sqlite3"

    def start(self):
        wait_until(lambda: time.time() > self.config.stat().st_ctime + .1, "files that are not young any more")
        self.server = Server(self.build, self.config, self.folder)
        return self.server

    def known(self):
        """The file of what is known of all products."""
        return list(self.folder.glob("mapcache-coverage-*[0-9a-f]"))

    def map(self):
        """The status of a map in which no product is."""
        corners = ",".join(map(str, (0, -catalogue.WORLD, catalogue.WORLD, 0)))
        return self.server.get("/", f"SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&LAYERS=stack&STYLES=&SRS=EPSG:3857&BBOX={corners}"
                                    "&WIDTH=1024&HEIGHT=1024&FORMAT=image/png").status

    def stop(self):
        if self.server is not None:
            self.server.stop()


@pytest.fixture
def shelf(build, folder):
    made = Shelf(build, folder)
    yield made
    made.stop()


def test_products_are_known_before_the_first_map(shelf):
    shelf.start()
    wait_until(lambda: counter(shelf.server, "bare_opens_total") == PRODUCTS, "the products are looked at")
    assert shelf.map() == 404
    assert counter(shelf.server, "bare_opens_total") == PRODUCTS
    shelf.stop()
    known = shelf.known()  # nothing where this system cannot watch the folder
    shelf.start()
    assert shelf.map() == 404
    assert counter(shelf.server, "bare_opens_total") == (0 if known else PRODUCTS)


def test_broken_products_do_not_keep_a_server_from_starting(shelf):
    for number, spoil in enumerate((lambda path: path.write_bytes(b"nonsense" * 999), lambda path: path.write_bytes(b""), os.unlink,
                                    lambda path: (path.unlink(), path.mkdir()), lambda path: (path.unlink(), os.mkfifo(path)))):
        spoil(shelf.path(shelf.names[number * 7 + 3]))
    shelf.start()
    wait_until(lambda: counter(shelf.server, "bare_opens_total") >= PRODUCTS - 5, "the other products are looked at")
    assert shelf.map() == 500  # a map that may show a broken product says so, as ever
    for number in range(5):
        path = shelf.path(shelf.names[number * 7 + 3])
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
    assert shelf.map() == 404


@pytest.mark.parametrize("spoil", [os.unlink, lambda path: path.write_bytes(b"nonsense" * 999), lambda path: (path.unlink(), os.mkfifo(path))])
def test_a_broken_list_of_products_does_not_keep_a_server_from_starting(shelf, spoil):
    spoil(shelf.folder / "catalogue.sqlite")
    shelf.start()
    assert shelf.map() == 500
    assert counter(shelf.server, "bare_opens_total") == 0
    assert not shelf.known()


def test_a_server_ends_while_it_looks_at_its_products(shelf):
    """A product whose file somebody has locked holds the look up for two seconds, and not the end of the server."""
    holder = sqlite3.connect(shelf.path(shelf.names[PRODUCTS // 2]), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    shelf.start()
    shelf.stop()
    assert shelf.server.program.process.poll() == 0
    assert not shelf.known() or time.monotonic() > began + 2  # which is written once the look is over
    holder.close()
