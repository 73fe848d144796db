# SPDX-License-Identifier: BSL-1.0
"""Golden vectors through the pipes of `zarrbits encode` and `zarrbits decode`."""

import concurrent.futures
import json
import os
import random
import subprocess

from command import COMMAND, is_one_sentence, packbits, run

VECTORS = json.load(open(os.environ["ZARRBITS_GOLDEN"]))
# with sanitizers, a process takes ten times as long; core.golden has all vectors with them, too
SAMPLE = 60 if os.environ.get("ZARRBITS_SANITIZED") else 300


def arguments(v):
    codec = v.get("codec_json", {"name": v["codec"], "configuration": v["configuration"]})
    data_type = v["data_type"]
    a = [
        "--data-type",
        data_type if isinstance(data_type, str) else json.dumps(data_type),
        "--codec",
        json.dumps(codec),
        "--elements",
        v["elements"],
    ]
    return a + ["--truncate"] * v.get("truncate", False) + ["--nonzero-is-true"] * v.get("nonzero_is_true", False)


def ways(v):
    """(verb, input, wanted output or None where it must be refused)"""
    if "error" in v:
        if "decoded" in v:
            return [("encode", v["decoded"], None)]
        if "encoded" in v:
            return [("decode", v["encoded"], None)]
        return [("encode", "", None), ("decode", "", None)]
    both = [("encode", v["decoded"], v["encoded"]), ("decode", v["encoded"], v["decoded"])]
    return [w for w in both if v.get("stage") in (None, w[0])]


