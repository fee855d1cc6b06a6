"""
Writes the SentencePiece and byte-level fixtures' vocabularies as GGUF files without weights, for llama.cpp to read.

    python make_gguf_vocabularies.py ../../../packages/text/fixtures/tokenizers

Reads the tokenizer.json files there, writes `*.gguf` beside them. The SentencePiece scores are trained again: the same
corpus gives the same model. Needs the packages `gguf` and `sentencepiece`.
"""

import json
import pathlib
import sys

import gguf

from make_fixtures import sentencepiece_bpe, unigram_model

CONTROL, USER_DEFINED, UNKNOWN, BYTE, NORMAL = 3, 4, 2, 6, 1


def writer(path, model, pre=None):
    result = gguf.GGUFWriter(str(path), "llama")
    result.add_block_count(1)
    result.add_context_length(512)
    result.add_embedding_length(8)
    result.add_feed_forward_length(8)
    result.add_head_count(1)
    result.add_layer_norm_rms_eps(1e-5)
    result.add_tokenizer_model(model)
    if pre is not None:
        result.add_tokenizer_pre(pre)
    return result


def finish(result):
    result.write_header_to_file()
    result.write_kv_data_to_file()
    result.write_tensors_to_file()
    result.close()


def byte_level(folder, name, pre):
    content = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    tokens = {index: token for token, index in content["model"]["vocab"].items()}
    types = {index: NORMAL for index in tokens}
    for added in content["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    result = writer(folder / f"{name}.gguf", "gpt2", pre)
    result.add_token_list([tokens[index] for index in sorted(tokens)])
    result.add_token_types([types[index] for index in sorted(tokens)])
    result.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in content["model"]["merges"]])
    first_special = content["added_tokens"][0]["id"]
    result.add_bos_token_id(first_special)
    result.add_eos_token_id(content["added_tokens"][-1]["id"])
    finish(result)


def sentencepiece(folder, name, model, kind):
    types = {1: NORMAL, 2: UNKNOWN, 3: CONTROL, 4: USER_DEFINED, 5: 5, 6: BYTE}
    result = writer(folder / f"{name}.gguf", kind)
    result.add_token_list([piece.piece for piece in model.pieces])
    result.add_token_scores([piece.score for piece in model.pieces])
    result.add_token_types([types[piece.type] for piece in model.pieces])
    result.add_bos_token_id(1)
    result.add_eos_token_id(2)
    result.add_unk_token_id(0)
    if kind == "t5":
        result.add_add_space_prefix(True)
        result.add_remove_extra_whitespaces(True)
        result.add_precompiled_charsmap(model.normalizer_spec.precompiled_charsmap)
    finish(result)


def main():
    folder = pathlib.Path(sys.argv[1])
    byte_level(folder, "llama3", "llama-bpe")
    byte_level(folder, "qwen2", "qwen2")
    byte_level(folder, "gpt2", "gpt-2")
    byte_level(folder, "deepseek", "deepseek-v3")
    sentencepiece(folder, "sentencepiece-bpe", sentencepiece_bpe(), "llama")
    sentencepiece(folder, "sentencepiece-unigram", unigram_model(False), "t5")


if __name__ == "__main__":
    main()
