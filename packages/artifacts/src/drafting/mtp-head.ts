import { kvLayersOf } from "@octavo/kernels";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.js";
import type { ModelPlan, PlannedOp } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import { modelFamily } from "../program/registry.js";
import type { DraftHead } from "./draft-head.js";
import { noHead, tapHidden } from "./hidden-taps.js";

/** How a family stores the layer that predicts further tokens. */
interface MtpForm {
  readonly prefix: string;
  /** Parts of it that are called otherwise in a model of one layer, by the beginnings of their names. */
  readonly names: Readonly<Record<string, string>>;
  /** Names that `names` does not list begin with this. */
  readonly layer: string;
  /** Whether the next draft goes on from the normalised hidden state. */
  readonly sendsNormed: boolean;
}

const joining = { enorm: "enorm.", hnorm: "hnorm.", fc: "eh_proj." };

/** DeepSeek V3's and GLM 4.5's, behind the layers of the model (names as in vLLM's deepseek_mtp.py). */
const asLastLayer = (numLayers: number): MtpForm => ({
  prefix: `model.layers.${numLayers}.`,
  names: {
    "embed_tokens.": "model.embed_tokens.",
    "shared_head.norm.": "model.norm.",
    "shared_head.head.": "lm_head.",
    "enorm.": joining.enorm,
    "hnorm.": joining.hnorm,
    "eh_proj.": joining.fc,
  },
  layer: "model.layers.0.",
  sendsNormed: false,
});

/** Qwen3-Next's and Qwen3.5's, beside the model (names as in vLLM's qwen3_next_mtp.py). */
const besideModel: MtpForm = {
  prefix: "mtp.",
  names: {
    "pre_fc_norm_embedding.": joining.enorm,
    "pre_fc_norm_hidden.": joining.hnorm,
    "fc.": joining.fc,
    "norm.": "model.norm.",
  },
  layer: "model.",
  sendsNormed: true,
};

/**
 * The first layer of those that predict further tokens: a layer of the family, one with attention, over eh_proj(norm(embedding of the next
 * token), norm(hidden state)) (arXiv 2412.19437, section 2.2; the norm before the hidden state leaves the model as in vLLM).
 */
export function mtpHead({ name, config, tensors }: Checkpoint, kvLayer: number): DraftHead {
  const { numLayers, hiddenSize, experts, recurrence } = config;
  const form = tensors.has(`${besideModel.prefix}fc.weight`) ? besideModel : asLastLayer(numLayers);
  const { prefix } = form;
  const own = new Map<string, TensorInfo>();
  for (const shared of ["model.embed_tokens.weight", "lm_head.weight"]) {
    const tensor = tensors.get(shared);
    if (tensor !== undefined) own.set(shared, tensor);
  }
  for (const [key, tensor] of tensors) {
    if (!key.startsWith(prefix)) continue;
    const rest = key.slice(prefix.length);
    const part = Object.keys(form.names).find((start) => rest.startsWith(start));
    own.set(part === undefined ? form.layer + rest : `${form.names[part]}${rest.slice(part.length)}`, tensor);
  }
  if (!own.has("eh_proj.weight"))
    throw noHead(
      `${name} has no layer that predicts further tokens (multi-token prediction) behind its own ${numLayers}`,
    );
  const builder = new ProgramBuilder(
    {
      ...config,
      numLayers: 1,
      slidingWindows: [undefined],
      ...(experts !== undefined && { experts: { ...experts, denseLayers: [false] } }),
      ...(recurrence !== undefined && { recurrence: { ...recurrence, layers: [false] } }),
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
  const whole = inLayer({ ...rest, ops: [embedding, ...ops.slice(entry), ...layer] }, kvLayer);
  const plan = form.sendsNormed ? tapHidden(whole) : { ...whole, ops: whole.ops.flatMap(withSend) };
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
