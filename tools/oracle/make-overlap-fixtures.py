"""Writes BLEU, chrF and ROUGE of a few dozen segments as sacrebleu and rouge-score compute them.

    python tools/oracle/make-overlap-fixtures.py packages/evals/fixtures/overlap.json
"""

import json
import sys

from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

SEGMENTS = [
    ("The cat sat on the mat.", ["The cat sat on the mat."]),
    ("The cat sat on the mat.", ["A cat was sitting on the mat.", "There is a cat on the mat."]),
    ("the the the the the the the", ["The cat is on the mat.", "There is a cat on the mat."]),
    ("It is a guide to action which ensures that the military always obeys the commands of the party.",
     ["It is a guide to action that ensures that the military will forever heed Party commands.",
      "It is the guiding principle which guarantees the military forces always being under the command of the Party.",
      "It is the practical guide for the army always to heed the directions of the party."]),
    ("It is to insure the troops forever hearing the activity guidebook that party direct.",
     ["It is a guide to action that ensures that the military will forever heed Party commands."]),
    ("yes", ["no"]),
    ("yes", ["yes"]),
    ("yes yes", ["yes"]),
    ("", ["something"]),
    ("something", [""]),
    ("Prices rose 3.5% to $1,234.50 - a record-high (2024).", ["Prices rose by 3.5 % to $1,234.50, a record high in 2024."]),
    ("Tom &amp; Jerry said &quot;hi&quot; &lt;b&gt;", ['Tom & Jerry said "hi" <b>']),
    ("hyphen-\nated line\nbreaks", ["hyphenated line breaks"]),
    ("Die Straße ist naß; übermäßig groß!", ["Die Straße ist nass, übermäßig groß."]),
    ("Le café coûte 3,50 € à l'Opéra.", ["Le café coûte 3,50 € près de l’Opéra."]),
    ("今日はとても良い天気です。", ["今日は天気がとても良いです。"]),
    ("Привет, мир! Как дела?", ["Привет мир, как твои дела?"]),
    ("emoji 😀😀 test 🎉", ["emoji 😀 test 🎉🎉"]),
    ("tabs\tand\u00a0no-break\u2003spaces", ["tabs and no-break spaces"]),
    ("e.g. U.S.A. vs. 10.5,20 and 7-8-9", ["E.g. USA vs 10.5, 20 and 7-8-9."]),
    ("[x] {y} ~z `q` a/b a@b #1 50% ^_^ |", ["[x] {y} z q a / b a@b #1 50 % ^_^"]),
    ("police killed the gunman", ["police kill the gunman", "the gunman police killed"]),
    ("First line of a summary.\nSecond line follows it.\n\nThird one ends.",
     ["Second line follows.\nA first line of the summary is here.\nThe third one ends it."]),
    ("w1 w2 w3 w4 w5", ["w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"]),
    ("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", ["w1 w2 w3 w4 w5"]),
    ("repeated words words words\nwords again words", ["words words again\nrepeated again words"]),
    ("A much longer output than the reference, which goes on and on and on without saying more.", ["A short reference."]),
    ("Short.", ["A much longer reference, which goes on and on and on and says a great deal more than that."]),
    ("'quoted' \"double\" (paren) [brack]", ["quoted double paren brack"]),
    ("a", ["a b c d e f"]),
]

ROUGE_TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def main(path):
    tokenize = Tokenizer13a()
    sentence_bleu = BLEU(effective_order=True)
    corpus_bleu = BLEU()
    chrf = CHRF()
    chrf_plus_plus = CHRF(word_order=2)
    scorer = rouge_scorer.RougeScorer(ROUGE_TYPES)
    segments = []
    for output, references in SEGMENTS:
        rouge = scorer.score_multi(references, output)
        segments.append({
            "output": output,
            "references": references,
            "tokens": tokenize(output).split(),
            "bleu": sentence_bleu.sentence_score(output, references).score / 100,
            "chrf": chrf.sentence_score(output, references).score / 100,
            "chrfPlusPlus": chrf_plus_plus.sentence_score(output, references).score / 100,
            "rouge": {name: list(rouge[name]) for name in ROUGE_TYPES},
        })
    outputs = [output for output, _ in SEGMENTS]
    most = max(len(references) for _, references in SEGMENTS)
    streams = [[references[i] if i < len(references) else None for _, references in SEGMENTS] for i in range(most)]
    corpus = {
        "bleu": corpus_bleu.corpus_score(outputs, streams).score / 100,
        "chrf": chrf.corpus_score(outputs, streams).score / 100,
        "chrfPlusPlus": chrf_plus_plus.corpus_score(outputs, streams).score / 100,
    }
    import sacrebleu
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"sacrebleu": sacrebleu.__version__, "segments": segments, "corpus": corpus}, file, ensure_ascii=True, indent=1)
        file.write("\n")


main(sys.argv[1])
