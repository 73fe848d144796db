# SPDX-License-Identifier: BSL-1.0
"""The small servers of HTTPS, S3, Google Cloud Storage and Azure by one interface, for what has to be the same on all.

with Cloud("gs") as c:
    url = c.put("in.nc", body)
    run("convert", url, "out.zarr", *c.options, **c.variables)
"""

import azure_server
import http_server
import s3_server
from azure_server import ACCOUNT, AzureServer
from s3_server import BUCKET, KEY, SECRET, Stored

KINDS = ["https", "s3", "gs", "az"]
VARIABLES = {
    "https": {},
    "s3": {},
    "gs": {"AWS_ACCESS_KEY_ID": "", "GS_ACCESS_KEY_ID": KEY, "GS_SECRET_ACCESS_KEY": SECRET},
    "az": {"AWS_ACCESS_KEY_ID": "", "AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": azure_server.KEY},
}


class Cloud:
    """fault: as that of the servers. Their requests have `method` and `headers`."""

    def __init__(self, kind, fault=None, **options):
        servers = {"https": http_server.Server, "s3": s3_server.Server, "gs": s3_server.Server, "az": AzureServer}
        self.kind, self.variables = kind, VARIABLES[kind]
        self.server = servers[kind](fault, **({"google": True} if kind == "gs" else {}), **options)
        self.options = [] if kind == "https" else ["--endpoint", self.server.url]

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def name(self, path):
        return f"{self.server.url}/{path}" if self.kind == "https" else f"{self.kind}://{BUCKET}/{path}"

    def put(self, path, body, **how):
        """The name of an object that is there from now on, in place of another one. `how`: modified=SECONDS"""
        if self.kind == "https":
            return self.server.put(path, body, **how)
        self.server.objects[path] = Stored(body, **how)
        return self.name(path)

    @property
    def requests(self):
        return self.server.requests

    def answer(self, status, body=b"", headers=None):
        return (http_server.Answer if self.kind == "https" else s3_server.Answer)(status, body, headers or {})
