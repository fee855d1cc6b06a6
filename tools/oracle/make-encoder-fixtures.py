"""Tiny encoders and rerankers, and what transformers and sentence-transformers make of texts with them.

-> packages/artifacts/fixtures/embeddings/ (folders as sentence-transformers saves them; `<name>.json`: texts, their ids and embeddings)
-> packages/artifacts/fixtures/rerankers/ (`<name>.json`: pairs, the scores of CrossEncoder or of transformers' class, and its logits)
Names as arguments make those alone anew.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from tokenizers import AddedToken, Tokenizer, processors
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification

FIXTURES = Path(__file__).resolve().parents[2] / "packages/artifacts/fixtures"
TOKENIZERS = FIXTURES.parents[1] / "text/fixtures/tokenizers"
QWEN3 = FIXTURES / "models/checkpoints/qwen3"
TEXTS = [
    "the cat and the dog",
    "Over and over, the end!",
    "x",
    "the house in the garden and then the other house, where they sat and the tokens were counted one by one until the evening came",
]
SENTENCE = "sentence_transformers.models."
PLAIN = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 600}
BERT = {**PLAIN, "model_type": "bert", "max_position_embeddings": 128}
XLM = {**PLAIN, "model_type": "xlm-roberta", "vocab_size": 500, "max_position_embeddings": 166, "type_vocab_size": 1, "pad_token_id": 37, "layer_norm_eps": 1e-5}
MODERN = {
    **PLAIN, "model_type": "modernbert", "num_hidden_layers": 4, "vocab_size": 272, "local_attention": 8, "max_position_embeddings": 128,
    "pad_token_id": 269, "bos_token_id": 269, "eos_token_id": 270, "cls_token_id": 269, "sep_token_id": 270,
}
GEMMA = {
    **PLAIN, "model_type": "gemma3_text", "head_dim": 8, "num_key_value_heads": 2, "vocab_size": 920, "sliding_window": 8, "sliding_window_pattern": 2,
    "use_bidirectional_attention": True, "query_pre_attn_scalar": 8, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}
# No text has the token that stands for padding: transformers counts positions without it.
QWEN = json.loads((QWEN3 / "config.json").read_text())


def framed(name: str, before: str, after: str) -> Tokenizer:
    """A fixture's tokenizer that puts special tokens around texts, as RoBERTa's does around pairs."""
    path = QWEN3 / "tokenizer.json" if name == "qwen3" else TOKENIZERS / f"{name}.json"
    tokenizer = Tokenizer.from_file(str(path))
    specials = [(token, tokenizer.token_to_id(token)) for token in (before, after)]
    template = {"single": f"{before} $A {after}", "pair": f"{before} $A {after} {after} $B {after}"}
    tokenizer.post_processor = processors.TemplateProcessing(**template, special_tokens=specials)
    return tokenizer


def tokenizer_of(config: dict) -> tuple[Tokenizer, dict]:
    kind = config["model_type"]
    if kind == "bert":
        return Tokenizer.from_file(str(TOKENIZERS / "bert-uncased.json")), {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"], "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    if kind == "xlm-roberta":
        return framed("unigram", "<s>", "</s>"), {"pad_token": "</s>", "unk_token": "<unk>"}
    if kind == "gemma3_text":
        return framed("gemma", "<s>", "</s>"), {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<unk>"}
    if kind == "modernbert":
        return framed("qwen3", "<|begin|>", "<|end|>"), {"pad_token": "<|begin|>"}
    return Tokenizer.from_file(str(QWEN3 / "tokenizer.json")), {"eos_token": "<|end|>", "pad_token": "<|end|>"}


def draw(model: torch.nn.Module, seed: int) -> None:
    """Weights that keep attention sharp and texts apart."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in sorted(model.state_dict().items()):
        if not value.dtype.is_floating_point:
            continue
        drawn = torch.randn(value.shape, generator=generator)
        is_norm = value.ndim == 1 and name.endswith("weight")
        gemma = type(model).__name__.startswith("Gemma")
        scale = 0.1 if is_norm else 0.2 if value.ndim == 1 else 1.0 if "embed" in name else 1.6 / value.shape[-1] ** 0.5
        value.copy_(drawn * scale + (1.0 if is_norm and not gemma else 0.0))


