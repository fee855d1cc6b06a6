"""The fixtures of BERT and XLM-RoBERTa as GGUF files, as llama.cpp's converter writes them (conversion/bert.py).

-> packages/artifacts/fixtures/embeddings/<name>-gguf.gguf, with the texts, ids and embeddings that sentence-transformers gave for <name>
"""

import json
import shutil
from pathlib import Path

import gguf
from safetensors.numpy import load_file

FOLDER = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures/embeddings"
NORMAL, CONTROL, UNKNOWN = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN


def tokens_of(tokenizer: dict) -> tuple[list[str], list[int]]:
    specials = {token["content"] for token in tokenizer["added_tokens"]}
    vocab = tokenizer["model"]["vocab"]
    if isinstance(vocab, list):
        return [token for token, _ in vocab], [UNKNOWN if token == "<unk>" else CONTROL if token in specials else NORMAL for token, _ in vocab]
    names = sorted(vocab, key=vocab.get)
    marked = [name if name in specials else name[2:] if name.startswith("##") else "\u2581" + name for name in names]
    return marked, [CONTROL if name in specials else NORMAL for name in names]


def convert(name: str, pooling: gguf.PoolingType) -> None:
    source = FOLDER / name
    config = json.loads((source / "config.json").read_text())
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tensors = load_file(source / "model.safetensors")
    is_bert = config["model_type"] == "bert"
    first = 0 if is_bert else config["pad_token_id"] + 1
    writer = gguf.GGUFWriter(FOLDER / f"{name}-gguf.gguf", "bert")
    writer.add_name(name)
    writer.add_context_length(config["max_position_embeddings"] - first)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config.get("layer_norm_eps", 1e-12))
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_token_type_count(config.get("type_vocab_size", 2))
    tokens, types = tokens_of(tokenizer)
    missing = [f"[PAD{index}]" for index in range(len(tokens), config["vocab_size"])]
    tokens += missing
    types += [gguf.TokenType.UNUSED for _ in missing]
    writer.add_tokenizer_model("bert" if is_bert else "t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if is_bert:
        writer.add_unk_token_id(1), writer.add_bos_token_id(2), writer.add_sep_token_id(3), writer.add_pad_token_id(0)
    else:
        writer.add_token_scores([score for _, score in tokenizer["model"]["vocab"]] + [-10000.0 for _ in missing])
        writer.add_unk_token_id(0), writer.add_bos_token_id(1), writer.add_eos_token_id(2), writer.add_pad_token_id(config["pad_token_id"])
        writer.add_add_bos_token(True), writer.add_add_eos_token(True), writer.add_add_space_prefix(True)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for key, value in tensors.items():
        if "position_ids" in key or key.startswith("pooler."):
            continue
        data = value[first:] if key == "embeddings.position_embeddings.weight" else value
        writer.add_tensor(names.get_name(key, (".weight", ".bias")), data.copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    shutil.copy(FOLDER / f"{name}.json", FOLDER / f"{name}-gguf.json")


convert("bert", gguf.PoolingType.CLS)
convert("xlm-roberta", gguf.PoolingType.CLS)
