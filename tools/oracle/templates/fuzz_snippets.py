"""
Random small templates, rendered through jinja2 as transformers sets it up, for `compare.mjs`:

    python fuzz_snippets.py SEED COUNT > /tmp/fuzz.json && node compare.mjs /tmp/fuzz.json
"""

import json
import random
import re
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

from snippets import VARIABLES

ATOMS = [
    "none", "true", "false", "missing", "text", "spaced", "unicode", "numbers", "mixed", "items", "mapping", "html", "nothing",
    "0", "1", "2", "-3", "7", "2.5", "0.125", "-1.5", "1e3", "''", "'a'", "'<b>&'", "'a-b c'", "'x\\ny'", "'a\\u2028b'", "'12'", "' 3.7 '",
    "[]", "{}", "(1, 2)", "[3, 1]", "['b', 'A']", "{'a': 1, 'b': [2]}", "[{'a': 1}, {'a': none}, {}]", "'one two-three four--five'", "range(3)|list",
]  # fmt: skip
ARGUMENTS = ["none", "true", "0", "1", "2", "-1", "3", "'a'", "'name'", "'a.b'", "' '", "''", "'odd'", "'string'", "'eq', 1", "'upper'", "attribute='a'", "attribute=none", "'size', 'gt', 1", "missing", "default='d'", "1, 'ceil'", "2, true", "'-', '+'"]
FILTERS = (
    "abs attr batch capitalize center count d default dictsort e escape filesizeformat first float forceescape format groupby indent int items join last "
    "length list lower map max min reject rejectattr replace reverse round safe select selectattr slice sort string striptags sum title tojson trim "
    "truncate unique upper urlencode wordcount wordwrap xmlattr"
).split()
TESTS = "boolean callable defined divisibleby(2) eq(1) escaped even false float ge(1) in([1,'a']) integer iterable lower lt(2) mapping ne('a') none number odd sameas(none) sequence string true undefined upper".split()
METHODS = "strip lstrip rstrip split rsplit splitlines upper lower title capitalize swapcase startswith endswith find rfind count replace join partition rpartition isalpha isdigit isupper islower istitle isspace zfill center ljust rjust removeprefix removesuffix get items keys values index copy format expandtabs casefold".split()
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def expression(choose, depth):
    kind = choose.random()
    if depth == 0 or kind < 0.12:
        return choose.choice(ATOMS)
    inner = lambda: expression(choose, depth - 1)  # noqa: E731
    arguments = lambda: f"({choose.choice(ARGUMENTS)})" if choose.random() < 0.5 else ""  # noqa: E731
    if kind < 0.5:
        return f"({inner()}|{choose.choice(FILTERS)}{arguments()})"
    if kind < 0.6:
        return f"({inner()} is {choose.choice(['', 'not '])}{choose.choice(TESTS)})"
    if kind < 0.7:
        return f"({inner()}.{choose.choice(METHODS)}({choose.choice(['', *ARGUMENTS])}))"
    if kind < 0.78:
        return f"{inner()}[{choose.choice([inner(), '0', '-1', '1:', ':-1', '::-1', ':2', repr('a')])}]"
    if kind < 0.95:
        return f"({inner()} {choose.choice(OPERATORS)} {inner()})"
    return f"({inner()} if {inner()} else {inner()})"


def main():
    choose = random.Random(int(sys.argv[1]))
    cases = []
    while len(cases) < int(sys.argv[2]):
        source = "{{ " + expression(choose, choose.choice([1, 2, 2, 3])) + " }}"
        try:
            result = {"text": _compile_jinja_template(source).render(**json.loads(json.dumps(VARIABLES)))}
        except (MemoryError, RecursionError, OverflowError):
            continue
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        # what Python prints of objects with their address, of views and of methods is not told by templates
        if re.search(r" at 0x|dict_(items|keys|values)|built-in|generator object", result.get("text", "") + result.get("error", "")):
            continue
        if len(result.get("text", "")) < 5000:
            cases.append({"source": source, **result})
    json.dump({"variables": VARIABLES, "cases": cases}, sys.stdout, ensure_ascii=False)


main()
