import { type Shader, shaderCode } from "./shader.js";

const params = { vocab: "u32", logits: "u32", stride: "u32" } as const;

/** Tokens of a row that come back, at most. */
export const mostCandidates = 128;
/** Words of a row's candidates: how many there are, the least logit that all of them reach, two spare, then id and logit of each. */
export const candidateWords = 4 + 2 * mostCandidates;

const threads = 256;

/**
 * A workgroup finds the most likely tokens of one finished row: all whose logit reaches a bound that at most `mostCandidates` reach. The
 * bound is found by counting keys, which are ordered as the floats are, eight bits at a time; the last eight are not looked at, so that
 * logits which differ in them alone are taken together or not at all. The order among candidates is any.
 */
export const candidatesShader: Shader = {
  key: "candidates",
  params,
  bindings: ["write"],
  code: () =>
    shaderCode(
      params,
      ["var<storage, read_write> found: array<u32>;"],
      `
var<workgroup> bins: array<atomic<u32>, ${threads}>;
var<workgroup> taken: atomic<u32>;
var<workgroup> prefix: u32;
var<workgroup> above: u32;
var<workgroup> least: u32;
var<workgroup> is_done: u32;
fn key_at(at: u32) -> u32 {
  let bits = bitcast<u32>(ld(at));
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
@compute @workgroup_size(${threads}) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = p.logits + group.x * p.stride;
  let to = group.x * ${candidateWords}u;
  if (lane == 0u) {
    prefix = 0u;
    above = 0u;
    least = 0u;
    is_done = 0u;
    atomicStore(&taken, 0u);
  }
  for (var level = 0u; level < 3u; level += 1u) {
    let shift = 24u - 8u * level;
    atomicStore(&bins[lane], 0u);
    workgroupBarrier();
    if (is_done == 0u) {
      for (var i = lane; i < p.vocab; i += ${threads}u) {
        let digits = key_at(row + i) >> shift;
        if (level == 0u || (digits >> 8u) == prefix) { atomicAdd(&bins[digits & 255u], 1u); }
      }
    }
    workgroupBarrier();
    if (lane == 0u && is_done == 0u) {
      var bin = 256u;
      for (; bin > 0u; bin -= 1u) {
        let reached = above + atomicLoad(&bins[bin - 1u]);
        if (reached > ${mostCandidates}u) { break; }
        above = reached;
      }
      least = ((prefix << 8u) + bin) << shift;
      prefix = (prefix << 8u) + bin - 1u;
      is_done = u32(bin == 0u);
    }
    workgroupBarrier();
  }
  for (var i = lane; i < p.vocab; i += ${threads}u) {
    if (key_at(row + i) >= least) {
      let slot = atomicAdd(&taken, 1u);
      if (slot < ${mostCandidates}u) {
        found[to + 4u + 2u * slot] = i;
        found[to + 5u + 2u * slot] = bitcast<u32>(ld(row + i));
      }
    }
  }
  workgroupBarrier();
  if (lane == 0u) {
    found[to] = atomicLoad(&taken);
    found[to + 1u] = select(~least, least & 0x7fffffffu, least >= 0x80000000u);
  }
}`,
    ),
};
