import { type Shader, shaderCode } from "./shader.js";

/** Columns of a head's state that lie side by side, as `stateWidths` counts them. */
const tileColumns = 32;

/** What a step does with a sequence's slot, as `StepStates` says; `context` ends behind the last row. */
const sequenceStruct = `
struct Sequence { row: u32, first: u32, context: u32, start: u32, end: u32, slot: u32, origin: i32, snapshot: u32, snapshots: u32 }
fn sequence_of(index: u32) -> Sequence {
  let row = step_at(at_queryStarts, index);
  let context = step_at(at_contextLengths, index);
  let first = context - (step_at(at_queryStarts, index + 1u) - row);
  return Sequence(row, first, context, step_at(at_stateStarts, index), step_at(at_stateEnds, index), step_at(at_stateSlots, index),
    bitcast<i32>(step_at(at_stateSources, index)), step_at(at_snapshotStarts, index), step_at(at_snapshotStarts, index + 1u));
}`;

const convolutionParams = {
  width: "u32",
  taps: "u32",
  kept: "u32",
  slotFloats: "u32",
  src: "u32",
  srcStride: "u32",
  dst: "u32",
  dstStride: "u32",
  hasBias: "u32",
  silu: "u32",
} as const;

/**
 * A thread takes one channel of one sequence. A slot keeps the latest inputs, each at its position modulo their number, so that inputs of
 * draft tokens that are taken back are overwritten in place.
 */
export const convolutionShader: Shader = {
  key: "convolution",
  params: convolutionParams,
  bindings: ["read", "read", "write"],
  code: () =>
    shaderCode(
      convolutionParams,
      [
        "var<storage, read> weight: array<f32>;",
        "var<storage, read> bias: array<f32>;",
        "var<storage, read_write> states: array<f32>;",
      ],
      `${sequenceStruct}
fn kept_at(slot: u32, position: u32, channel: u32) -> u32 {
  return slot * p.slotFloats + position % p.kept * p.width + channel;
}
fn input_of(s: Sequence, position: i32, channel: u32) -> f32 {
  if (position < 0) { return 0.0; }
  let at = u32(position);
  if (at < s.first) { return states[kept_at(u32(s.origin), at, channel)]; }
  return ld(p.src + (s.row + at - s.first) * p.srcStride + channel);
}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let channel = id.x;
  if (channel >= p.width) { return; }
  let s = sequence_of(id.y);
  let before = i32(p.taps) - 1;
  for (var at = s.first; at < s.context; at++) {
    var sum = 0.0;
    if (p.hasBias != 0u) { sum = bias[channel]; }
    for (var tap = 0; tap <= before; tap++) {
      sum = fma(weight[channel * p.taps + u32(tap)], input_of(s, i32(at) - before + tap, channel), sum);
    }
    if (p.silu != 0u) { sum = sum / (1.0 + exp(min(-sum, 88.0))); }
    st(p.dst + (s.row + at - s.first) * p.dstStride + channel, sum);
  }
  for (var n = s.snapshot; n < s.snapshots; n++) {
    let position = i32(step_at(at_snapshotPositions, n));
    for (var at = max(0, position - before); at < position; at++) {
      states[kept_at(step_at(at_snapshotSlots, n), u32(at), channel)] = input_of(s, at, channel);
    }
  }
  for (var at = max(0, i32(s.end) - before); at < i32(s.context); at++) {
    if (u32(at) < s.first && s.origin == i32(s.slot)) { continue; }
    states[kept_at(s.slot, u32(at), channel)] = input_of(s, at, channel);
  }
}`,
    ),
};

const recurrenceParams = {
  numHeads: "u32",
  numKeyHeads: "u32",
  keyDim: "u32",
  valueDim: "u32",
  tiles: "u32",
  isTiled: "u32",
  isLogRate: "u32",
  slotFloats: "u32",
  drafts: "u32",
  q: "u32",
  qStride: "u32",
  k: "u32",
  kStride: "u32",
  v: "u32",
  vStride: "u32",
  decay: "u32",
  decayStride: "u32",
  strength: "u32",
  strengthStride: "u32",
  dst: "u32",
  dstStride: "u32",
  queryScale: "f32",
  leastStep: "f32",
  mostStep: "f32",
} as const;

