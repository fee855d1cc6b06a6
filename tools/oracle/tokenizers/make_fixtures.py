"""
Trains the small tokenizers that the engine's tests run against Hugging Face's `tokenizers`, in the shapes of
published checkpoints: same pipeline steps and patterns, own little vocabularies.

    python make_fixtures.py ../../../packages/text/fixtures/tokenizers

Needs the packages `tokenizers` and `sentencepiece`.
"""

import base64
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from corpus import lines

GPT2_SPECIALS = ["<|endoftext|>"]
CHATML_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
LLAMA3_SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+""",
]


def train_byte_level(pre_tokenizer, specials, size=700):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, special_tokens=[]
    )
    tokenizer.train_from_iterator(lines(), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return tokenizer


def isolated(*patterns):
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated", invert=False) for pattern in patterns]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    return train_byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), GPT2_SPECIALS)


def qwen2():
    tokenizer = train_byte_level(isolated(QWEN2), CHATML_SPECIALS)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in ["<tool_call>", "</tool_call>", "<think>", "</think>"]])
    return tokenizer


def llama3():
    tokenizer = train_byte_level(isolated(LLAMA3), LLAMA3_SPECIALS)
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                special_tokens=[("<|begin_of_text|>", bos)],
            ),
        ]
    )
    return tokenizer


def with_ignored_merges(tokenizer):
    """Adds a word that merging alone would not reach, behind the trained vocabulary; the special tokens move up."""
    content = json.loads(tokenizer.to_str())
    content["model"]["ignore_merges"] = True
    content["model"]["vocab"]["ĠOctavo"] = len(content["model"]["vocab"])
    for token in content["added_tokens"]:
        token["id"] += 1
    for special in content["post_processor"]["processors"][1]["special_tokens"].values():
        special["ids"] = [id + 1 for id in special["ids"]]
    return content


def sentencepiece_bpe(size=900):
    """Pieces and scores of a SentencePiece BPE model with byte fallback, in Llama 2's order: specials, bytes, merges."""
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(list(lines())),
            model_prefix=f"{folder}/model",
            model_type="bpe",
            vocab_size=size,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            split_digits=True,
            character_coverage=0.995,
            minloglevel=2,
        )
        model = model_pb2.ModelProto()
        model.ParseFromString(pathlib.Path(f"{folder}/model.model").read_bytes())
        return model


def merges_of(vocab, scores):
    """All pairs that join to a piece, best piece first: how transformers' converter recovers merges."""
    merges = []
    for piece in vocab:
        local = []
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocab and right in vocab:
                local.append((left, right, scores[piece]))
        local.sort(key=lambda merge: (vocab[merge[0]], vocab[merge[1]]))
        merges.extend(local)
    merges.sort(key=lambda merge: merge[2], reverse=True)
    return [[left, right] for left, right, _ in merges]


