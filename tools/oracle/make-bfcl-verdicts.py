"""Verdicts of the Berkeley Function-Calling Leaderboard's own checker on calls of made-up functions.

    pip install --no-deps bfcl-eval
    python tools/oracle/make-bfcl-verdicts.py

writes packages/evals/fixtures/bfcl-verdicts.json.
"""

import copy
import json
import random
import sys
import types
from collections import defaultdict
from pathlib import Path

# The checker asks which models write underscores for dots; the real table imports every vendor's client.
models = types.ModuleType("bfcl_eval.constants.model_config")
models.MODEL_CONFIG_MAPPING = defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=True))
sys.modules["bfcl_eval.constants.model_config"] = models

from bfcl_eval.constants.enums import Language  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402

draw = random.Random(5)


def function(name, required, **parameters):
    return {
        "name": name,
        "description": "",
        "parameters": {"type": "dict", "required": required, "properties": parameters},
    }


def of(kind, item=None):
    return {"type": kind, "description": "", **({} if item is None else {"items": {"type": item}})}


python_cases = {
    "simple_python": [
        (
            [function("shop.order", ["item", "count"], item=of("string"), count=of("integer"), price=of("float"), gift=of("boolean"))],
            [{"shop.order": {"item": ["Red tea, 100 g", "red tea"], "count": [3], "price": [2.5, 3, ""], "gift": [True, ""]}}],
        ),
        (
            [function("plot", ["points"], points=of("array", "integer"), labels=of("array", "string"), at=of("tuple", "float"))],
            [{"plot": {"points": [[1, 2, 3], [3, 2, 1]], "labels": [["Rain", "Sun-shine"], ""], "at": [[0.5, 1.5], ""]}}],
        ),
        (
            [function("send", ["body"], body=of("dict"), year=of("integer"))],
            [{"send": {"body": [{"to": ["Ada", "ada b."], "copies": [2, ""]}], "year": ["any year", ""]}}],
        ),
        (
            [function("book", ["guests"], guests=of("array", "dict"))],
            [{"book": {"guests": [[{"name": ["Ada"], "age": [36, ""]}, {"name": ["Bo"]}]]}}],
        ),
    ],
    "parallel_multiple": [
        (
            [
                function("turn.on", ["room"], room=of("string"), level=of("integer")),
                function("turn.off", ["room"], room=of("string")),
            ],
            [
                {"turn.on": {"room": ["hall"], "level": [5, ""]}},
                {"turn.off": {"room": ["kitchen", "the kitchen"]}},
                {"turn.on": {"room": ["bath"], "level": [1]}},
            ],
        )
    ],
}
source_cases = {
    "simple_java": [
        (
            [
                function(
                    "Db.open", ["id"], id=of("long"), rate=of("float"), ratio=of("double"), isOpen=of("boolean"),
                    names=of("ArrayList", "String"), sizes=of("Array", "integer"), options=of("HashMap"), sink=of("any"),
                )
            ],
            [
                {
                    "Db.open": {
                        "id": [12], "rate": [1.5, ""], "ratio": [0.25, ""], "isOpen": [True, ""], "names": [["a", "b"], ""],
                        "sizes": [[1, 2], ""], "options": [{"limit": [50], "schema": ["public"]}, ""], "sink": ["out", ""],
                    }
                }
            ],
        )
    ],
    "simple_javascript": [
        (
            [
                function(
                    "draw", ["shape"], shape=of("String"), size=of("integer"), scale=of("float"), big=of("Bigint"),
                    isFilled=of("Boolean"), points=of("array", "integer"), options=of("dict"), target=of("any"),
                )
            ],
            [
                {
                    "draw": {
                        "shape": ["circle"], "size": [3, ""], "scale": [1.5, ""], "big": [7, ""], "isFilled": [False, ""],
                        "points": [[1, 2, 3], ""], "options": [{"color": ["red"], "width": [2]}, ""], "target": ["canvas", ""],
                    }
                }
            ],
        )
    ],
}
texts = {
    "simple_java": [
        "12", "12L", "12l", "1.5", "1.5f", "1.5F", "0.25", "0.25d", "true", "false", "True", '"out"', "out", "null",
        'new ArrayList<String>(Arrays.asList("a", "b"))', 'new ArrayList<String>(Arrays.asList("b", "a"))', "new ArrayList<String>()",
        'new ArrayList<>() {{ add("a"); add("b"); }}', "new int[]{1, 2}", "new int[] {1,2}", "new int[]{2, 1}", "[1, 2]",
        'new HashMap<String, Object>() {{ put("limit", 50); put("schema", "public"); }}', "new HashMap<>()",
        'new HashMap<String, Object>() {{ put("limit", 51); put("schema", "public"); }}',
    ],
    "simple_javascript": [
        "circle", '"circle"', "'Circle'", "3", "3.0", "1.5", "7n", "7", "true", "false", "[1, 2, 3]", "[1,2,3]", "[3, 2, 1]", "[]",
        "new Array(1, 2, 3)", '{"color": "red", "width": 2}', "{color: 'red', width: 2}", "{color: 'red', width: 3}", "{}", "canvas",
        "null", "undefined",
    ],
}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(next(one for one in values if one != "")) for key, values in value.items() if values != [""]}
    return [plain(item) for item in value] if isinstance(value, list) else value