const recurrenceDeclarations = [
  "var<storage, read> rates: array<f32>;",
  "var<storage, read> biases: array<f32>;",
  "var<storage, read> skips: array<f32>;",
  "var<storage, read_write> states: array<f32>;",
];
const recurrenceBindings = ["read", "read", "read", "write"] as const;

/** Keys, values and gates of a token, of the step's rows or kept of a draft token in the slot. */
const tokenFunctions = (isDelta: boolean): string => `${sequenceStruct}
fn key_head(head: u32) -> u32 {
  return select(head / (p.numHeads / p.numKeyHeads), head % p.numKeyHeads, p.isTiled != 0u);
}
fn softplus(x: f32) -> f32 {
  if (x > 20.0) { return x; }
  let e = exp(x);
  // log(1 + e), also where 1 + e loses what e has.
  let one = 1.0 + e;
  return select(log(one) - ((one - 1.0) - e) / one, e, one == 1.0);
}
/** Decay, and the strength of what is written. */
fn gates_of(row: u32, head: u32) -> vec2<f32> {
  var rate = rates[head];
  if (p.isLogRate != 0u) { rate = exp(rate); } else { rate = -rate; }
  var given = softplus(ld(p.decay + row * p.decayStride + head) + biases[head]);
  ${
    isDelta
      ? "let strength = 1.0 / (1.0 + exp(min(-ld(p.strength + row * p.strengthStride + head), 88.0)));\n  return vec2<f32>(exp(-rate * given), strength);"
      : "given = min(p.mostStep, max(p.leastStep, given));\n  return vec2<f32>(exp(-rate * given), given);"
  }
}
/** What keys, or queries, of a row are multiplied by. */
fn factor_of(at: u32, scale: f32) -> f32 {
  ${
    isDelta
      ? "var sum = 0.0;\n  for (var i = 0u; i < p.keyDim; i++) { let x = ld(at + i); sum = fma(x, x, sum); }\n  return scale / sqrt(sum + 1e-6);"
      : "return 1.0;"
  }
}
fn draft_at(slot: u32, position: u32) -> u32 {
  let entry = p.numKeyHeads * p.keyDim + p.numHeads * p.valueDim + 2u * p.numHeads;
  return slot * p.slotFloats + p.numHeads * p.tiles * p.keyDim * ${tileColumns}u + position % p.drafts * entry;
}`;

/**
 * A workgroup takes 32 columns of one head's state (x) of one sequence (y), a thread a column, and the sequence's tokens in order. What is
 * computed behind the slot's own tokens does not reach the slot.
 */