def llama2(model, style):
    pieces = [(piece.piece, piece.score) for piece in model.pieces]
    vocab = {piece: index for index, (piece, _) in enumerate(pieces)}
    scores = dict(pieces)
    normal = {piece.piece: vocab[piece.piece] for piece in model.pieces if piece.type == 1}
    added = [
        {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for index, content in enumerate(["<unk>", "<s>", "</s>"])
    ]
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocab,
            "merges": merges_of(normal, scores),
        },
    }
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    if style == "legacy":
        content["normalizer"] = {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "\u2581"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            ],
        }
        content["decoder"]["decoders"].append(strip)
    elif style == "metaspace":
        content["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
        content["decoder"]["decoders"].append(strip)
    else:
        content["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        content["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
        # Gemma adds runs of newlines and spaces as tokens of their own
        for length in range(2, 8):
            for unit in ["\n", "\u2581"]:
                token = unit * length
                if token not in vocab:
                    vocab[token] = len(vocab)
                added.append({**added[0], "id": vocab[token], "content": token, "special": False})
        added.sort(key=lambda token: token["id"])
    return content


def bert(lowercase):
    """WordPiece with BERT's normaliser; its pairs have types. Without lower case, RoBERTa's form of pairs."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=lowercase)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=600, special_tokens=specials, show_progress=False))
    ids = {token: tokenizer.token_to_id(token) for token in specials}
    if lowercase:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[(token, ids[token]) for token in ["[CLS]", "[SEP]"]],
        )
    else:
        tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]), trim_offsets=False)
    return tokenizer


FRAGMENTS = " |  |\n|\t|a|Z|ab|the|Ing|'s|don't do not| n't|é|e\u0301|ß|İ|1|12|.|,|!!|_|-|字|の|한|ा|\u0301|\u200d|😀|\u0000|\u00ad|\ufffd|[CLS]|[SEP]|a word of more than twentyonecharacters".split("|")


def pairs(tokenizer):
    """Random texts: ids alone, joined, and joined and cut to fit; and the first one decoded again."""
    draw = random.Random(1)
    rows = []
    for most in range(4, 44):
        first, second = ("".join(draw.choices(FRAGMENTS, k=draw.randrange(20))) for _ in range(2))
        alone = tokenizer.encode(first)
        joined = tokenizer.encode(first, second)
        tokenizer.enable_truncation(most, strategy="longest_first")
        cut = tokenizer.encode(first, second)
        tokenizer.no_truncation()
        row = {"first": first, "second": second, "ids": alone.ids, "joined": [joined.ids, joined.type_ids], "most": most, "cut": [cut.ids, cut.type_ids]}
        rows.append(row | {"decoded": tokenizer.decode(alone.ids)})
    return rows


def write_pairs(folder):
    # Of the files: another training may break ties in another way.
    names = ["bert-uncased", "bert-cased"]
    write(folder, "bert-pairs", {name: pairs(Tokenizer.from_file(str(folder / f"{name}.json"))) for name in names})


NORMALIZATION = [
    ("Ａ", "A"), ("Ｂ", "B"), ("ｃ", "c"), ("１", "1"), ("ﬁ", "fi"), ("ﬀ", "ff"), ("…", "..."), ("\u00a0", " "), ("\u3000", " "), ("\t", " "),
    ("\n", " "), ("\r", " "), ("e\u0301", "é"), ("o\u0308", "ö"), ("\u200b", " "), ("\u00ad", ""), ("㈱", "(株)"), ("ｶﾞ", "ガ"),
    ("ｶ", "カ"), ("™", "TM"), ("½", "1/2"),
]


def unigram_model(byte_fallback):
    with tempfile.TemporaryDirectory() as folder:
        rules = "\n".join(
            "\t".join(" ".join(f"{ord(character):X}" for character in side) for side in rule) for rule in NORMALIZATION
        )
        pathlib.Path(f"{folder}/rules.tsv").write_text(rules + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(list(lines())),
            model_prefix=f"{folder}/model",
            model_type="unigram",
            vocab_size=750 if byte_fallback else 500,
            byte_fallback=byte_fallback,
            normalization_rule_tsv=f"{folder}/rules.tsv",
            character_coverage=0.99,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        model = model_pb2.ModelProto()
        model.ParseFromString(pathlib.Path(f"{folder}/model.model").read_bytes())
        return model


def unigram(byte_fallback):
    model = unigram_model(byte_fallback)
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": index, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for index, content in enumerate(["<unk>", "<s>", "</s>"])
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}},
        },
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": 0,
            "vocab": [[piece.piece, piece.score] for piece in model.pieces],
            "byte_fallback": byte_fallback,
        },
    }
    if byte_fallback:
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, tokenizer["pre_tokenizer"]]}
        tokenizer["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, tokenizer["decoder"]]}
    return tokenizer


def write(folder, name, content):
    if isinstance(content, Tokenizer):
        content = json.loads(content.to_str())
    (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, "gpt2", gpt2())
    write(folder, "qwen2", qwen2())
    write(folder, "llama3", with_ignored_merges(llama3()))
    write(folder, "cl100k", train_byte_level(isolated(CL100K), GPT2_SPECIALS))
    write(folder, "o200k", train_byte_level(isolated(O200K), GPT2_SPECIALS))
    write(folder, "deepseek", train_byte_level(isolated(*DEEPSEEK), ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"]))
    bpe = sentencepiece_bpe()
    write(folder, "llama2-legacy", llama2(bpe, "legacy"))
    write(folder, "llama2-metaspace", llama2(bpe, "metaspace"))
    write(folder, "gemma", llama2(bpe, "gemma"))
    write(folder, "bert-uncased", bert(True))
    write(folder, "bert-cased", bert(False))
    write_pairs(folder)
    write(folder, "unigram", unigram(False))
    write(folder, "unigram-bytes", unigram(True))


if __name__ == "__main__":
    main()
