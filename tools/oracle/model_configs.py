"""Configurations of the tiny checkpoints that `make-model-fixtures.py` makes, and the cases that it evaluates with them."""

import torch
from hybrids import HYBRIDS

VOCAB, HIDDEN, INNER, PROMPT_TOKENS, LONG_PROMPT_TOKENS, GREEDY_TOKENS = 272, 64, 96, 24, 400, 64
SPECIAL = ["<|begin|>", "<|end|>", "<|turn|>"]
BOS, END, TURN = 269, 270, 271

COMMON = {
    "vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 2, "hidden_act": "silu",
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "bos_token_id": BOS, "eos_token_id": END, "torch_dtype": "float32",
}
LLAMA = {**COMMON, "model_type": "llama", "architectures": ["LlamaForCausalLM"], "attention_bias": False, "mlp_bias": False}
LLAMA3_SCALING = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}
QWEN3 = {
    **COMMON, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "tie_word_embeddings": True, "head_dim": 32,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "attention_bias": False, "use_sliding_window": False,
}

# name -> (config.json, dtype stored, shard size in bytes)
CHECKPOINTS = {
    "llama2": ({**LLAMA, "num_key_value_heads": 4}, torch.float32, None),
    "llama3": ({**LLAMA, "rope_theta": 500000.0, "rope_scaling": LLAMA3_SCALING, "eos_token_id": [END, TURN]}, torch.float32, None),
    "mistral": ({**COMMON, "model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 8}, torch.float32, None),
    "qwen2": ({
        **COMMON, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True,
        "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "use_sliding_window": False, "sliding_window": 32, "max_window_layers": 2,
    }, torch.float32, 120_000),
    "qwen3": (QWEN3, torch.float32, None),
    "llama3-bf16": ({**LLAMA, "rope_theta": 500000.0, "rope_scaling": LLAMA3_SCALING, "torch_dtype": "bfloat16"}, torch.bfloat16, None),
    "qwen3-f16": ({**QWEN3, "torch_dtype": "float16"}, torch.float16, None),
}

GEMMA = {
    **{key: value for key, value in COMMON.items() if key != "hidden_act"}, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 16,
    "tie_word_embeddings": True, "sliding_window": 8, "query_pre_attn_scalar": 24,
}
# Families added after the fixtures above, so that their seeds stay.
CHECKPOINTS |= {
    "gemma2": ({
        **GEMMA, "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0, "tie_word_embeddings": False,
    }, torch.float32, None),
    "gemma3": ({
        **GEMMA, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "rope_theta": 1000000.0,
        "rope_local_base_freq": 5000.0, "tie_word_embeddings": False, "sliding_window_pattern": 2, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }, torch.float32, None),
    "phi3": ({
        **COMMON, "model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "sliding_window": 8, "pad_token_id": 0,
    }, torch.float32, None),
    "olmo2": ({**COMMON, "model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "attention_bias": False}, torch.float32, None),
    "granite": ({
        **COMMON, "model_type": "granite", "architectures": ["GraniteForCausalLM"], "attention_bias": False, "mlp_bias": False,
        "embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.2, "logits_scaling": 2.0,
    }, torch.float32, None),
    "smollm3": ({
        **COMMON, "model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "mlp_bias": False,
        "rope_theta": 50000.0, "no_rope_layers": [1, 0], "use_sliding_window": False, "pad_token_id": 0,
    }, torch.float32, None),
}

# Mixtures of experts. OLMoE's experts are stored as transformers 5 holds them, the others' as they were published.
CHECKPOINTS |= {
    "mixtral": ({
        **COMMON, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "intermediate_size": 48, "num_local_experts": 4,
        "num_experts_per_tok": 2, "sliding_window": None, "rope_theta": 1000000.0,
    }, torch.float32, None),
    "qwen2-moe": ({
        **COMMON, "model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "num_experts": 6, "num_experts_per_tok": 3,
        "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48, "norm_topk_prob": False, "use_sliding_window": False,
        "mlp_only_layers": [], "decoder_sparse_step": 1,
    }, torch.float32, None),
    "qwen3-moe": ({
        **COMMON, "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 3, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True, "mlp_only_layers": [1], "head_dim": 16,
        "attention_bias": False,
    }, torch.float32, None),
    "olmoe": ({
        **COMMON, "model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "num_experts": 8, "num_experts_per_tok": 3,
        "num_key_value_heads": 4, "intermediate_size": 24, "norm_topk_prob": False, "attention_bias": False, "pad_token_id": 0,
    }, torch.float32, None),
    "granite-moe": ({
        **COMMON, "model_type": "granitemoe", "architectures": ["GraniteMoeForCausalLM"], "num_local_experts": 4, "num_experts_per_tok": 2,
        "intermediate_size": 40, "attention_bias": False, "embedding_multiplier": 3.0, "residual_multiplier": 0.6,
        "attention_multiplier": 0.2, "logits_scaling": 2.0,
    }, torch.float32, None),
    # Experts in MXFP4, as published.
    "gpt-oss": ({
        **COMMON, "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_local_experts": 4, "num_experts_per_tok": 2,
        "intermediate_size": 32, "head_dim": 16, "sliding_window": 8, "rope_theta": 150000.0, "attention_bias": True, "pad_token_id": 0,
        "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]},
    }, torch.float32, None),
}

CHECKPOINTS |= {
    "gemma": ({
        **COMMON, "model_type": "gemma", "architectures": ["GemmaForCausalLM"], "hidden_act": "gelu", "head_dim": 32,
        "attention_bias": False, "pad_token_id": 0,
    }, torch.float32, None),
}

CHECKPOINTS |= {
    # As fine-tuned and saved by transformers.
    "gpt-oss-f32": ({**CHECKPOINTS["gpt-oss"][0], "quantization_config": None}, torch.float32, None),
    # Heads that no vector divides.
    "llama-heads-of-20": ({**LLAMA, "head_dim": 20}, torch.float32, None),
    "qwen3-heads-of-12": ({**QWEN3, "head_dim": 12}, torch.float32, None),
}

# Variations on the programs above.
CHECKPOINTS |= {
    "olmo3": ({
        **COMMON, "model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], "attention_bias": False, "num_hidden_layers": 4, "sliding_window": 8,
        "rope_theta": 500000.0, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "attention_factor": 1.2},
    }, torch.float32, None),
    "ministral3": ({
        **COMMON, "model_type": "ministral3", "architectures": ["Ministral3ForCausalLM"], "head_dim": 24, "rope_theta": None, "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 32, "beta_fast": 32.0,
            "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1},
    }, torch.float32, None),
    "seed-oss": ({
        **COMMON, "model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "head_dim": 24, "attention_bias": True, "attention_out_bias": False,
    }, torch.float32, None),
    "exaone4": ({
        **COMMON, "model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "num_hidden_layers": 4, "head_dim": 24, "sliding_window": 8,
        "sliding_window_pattern": 4,
    }, torch.float32, None),
    "exaone4-full": ({
        **COMMON, "model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "sliding_window": None,
        "layer_types": ["full_attention"] * 2,
    }, torch.float32, None),
    "cohere2": ({
        **COMMON, "model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "num_hidden_layers": 4, "sliding_window": 8, "logit_scale": 0.5,
        "layer_norm_eps": 1e-5, "tie_word_embeddings": True, "attention_bias": False, "pad_token_id": 0,
    }, torch.float32, None),
    "ernie4-5": ({
        **COMMON, "model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], "head_dim": 24, "rope_theta": 500000.0, "pad_token_id": 0,
    }, torch.float32, None),
    "glm": ({
        **COMMON, "model_type": "glm", "architectures": ["GlmForCausalLM"], "head_dim": 24, "attention_bias": True, "pad_token_id": 0,
    }, torch.float32, None),
    "glm4": ({
        **COMMON, "model_type": "glm4", "architectures": ["Glm4ForCausalLM"], "head_dim": 24, "attention_bias": True, "partial_rotary_factor": 0.5, "pad_token_id": 0,
    }, torch.float32, None),
    "granite-moe-shared": ({
        **CHECKPOINTS["granite-moe"][0], "model_type": "granitemoeshared", "architectures": ["GraniteMoeSharedForCausalLM"], "shared_intermediate_size": 48,
    }, torch.float32, None),
}

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

CHECKPOINTS |= HYBRIDS

# case -> (checkpoint, changes of its config.json)
CASES = {
    **{name: (name, {}) for name in CHECKPOINTS},
    "llama-biases": ("llama2", {"attention_bias": True, "mlp_bias": True}),
    "rope-linear": ("llama2", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "rope-dynamic": ("llama2", {"max_position_embeddings": 64, "rope_scaling": {"type": "dynamic", "factor": 4.0}}),
    "rope-yarn": ("llama2", {"max_position_embeddings": 256, "rope_scaling": YARN}),
    "rope-partial": ("llama2", {"partial_rotary_factor": 0.5}),
    "rope-parameters": ("llama2", {"rope_theta": None, "rope_parameters": {**LLAMA3_SCALING, "rope_theta": 20000.0}}),
    "phi3-longrope": ("phi3", {
        "sliding_window": None, "original_max_position_embeddings": 64,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0 + 0.5 * i for i in range(8)]},
    }),
    "phi3-longrope-short": ("phi3", {
        "sliding_window": None, "original_max_position_embeddings": 448,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0 + 0.125 * i for i in range(8)], "long_factor": [1.0 + 0.5 * i for i in range(8)]},
    }),
    # As in the larger of the published ones, and other layers that do not rotate.
    "llama4-plain": ("llama4", {
        "use_qk_norm": False, "attn_temperature_tuning": False, "num_experts_per_tok": 1, "no_rope_layers": [1, 0, 1, 1], "moe_layers": [3, 1],
        "attention_chunk_size": 16,
    }),
    "olmoe-clip": ("olmoe", {"clip_qkv": 0.75}),
    "seed-oss-out": ("seed-oss", {"attention_out_bias": False, "attention_bias": False}),
    "qwen2-window": ("qwen2", {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}),
}
