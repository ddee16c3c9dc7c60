"""What a hostile or broken client may send, as the very text that goes over the wire."""

import json
from collections.abc import Mapping

# What no JSON body may hold, whatever the field: refused before anybody looks at the field.
NEVER: Mapping[str, str] = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "a number over the doubles": "1e999",
    "a number over the doubles, inside": '{"a": [-1e999]}',
    "a lone high surrogate": r'"\ud83d"',
    "a lone low surrogate, inside": r'["x\udc00"]',
    "a lone surrogate as a key": r'{"\ud83d": 1}',
    "a key twice": '{"a": 1, "a": 1}',
    "two keys that U+FFFD makes one": r'{"\u0000": 1, "\ufffd": 1}',
    "no JSON": "nope",
    "a number with a leading zero": "01",
    "a number of 5,000 digits": "1" * 5000,
    "lists 101 deep": "[" * 101 + "]" * 101,
    "objects 101 deep": '{"a":' * 100 + "{}" + "}" * 100,
    "lists 1,000 deep": "[" * 1000 + "]" * 1000,
    "lists 20,000 deep": "[" * 20_000 + "]" * 20_000,
    "objects 20,000 deep": '{"a":' * 20_000 + "1" + "}" * 20_000,
}

# Those that only the field itself can tell from good ones, and one that the parser must.
AT_EACH_FIELD = ("lists 101 deep", "objects 101 deep", "a lone high surrogate", "NaN")

# What is good JSON: whether a field takes it is the document's to say.
JSON: Mapping[str, str] = {
    "null": "null",
    "true": "true",
    "0": "0",
    "-1": "-1",
    "1.0": "1.0",
    "5.5": "5.5",
    "-0.0": "-0.0",
    "1e2": "1e2",
    "0.1 + 0.2": "0.30000000000000004",
    "2^53 + 1": str(2**53 + 1),
    "2^63": str(2**63),
    "10^30": str(10**30),
    "no text": '""',
    "blanks": '" x "',
    "a digit of another script": '"٣"',
    "a number as text": '"1e3"',
    "U+0000": r'"\u0000"',
    "U+0000 inside": r'"a\u0000b"',
    "six characters that look like U+0000": r'"\\u0000"',
    "a pair of surrogates": r'"\ud83d\ude00"',
    "2,000 characters": json.dumps("x" * 2000),
    "100,000 characters": json.dumps("é" * 100_000),
    "an empty list": "[]",
    "a list of texts": r'["", "a\u0000"]',
    "an empty object": "{}",
    "an object": r'{"z": 1, "a": {"\u0000": [1.0, 1, true]}, "": ""}',
    "lists 100 deep": "[" * 100 + "]" * 100,
    "objects 100 deep": '{"a":' * 99 + "{}" + "}" * 99,
}

# What no parameter of a query takes for a number.
NO_NUMBERS = ("", "abc", "1e3", "٣", "1.0", "+1", " 1", "1_0", "0x1", "-1", "-0", "01", "null")
BEYOND_NUMBERS = (str(2**63), str(10**20), str(10**30), "9" * 5000)

# In a query or a path, already percent-encoded where that matters.
ENCODED = (
    "%00",
    "a%00b",
    "%ff",
    "%ED%A0%BD",
    "%E2%80%AE",
    "%F0%9F%98%80",
    "%25",
    "%",
    "%zz",
    "%0d%0aX-Injected:%201",
    "'%20OR%201=1--",
    "%22",
    "*",
    "sess_",
    "0" * 300,
    "x" * 20_000,
)

BODIES: Mapping[str, bytes] = {
    "null": b"null",
    "a list": b"[]",
    "a text": b'"text"',
    "a number": b"1",
    "true": b"true",
    "an open object": b'{"a": 1',
    "two objects": b"{}{}",
    "no UTF-8": b'{"title": "\xff\xfe"}',
    "UTF-16": '{"title": "x"}'.encode("utf-16"),
    "a surrogate in UTF-8": b'{"title": "\xed\xa0\xbd"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NUL bytes": b"\x00\x00",
    "a raw NUL in a text": b'{"title": "a\x00b"}',
    "only blanks": b"  ",
    "a form": b"title=x",
    "a key of a megabyte": b'{"' + b"k" * 1_000_000 + b'": 1}',
    "100,000 keys": json.dumps({f"k{number}": number for number in range(100_000)}).encode(),
    "100,000 unknown keys in a list": b'{"messages": [' + b'{"k": 1},' * 99_999 + b"{}]}",
    "lists 20,000 deep": b"[" * 20_000 + b"]" * 20_000,
}

CONTENT_TYPES = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/json; charset=latin-1",
    "application/json; charset=utf-16",
    "application/jsonp",
    "application/*",
    "nonsense",
    ";",
    "\xff\xfe",
)

# By the header's name: values of it that say nothing this server understands.
HEADERS: Mapping[str, tuple[str, ...]] = {
    "If-Match": ("", "7", '"', '"7', 'W/"1"', '"1", "2"', '"' + "9" * 400 + '"', "\xff", '"\xff"'),
    "If-None-Match": ("", "7", '"', 'W/"', ",", '"' + "9" * 5000 + '"', "\xff", "*, *"),
    "Idempotency-Key": ("", "x" * 256, "\xff", "ключ", "a\tb", "%00", "'"),
    "Prefer": ("", "return", "return=", "return=everything", ",;=", "\xff", "return=minimal;x"),
    "X-Stainless-Retry-Count": ("", "-1", "0", "1", "9" * 5000, "٣", "\xb2", "many"),
    "Accept": ("text/html", "application/xml", "nonsense", "", "*/*;q=nan", "\xff"),
    "Accept-Language": ("\xff", "x" * 5000, "zh-hans", "*;q=2"),
    "Content-Encoding": ("gzip", "br", "\xff"),
    "X-Request-Id": ("", "x" * 5000, "\xff", "a b", "{}"),
    "Range": ("bytes=0-1", "nonsense"),
    "If-Modified-Since": ("nonsense", "Thu, 01 Jan 1970 00:00:00 GMT"),
    "X-HTTP-Method-Override": ("DELETE",),
    "X-Forwarded-Host": ("evil.example",),
    "Cookie": ("sessionid=nonsense; csrftoken=\xff",),
    "Origin": ("https://evil.example",),
}

AUTHORIZATIONS = (
    "",
    "Bearer",
    "Bearer ",
    "Bearer a b",
    "Bearer \xff",
    "Bearer ключ",
    "Bearer " + "x" * 20_000,
    "Basic YTpi",
    "Token {token}",
    "bearer",
    "{token}",
)
