"""Writes what sacrebleu, rouge-score, rapidfuzz and jiwer say of random Unicode, and python-jsonschema of random schemas.

    python tools/oracle/make-unicode-text-fixtures.py packages/evals/fixtures
"""

import json
import os
import random
import sys
import unicodedata

import jiwer
from jsonschema import Draft7Validator, Draft202012Validator
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF
from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score

ROUGE_TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
ALPHABETS = [
    "abcde",
    "ABCxyz0123456789",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000",
    "éüßñøŁİıſK",
    "e\u0301a\u0308\u0327o\u0302",
    "αβγΣσςДжЯ",
    "今日天気です。、한국어",
    "עברית\u200fمرحبا",
    "😀🎉👩\u200d💻🇩🇪👍🏽",
    "𝒜𝓑𝟘𝟙𐍈𠀀𠮷",
    "\u200b\ufeff\u00ad\u0000\u0007\uffff",
]
# white space that JavaScript's trim removes
JS_SPACE = "\t\n\x0b\x0c\r \xa0\u1680" + "".join(chr(c) for c in range(0x2000, 0x200B)) + "\u2028\u2029\u202f\u205f\u3000\ufeff"


def random_word(rng):
    alphabet = rng.choice(ALPHABETS[:3] + ALPHABETS[4:])
    return "".join(rng.choice(alphabet if rng.random() < 0.85 else rng.choice(ALPHABETS)) for _ in range(rng.randint(1, 6)))


def random_text(rng):
    return "".join(random_word(rng) + rng.choice("     \n" + ALPHABETS[3]) for _ in range(rng.randint(0, 12)))


def edited(rng, text):
    characters = list(text)
    for _ in range(rng.randint(0, 1 + len(characters) // 6)):
        at = rng.randint(0, len(characters))
        kind = rng.random()
        if kind < 0.4:
            characters.insert(at, rng.choice(rng.choice(ALPHABETS)))
        elif at < len(characters):
            if kind < 0.7:
                del characters[at]
            else:
                characters[at] = rng.choice(rng.choice(ALPHABETS))
    return "".join(characters)


def comparable(text):
    return unicodedata.normalize("NFC", text).strip(JS_SPACE)


def text_rows(rng):
    bleu, chrf, chrf_plus_plus = BLEU(effective_order=True), CHRF(), CHRF(word_order=2)
    scorer = rouge_scorer.RougeScorer(ROUGE_TYPES)
    for _ in range(300):
        output = random_text(rng)
        references = [edited(rng, output) if rng.random() < 0.8 else random_text(rng) for _ in range(rng.randint(1, 3))]
        rouge = scorer.score_multi(references, output)
        first, mine = comparable(references[0]), comparable(output)
        words, spoken = comparable(references[0]).split(), comparable(output).split()
        yield {
            "output": output,
            "references": references,
            "bleu": bleu.sentence_score(output, references).score / 100,
            "chrf": chrf.sentence_score(output, references).score / 100,
            "chrfPlusPlus": chrf_plus_plus.sentence_score(output, references).score / 100,
            "rouge": {name: list(rouge[name]) for name in ROUGE_TYPES},
            "levenshtein": Levenshtein.normalized_similarity(mine, first),
            "ratio": fuzz.ratio(mine, first) / 100,
            "wer": jiwer.wer(" ".join(words), " ".join(spoken)) if words else None,
        }


def random_schema(rng, depth, modern):
    def child():
        return random_schema(rng, depth - 1, modern) if depth > 0 else rng.choice([{}, True, False, {"type": "string"}, {"type": "number"}])
    tuple_word, rest_word = ("prefixItems", "items") if modern else ("items", "additionalItems")
    keywords = {
        tuple_word: lambda: [child() for _ in range(rng.randint(1, 2))],
        rest_word: child,
        "contains": child,
        "minItems": lambda: rng.randint(0, 2),
        "maxItems": lambda: rng.randint(1, 3),
        "uniqueItems": lambda: True,
        "properties": lambda: {name: child() for name in rng.sample("ab", rng.randint(1, 2))},
        "patternProperties": lambda: {"^a": child()},
        "additionalProperties": child,
        "propertyNames": lambda: {"maxLength": 1},
        "required": lambda: rng.sample("abc", rng.randint(1, 2)),
        "minProperties": lambda: 1,
        "type": lambda: rng.choice(["string", "number", "integer", "array", "object", ["array", "null"]]),
        "enum": lambda: [f"b{rng.randint(0, 3)}", rng.randint(-1, 2), [], None],
        "const": lambda: random_value(rng, 1),
        "allOf": lambda: [child()],
        "anyOf": lambda: [child(), child()],
        "oneOf": lambda: [child(), child()],
        "not": child,
        "if": child,
        "then": child,
        "else": child,
        "minimum": lambda: rng.randint(-1, 2),
        "maxLength": lambda: 1,
    }
    if modern:
        keywords["minContains"] = lambda: rng.randint(0, 2)
        keywords["maxContains"] = lambda: rng.randint(1, 2)
        keywords["dependentRequired"] = lambda: {"a": ["b"]}
        keywords["unevaluatedItems"] = child
        keywords["unevaluatedProperties"] = child
    return {name: keywords[name]() for name in rng.sample(sorted(keywords), rng.randint(1, 4))}


def random_value(rng, depth):
    kinds = ["string", "number", "null", "boolean"] + (["array", "object"] * 3 if depth > 0 else [])
    kind = rng.choice(kinds)
    if kind == "array":
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind == "object":
        return {name: random_value(rng, depth - 1) for name in rng.sample(["a", "b", "c", "ab"], rng.randint(0, 3))}
    return {"string": rng.choice(["", "a", "bb", "😀"]), "number": rng.choice([-1, 0, 1, 2, 1.5]), "null": None, "boolean": rng.random() < 0.5}[kind]


def schema_rows(rng):
    for index in range(600):
        modern = index % 3 != 0
        schema = random_schema(rng, 2, modern)
        validator = (Draft202012Validator if modern else Draft7Validator)(schema)
        if not modern:
            schema["$schema"] = "http://json-schema.org/draft-07/schema#"
        values = [[], {}] + [random_value(rng, 2) for _ in range(4)]
        yield {"schema": schema, "values": [[value, validator.is_valid(value)] for value in values]}


def ranking_rows(rng):
    for _ in range(100):
        items = [f"document {index}" for index in range(rng.randint(2, 12))]
        ranked = rng.sample(items, len(items))
        relevant = rng.sample(items, rng.randint(1, len(items) - 1))
        k = rng.randint(1, len(items))
        truth = [int(item in relevant) for item in ranked]
        scores = [-index for index in range(len(ranked))]
        yield {
            "ranked": ranked,
            "relevant": relevant,
            "k": k,
            "ndcg": ndcg_score([truth], [scores], k=k),
            "averagePrecision": average_precision_score(truth, scores),
            "reciprocalRank": label_ranking_average_precision_score([[int(index == truth.index(1)) for index in range(len(truth))]], [scores]),
        }


def write(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")


write(os.path.join(sys.argv[1], "unicode-text.json"), list(text_rows(random.Random(19))))
write(os.path.join(sys.argv[1], "rankings.json"), list(ranking_rows(random.Random(19))))
write(os.path.join(sys.argv[1], "json-schemas.json"), list(schema_rows(random.Random(19))))