def save(folder: Path, config: dict, auto: type, seed: int, extra: dict) -> torch.nn.Module:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fields = {key: value for key, value in config.items() if key not in ("model_type", "architectures", "torch_dtype")}
    hf = AutoConfig.for_model(config["model_type"], **fields, **extra, attn_implementation="eager")
    model = auto.from_config(hf).float().eval()
    draw(model, seed)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    tied = "lm_head.weight" if getattr(hf, "tie_word_embeddings", False) else None
    tensors = {name: value.contiguous() for name, value in model.state_dict().items() if name != tied and value.dtype.is_floating_point}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    # As published: class and the fields that were given.
    written = {"architectures": [type(model).__name__], "model_type": config["model_type"], **fields, **extra, "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(written, indent=2) + "\n")
    tokenizer, specials = tokenizer_of(config)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": hf.max_position_embeddings, **specials}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    return model


def add_modules(folder: Path, pooling: str, dense: list, normalize: bool, prompts: dict | None) -> None:
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 32, **modes}, indent=2) + "\n")
    for index, (inputs, outputs, bias, activation) in enumerate(dense):
        place = f"{index + 2}_Dense"
        (folder / place).mkdir()
        modules.append((place, "Dense"))
        settings = {"in_features": inputs, "out_features": outputs, "bias": bias, "activation_function": f"torch.nn.modules.{activation}"}
        (folder / place / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
        generator = torch.Generator().manual_seed(index)
        tensors = {"linear.weight": torch.randn(outputs, inputs, generator=generator) / inputs**0.5}
        if bias:
            tensors["linear.bias"] = torch.randn(outputs, generator=generator)
        save_file(tensors, folder / place / "model.safetensors", metadata={"format": "pt"})
    if normalize:
        modules.append((f"{len(dense) + 2}_Normalize", "Normalize"))
    listed = [{"idx": index, "name": str(index), "path": path, "type": SENTENCE + kind} for index, (path, kind) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts, indent=2) + "\n")


# name -> (config, pooling, dense layers, normalised, prompts)
ENCODERS = {
    "bert": (BERT, "cls_token", [], True, None),
    "bert-mean": ({**BERT, "hidden_act": "gelu_new"}, "mean_tokens", [], False, None),
    "xlm-roberta": (XLM, "cls_token", [], True, None),
    "modernbert": (MODERN, "max_tokens", [], True, None),
    "modernbert-biases": ({**MODERN, "norm_bias": True, "attention_bias": True, "mlp_bias": True}, "mean_tokens", [(32, 12, True, "activation.Tanh")], True, None),
    "embedding-gemma": (
        GEMMA, "mean_tokens", [(32, 64, False, "linear.Identity"), (64, 32, False, "linear.Identity")], True,
        {"prompts": {"query": "the query: ", "document": "a text: "}, "default_prompt_name": None},
    ),
}
ONE = {"num_labels": 1}
# name -> (config, fields of the classifier)
CLASSIFIERS = {
    "bert-cross": (BERT, ONE),
    "xlm-roberta-cross": (XLM, {**ONE, "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.0.1"}}),
    "modernbert-labels": ({**MODERN, "classifier_pooling": "mean"}, {"id2label": {"0": "no", "1": "maybe", "2": "yes"}, "label2id": {"no": 0, "maybe": 1, "yes": 2}}),
    "modernbert-cross": ({**MODERN, "classifier_bias": True}, ONE),
    "qwen3-cross": ({**QWEN, "pad_token_id": 270}, ONE),
}
PAIRS = [(query, text) for query in TEXTS[:2] for text in TEXTS]


