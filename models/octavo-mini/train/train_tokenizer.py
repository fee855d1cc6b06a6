"""Trains the byte-level BPE tokenizer on a sample of the corpus and writes tokenizer.json."""

import argparse
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from rendering import MODEL_FOLDER, load_template, render

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKUP = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]

# Qwen's pattern: words take at most one leading symbol, digits stand alone.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("corpus", help="JSON lines of conversations")
    arguments.add_argument("--vocabulary", type=int, default=4096)
    options = arguments.parse_args()

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocabulary - len(SPECIAL) - len(MARKUP),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    template = load_template()
    with open(options.corpus) as lines:
        texts = (strip_markup(render(template, json.loads(line))) for line in lines)
        tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in MARKUP])
    tokenizer.save(str(MODEL_FOLDER / "tokenizer.json"))
    print(tokenizer.get_vocab_size(), "tokens")


def strip_markup(text):
    """Keeps the added tokens' own spelling from taking up merges."""
    for token in SPECIAL + MARKUP:
        text = text.replace(token, "\n")
    return text


if __name__ == "__main__":
    main()
