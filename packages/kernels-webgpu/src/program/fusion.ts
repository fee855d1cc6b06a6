import type { BufferRef, Matrix, ProgramSpec, RopeSpec } from "@octavo/kernels";
import type { MatrixStorage } from "../handles.js";
import { columnUnit } from "../wgsl/matrix-forms.js";
import { canFuseActivation } from "./linear-plan.js";
import type { FusedAttention, FusedLinear, LoweredOp, LoweredProgram, RmsNorm } from "./lowered-op.js";

/**
 * Joins neighbouring ops where nothing else reads what lies between them: a linear and the activation that gates its output, a linear and
 * the residual that its output is added to, a norm and the linear that reads it.
 */
export function fuse(spec: ProgramSpec, storageOf: (matrix: Matrix) => MatrixStorage): LoweredProgram {
  const { buffers } = spec;
  let ops: readonly LoweredOp[] = spec.ops;
  let context: FusionContext = { storageOf, buffers, hidden: spec.hidden };
  ops = joinPairs(ops, (first, second, later) => joinActivation(first, second, later, context));
  ops = joinResiduals(ops, context);
  const posted = joinPosts(ops, context);
  ops = posted.ops;
  context = { ...context, hidden: posted.hidden };
  ops = joinPairs(ops, (first, second, later) => joinNorm(first, second, later, context));
  return { ops: joinHeads(ops, context), hidden: context.hidden };
}

/** Norms and rotations of each head, just before attention, are done where keys are written to the cache. */
function joinHeads(ops: readonly LoweredOp[], context: FusionContext): LoweredOp[] {
  const joined: LoweredOp[] = [];
  for (const [index, op] of ops.entries()) {
    if (op.op !== "attention") {
      joined.push(op);
      continue;
    }
    const heads: { qNorm?: RmsNorm; kNorm?: RmsNorm; rope?: RopeSpec } = {};
    let count = joined.length;
    const { k } = op;
    if (k !== undefined && !readsColumns(ops.slice(index + 1), k, context))
      count = headsBefore(joined, { ...op, k }, context.buffers, heads);
    joined.length = count;
    joined.push(Object.keys(heads).length === 0 ? op : { ...op, heads });
  }
  return joined;
}

/** Notes the ops at the end of `before` that change only the heads of an attention; how many ops are left before them. */
function headsBefore(
  before: readonly LoweredOp[],
  { q, k, headDim }: Pick<FusedAttention, "q" | "headDim"> & { readonly k: BufferRef },
  buffers: readonly number[],
  heads: { qNorm?: RmsNorm; kNorm?: RmsNorm; rope?: RopeSpec },
): number {
  const isAt = (left: BufferRef, right: BufferRef): boolean =>
    left.buffer === right.buffer &&
    (left.column ?? 0) === (right.column ?? 0) &&
    widthOf(left, buffers) === widthOf(right, buffers);
  const qEnd = (q.column ?? 0) + widthOf(q, buffers);
  const both = { ...q, width: widthOf(q, buffers) + widthOf(k, buffers) };
  const areNeighbours = q.buffer === k.buffer && qEnd === (k.column ?? 0);
  let count = before.length;
  const last = (): LoweredOp | undefined => before[count - 1];
  const rope = last();
  if (rope?.op === "rope" && rope.headDim === headDim && areNeighbours && isAt(rope.on, both)) {
    heads.rope = rope.rope;
    count -= 1;
  }
  for (const [name, ref] of [
    ["kNorm", k],
    ["qNorm", q],
  ] as const) {
    const norm = last();
    if (
      norm?.op !== "rms_norm" ||
      norm.residual !== undefined ||
      norm.groupSize !== headDim ||
      norm.weight.length !== headDim
    )
      continue;
    if (!isAt(norm.in, ref) || !isAt(norm.out, ref)) continue;
    heads[name] = norm;
    count -= 1;
  }
  return count;
}

