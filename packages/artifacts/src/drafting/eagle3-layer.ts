import type { BufferRef } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelPlan } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import { ropeSpec } from "../program/rope.js";

interface Eagle3Options {
  readonly draftVocabSize: number;
  /** The residual stream starts from the normalised hidden state. */
  readonly isNormedFirst: boolean;
  readonly kvLayer: number;
  /** Columns of the model's hidden states, three side by side, that are fused into one; undefined where it receives one of its own. */
  readonly fusedWidth: number | undefined;
}

/** A Llama layer whose attention reads the embedded token and the hidden state side by side, each behind a norm of its own. */
export function eagle3Layer(
  config: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo>,
  { draftVocabSize, isNormedFirst, kvLayer, fusedWidth }: Eagle3Options,
): ModelPlan {
  const builder = new ProgramBuilder(config, tensors);
  const { hiddenSize, vocabSize, numHeads, numKvHeads, headDim, intermediateSize, hiddenActivation } = config;
  const [stream, embedded, normed, update] = [0, 1, 2, 3].map(() => builder.buffer(hiddenSize)) as [
    BufferRef,
    BufferRef,
    BufferRef,
    BufferRef,
  ];
  const both = builder.buffer(2 * hiddenSize);
  const [queries, keys] = [numHeads * headDim, numKvHeads * headDim];
  const { buffer } = builder.buffer(queries + 2 * keys);
  const attended = builder.buffer(queries);
  const gateUp = builder.buffer(2 * intermediateSize);
  const activated = builder.buffer(intermediateSize);

  const weight = builder.matrix("embed_tokens.weight", vocabSize, hiddenSize);
  builder.add({ op: "embedding", weight, out: embedded });
  if (fusedWidth === undefined) builder.add({ op: "receive", out: stream });
  else {
    const states = builder.buffer(fusedWidth);
    builder.add({ op: "receive", out: states });
    builder.project(states, [{ name: "fc", rows: hiddenSize }], fusedWidth, stream);
  }
  builder.norm("midlayer.input_layernorm.weight", embedded, { ...both, column: 0, width: hiddenSize });
  builder.norm("midlayer.hidden_norm.weight", stream, { ...both, column: hiddenSize, width: hiddenSize });
  if (isNormedFirst) builder.norm("midlayer.hidden_norm.weight", stream, stream);

  const bias = config.attentionBias;
  const name = "midlayer.self_attn";
  builder.project(
    both,
    [
      { name: `${name}.q_proj`, rows: queries, bias },
      { name: `${name}.k_proj`, rows: keys, bias },
      { name: `${name}.v_proj`, rows: keys, bias },
    ],
    2 * hiddenSize,
    { buffer },
  );
  const rope = ropeSpec(config.rope, config.maxPositionEmbeddings);
  builder.add({ op: "rope", on: { buffer, column: 0, width: queries + keys }, headDim, rope });
  builder.add({
    op: "attention",
    q: { buffer, column: 0, width: queries },
    k: { buffer, column: queries, width: keys },
    v: { buffer, column: queries + keys, width: keys },
    out: attended,
    layer: kvLayer,
    numHeads,
    numKvHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
  });
  const outputBias = config.attentionOutputBias ?? false;
  builder.project(
    attended,
    [{ name: `${name}.o_proj`, rows: hiddenSize, bias: outputBias }],
    queries,
    update,
  );

  builder.norm("midlayer.post_attention_layernorm.weight", update, normed, { residual: stream });
  const { mlpBias } = config;
  const gates = ["gate_proj", "up_proj"].map((part) => ({
    name: `midlayer.mlp.${part}`,
    rows: intermediateSize,
    bias: mlpBias,
  }));
  builder.project(normed, gates, hiddenSize, gateUp);
  builder.add({ op: "gated_activation", in: gateUp, out: activated, activation: hiddenActivation });
  const down = { name: "midlayer.mlp.down_proj", rows: hiddenSize, bias: mlpBias };
  builder.project(activated, [down], intermediateSize, update);
  builder.add({ op: "add", in: update, out: stream });
  builder.add({ op: "send", in: stream });

  const last = builder.buffer(hiddenSize);
  const hidden = builder.buffer(hiddenSize);
  builder.add({ op: "gather", in: stream, out: last });
  builder.norm("norm.weight", last, hidden);
  return builder.finish(hidden, { weight: builder.matrix("lm_head.weight", draftVocabSize, hiddenSize) });
}
