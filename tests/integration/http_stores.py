"""Stores behind HTTP for tests: moto, which checks the signatures of S3 by AWS's own library; nginx with DAV; and
store_server.py."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

from conftest import Program, free_port, listens, wait_until
from patience import patience
from store_server import ACCESS, ACCOUNT, AZURE_KEY, REGION, SECRET

HERE = pathlib.Path(__file__).resolve().parent
MOTO = HERE.parents[1] / "build" / "moto"
# What each kind of store_server.py wants to know of who asks.
KEYS = {
    "rest": "",
    "s3": f"<id>{ACCESS}</id><secret>{SECRET}</secret><region>{REGION}</region>",
    "azure": f"<id>{ACCOUNT}</id><secret>{AZURE_KEY}</secret><container>c</container>",
    "google": f"<access>{ACCESS}</access><secret>{SECRET}</secret>",
}

# Makes a user who may use the bucket only, then lets moto check who asks; prints the user's keys.
SET_UP = """
import json, sys, urllib.request
import boto3
address = sys.argv[1]
known = dict(endpoint_url=address, region_name="eu-test-1", aws_access_key_id="none", aws_secret_access_key="none")
boto3.client("s3", **known).create_bucket(Bucket="tiles", CreateBucketConfiguration={"LocationConstraint": "eu-test-1"})
iam = boto3.client("iam", **known)
iam.create_user(UserName="maps")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="maps", PolicyName="tiles", PolicyDocument=json.dumps(policy))
key = iam.create_access_key(UserName="maps")["AccessKey"]
urllib.request.urlopen(urllib.request.Request(address + "/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})).read()
print(key["AccessKeyId"], key["SecretAccessKey"])
"""


def make_certificate(folder):
    """Of localhost, signed by itself: the files of the certificate and of its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return folder / "certificate.pem", folder / "key.pem"


@contextlib.contextmanager
def running_moto(folder, options=(), address="http://127.0.0.1", trust=""):
    """moto with a bucket, and a user who may use it: its port, the user's key and secret."""
    port = free_port()
    environment = {"PYTHONPATH": str(MOTO), "PYTHONDONTWRITEBYTECODE": "1", "AWS_CA_BUNDLE": trust, "SSL_CERT_FILE": trust}
    environment = {name: value for name, value in environment.items() if value}
    program = Program([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port, *options], folder / "moto.log", environment)
    try:
        wait_until(lambda: listens(("127.0.0.1", port)), "moto starts", 60)
        made = subprocess.run([sys.executable, "-c", SET_UP, f"{address}:{port}"], env={**os.environ, **environment},
                              capture_output=True, text=True, timeout=patience(60), check=False)
        assert made.returncode == 0, made.stderr + program.log()
        access, secret = made.stdout.split()
        yield port, access, secret, program
    finally:
        program.stop()


class OwnStore:
    """store_server.py of a kind, and what it is ordered."""

    def __init__(self, kind, folder):
        self.log_file = folder / f"{kind}.log"
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([sys.executable, HERE / "store_server.py", "--kind", kind], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        self.port = int(self.process.stdout.readline())

    def order(self, words):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/{words}", timeout=patience(30)) as answer:
            return answer.read()

    def objects(self):
        return json.loads(self.order("list"))

    def stop(self):
        self.process.stdin.close()
        self.process.wait(patience(30))
        self.process.stdout.close()


@contextlib.contextmanager
def running_dav(tmp_path):
    """nginx that keeps files by DAV: its port, the folder, and the program."""
    port, root = free_port(), tmp_path / "dav"
    root.mkdir()
    (tmp_path / "nginx.conf").write_text(f"""
worker_processes 1; daemon off; user {'root' if os.getuid() == 0 else 'nobody'}; pid {tmp_path}/nginx.pid; error_log {tmp_path}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
  access_log {tmp_path}/access.log; keepalive_requests 1000000; client_max_body_size 10m; client_body_temp_path {tmp_path}/body;
  proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;
  server {{ listen 127.0.0.1:{port} backlog=512; root {root};
    location / {{ dav_methods PUT DELETE; create_full_put_path on; }}
    location /closed/ {{ deny all; }}
  }}
}}
""")
    program = Program(["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], tmp_path / "nginx.out")
    try:
        wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
        yield port, root, program
    finally:
        program.stop()
