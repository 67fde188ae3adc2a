#!/bin/bash
# moto 5.2.5, boto3 1.44.8, Python 3.11: an emulator of S3 checks conditions of some writes and passes over those of others.
#
# Guess: what an emulator takes as a parameter, it checks or refuses: `If-Match` and `If-None-Match` have one meaning in PutObject,
#   CompleteMultipartUpload, CopyObject and DeleteObject.
# Seen: conditions of PutObject and DeleteObject, and `If-None-Match` of CompleteMultipartUpload, are checked (412). `If-Match` of
#   CompleteMultipartUpload, and `If-None-Match` of CopyObject, are taken and not looked at: the object is replaced. boto3's
#   `upload_fileobj` refuses to pass either on.
# Met: tests of publishing and of ledgers by compare-and-swap: large files go in parts, and there the emulator lets a lost race win. A test
#   of a race needs a server that was checked, condition by condition.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q "moto[s3,server]==5.2.5" boto3==1.44.8
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import io
import logging
import sys

import boto3
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

logging.disable(logging.CRITICAL)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
host, port = server.get_host_and_port()
login = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **login)
client.create_bucket(Bucket="bucket")
at = {"Bucket": "bucket", "Key": "object"}


def in_parts(**condition):
    upload = client.create_multipart_upload(**at)["UploadId"]
    tag = client.upload_part(**at, UploadId=upload, PartNumber=1, Body=b"new")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    client.complete_multipart_upload(**at, UploadId=upload, MultipartUpload=parts, **condition)


other, absent = {"IfMatch": '"other"'}, {"IfNoneMatch": "*"}
steps = {
    "put if absent": lambda: client.put_object(**at, Body=b"new", **absent),
    "put if same": lambda: client.put_object(**at, Body=b"new", **other),
    "delete if same": lambda: client.delete_object(**at, **other),
    "parts if absent": lambda: in_parts(**absent),
    "parts if same": lambda: in_parts(**other),
    "copy if absent": lambda: client.copy_object(**at, CopySource="bucket/source", **absent),
}
checked = {}
for name, step in steps.items():
    for key, body in (("object", b"old"), ("source", b"new")):
        client.put_object(Bucket="bucket", Key=key, Body=body)
    try:
        step()
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    checked[name] = client.get_object(**at)["Body"].read() == b"old"
print(checked)
try:
    client.upload_fileobj(io.BytesIO(b"new"), "bucket", "object", ExtraArgs=absent)
except ValueError as error:
    print(str(error)[:60])
else:
    sys.exit("upload_fileobj takes a condition")
server.stop()
assert [name for name, kept in checked.items() if not kept] == ["parts if same", "copy if absent"]
PROGRAM