class TestVectors:
    def check(self, v):
        out = []
        for verb, given, wanted in ways(v):
            r = run(verb, *arguments(v), data=bytes.fromhex(given))
            if wanted is None:
                ok = r.returncode in (1, 2) and is_one_sentence(r.stderr)
                # a configuration is refused before any data is read
                ok = ok and ("decoded" in v or "encoded" in v or r.returncode == 2)
            else:
                ok = (r.returncode, r.stdout.hex(), r.stderr) == (0, wanted, "")
            out.append((ok, verb, v, r))
        return out

    def test_vectors_through_pipes(self):
        plain = [v for v in VECTORS if "error" not in v]
        refused = [v for v in VECTORS if "error" in v]
        chosen = random.Random(20).sample(plain, SAMPLE) + refused
        assert len(refused) > 20
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for results in pool.map(self.check, chosen):
                for ok, verb, v, r in results:
                    assert ok, (verb, v, r.returncode, r.stdout.hex()[:200], r.stderr)

    def test_pieces_of_any_size_give_the_same_bytes(self):
        rng = random.Random(21)
        for v in rng.sample([v for v in VECTORS if "error" not in v and v["elements"] > 20], 30):
            for verb, given, wanted in ways(v):
                p = subprocess.Popen([COMMAND, verb, *map(str, arguments(v))], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                data = bytes.fromhex(given)
                while data:
                    n = rng.randint(1, 7)
                    p.stdin.write(data[:n])
                    p.stdin.flush()
                    data = data[n:]
                out, _ = p.communicate(timeout=600)
                assert (p.returncode, out.hex()) == (0, wanted), (verb, v)


class TestConfiguration:
    def test_bare_names_are_codecs(self):
        assert run("encode", "--data-type", "bool", "--codec", "packbits", data=b"\1\0\1").stdout == b"\5"
        assert (
            run("encode", "--data-type", "bool", "--codec", "numcodecs.packbits", "--elements", 3, data=b"\1\0\1").stdout
            == b"\5\xa0"
        )
        assert run("encode", "--data-type", "uint8", "--codec", "bytes", data=b"abc").stdout == b"abc"
        assert run("encode", "--data-type", "uint8", "--codec", '"bytes"', data=b"abc").stdout == b"abc"

    def test_data_types_may_be_json(self):
        struct = {
            "name": "struct",
            "configuration": {"fields": [{"name": "a", "data_type": "uint16"}, {"name": "b", "data_type": "uint8"}]},
        }
        big = json.dumps({"name": "bytes", "configuration": {"endian": "big"}})
        r = run("encode", "--data-type", json.dumps(struct), "--codec", big, data=b"\1\2\3\4\5\6")
        assert (r.returncode, r.stdout) == (0, b"\2\1\3\5\4\6"), r.stderr
        text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
        r = run("decode", "--data-type", json.dumps(text), "--codec", big, data=b"\0\0\0a\0\0\0b")
        assert (r.returncode, r.stdout) == (0, b"a\0\0\0b\0\0\0"), r.stderr
        r = run("encode", "--data-type", json.dumps("uint8"), "--codec", "bytes", data=b"abc")
        assert (r.returncode, r.stdout) == (0, b"abc"), r.stderr

    def test_a_configuration_is_refused_with_what_would_be_right(self):
        r = run("encode", "--data-type", "uint16", "--codec", packbits(last_bit=16))
        assert (r.returncode, r.stdout) == (2, b"")
        for word in ("packbits", "last_bit", "16", "uint16", "15"):
            assert word in r.stderr

    def test_a_missing_byte_order_may_be_assumed(self):
        codec = ["--data-type", "uint16", "--codec", "bytes"]
        assert run("decode", *codec, data=b"\1\2").returncode == 2
        assert run("decode", *codec, "--assume-little-endian", data=b"\1\2").stdout == b"\1\2"

    def test_lost_bits_are_an_error_that_names_element_and_option(self):
        codec = ["--data-type", "uint16", "--codec", packbits(last_bit=11)]
        data = b"\xff\x0f\x00\x10"
        r = run("encode", *codec, data=data)
        assert r.returncode == 1
        assert is_one_sentence(r.stderr)
        for word in ("element 1", "0x1000", "--truncate"):
            assert word in r.stderr
        assert run("encode", *codec, "--truncate", data=data).stdout == b"\xff\x0f\x00"

    def test_truncate_drops_the_upper_bits_of_sub_byte_types(self):
        for codec, wanted in (("packbits", b"\x21"), ("bytes", b"\x01\x02")):
            r = run("encode", "--data-type", "uint4", "--codec", codec, data=b"\x11\x22")
            assert r.returncode == 1, codec
            r = run("encode", "--data-type", "uint4", "--codec", codec, "--truncate", data=b"\x11\x22")
            assert (r.returncode, r.stdout) == (0, wanted), codec

    def test_truncate_never_makes_a_bool(self):
        r = run("encode", "--data-type", "bool", "--codec", "packbits", "--truncate", data=b"\0\2")
        assert r.returncode == 1
        assert "--nonzero-is-true" in r.stderr
        r = run("encode", "--data-type", "bool", "--codec", "packbits", "--nonzero-is-true", data=b"\0\2")
        assert (r.returncode, r.stdout) == (0, b"\2")

    def test_strict_padding_refuses_stray_bits(self):
        codec = ["--data-type", "bool", "--codec", "packbits", "--elements", "3"]
        assert run("decode", *codec, data=b"\xfd").stdout == b"\1\0\1"
        r = run("decode", *codec, "--strict-padding", data=b"\xfd")
        assert (r.returncode, is_one_sentence(r.stderr)) == (1, True)

    def test_a_count_that_is_wrong_is_an_error(self):
        for verb, data in (("encode", b"\1\0"), ("encode", b"\1\0\1\0"), ("decode", b""), ("decode", b"\1\1")):
            r = run(verb, "--data-type", "bool", "--codec", "packbits", "--elements", "3", data=data)
            assert (r.returncode, is_one_sentence(r.stderr)) == (1, True), (verb, data, r.stderr)

    def test_sizes_that_do_not_fit_in_64_bits_are_refused(self):
        r = run("encode", "--data-type", "uint64", "--codec", packbits(), "--elements", 2**64 - 1)
        assert (r.returncode, is_one_sentence(r.stderr)) == (2, True), r.stderr
