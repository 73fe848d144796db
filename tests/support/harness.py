# SPDX-License-Identifier: BSL-1.0
"""What the tests in Python share: runs of the command, and stores and reports to compare. kills.py has runs that are cut off."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess

COMMAND = os.environ["ZARRBITS_COMMAND"]
# seconds without progress until a request counts as lost: few, so that such tests are quick; an emulated command needs more
PATIENCE = os.environ.get("ZARRBITS_S3_PATIENCE", "0.3")


def execute(*command, status=0, data=None, timeout=600, env=None, cwd=None, preexec_fn=None, **variables):
    """A program that ends, as a completed process.

    status: how it has to exit, or several ways; None: as it likes. data: bytes for its standard input, and then its standard
    output is bytes, too. variables: in its environment, beside those of `env`, or of this process."""
    command = [str(word) for word in command]
    how = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
    variables = {**(os.environ if env is None else env), **variables}
    done = subprocess.run(command, capture_output=True, timeout=timeout, env=variables, cwd=cwd, preexec_fn=preexec_fn, **how)
    done.stderr = done.stderr.decode(errors="replace")
    if data is None:
        done.stdout = done.stdout.decode(errors="replace")
    said = f"{shlex.join(command)}: exit {done.returncode}: {done.stderr}{done.stdout[-2000:]}"
    assert status is None or done.returncode in (status if isinstance(status, tuple) else (status,)), f"not {status}: {said}"
    assert "HDF5-DIAG" not in done.stderr, said
    return done


def run(*arguments, **how):
    """zarrbits with these arguments. What it exports to .nc has to be a file for netCDF-C."""
    done = execute(COMMAND, *arguments, **how)
    targets = [str(a) for a in arguments if str(a).endswith(".nc")]
    if arguments[0] == "export" and done.returncode in (0, 3) and targets and shutil.which("ncdump"):
        execute("ncdump", "-h", targets[-1], cwd=how.get("cwd"))
    return done


def convert(*arguments, **how):
    return run("convert", *arguments, **how)


def verify(*arguments, **how):
    """What verify says of a store, as JSON, with its exit status in it."""
    done = run("verify", "--json", *arguments, **how)
    report = json.loads(done.stdout)
    assert report["exit_status"] == done.returncode, report
    return report


def refused(*arguments, status=1, **how):
    """The one sentence of a command that fails."""
    lines = run(*arguments, status=status, **how).stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarrbits: "), lines
    return lines[0]


def contents(folder):
    """The bytes of all files below a folder, by their paths in it: a store by its keys."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file()}


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file())


def same(a, b):
    """Every file of one folder is in the other, with the same bytes."""
    left, right = contents(a), contents(b)
    different = [name for name in sorted(left.keys() | right.keys()) if left.get(name) != right.get(name)]
    assert left and not different, different[:10]


def report(path):
    """What --report wrote, without what is different in each run."""
    document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    for differs in ("store", "started", "seconds"):
        del document[differs]
    return document


class Case:
    """A file, and the store and report of an undisturbed run on one thread."""

    def __init__(self, folder, example, *options):
        self.folder, self.options = folder, options
        self.source, self.whole, self.out = (os.path.join(folder, n) for n in ("in.h5", "whole.zarr", "out.zarr"))
        self.whole_report, self.out_report = os.path.join(folder, "whole.json"), os.path.join(folder, "out.json")
        example(self.source)
        convert(self.source, self.whole, "--threads", 1, "--report", self.whole_report, *options)

    def matches(self):
        same(self.whole, self.out)
        assert report(self.whole_report) == report(self.out_report)

    def clear(self):
        shutil.rmtree(self.out)
        os.remove(self.out_report)
