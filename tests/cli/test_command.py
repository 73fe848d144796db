# SPDX-License-Identifier: BSL-1.0
"""The frame of the command: versions, help, usage errors, standard output that cannot be written."""

import json
import os
import re
import signal
import subprocess

from command import COMMAND, is_one_sentence, run

SUBCOMMANDS = ["convert", "verify", "encode", "decode"]
# every documented option; the help must name each
OPTIONS = {
    "convert": ["--report", "--codec", "--bits", "--allow-lossy", "--overwrite", "--quiet", "--json", "--help"],
    "verify": ["--json", "--help"],
    "encode": [
        "--data-type",
        "--codec",
        "--elements",
        "--truncate",
        "--nonzero-is-true",
        "--assume-little-endian",
        "--output",
        "-o",
        "--help",
    ],
    "decode": [
        "--data-type",
        "--codec",
        "--elements",
        "--truncate",
        "--nonzero-is-true",
        "--strict-padding",
        "--assume-little-endian",
        "--output",
        "-o",
        "--help",
    ],
}


class TestCommand:
    def test_version_is_the_projects(self):
        r = run("--version")
        assert (r.returncode, r.stdout, r.stderr) == (0, f"zarrbits {os.environ['ZARRBITS_VERSION']}\n".encode(), "")

    def test_words_do_what_the_options_do(self):
        assert run("version").stdout == run("--version").stdout
        assert run("help").stdout == run("--help").stdout
        for name in SUBCOMMANDS:
            assert run("help", name).stdout == run(name, "--help").stdout
        r = run("help", "konvert")
        assert r.returncode == 2 and "did you mean convert?" in r.stderr

    def test_empty_values_are_errors(self):
        takes_value = re.compile(r"(?m)^  (?:-\w,)?(--[a-z-]+)(?:,-\w)? \S")
        names = {
            "convert": ["in.h5", "out.zarr"],
            "plan": ["in.h5"],
            "finalize": ["in.h5", "out.zarr"],
            "export": ["in.zarr", "out.h5"],
            "repack": ["in.h5", "out.h5"],
            "rename": ["refs.json", "/data", "https://host"],
            "digest": ["in.h5"],
            "verify": ["in.h5", "out.zarr"],
            "check": ["in.h5"],
            "inspect": ["in.h5"],
            "suggest": ["in.h5"],
            "doctor": [],
            "encode": [],
            "decode": [],
        }
        required = {"--codec": "bytes", "--data-type": "uint8", "--elements": "1"}  # of encode and decode
        tried = 0
        for command, arguments in names.items():
            options = [
                o for o in takes_value.findall(run(command, "--help").stdout.decode()) if o not in ("--help", "--log-format")
            ]
            for option in options:
                others = [w for o in required if o != option for w in (o, required[o])] if not arguments else []
                others = [] if command == "doctor" else others
                r = run(command, *arguments, *others, option, "")
                assert r.returncode == 2 and f"{option} has an empty value" in r.stderr, (command, option, r.stderr)
                assert is_one_sentence(r.stderr)
                tried += 1
            for i in range(len(arguments)):
                r = run(command, *[a if i != j else "" for j, a in enumerate(arguments)])
                assert r.returncode == 2 and "a name is empty" in r.stderr, (command, i, r.stderr)
        assert tried > 60

    def test_usage_errors_are_json_where_the_log_is(self):
        for arguments in (
            ["convert"],
            ["convert", "a", "b", "--foo"],
            ["convert", "--foo"],
            ["verify", "--threads", "", "a", "b"],
        ):
            r = run(*arguments[:1], "--log-format", "json", *arguments[1:])
            assert r.returncode == 2 and json.loads(r.stderr)["level"] == "error", r.stderr
            assert ("--foo" in arguments) == ('"--foo" is not an option' in json.loads(r.stderr)["message"])

    def test_help_lists_all_subcommands(self):
        for word in ("--help", "-h"):
            r = run(word)
            assert (r.returncode, r.stderr) == (0, "")
            for name in SUBCOMMANDS:
                assert re.search(rf"(?m)^  {name} +\w", r.stdout.decode())

    def test_help_of_each_subcommand_names_every_option_and_has_an_example(self):
        for name in SUBCOMMANDS:
            r = run(name, "--help")
            text = r.stdout.decode()
            assert (r.returncode, r.stderr) == (0, ""), name
            for option in OPTIONS[name]:
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{name} --help does not name {option}"
            assert f"zarrbits {name} " in text
            assert "Exit status" in text

    def test_usage_errors_are_one_sentence_and_status_2(self):
        cases = [
            [],
            ["frobnicate"],
            ["--frobnicate"],
            [""],
            ["encode"],
            ["encode", "--data-type", "bool"],
            ["decode", "--codec", "packbits"],
            ["encode", "--data-type", "bool", "--codec", "packbits", "--frobnicate"],
            ["encode", "--data-type", "bool", "--codec", "packbits", "one", "two"],
            ["encode", "--data-type", "bool", "--data-type", "bool", "--codec", "packbits"],
            ["encode", "--data-type", "bool", "--codec"],
            ["verify"],
            ["verify", "one.h5"],
            ["verify", "one.h5", "two.zarr", "three"],
            ["convert"],
        ]
        for count in ("-1", "", "1e3", "0x10", "12 ", "1.5", "99999999999999999999"):
            cases.append(["encode", "--data-type", "bool", "--codec", "packbits", "--elements=" + count])
        for arguments in cases:
            r = run(*arguments)
            assert (r.returncode, r.stdout) == (2, b""), arguments
            assert is_one_sentence(r.stderr), (arguments, r.stderr)

    def test_a_count_is_decimal_digits_only(self):
        # 010 is ten, never octal
        r = run("encode", "--data-type", "bool", "--codec", "packbits", "--elements", "010", data=bytes(10))
        assert (r.returncode, r.stdout) == (0, bytes(2))

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        r = run("a\nb\x1b[31mc")
        assert r.returncode == 2
        assert is_one_sentence(r.stderr), r.stderr
        assert r"a\x0ab\x1b[31mc" in r.stderr

    def test_output_that_cannot_be_written_is_an_error(self):
        codec = ["--data-type", "uint8", "--codec", "bytes"]
        for arguments in (["--version"], ["--help"], ["encode", "--help"], ["encode", *codec], ["decode", *codec]):
            with open("/dev/full", "wb") as full:
                r = run(*arguments, data=b"x" * 100, stdout=full)
            assert r.returncode == 1, arguments
            assert is_one_sentence(r.stderr), (arguments, r.stderr)
            assert "No space left" in r.stderr

    def test_output_that_is_closed_is_an_error_and_no_other_file_is_written(self):
        r = subprocess.run(
            ["/bin/sh", "-c", '"$0" encode --data-type uint8 --codec bytes >&-', COMMAND], input=b"abc", capture_output=True
        )
        assert r.returncode == 1
        assert is_one_sentence(r.stderr.decode()), r.stderr

    def end_of_reader(self, ignore):
        """A pipe whose reader leaves after a few bytes, with SIGPIPE as it is or ignored."""
        with open("/dev/zero", "rb") as zero:
            p = subprocess.Popen(
                [COMMAND, "encode", "--data-type", "uint8", "--codec", "bytes"],
                stdin=zero,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=(lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)) if ignore else None,
                restore_signals=not ignore,
            )
            assert p.stdout.read(100) == bytes(100)
            p.stdout.close()
            error = p.stderr.read()
            p.stderr.close()
            return p.wait(timeout=600), error

    def test_a_reader_that_leaves_ends_the_command_without_a_word(self):
        assert self.end_of_reader(ignore=False) == (-signal.SIGPIPE, b"")
        assert self.end_of_reader(ignore=True) == (1, b"")
