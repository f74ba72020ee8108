"""The rules of the published log parser, so that a test can say whether it would read a log of ours to its end.

They are kept as fragile as they were published: an END is paired with the earliest BEGIN of its name that is still open
in its group, a group must be complete when its root ends, and an END needs a group. Where the published program would
have stopped with a KeyError, parse() raises one.
"""
import re

ROOTS = ("mapcache_handler", "_thread_get_tile", "_thread_get_subtile")
LINE = re.compile(
    r"^\[\w{3} \w{3} [ \d]\d (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d\.\d+) \d{4}\] "  # time
    r"\[[^\]]*\] \[pid (?P<pid>\d+):tid (?P<tid>\d+)\] "  # module and level, process and thread
    r".*: \[client [^\]]*\] "  # file(line): [client address]; the colon must be there
    r"MOCKUP (?P<event>BEGIN|END) (?P<name>[^ ,\n]+)(?: (?P<note>[^ ,\n]+))?")


def events(lines):
    """(thread, seconds of the day, event, name, note) of each trace line."""
    for line in lines:
        match = LINE.match(line)
        if match:
            seconds = int(match["h"]) * 3600 + int(match["m"]) * 60 + float(match["s"])
            yield f"{match['pid']}:{match['tid']}", seconds, match["event"], match["name"], match["note"]


def parse(lines):
    """[(thread:n, [(label, name, microseconds, depth)])] in the order in which the published parser prints."""
    counters, groups, printed = {}, {}, []
    for thread, seconds, event, name, _ in events(lines):
        if event == "BEGIN":
            if name in ROOTS:
                counters[thread] = counters.get(thread, -1) + 1
            key = f"{thread}:{counters[thread]}"
            groups.setdefault(key, []).append({"label": "BEGIN", "name": name, "at": seconds})
            continue
        key = f"{thread}:{counters[thread]}"
        group = groups[key]
        opened = next((entry for entry in group
                       if entry["label"] == "BEGIN" and entry["name"] == name and "delta_us" not in entry), None)
        delta = round((seconds - opened["at"]) * 1e6) if opened else None
        if opened:
            opened["delta_us"] = delta
        group.append({"label": "END..", "name": name, "delta_us": delta} if opened else {"label": "END..", "name": name})
        if name in ROOTS:
            printed.append((key, laid_out(groups.pop(key))))
    if groups:
        raise KeyError("groups without an end: " + ", ".join(groups))
    return printed


def laid_out(group):
    depth, rows = 0, []
    for entry in group:
        depth += entry["label"] == "BEGIN"
        rows.append((entry["label"], entry["name"], entry["delta_us"], depth))
        depth -= entry["label"] == "END.."
    return rows


def text(printed):
    """As it is printed."""
    out = []
    for key, rows in printed:
        out.append(f"Thread #{key}:")
        out += ["  " * depth + " " + str({f"{label}:{name}": delta}) for label, name, delta, depth in rows]
        out.append("")
    return "".join(line + "\n" for line in out)
