#!/usr/bin/env python3
"""A small server that speaks Elasticsearch's search API, over documents in memory.

From Python: `with Elastic(documents) as elastic: elastic.url("/scenes/_search"), elastic.requests`.

POST .../_search takes a JSON body: query (match_all, term, terms, range, ids, bool with must, filter, should, must_not),
sort, size (default 10), _source and aggs with terms; it answers as Elasticsearch does, also to what it cannot parse (400
with an error object). A body must be application/json (406). What the path begins with changes that: /late/MS/... waits,
/status/N answers so, /says/WHAT sends html, nothing, deep or half, /many/N sends N hits.
"""
import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMPARE = {"gt": lambda a, b: a > b, "gte": lambda a, b: a >= b, "lt": lambda a, b: a < b, "lte": lambda a, b: a <= b}


class Refused(Exception):
    pass


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused("number_format_exception", f'For input string: "{value}"') from None


def one(mapping):
    if not isinstance(mapping, dict) or len(mapping) != 1:
        raise Refused("parsing_exception", "one name is expected")
    return next(iter(mapping.items()))


def many(clauses):
    return clauses if isinstance(clauses, list) else [clauses]


def matches(query, document):
    kind, body = one(query)
    if kind == "match_all":
        return True
    if kind == "bool":
        should = many(body.get("should", []))
        return (all(matches(clause, document) for clause in many(body.get("must", [])) + many(body.get("filter", [])))
                and not any(matches(clause, document) for clause in many(body.get("must_not", [])))
                and (not should or any(matches(clause, document) for clause in should)))
    if kind == "ids":
        return document["_id"] in body["values"]
    if kind not in ("term", "terms", "range"):
        raise Refused("parsing_exception", f"unknown query [{kind}]")
    field, wanted = one(body)
    value = document["_source"].get(field)
    if kind == "range":
        return all(COMPARE[name](number(value), number(bound)) for name, bound in wanted.items() if name in COMPARE)
    values = value if isinstance(value, list) else [value]
    return any(each in (wanted if kind == "terms" else [wanted]) for each in values)


def search(documents, body):
    found = [document for document in documents if matches(body.get("query", {"match_all": {}}), document)]
    for key in reversed(body.get("sort", [])):
        field, order = one(key) if isinstance(key, dict) else (key, "asc")
        order = order.get("order", "asc") if isinstance(order, dict) else order
        found.sort(key=lambda document, field=field: document["_source"][field], reverse=order == "desc")
    answer = {"took": 1, "timed_out": False, "_shards": {"total": 1, "successful": 1},
              "hits": {"total": {"value": len(found), "relation": "eq"}, "hits": found[:body.get("size", 10)]}}
    if "aggs" in body:
        answer["aggregations"] = {}
        for name, aggregation in body["aggs"].items():
            terms = aggregation["terms"]
            values = [document["_source"][terms["field"]] for document in found]
            buckets = [{"key": value, "doc_count": values.count(value)} for value in sorted(set(values))]
            answer["aggregations"][name] = {"buckets": buckets[:terms.get("size", 10)]}
    return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write for head and body

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, kind, reason):
        self.answer(status, {"error": {"type": kind, "reason": reason}, "status": status})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.path, raw, dict(self.headers)))
        parts = self.path.strip("/").split("/")
        if parts[0] == "late":
            time.sleep(int(parts[1]) / 1000)
        if parts[0] == "status":
            return self.refuse(int(parts[1]), "circuit_breaking_exception", "Data too large, secret-place")
        if parts[0] == "says":
            return self.answer(200, {"html": b"<html>secret-place</html>", "nothing": b"", "deep": b"[" * 100000,
                                     "half": b'{"hits": {"hits": [{"_id": "red"', "other": b'{"hits": 7}'}[parts[1]])
        if parts[0] == "many":
            hits = [{"_id": f"p{i}"} for i in range(int(parts[1]))]
            return self.answer(200, {"hits": {"hits": hits}})
        if self.headers.get_content_type() != "application/json":
            return self.refuse(406, "media_type_header_exception", "Content-Type header is not supported")
        if self.server.password and self.headers.get("Authorization") != self.server.password:
            return self.refuse(401, "security_exception", "missing authentication credentials")
        try:
            return self.answer(200, search(self.server.documents, json.loads(raw)))
        except json.JSONDecodeError as problem:
            return self.refuse(400, "parsing_exception", str(problem))
        except Refused as problem:
            return self.refuse(400, *problem.args)


class Elastic:
    def __init__(self, documents, user=None, password=None):
        """documents: _id -> _source."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.documents = [{"_index": "scenes", "_id": name, "_source": source}
                                 for name, source in documents.items()]
        self.server.requests = self.requests = []
        self.server.password = None
        if user is not None:
            self.server.password = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def url(self, path="/scenes/_search"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
