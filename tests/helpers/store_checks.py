"""An S3 store on loopback that refuses everyone."""

import contextlib
import http.server
import threading

SECRET = "an-open-secret"
LISTING = """<ListBucketResult><Name>bucket</Name><Prefix>parts/</Prefix><KeyCount>1</KeyCount><MaxKeys>1</MaxKeys>
<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken><Contents><Key>parts/1.parquet</Key>
<Size>100</Size><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>"""


class Refusing(http.server.BaseHTTPRequestHandler):
    """A store that believes nobody; or, for a bucket named `ending`, one that is gone after a page of its listing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        code, text = 403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{SECRET}</Message></Error>"
        if self.path.startswith("/ending"):
            code, text = 200, LISTING
            if self.command == "HEAD" or "continuation-token" in self.path:
                code, text = 404, "<Error><Code>NoSuchBucket</Code></Error>"
        self.send_response(code)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    do_HEAD = do_GET

    def log_message(self, *told):
        """Nothing."""


@contextlib.contextmanager
def refusing_store():
    """Addresses at that store, with a secret in them."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    yield lambda path: f"s3://someone:{SECRET}@{path}?{options}"
    server.shutdown()
    server.server_close()
