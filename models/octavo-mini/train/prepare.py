"""Turns conversations into token ids with a mark on what the assistant said.

Writes tokens.npy (uint16, all conversations in order), spoken.npy (bool per
token: inside an assistant turn, its <|im_end|> included) and starts.npy.
"""

import argparse
import json
from itertools import islice
from pathlib import Path

import numpy
from tokenizers import Tokenizer

from rendering import MODEL_FOLDER, load_template, render


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("corpus")
    arguments.add_argument("out", help="folder for the three arrays")
    arguments.add_argument("--longest", type=int, default=8192, help="conversations with more tokens are left out")
    options = arguments.parse_args()

    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / "tokenizer.json"))
    template = load_template()
    tokens, spoken, starts, length = [], [], [0], 0
    with open(options.corpus) as lines:
        while batch := [render(template, json.loads(line)) for line in islice(lines, 2000)]:
            for encoding in tokenizer.encode_batch(batch):
                ids = numpy.array(encoding.ids, dtype=numpy.uint16)
                if len(ids) > options.longest:
                    continue
                tokens.append(ids)
                spoken.append(assistant_mask(ids, tokenizer))
                length += len(ids)
                starts.append(length)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    numpy.save(out / "tokens.npy", numpy.concatenate(tokens))
    numpy.save(out / "spoken.npy", numpy.concatenate(spoken))
    numpy.save(out / "starts.npy", numpy.array(starts, dtype=numpy.int64))
    share = sum(int(mask.sum()) for mask in spoken) / length
    print(f"{len(tokens)} conversations, {length} tokens, {share:.0%} spoken by the assistant")


def assistant_mask(ids, tokenizer):
    begin = tokenizer.token_to_id("<|im_start|>")
    end = tokenizer.token_to_id("<|im_end|>")
    header = tokenizer.encode("<|im_start|>assistant\n").ids
    mask = numpy.zeros(len(ids), dtype=bool)
    for position in numpy.flatnonzero(ids == begin):
        first = position + len(header)
        if list(ids[position:first]) != header:
            continue
        last = first + int(numpy.argmax(ids[first:] == end))
        mask[first : last + 1] = True
    return mask


if __name__ == "__main__":
    main()
