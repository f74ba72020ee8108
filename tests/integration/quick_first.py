"""A pytest plugin (-p quick_first): the test files are put in order by what each took the last time. The quickest come first, so that a
failure shows early; with several workers, the slowest, so that none of them is left alone with a long one at the end."""
KEY = "mapcache/durations"


def _workers(config):
    return hasattr(config, "workerinput") or bool(config.getoption("numprocesses", None))


def pytest_collection_modifyitems(config, items):
    known = config.cache.get(KEY, {})
    files = {}
    for item in items:
        files[item.path] = files.get(item.path, 0) + known.get(item.nodeid, 1)
    # Whole files, since the tests of one share its servers.
    items.sort(key=lambda item: files[item.path], reverse=_workers(config))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Keeper(config), "quick_first_keeper")


class Keeper:
    """In the process that hears of all tests: notes what each takes."""

    def __init__(self, config):
        self.config = config
        self.durations = {}

    def pytest_runtest_logreport(self, report):
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self):
        self.config.cache.set(KEY, {**self.config.cache.get(KEY, {}), **self.durations})
