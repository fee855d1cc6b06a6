import { kvLayersOf } from "@octavo/kernels";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.js";
import type { ModelPlan, PlannedOp } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import { modelFamily } from "../program/registry.js";
import type { DraftHead } from "./draft-head.js";
import { noHead, tapHidden } from "./hidden-taps.js";

/** Tensors of the layer that are called otherwise in a model of one layer. */
const ownNames: Readonly<Record<string, string>> = {
  "embed_tokens.weight": "model.embed_tokens.weight",
  "shared_head.norm.weight": "model.norm.weight",
  "shared_head.head.weight": "lm_head.weight",
  "enorm.weight": "enorm.weight",
  "hnorm.weight": "hnorm.weight",
  "eh_proj.weight": "eh_proj.weight",
};

/**
 * The first layer of those that predict further tokens, as DeepSeek V3 and GLM 4.5 have them behind their own: a layer of the family over
 * eh_proj(norm(embedding of the next token), norm(hidden state)) (arXiv 2412.19437, section 2.2; names and the norm before it as in
 * vLLM's deepseek_mtp.py).
 */
export function mtpHead({ name, config, tensors }: Checkpoint, kvLayer: number): DraftHead {
  const { numLayers, hiddenSize } = config;
  const prefix = `model.layers.${numLayers}.`;
  if (!tensors.has(`${prefix}eh_proj.weight`))
    throw noHead(
      `${name} has no layer that predicts further tokens (multi-token prediction) behind its own ${numLayers}`,
    );
  const own = new Map<string, TensorInfo>();
  for (const shared of ["model.embed_tokens.weight", "lm_head.weight"]) {
    const tensor = tensors.get(shared);
    if (tensor !== undefined) own.set(shared, tensor);
  }
  for (const [key, tensor] of tensors) {
    if (!key.startsWith(prefix)) continue;
    const rest = key.slice(prefix.length);
    own.set(ownNames[rest] ?? `model.layers.0.${rest}`, tensor);
  }
  const { experts } = config;
  const builder = new ProgramBuilder(
    {
      ...config,
      numLayers: 1,
      slidingWindows: [undefined],
      ...(experts !== undefined && { experts: { ...experts, denseLayers: [false] } }),
    },
    own,
  );
  const model = modelFamily(config.architecture).plan(builder);
  const [embedding, ...layer] = model.ops;
  if (embedding?.op !== "embedding") throw noHead(`${config.architecture} embeds tokens in its own way`);
  const stream = embedding.out;
  const received = builder.buffer(hiddenSize);
  const both = builder.buffer(2 * hiddenSize);
  const entry = model.ops.length;
  builder.add({ op: "receive", out: received });
  builder.norm("enorm.weight", stream, { ...both, column: 0, width: hiddenSize });
  builder.norm("hnorm.weight", received, { ...both, column: hiddenSize, width: hiddenSize });
  builder.project(both, [{ name: "eh_proj", rows: hiddenSize }], 2 * hiddenSize, stream);
  const { ops, ...rest } = builder.finish(model.hidden, model.head);
  const plan = inLayer(
    { ...rest, ops: [embedding, ...ops.slice(entry), ...layer.flatMap(withSend)] },
    kvLayer,
  );
  return {
    name,
    ownPrefix: prefix,
    tap: tapHidden,
    reading: plan,
    drafting: plan,
    targetIds: undefined,
  };
}

/** The stream goes on as the hidden state of the next token. */
function withSend(op: PlannedOp): PlannedOp[] {
  return op.op === "gather" ? [{ op: "send", in: op.in }, op] : [op];
}

/** The plan of one layer of keys and values with that layer's number in a larger cache. */
export function inLayer(plan: ModelPlan, kvLayer: number): ModelPlan {
  if (kvLayersOf(plan.ops).length !== 1) throw noHead("its head has not one layer of attention");
  return {
    ...plan,
    ops: plan.ops.map((op) => (op.op === "attention" ? { ...op, layer: kvLayer } : op)),
  };
}
