import type { WeightFormat } from "./formats/weight-formats.js";
import { kvBytes, type KvFormat } from "./formats/kv-formats.js";
import type { Hardware } from "./hardware/hardware.js";
import {
  activeShare,
  elementsOf,
  embeddingKind,
  headKind,
  type ModelShape,
  type WeightMatrix,
} from "./shape/model-shape.js";

/** Bytes of weights that steps read. The embedding is looked up, not read, unless it is the head too. */
export interface ReadBytes {
  /** In every step. */
  readonly always: number;
  /** All routed experts; a step reads those that its tokens are sent to. */
  readonly routed: number;
}

/** What a speed is of, and what limits it. */
export interface Roofline {
  readonly tokensPerSecond: number;
  /** Time of one step, or of one prompt. */
  readonly seconds: number;
  readonly limit: "memory" | "compute";
}

interface DeviceGroup {
  readonly hardware: Hardware;
  /** Devices that share the model; their memory, bandwidth and operations are added up. */
  readonly devices: number;
  /** Share of the ceilings that is reached. */
  readonly efficiency: number;
}

/** One artifact on the way through the roofline. */
export interface Workload {
  readonly shape: ModelShape;
  readonly read: ReadBytes;
  readonly compute: WeightFormat["compute"];
  readonly kvFormat: KvFormat;
}

export function readBytesOf(shape: ModelShape, format: WeightFormat): ReadBytes {
  let always = shape.vectorElements * format.vectorBytes;
  let routed = 0;
  for (const matrix of shape.matrices) {
    if (isLookedUp(matrix, shape)) continue;
    if (matrix.isRouted) routed += format.bytesOf(matrix, shape);
    else always += format.bytesOf(matrix, shape);
  }
  return { always, routed };
}

/**
 * One decode step of `batch` sequences with `context` tokens each: the weights and every sequence's cache are read once,
 * two operations per active weight and token. tokens/s = batch / max(bytes / bandwidth, operations / peak); for one
 * sequence and a short context that is bandwidth / weight bytes. Roofline model: Williams, Waterman and Patterson 2009.
 */
export function decodeRoofline(
  workload: Workload,
  machine: DeviceGroup,
  batch: number,
  context: number,
): Roofline {
  const { shape, read, kvFormat } = workload;
  const bytes =
    read.always + read.routed * expertsHit(shape, batch) + batch * kvBytes(shape, kvFormat, context);
  const flops = batch * (2 * activeWeights(shape, true) + attentionFlops(shape, context));
  return roofline(machine, workload.compute, bytes, flops, batch);
}

/** A prompt of `tokens`, computed at once: each token sees those before it, the head runs for the last one. */
export function prefillRoofline(workload: Workload, machine: DeviceGroup, tokens: number): Roofline {
  const { shape, read } = workload;
  const head = shape.matrices.find(({ kind }) => kind === (shape.isTied ? embeddingKind : headKind));
  let flops = tokens * 2 * activeWeights(shape, false) + 2 * (head === undefined ? 0 : elementsOf(head));
  flops += tokens * stateFlops(shape);
  for (const { flopsPerContextToken, window = Infinity } of shape.attention) {
    flops += flopsPerContextToken * visibleTokens(tokens, window);
  }
  const bytes =
    read.always + read.routed * expertsHit(shape, tokens) + kvBytes(shape, workload.kvFormat, tokens);
  return roofline(machine, workload.compute, bytes, flops, tokens);
}

/** Expected share of the routed experts that `tokens` tokens, each sent to some of them evenly, use between them. */
export function expertsHit(shape: ModelShape, tokens: number): number {
  return 1 - (1 - activeShare(shape)) ** tokens;
}

function isLookedUp({ kind }: WeightMatrix, shape: ModelShape): boolean {
  return kind === embeddingKind && !shape.isTied;
}

function activeWeights(shape: ModelShape, withHead: boolean): number {
  const share = activeShare(shape);
  let sum = 0;
  for (const matrix of shape.matrices) {
    if (matrix.kind === embeddingKind || matrix.kind === headKind) {
      if (withHead && !isLookedUp(matrix, shape)) sum += elementsOf(matrix);
    } else {
      sum += elementsOf(matrix) * (matrix.isRouted ? share : 1);
    }
  }
  return sum;
}

/** Operations for one token: an element decays, is recalled, written and read. */
function stateFlops({ stateElements }: ModelShape): number {
  return 7 * stateElements;
}

function attentionFlops(shape: ModelShape, context: number): number {
  return shape.attention.reduce(
    (sum, { flopsPerContextToken, window = Infinity }) =>
      sum + flopsPerContextToken * Math.min(context, window),
    stateFlops(shape),
  );
}

/** Sum over a prompt's tokens of how many each sees. */
function visibleTokens(tokens: number, window: number): number {
  const ramp = Math.min(tokens, window);
  return (ramp * (ramp + 1)) / 2 + (tokens - ramp) * ramp;
}

function roofline(
  { hardware, devices, efficiency }: DeviceGroup,
  compute: WeightFormat["compute"],
  bytes: number,
  flops: number,
  tokens: number,
): Roofline {
  const scale = devices * efficiency;
  const memorySeconds = bytes / (hardware.bandwidth * scale);
  const computeSeconds = flops / ((hardware.flops[compute] ?? hardware.flops.bf16) * scale);
  const seconds = Math.max(memorySeconds, computeSeconds);
  return {
    tokensPerSecond: tokens / seconds,
    seconds,
    limit: memorySeconds >= computeSeconds ? "memory" : "compute",
  };
}
