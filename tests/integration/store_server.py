#!/usr/bin/env python3
"""An HTTP server that keeps what is put, for tests of stores: of kind rest, s3, azure or google. The last three check the
signature of each request by the published rules, with the key below; what is not signed well is refused as theirs is.

    store_server.py --kind s3 [--port 0]     prints its port, ends when its input ends
    --keep FILE                              what is put stands in the file before the answer, and is there again after a kill
    --host ADDRESS                           listens there and not on 127.0.0.1

What a test orders, by a GET of /-/ and:
    log                     JSON: the requests so far, each with connection, method, path, headers; then forgotten
    fail/STATUS/N[/CODE]    the next N requests get this status, with an error document of this code
    half/N                  the next N answers with a body end in its middle
    unframed/N              the next N answers say no length, and end with the connection
    stall/N                 the next N requests get no answer
    delay/MS                each answer comes so late
    damaged/N               the next N GETs get a tile with a bit changed, and the check sum of the good one
    plain/N                 the next N requests need no signature
    html/N                  the next N GETs get an HTML page with status 200
    skew/SECONDS            its clock is so far ahead
    retry/SECONDS           what Retry-After says beside errors; 0: nothing
    token/TEXT              the session token that s3 wants ("-": none)
    page/N                  how many names a list has at most
    cutlist/N               the Nth list from now on ends in its middle, with a length that fits
    badpart/N               the part N of an upload is refused
    late/N                  the next N completions of an upload are carried out, and answered with 500
    lost/N                  the next N completions of an upload remove the upload, make no object, and are answered with 500
    circle/N                lists never end: they have N pages again and again, and no names (0: as others)
    life/SECONDS            of the credentials that it gives away
    sources/STATUS          what those who ask for credentials get, if not 200

Of kind s3 it also gives credentials away, as the token service (POST /: a web identity, or a role that the access key assumes), a container (/container, with the Authorization
"container token") and a machine (IMDSv2) do; each time others, and only the last ones are good.
    list                    JSON: the names of all objects
    parts                   JSON: how many parts each upload has that is not completed
"""
import argparse
import base64
import calendar
import contextlib
import email.utils
import hashlib
import hmac
import json
import os
import pickle
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-test-1"
ACCOUNT, AZURE_KEY = "tileaccount", base64.b64encode(b"a key of azure that nobody knows").decode()


class Refused(Exception):
    def __init__(self, status, code, text=""):
        super().__init__(text)
        self.status, self.code, self.text = status, code, text


def mac(key, text, digest=hashlib.sha256):
    return hmac.new(key, text.encode(), digest).digest()


def check_time(seconds, skew, code):
    if abs(time.time() + skew - seconds) > 900:
        raise Refused(403, code, "The difference between the request time and the current time is too large.")