export function recurrenceShader(isDelta: boolean, keyDim: number): Shader {
  return {
    key: `recurrence ${isDelta ? "delta" : "sum"} ${keyDim}`,
    params: recurrenceParams,
    bindings: recurrenceBindings,
    code: () =>
      shaderCode(
        recurrenceParams,
        recurrenceDeclarations,
        `${tokenFunctions(isDelta)}
var<private> column_state: array<f32, ${keyDim}>;
fn advance(decay: f32, write: f32, value: f32, k: u32, factor: f32, is_kept: bool) {
  var written = write * value;
  ${
    isDelta
      ? `var known = 0.0;
  for (var i = 0u; i < ${keyDim}u; i++) { known = fma(decay * column_state[i], key_at(k + i, factor, is_kept), known); }
  written = write * (value - known);`
      : ""
  }
  for (var i = 0u; i < ${keyDim}u; i++) { column_state[i] = fma(key_at(k + i, factor, is_kept), written, decay * column_state[i]); }
}
fn key_at(at: u32, factor: f32, is_kept: bool) -> f32 {
  if (is_kept) { return states[at]; }
  return ld(at) * factor;
}
@compute @workgroup_size(${tileColumns}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let s = sequence_of(group.y);
  let head = group.x / p.tiles;
  let tile = group.x % p.tiles;
  let column = tile * ${tileColumns}u + lane;
  let of_tile = (head * p.tiles + tile) * ${keyDim * tileColumns}u + lane;
  let has_column = column < p.valueDim;
  let key = key_head(head) * ${keyDim}u;
  for (var i = 0u; i < ${keyDim}u; i++) {
    column_state[i] = 0.0;
    if (s.origin >= 0) { column_state[i] = states[u32(s.origin) * p.slotFloats + of_tile + i * ${tileColumns}u]; }
  }
  var snapshot = s.snapshot;
  for (var at = s.start; at < s.context; at++) {
    if (at < s.first) {
      let kept = draft_at(s.slot, at);
      let gates = kept + p.numKeyHeads * p.keyDim + p.numHeads * p.valueDim + 2u * head;
      var value = 0.0;
      if (has_column) { value = states[kept + p.numKeyHeads * p.keyDim + head * p.valueDim + column]; }
      advance(states[gates], states[gates + 1u], value, kept + key, 1.0, true);
    } else {
      let row = s.row + at - s.first;
      let gates = gates_of(row, head);
      let k = p.k + row * p.kStride + key;
      var value = 0.0;
      if (has_column) { value = ld(p.v + row * p.vStride + head * p.valueDim + column); }
      advance(gates.x, gates.y, value, k, factor_of(k, 1.0), false);
      let q = p.q + row * p.qStride + key;
      let factor = factor_of(q, p.queryScale);
      var sum = 0.0;
      for (var i = 0u; i < ${keyDim}u; i++) { sum = fma(column_state[i], ld(q + i) * factor, sum); }
      ${isDelta ? "" : "sum = fma(skips[head], value, sum);"}
      if (has_column) { st(p.dst + row * p.dstStride + head * p.valueDim + column, sum); }
    }
    if (snapshot < s.snapshots && step_at(at_snapshotPositions, snapshot) == at + 1u) {
      save(step_at(at_snapshotSlots, snapshot), of_tile);
      snapshot++;
    }
    if (at + 1u == s.end) { save(s.slot, of_tile); }
  }
}
fn save(slot: u32, of_tile: u32) {
  for (var i = 0u; i < ${keyDim}u; i++) { states[slot * p.slotFloats + of_tile + i * ${tileColumns}u] = column_state[i]; }
}`,
      ),
  };
}

/** Keeps keys, values and gates of tokens that may be taken back, once no head reads those of an earlier step. A thread an element. */
export function keepDraftsShader(isDelta: boolean): Shader {
  return {
    key: `keep drafts ${isDelta ? "delta" : "sum"}`,
    params: recurrenceParams,
    bindings: recurrenceBindings,
    code: () =>
      shaderCode(
        recurrenceParams,
        recurrenceDeclarations,
        `${tokenFunctions(isDelta)}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let s = sequence_of(id.y);
  let keys = p.numKeyHeads * p.keyDim;
  let values = p.numHeads * p.valueDim;
  let i = id.x;
  if (i >= keys + values + 2u * p.numHeads) { return; }
  for (var at = s.end; at < s.context; at++) {
    let row = s.row + at - s.first;
    var value = 0.0;
    if (i < keys) {
      let k = p.k + row * p.kStride;
      value = ld(k + i) * factor_of(k + i / p.keyDim * p.keyDim, 1.0);
    } else if (i < keys + values) {
      value = ld(p.v + row * p.vStride + i - keys);
    } else {
      value = gates_of(row, (i - keys - values) / 2u)[(i - keys - values) % 2u];
    }
    states[draft_at(s.slot, at) + i] = value;
  }
}`,
      ),
  };
}
