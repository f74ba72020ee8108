"""A pytest plugin (-p quick_first): the quickest test files come first, by what each took the last time."""
import pytest

KEY = "mapcache/durations"


def pytest_collection_modifyitems(config, items):
    known = config.cache.get(KEY, {})
    files = {}
    for item in items:
        files[item.path] = files.get(item.path, 0) + known.get(item.nodeid, 0)
    # Whole files, since the tests of one share its servers.
    items.sort(key=lambda item: files[item.path])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    durations = item.config.stash.setdefault(STASH, {})
    report = outcome.get_result()
    durations[item.nodeid] = durations.get(item.nodeid, 0) + report.duration


def pytest_sessionfinish(session):
    config = session.config
    config.cache.set(KEY, {**config.cache.get(KEY, {}), **config.stash.get(STASH, {})})


STASH = pytest.StashKey[dict]()