/** Whether columns are read before something overwrites all of their buffer. */
function readsColumns(
  later: readonly LoweredOp[],
  columns: BufferRef,
  { buffers, hidden }: FusionContext,
): boolean {
  const overlaps = (ref: BufferRef): boolean => {
    const [first, other] = [columns.column ?? 0, ref.column ?? 0];
    return (
      ref.buffer === columns.buffer &&
      other < first + widthOf(columns, buffers) &&
      first < other + widthOf(ref, buffers)
    );
  };
  for (const op of later) {
    const { reads, writes } = accessesOf(op);
    if (reads.some(overlaps)) return true;
    if (writes.some((ref) => ref.buffer === columns.buffer && widthOf(ref, buffers) === buffers[ref.buffer]))
      return false;
  }
  return overlaps(hidden);
}

interface FusionContext {
  readonly storageOf: (matrix: Matrix) => MatrixStorage;
  readonly buffers: readonly number[];
  /** What a step reads at its end. */
  readonly hidden: BufferRef;
}

/** Replaces pairs of neighbours by what `join` makes of them; `later` are the ops behind the pair. */
function joinPairs(
  ops: readonly LoweredOp[],
  join: (first: LoweredOp, second: LoweredOp, later: readonly LoweredOp[]) => LoweredOp | undefined,
): LoweredOp[] {
  const joined: LoweredOp[] = [];
  for (let index = 0; index < ops.length; index++) {
    const [first, second] = [ops[index], ops[index + 1]];
    if (first === undefined) break;
    const both = second && join(first, second, ops.slice(index + 2));
    joined.push(both ?? first);
    if (both !== undefined) index += 1;
  }
  return joined;
}

function joinActivation(
  first: LoweredOp,
  second: LoweredOp,
  later: readonly LoweredOp[],
  context: FusionContext,
): LoweredOp | undefined {
  if (first.op !== "linear" || second.op !== "gated_activation") return undefined;
  if (!isWhole(first.out, second.in, context) || second.out.buffer === first.in.buffer) return undefined;
  if (!canFuseActivation(context.storageOf(first.weight)) || isRead(first.out.buffer, later, context))
    return undefined;
  return { ...first, out: second.out, activation: second.activation };
}

/** A linear whose output a norm adds to the residual stream adds it there itself; the norm then reads the stream. */
function joinResiduals(ops: readonly LoweredOp[], context: FusionContext): LoweredOp[] {
  const joined = [...ops];
  for (let index = 0; index + 1 < joined.length; index++) {
    const [first, second] = [joined[index], joined[index + 1]];
    if (first?.op !== "linear" || second === undefined) continue;
    const later = joined.slice(index + 2);
    if (
      second.op === "add" &&
      isWhole(first.out, second.in, context) &&
      !isRead(first.out.buffer, later, context)
    ) {
      if (second.out.buffer === first.in.buffer) continue;
      joined.splice(index, 2, { ...first, out: second.out, accumulates: true });
      continue;
    }
    if (second.op !== "rms_norm" && second.op !== "layer_norm") continue;
    const { residual, ...norm } = second;
    if (
      residual === undefined ||
      residual.buffer === first.in.buffer ||
      !isWhole(first.out, second.in, context)
    )
      continue;
    // The norm may write over what it read, which counts as no use of it.
    const isOverwritten = isWhole(first.out, second.out, context);
    if (!isOverwritten && isRead(first.out.buffer, later, context)) continue;
    joined.splice(index, 2, { ...first, out: residual, accumulates: true }, { ...norm, in: residual });
  }
  return joined;
}

/**
 * The norm of what a block gives, the norm of the stream that it is added to and the linear that reads that, in one. The linear's workgroups
 * read the old stream, so the new one goes where the second norm's output was to go, and the two buffers trade places from there on.
 */
function joinPosts(ops: readonly LoweredOp[], context: FusionContext): LoweredProgram {
  const joined: LoweredOp[] = [];
  let left = ops;
  let { hidden } = context;
  while (left[0] !== undefined) {
    const both = joinPost(left, { ...context, hidden });
    joined.push(both ?? left[0]);
    left = left.slice(both === undefined ? 1 : 3);
    if (both === undefined) continue;
    const { in: old, stream } = both;
    const traded = <T>(value: T): T => tradedRef(value, old.buffer, stream.buffer);
    left = left.map(
      (op) =>
        Object.fromEntries(Object.entries(op).map(([name, value]) => [name, traded(value)])) as LoweredOp,
    );
    hidden = traded(hidden);
  }
  return { ops: joined, hidden };
}