def make_encoder(name: str) -> None:
    config, pooling, dense, normalize, prompts = ENCODERS[name]
    folder = FIXTURES / "embeddings" / name
    save(folder, config, AutoModel, 11, {})
    add_modules(folder, pooling, dense, normalize, prompts)
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
    ids = [model.tokenizer(text)["input_ids"] for text in TEXTS]
    assert config["model_type"] != "xlm-roberta" or not any(config["pad_token_id"] in row for row in ids)
    embeddings = [model.encode(text, batch_size=1).tolist() for text in TEXTS]
    content = {"texts": TEXTS, "ids": ids, "embeddings": embeddings}
    if prompts is not None:
        content["prompted"] = {key: [model.encode(text, prompt_name=key).tolist() for text in TEXTS] for key in prompts["prompts"]}
    (folder.parent / f"{name}.json").write_text(json.dumps(content) + "\n")
    print(name, [round(a, 3) for a in embeddings[0][:4]], [round(a, 3) for a in embeddings[1][:4]])


def make_classifier(name: str) -> None:
    config, fields = CLASSIFIERS[name]
    folder = FIXTURES / "rerankers" / name
    save(folder, config, AutoModelForSequenceClassification, 12, fields)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    encoded = [tokenizer(query, text, return_tensors="pt") for query, text in PAIRS]
    if config["model_type"] == "bert":
        assert any(1 in one["token_type_ids"] for one in encoded)
    with torch.no_grad():
        logits = [model(**one).logits[0].tolist() for one in encoded]
        texts = [model(**tokenizer(text, return_tensors="pt")).logits[0].tolist() for text in TEXTS]
    scores = None
    if fields.get("num_labels") == 1:
        cross = CrossEncoder(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})
        scores = [float(cross.predict([pair])[0]) for pair in PAIRS]
    ids = [one["input_ids"][0].tolist() for one in encoded]
    content = {"pairs": PAIRS, "ids": ids, "logits": logits, "scores": scores, "texts": TEXTS, "textLogits": texts}
    (folder.parent / f"{name}.json").write_text(json.dumps(content) + "\n")
    assert config["model_type"] != "xlm-roberta" or not any(config["pad_token_id"] in row for row in ids)
    print(name, logits[0], logits[1], scores and scores[:3])


# Qwen3-Reranker's words, from its model card.
BEFORE = """<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
"""
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
ASKED = "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {}\n<Document>: {}"
YES_NO = {"qwen3-yes-no": {"tie_word_embeddings": True}, "qwen3-yes-no-untied": {"tie_word_embeddings": False}}


def make_yes_no(name: str) -> None:
    """A decoder that ranks by the probability of "yes" beside "no", as the model card computes it."""
    folder = FIXTURES / "rerankers" / name
    sizes = {"vocab_size": 276, "max_position_embeddings": 1024}
    save(folder, {**QWEN, **sizes, **YES_NO[name]}, AutoModelForCausalLM, 13, {})
    tensors = load_file(folder / "model.safetensors")
    # Probabilities apart from 1.
    tensors["model.norm.weight"] *= 0.1 if YES_NO[name]["tie_word_embeddings"] else 1.0
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    words.add_tokens([AddedToken(word, normalized=False) for word in ("no", "yes")])
    words.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    words.save(str(folder / "tokenizer.json"), pretty=False)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
    ids = [encode(BEFORE) + encode(ASKED.format(query, text)) + encode(AFTER) for query, text in PAIRS]
    no, yes = (tokenizer.convert_tokens_to_ids(word) for word in ("no", "yes"))
    logits, scores = [], []
    for row in ids:
        with torch.no_grad():
            both = model(torch.tensor([row])).logits[0, -1, [no, yes]]
        logits.append([float(both[1] - both[0])])
        scores.append(float(torch.nn.functional.log_softmax(both, dim=0)[1].exp()))
    content = {"scoreBy": "yes-no", "pairs": PAIRS, "ids": ids, "logits": logits, "scores": scores, "texts": [], "textLogits": []}
    (folder.parent / f"{name}.json").write_text(json.dumps(content) + "\n")
    print(name, len(ids[0]), logits, scores)


def main() -> None:
    wanted = sys.argv[1:]
    for name in ENCODERS:
        if not wanted or name in wanted:
            make_encoder(name)
    for name in CLASSIFIERS:
        if not wanted or name in wanted:
            make_classifier(name)
    for name in YES_NO:
        if not wanted or name in wanted:
            make_yes_no(name)


main()