def changed(value):
    if isinstance(value, bool):
        return [not value, str(value), int(value)]
    if isinstance(value, (int, float)):
        return [value + 1, -value, str(value), value + 0.5, [value], None]
    if isinstance(value, str):
        return [value.upper(), value + ".", value + "s", value.replace(" ", ""), "", "'" + value + "'", [value], 5, None]
    if isinstance(value, list):
        return [value[::-1], value[:-1], value + value[:1], [], "x", None] + [[one] + value[1:] for one in changed(value[0])]
    out = [{}, {**value, "more": 1}, "x", [value], None]
    for key in value:
        out.append({other: item for other, item in value.items() if other != key})
        out += [{**value, key: one} for one in changed(value[key])]
    return out


def gold_calls(gold):
    for call in gold:
        ((name, accepted),) = call.items()
        yield name, {
            key: plain(next(one for one in values if one != "")) for key, values in accepted.items() if any(one != "" for one in values)
        }


def source_variations(gold, source_texts, required):
    """Every text for every parameter, beside what is required."""
    (name, accepted), = gold[0].items()
    for parameter in accepted:
        for text in [*source_texts, 5]:
            yield [(name, {**required, parameter: text})]


def variations(gold, count):
    base = list(gold_calls(gold))
    yield base
    for _ in range(count):
        calls = copy.deepcopy(base)
        name, given = draw.choice(calls)
        kind = draw.random()
        key = draw.choice(list(given) or ["none"])
        if kind < 0.1:
            draw.shuffle(calls)
        elif kind < 0.15:
            calls.append(copy.deepcopy(calls[0]))
        elif kind < 0.2:
            given["unknown"] = 1
        elif kind < 0.3:
            given.pop(key, None)
        elif kind < 0.45:
            accepted = next(call[name] for call in gold if name in call)
            parameter = draw.choice(list(accepted))
            choice = draw.choice(accepted[parameter])
            if choice != "":
                given[parameter] = plain(choice)
        elif key in given:
            given[key] = draw.choice(changed(given[key]))
        yield calls


def verdict(category, functions, gold, calls, language):
    made = [{name.replace(".", "_"): given} for name, given in calls]
    try:
        return bool(ast_checker(functions, made, gold, language, category, "any-model")["valid"])
    except Exception:  # the checker itself fails on some calls: they have no verdict
        return None


languages = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
cases = []
for category, given in {**python_cases, **source_cases}.items():
    for number, (functions, gold) in enumerate(given):
        seen = {}
        required = {"simple_java": {"id": "12L"}, "simple_javascript": {"shape": "circle"}}.get(category)
        made = variations(gold, 60) if required is None else source_variations(gold, texts[category], required)
        for calls in made:
            valid = verdict(category, functions, gold, calls, languages.get(category, Language.PYTHON))
            if valid is not None:
                seen.setdefault(json.dumps(calls), valid)
        cases.append(
            {
                "id": f"{category}_{number}",
                "function": functions,
                "ground_truth": gold,
                "answers": [[json.loads(calls), valid] for calls, valid in seen.items()],
            }
        )
path = Path(__file__).parents[2] / "packages/evals/fixtures/bfcl-verdicts.json"
path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
for case in cases:
    verdicts = [valid for _, valid in case["answers"]]
    print(case["id"], len(verdicts), sum(verdicts))