function tradedRef<T>(value: T, one: number, other: number): T {
  if (typeof value !== "object" || value === null || !("buffer" in value)) return value;
  if (value.buffer !== one && value.buffer !== other) return value;
  return { ...value, buffer: value.buffer === one ? other : one };
}

/** What the first three ops become. */
function joinPost(
  ops: readonly LoweredOp[],
  context: FusionContext,
): (FusedLinear & { readonly stream: BufferRef }) | undefined {
  const [post, norm, linear] = ops;
  if (post?.op !== "rms_norm" || norm?.op !== "rms_norm" || linear?.op !== "linear") return undefined;
  const { residual: stream, out } = norm;
  if (stream === undefined || !isPlain(post, context) || !isWide(norm, context)) return undefined;
  const isJoined =
    isWhole(post.in, post.in, context) &&
    isWhole(post.out, norm.in, context) &&
    isWhole(stream, stream, context) &&
    isWhole(out, linear.in, context) &&
    linear.weight.cols % columnUnit === 0;
  const places = [post.in.buffer, stream.buffer, out.buffer];
  if (!isJoined || new Set(places).size < 3 || new Set(places.map((at) => context.buffers[at])).size > 1)
    return undefined;
  if ([...places, post.out.buffer].includes(linear.out.buffer)) return undefined;
  const later = ops.slice(3);
  if (isRead(post.out.buffer, later, context) || isRead(out.buffer, later, context)) return undefined;
  return { ...linear, in: stream, norm, post, update: post.in, stream: out };
}

function joinNorm(
  first: LoweredOp,
  second: LoweredOp,
  later: readonly LoweredOp[],
  context: FusionContext,
): LoweredOp | undefined {
  if (first.op !== "rms_norm" || second.op !== "linear" || second.norm !== undefined) return undefined;
  if (!isPlain(first, context) || !isWhole(first.out, second.in, context)) return undefined;
  const { column = 0 } = first.in;
  if (column % 4 !== 0 || second.weight.cols % columnUnit !== 0) return undefined;
  if (first.in.buffer === second.out.buffer && !(second.accumulates ?? false)) return undefined;
  if (isRead(first.out.buffer, later, context)) return undefined;
  const fused: FusedLinear = { ...second, in: first.in, norm: first };
  return fused;
}

/** Over the whole width, without a residual. */
function isPlain(norm: RmsNorm, context: FusionContext): boolean {
  return norm.residual === undefined && isWide(norm, context);
}

function isWide({ in: input, groupSize }: RmsNorm, { buffers }: FusionContext): boolean {
  return groupSize === undefined || groupSize === widthOf(input, buffers);
}

/** Whether two references are the same columns, all of their buffer. */
function isWhole(left: BufferRef, right: BufferRef, { buffers }: FusionContext): boolean {
  return (
    left.buffer === right.buffer &&
    [left, right].every((ref) => (ref.column ?? 0) === 0 && widthOf(ref, buffers) === buffers[ref.buffer])
  );
}

function widthOf({ buffer, column = 0, width }: BufferRef, buffers: readonly number[]): number {
  return width ?? (buffers[buffer] ?? 0) - column;
}

/** Whether a buffer is read before something overwrites all of it. */
function isRead(buffer: number, later: readonly LoweredOp[], { buffers, hidden }: FusionContext): boolean {
  for (const op of later) {
    const { reads, writes } = accessesOf(op);
    if (reads.some((ref) => ref.buffer === buffer)) return true;
    if (writes.some((ref) => ref.buffer === buffer && widthOf(ref, buffers) === buffers[buffer]))
      return false;
  }
  return hidden.buffer === buffer;
}

/** Which buffers an op reads, and which it only writes. */
function accessesOf(op: LoweredOp): {
  readonly reads: readonly BufferRef[];
  readonly writes: readonly BufferRef[];
} {
  const outputs = new Set(["out", "first", "second", "stream"]);
  const reads: BufferRef[] = [];
  const writes: BufferRef[] = [];
  for (const [name, value] of Object.entries(op) as [string, unknown][]) {
    if (typeof value !== "object" || value === null || !("buffer" in value)) continue;
    const isOutput =
      outputs.has(name) && op.op !== "add" && !(op.op === "linear" && (op.accumulates ?? false));
    (isOutput ? writes : reads).push(value as BufferRef);
  }
  return { reads, writes };
}