def check_s3(request, body, server, service="s3"):
    """AWS Signature Version 4 (docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html)."""
    headers = {name.lower(): " ".join(value.split()) for name, value in request.headers.items()}
    fields = dict(part.strip().split("=", 1) for part in headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(","))
    access, day, region, named, end = fields["Credential"].split("/")
    signed = fields["SignedHeaders"].split(";")
    if access != ACCESS:
        raise Refused(403, "InvalidAccessKeyId")
    if service == "s3" and server.token != headers.get("x-amz-security-token"):
        raise Refused(400, "ExpiredToken" if "x-amz-security-token" in headers else "InvalidToken")
    if (region, named, end) != (REGION, service, "aws4_request"):
        raise Refused(400, "AuthorizationHeaderMalformed", f"the region is wrong; expecting '{REGION}'")
    wanted = {"host", "x-amz-date", "x-amz-content-sha256"} | {name for name in headers if name.startswith("x-amz-")}
    if signed != sorted(signed) or not wanted <= set(signed):
        raise Refused(403, "AccessDenied", "There were headers present in the request which were not signed")
    digest = headers["x-amz-content-sha256"]
    if digest != "UNSIGNED-PAYLOAD" and digest != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch")
    parts = urlsplit(request.path)
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    canonical = "\n".join([request.command, quote(unquote(parts.path), safe="/-_.~"), query,
                           "".join(f"{name}:{headers[name]}\n" for name in signed), ";".join(signed), digest])
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = mac(mac(mac(mac(b"AWS4" + SECRET.encode(), day), region), service), "aws4_request")
    if mac(key, text).hex() != fields["Signature"]:
        raise Refused(403, "SignatureDoesNotMatch", "wanted: " + canonical)
    check_time(calendar.timegm(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")), server.skew, "RequestTimeTooSkewed")


def check_azure(request, body, server):
    """Shared Key of the Blob service (learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key), or a SAS."""
    parts = urlsplit(request.path)
    if "sig=" in parts.query:
        if not parts.query.endswith(server.sas):
            raise Refused(403, "AuthenticationFailed")
        return
    headers = {name.lower(): value for name, value in request.headers.items()}
    version = headers.get("x-ms-version", "")
    length = headers.get("content-length", "0" if version < "2015-02-21" and request.command == "PUT" else "")
    if version >= "2015-02-21" and length == "0":
        length = ""
    names = ["content-encoding", "content-language", None, "content-md5", "content-type", "date", "if-modified-since", "if-match",
             "if-none-match", "if-unmodified-since", "range"]
    values = [length if name is None else headers.get(name, "") for name in names]
    if "x-ms-date" in headers:
        values[5] = ""
    own = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in sorted(headers.items()) if name.startswith("x-ms-"))
    text = "\n".join([request.command, *values]) + "\n" + own + f"/{ACCOUNT}{parts.path}"
    text += "".join(f"\n{name}:{','.join(sorted(values))}" for name, values in sorted(parse_qs(parts.query, keep_blank_values=True).items()))
    wanted = "SharedKey " + ACCOUNT + ":" + base64.b64encode(mac(base64.b64decode(AZURE_KEY), text)).decode()
    if headers.get("authorization") != wanted:
        raise Refused(403, "AuthenticationFailed", "The MAC signature found in the HTTP request is not the same; string to sign: " + text)
    if request.command == "PUT" and headers.get("x-ms-blob-type") != "BlockBlob":
        raise Refused(400, "MissingRequiredHeader")
    check_time(email.utils.parsedate_to_datetime(headers["x-ms-date"]).timestamp(), server.skew, "AuthenticationFailed")


def check_google(request, body, server):
    """HMAC-SHA1 of the interoperable XML API (cloud.google.com/storage/docs/interoperability), as version 2 of AWS."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    own = "".join(f"{name}:{value.strip()}\n" for name, value in sorted(headers.items()) if name.startswith(("x-amz-", "x-goog-")))
    date = "" if "x-amz-date" in headers else headers.get("date", "")
    text = "\n".join([request.command, headers.get("content-md5", ""), headers.get("content-type", ""), date]) + "\n"
    text += own + urlsplit(request.path).path
    wanted = f"AWS {ACCESS}:" + base64.b64encode(mac(SECRET.encode(), text, hashlib.sha1)).decode()
    if headers.get("authorization") != wanted:
        raise Refused(403, "SignatureDoesNotMatch", "string to sign: " + text)
    md5 = headers.get("content-md5")
    if md5 and md5 != base64.b64encode(hashlib.md5(body).digest()).decode():
        raise Refused(400, "BadDigest")
    check_time(email.utils.parsedate_to_datetime(headers.get("x-amz-date") or headers["date"]).timestamp(), server.skew, "RequestTimeTooSkewed")


def iso_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def give_credentials(request, body, server):
    """The answer of a source of credentials, or None where it is asked for an object."""
    path, headers = urlsplit(request.path).path, request.headers
    if not (request.command == "POST" and path == "/") and path != "/container" and not path.startswith("/latest/"):
        return None
    if server.sources != 200:
        raise Refused(server.sources, "SourceIsOut", "no credentials today")
    if path == "/latest/api/token":
        if request.command != "PUT" or "X-aws-ec2-metadata-token-ttl-seconds" not in headers:
            raise Refused(400, "BadRequest")
        return b"the machine's token"
    if path.startswith("/latest/") and headers.get("X-aws-ec2-metadata-token") != "the machine's token":
        raise Refused(401, "Unauthorized")
    if path == "/latest/meta-data/iam/security-credentials/":
        return b"tile-role\n"
    if path.startswith("/latest/") and path != "/latest/meta-data/iam/security-credentials/tile-role":
        raise Refused(404, "NotFound")
    if path == "/container" and headers.get("Authorization") != "container token":
        raise Refused(401, "Unauthorized")
    if path == "/":
        asked = parse_qs(body.decode())
        wanted = {"Action": ["AssumeRoleWithWebIdentity"], "Version": ["2011-06-15"], "RoleArn": ["arn:aws:iam::1:role/tiles"],
                  "RoleSessionName": ["tests"], "WebIdentityToken": ["a.web+identity/token=="]}
        if asked.get("Action") == ["AssumeRole"]:
            check_s3(request, body, server, "sts")
            wanted = {"Action": ["AssumeRole"], "Version": ["2011-06-15"], "RoleArn": ["arn:aws:iam::1:role/tiles"],
                      "RoleSessionName": ["tests"], "ExternalId": ["a b+c"]}
        if asked != wanted:
            raise Refused(400, "InvalidIdentityToken", repr(asked))
    with server.lock:
        server.given += 1
        server.token = f"session/{server.given}+&="
    end = iso_time(time.time() + server.life)
    if path == "/":
        token = server.token.replace("&", "&amp;")
        return (f"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{ACCESS}</AccessKeyId>"
                f"<SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}</Expiration>"
                "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>").encode()
    return json.dumps({"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": ACCESS, "SecretAccessKey": SECRET,
                       "Token": server.token, "Expiration": end}).encode()


CHECKS = {"rest": None, "s3": check_s3, "azure": check_azure, "google": check_google}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 600
    wbufsize = 1 << 16  # head and body leave together: a body behind its head waits 40 ms for the client's word that it has the head

    def setup(self):
        super().setup()
        with self.server.lock:
            self.server.connections += 1
            self.number = self.server.connections

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.skew if timestamp is None else timestamp)

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        tile = body and self.command == "GET" and not self.path.startswith("/-/")
        unframed = tile and self.server.take("unframed")
        if not unframed:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if unframed or (tile and self.server.take("half")):
            self.wfile.write(body if unframed else body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def refuse(self, error):
        body = f"<?xml version='1.0'?>\n<Error><Code>{error.code}</Code><Message>{error.text.replace('<', '&lt;')}</Message></Error>".encode()
        headers = [("Content-Type", "application/xml")]
        if self.server.kind == "azure":
            headers.append(("x-ms-error-code", error.code))
        if self.server.retry and error.status >= 400:
            headers.append(("Retry-After", str(self.server.retry)))
        self.answer(error.status, body, headers)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/-/"):
            return self.answer(200, self.server.order(self.path[3:].split("/")))
        with self.server.lock:
            self.server.log.append({"connection": self.number, "method": self.command, "path": self.path,
                                    "headers": {name.lower(): value for name, value in self.headers.items()}})
        time.sleep(self.server.delay)
        if self.server.take("stall"):
            time.sleep(600)
        failure = self.server.take("fail")
        try:
            if failure:
                raise Refused(*failure)
            given = give_credentials(self, body, self.server) if self.server.kind == "s3" else None
            if given is not None:
                return self.answer(200, given)
            if CHECKS[self.server.kind] and not self.server.take("plain"):
                if "Authorization" not in self.headers and "sig=" not in self.path:
                    raise Refused(403, "AccessDenied")
                CHECKS[self.server.kind](self, body, self.server)
            asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            if "list-type" in asked or "max-keys" in asked or asked.get("comp") == ["list"]:
                return self.list_names(urlsplit(self.path).path, asked)
            if "uploads" in asked or "uploadId" in asked:
                return self.take_part(urlsplit(self.path).path, asked, body)
            self.store(urlsplit(self.path).path, body)
        except Refused as error:
            self.refuse(error)
        except (KeyError, ValueError) as error:
            self.refuse(Refused(400, "InvalidRequest", repr(error)))

    def list_names(self, bucket, asked):
        """A page of the names below a bucket, as each kind writes it."""
        kind, most = self.server.kind, int(asked.get("max-keys", asked.get("maxresults"))[0])
        prefix, after = asked.get("prefix", [""])[0], asked.get("continuation-token", asked.get("marker", [""]))[0]
        if self.server.circle:
            place = (int(after or 0) + 1) % self.server.circle
            text = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{place}</NextContinuationToken>"
            return self.answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode(), [("Content-Type", "application/xml")])
        start = bucket.rstrip("/") + "/"
        names = [(unquote(name)[len(start):], len(kept[0])) for name, kept in sorted(self.server.objects.items()) if unquote(name).startswith(start + prefix)]
        names = [(name, size) for name, size in names if not after or name > after.removeprefix("behind ")]
        page, more = names[: min(most, self.server.page)], len(names) > min(most, self.server.page)
        item, title, length = ("Blob", "Name", "Content-Length") if kind == "azure" else ("Contents", "Key", "Size")
        text = "".join(f"<{item}><{title}>{escape(name)}</{title}><Properties><{length}>{size}</{length}></Properties></{item}>" for name, size in page)
        text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more and kind == "s3":
            text += f"<NextContinuationToken>behind {escape(page[-1][0])}</NextContinuationToken>"
        elif more and kind == "azure":
            text += f"<NextMarker>{escape(page[-1][0])}</NextMarker>"
        root = "EnumerationResults" if kind == "azure" else "ListBucketResult"
        answer = f"<?xml version='1.0'?><{root}>{text}</{root}>".encode()
        self.server.cutlist -= 1
        if self.server.cutlist == 0:
            answer = answer[: answer.rindex(f"</{item}>".encode()) if page else -1]
        self.answer(200, answer, [("Content-Type", "application/xml")])

    def take_part(self, name, asked, body):
        """An object in parts, as S3 has it; `list` does not show what is not completed, `parts` does."""
        uploads, number = self.server.uploads, asked.get("uploadId", [""])[0]
        if "uploads" in asked:
            number = f"up/load+{len(uploads)}"
            uploads[number] = {}
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>".encode())
        if number not in uploads:
            raise Refused(404, "NoSuchUpload")
        if self.command == "PUT":
            if int(asked["partNumber"][0]) == self.server.badpart:
                raise Refused(403, "AccessDenied")
            uploads[number][int(asked["partNumber"][0])] = body
            return self.answer(200, b"", [("ETag", '"' + hashlib.md5(body).hexdigest() + '"')])
        parts = uploads.pop(number)
        if self.command == "DELETE":
            return self.answer(204)
        tags = "".join(f'<Part><PartNumber>{i}</PartNumber><ETag>&quot;{hashlib.md5(parts[i]).hexdigest()}&quot;</ETag></Part>' for i in sorted(parts))
        if body.decode().replace('"', "&quot;").replace("&#34;", "&quot;") != f"<CompleteMultipartUpload>{tags}</CompleteMultipartUpload>":
            raise Refused(400, "InvalidPart", body.decode())
        if self.server.take("lost"):
            raise Refused(500, "InternalError")
        self.server.objects[name] = (b"".join(parts[i] for i in sorted(parts)), "application/vnd.pmtiles", self.date_time_string())
        sums = b"".join(hashlib.md5(parts[i]).digest() for i in sorted(parts))
        self.server.tags[name] = f'"{hashlib.md5(sums).hexdigest()}-{len(parts)}"'
        self.server.keep(name, self.server.objects[name])
        if self.server.take("late"):
            raise Refused(500, "InternalError")
        return self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def store(self, name, body):
        objects = self.server.objects
        if self.command == "PUT":
            objects[name] = (body, self.headers.get("Content-Type", "binary/octet-stream"), self.date_time_string())
            self.server.tags.pop(name, None)
            self.server.keep(name, objects[name])
            self.server.sums[name] = {title.lower(): value for title, value in self.headers.items() if title.lower().startswith("x-amz-checksum-")}
            return self.answer(201 if self.server.kind == "azure" else 200)
        if self.command == "DELETE":
            found = objects.pop(name, None)
            self.server.keep(name, None)
            if found is None and self.server.kind != "s3":
                raise Refused(404, "NoSuchKey")
            return self.answer(202 if self.server.kind == "azure" else 204)
        if self.command == "GET" and self.server.take("html"):
            return self.answer(200, b"<html>Sign in</html>", [("Content-Type", "text/html; charset=utf-8")])
        if name not in objects:
            if self.server.kind == "rest":
                return self.answer(404, b"<html><h1>Not Found</h1></html>", [("Content-Type", "text/html")])
            raise Refused(404, "BlobNotFound" if self.server.kind == "azure" else "NoSuchKey")
        data, media, date = objects[name]
        headers = [("Content-Type", media), ("Last-Modified", date)]
        md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
        if self.headers.get("x-amz-checksum-mode") == "ENABLED":
            headers += self.server.sums.get(name, {}).items()
        headers += {"azure": [("Content-MD5", md5)], "google": [("x-goog-hash", f"crc32c=n03x6A==,md5={md5}")]}.get(self.server.kind, [])
        if self.command == "GET" and self.server.take("damaged"):
            data = bytes([data[0] ^ 1]) + data[1:]
        tag = self.server.tags.get(name) or '"' + hashlib.md5(data).hexdigest() + '"'
        if self.headers.get("If-Match", tag) != tag:
            raise Refused(412, "PreconditionFailed")
        headers.append(("ETag", tag))
        if self.command == "GET" and "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = data[first : last + 1]
            return self.answer(206, part, headers + [("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")])
        self.answer(200, data, headers)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = handle_any


class Store(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, kind, port=0, host="127.0.0.1", file=None):
        super().__init__((host, port), Handler)
        self.kind, self.lock, self.log, self.objects, self.connections = kind, threading.Lock(), [], {}, 0
        self.life, self.sources, self.given, self.page, self.circle, self.badpart, self.cutlist = 3600, 200, 0, 1000, 0, 0, 0
        self.uploads, self.sums, self.tags = {}, {}, {}
        self.faults, self.delay, self.skew, self.retry, self.token, self.sas = {}, 0, 0, 0, None, "sv=2022-11-02&sp=rcwd&sig=abc%2B"
        self.file = None
        if file:
            self.recall(file)
            self.file = open(file, "ab", buffering=0)

    def recall(self, file):
        """What was kept; the last record may have been cut off by a kill: nobody was told that it is stored."""
        kept = open(file, "ab+")
        kept.seek(0)
        whole = 0
        with contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                name, value = pickle.load(kept)
                whole = kept.tell()
                self.objects[name] = value
        kept.truncate(whole)
        kept.close()
        self.objects = {name: value for name, value in self.objects.items() if value is not None}

    def keep(self, name, value):
        if self.file:
            with self.lock:
                self.file.write(pickle.dumps((name, value)))

    def handle_error(self, request, client_address):
        pass

    def take(self, fault):
        with self.lock:
            left, value = self.faults.get(fault, (0, None))
            if left <= 0:
                return None
            self.faults[fault] = (left - 1, value)
            return value

    def order(self, words):
        with self.lock:
            if words[0] == "log":
                log, self.log = self.log, []
                return json.dumps(log).encode()
            if words[0] == "list":
                return json.dumps(sorted(self.objects)).encode()
            if words[0] == "parts":
                return json.dumps([len(parts) for parts in self.uploads.values()]).encode()
            if words[0] in ("delay", "skew", "retry", "life", "sources", "page", "circle", "badpart", "cutlist"):
                setattr(self, words[0], int(words[1]) / 1000 if words[0] == "delay" else int(words[1]))
            elif words[0] == "token":
                self.token = None if words[1] == "-" else words[1]
            elif words[0] == "fail":
                self.faults["fail"] = (int(words[2]), (int(words[1]), words[3] if len(words) > 3 else "Failed"))
            else:
                self.faults[words[0]] = (int(words[1]), True)
            return b"done"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=sorted(CHECKS), default="rest")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--keep")
    options = parser.parse_args()
    store = Store(options.kind, options.port, options.host, options.keep)
    print(store.server_address[1], flush=True)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
