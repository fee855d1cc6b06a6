"""Writes what textstat says of random texts of several scripts.

    python tools/oracle/make-readability-fixtures.py packages/evals/fixtures
"""

import json
import random
import sys

import textstat

ALPHABETS = ["abcdefghij", "éüßñøł", "αβγδεζ", "дежзик", "𝒜𝓑𝒞𝒟", "שלום"]
draw = random.Random(3)


def word():
    alphabet = draw.choice(ALPHABETS)
    return "".join(draw.choice(alphabet) for _ in range(draw.randint(3, 12)))


def sentence():
    # a capital begins each, and a word of letters ends it, so that nobody doubts where it ends
    return "The " + " ".join(word() for _ in range(draw.randint(3, 14))) + " end."


rows = []
for _ in range(60):
    text = " ".join(sentence() for _ in range(draw.randint(1, 6)))
    words = text.split()
    sentences = text.count(".")
    assert textstat.lexicon_count(text) == len(words)
    if textstat.sentence_count(text) != sentences:
        continue
    rows.append(
        {
            "text": text,
            "ari": textstat.automated_readability_index(text),
            # by its counts: its own index has 0.058 where the paper has 0.0588
            "coleman_liau": 5.88 * textstat.letter_count(text) / len(words) - 29.6 * sentences / len(words) - 15.8,
            "lix": textstat.lix(text),
        }
    )
with open(f"{sys.argv[1]}/readability.json", "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
print(len(rows), "texts")
