import { checkAttention } from "./attention.js";
import { checkExpert, checkRouting } from "./experts.js";
import { OctavoError } from "@octavo/protocol/errors";
import type { BufferRef, KvLayerShape, Matrix, Op, ProgramSpec } from "../backend.js";
import { stateWidths } from "../state-widths.js";
import {
  checkGate,
  checkHeadLinear,
  checkSplit,
  type OpChecker,
  activations,
  plainActivations,
} from "./gate-ops.js";
import { checkHandOver } from "./rank-ops.js";
import { checkRecurrentOp, type StateNeed } from "./recurrent-ops.js";
import { checkRope } from "./rope.js";
import { type Span, spanOf } from "./span.js";

/** What steps are checked against. */
export interface CheckedProgram {
  readonly spec: ProgramSpec;
  readonly maxTokens: number;
  /** Token ids that every embedding can look up. */
  readonly numEmbeddings: number;
  /** Above all positions and all types that every embedding of them can look up. */
  readonly numPositions: number;
  readonly numTypes: number;
  /** Rows of the output head; 0 without one. */
  readonly vocabSize: number;
  readonly hiddenSize: number;
  /** Width of the rows that may be given in place of embedded ids; 0 where none may. */
  readonly givenWidth: number;
  /** Widths of the rows that each `add_given` adds. */
  readonly addedWidths: readonly number[];
  /** Hidden rows may be pooled: the program gathers. */
  readonly gathers: boolean;
  /** Weights of the linears that adapters can reach, by site. */
  readonly sites: ReadonlyMap<number, Matrix>;
  /** Layers of the cache, by their number; undefined where no op has it. */
  readonly kvLayers: readonly (KvLayerShape | undefined)[];
  /** What each recurrent op keeps. */
  readonly states: readonly StateNeed[];
}

const mostSites = 65_535;

/**
 * Refuses programs whose shapes do not fit, that read what nothing wrote, or that need the step's tokens after `gather`.
 * Throws `internal_error`, naming the op by its index: a program comes from a model's code, not from a user.
 */
export function checkProgram(spec: ProgramSpec): CheckedProgram {
  return new ProgramChecker(spec).check();
}

class ProgramChecker {
  readonly #spec: ProgramSpec;
  /** Which rows a buffer holds: a buffer not in the map has not been written. */
  readonly #rows = new Map<number, "tokens" | "outputs">();
  readonly #sites = new Map<number, Matrix>();
  #current: "tokens" | "outputs" = "tokens";
  #where = "the program";
  /** Rows that embeddings have, at least, behind their offsets. */
  readonly #looksUp = {
    token: Number.MAX_SAFE_INTEGER,
    position: Number.MAX_SAFE_INTEGER,
    type: Number.MAX_SAFE_INTEGER,
  };
  readonly #kvLayers: (KvLayerShape | undefined)[] = [];
  #numRecurrent = 0;
  #givenWidth = 0;
  readonly #addedWidths: number[] = [];

  constructor(spec: ProgramSpec) {
    this.#spec = spec;
  }

  check(): CheckedProgram {
    const { buffers, ops, hidden, head, maxTokens } = this.#spec;
    this.#positive("maxTokens", maxTokens);
    for (const [index, width] of buffers.entries()) this.#positive(`the width of buffer ${index}`, width);
    for (const [index, op] of ops.entries()) {
      this.#where = `op ${index} (${op.op})`;
      this.#checkOp(op);
    }
    this.#where = "the head";
    const state = this.#read("hidden", hidden);
    if (head !== undefined) {
      this.#equal("the width of hidden", state.width, "the head's columns", head.weight.cols);
      if (head.bias !== undefined)
        this.#equal("the bias", head.bias.length, "the head's rows", head.weight.rows);
      const { allRows = head.weight.rows } = head;
      if (allRows < head.weight.rows) this.#fail(`is a part of ${allRows} rows, but has more`);
      if (head.softCap !== undefined) this.#above("softCap", head.softCap);
    }
    return {
      spec: this.#spec,
      maxTokens,
      numEmbeddings: this.#looksUp.token,
      numPositions: this.#looksUp.position,
      numTypes: this.#looksUp.type,
      vocabSize: head?.allRows ?? head?.weight.rows ?? 0,
      hiddenSize: state.width,
      givenWidth: this.#givenWidth,
      addedWidths: this.#addedWidths,
      gathers: this.#current === "outputs",
      sites: this.#sites,
      kvLayers: this.#kvLayers,
      states: this.#stateNeeds(),
    };
  }

  #checkOp(op: Op): void {
    switch (op.op) {
      case "embedding":
        this.#needsTokens();
        this.#checkLookUp(op);
        return this.#equal(
          "the width of out",
          this.#write("out", op.out).width,
          "the weight's columns",
          op.weight.cols,
        );
      case "add_given":
        this.#needsTokens();
        return this.#checkAdded(this.#read("on", op.on).width, op.index);
      case "rms_norm":
        return this.#checkRmsNorm(op);
      case "layer_norm":
        return this.#checkLayerNorm(op);
      case "linear": {
        const input = this.#read("in", op.in);
        this.#equal("the width of in", input.width, "the weight's columns", op.weight.cols);
        if (op.bias !== undefined)
          this.#equal("the bias", op.bias.length, "the weight's rows", op.weight.rows);
        const out = this.#write("out", op.out);
        this.#equal("the width of out", out.width, "the weight's rows", op.weight.rows);
        this.#checkSite(op);
        return this.#apart("in", input, "out", out);
      }
      case "head_linear":
        return checkHeadLinear(op, this.#checker);
      case "rope":
        this.#needsTokens();
        return checkRope(op, this.#checker);
      case "attention":
        this.#needsTokens();
        return checkAttention(op, this.#kvLayers, this.#checker);
      case "gated_activation": {
        const input = this.#read("in", op.in);
        if (!activations.includes(op.activation)) this.#fail(`knows no activation ${op.activation}`);
        const out = this.#write("out", op.out);
        this.#equal("twice the width of out", 2 * out.width, "the width of in", input.width);
        return this.#apart("in", input, "out", out);
      }
      case "activation":
        this.#read("on", op.on);
        if (!plainActivations.includes(op.activation))
          this.#fail(`knows no activation ${op.activation} without a gate`);
        return;
      case "experts":
        return this.#checkExperts(op);
      case "sigmoid_gate":
        this.#read("on", op.on);
        return this.#equal("the width of in", this.#read("in", op.in).width, "the columns of a gate", 1);
      case "gate":
        return checkGate(op, this.#checker);
      case "split":
        return checkSplit(op, this.#checker);
      case "convolution":
      case "gated_delta_rule":
      case "state_space":
        this.#needsTokens();
        checkRecurrentOp(op, this.#numRecurrent, this.#checker);
        this.#numRecurrent += 1;
        return;
      case "add": {
        const input = this.#read("in", op.in);
        return this.#equal(
          "the width of in",
          input.width,
          "the width of out",
          this.#read("out", op.out).width,
        );
      }
      case "scale":
        this.#read("on", op.on);
        if (op.by !== undefined) this.#equal("the number of values of by", op.by.length, "a factor", 1);
        if (!Number.isFinite(op.factor)) this.#fail(`has the factor ${op.factor}`);
        return;
      case "round_e4m3": {
        const { width } = this.#read("in", op.in);
        if (op.groupSize !== undefined) this.#positive("groupSize", op.groupSize);
        return this.#equal("the width of out", this.#write("out", op.out).width, "the width of in", width);
      }
      case "clamp":
        this.#read("on", op.on);
        if (op.least === undefined) return this.#above("limit", op.limit);
        if (!(op.least <= op.limit)) this.#fail(`has the bounds ${op.least} and ${op.limit}`);
        return;
      case "exchange":
      case "receive":
      case "send":
        return checkHandOver(op, this.#checker);
      case "gather": {
        this.#needsTokens();
        const input = this.#read("in", op.in);
        this.#current = "outputs";
        return this.#equal(
          "the width of in",
          input.width,
          "the width of out",
          this.#write("out", op.out).width,
        );
      }
      default:
        return this.#fail("is not an op of this backend");
    }
  }

  #checkLookUp({ of, offset = 0, weight, takesGiven }: Extract<Op, { op: "embedding" }>): void {
    const index = of ?? "token";
    if (takesGiven === true) {
      if (this.#givenWidth > 0) this.#fail("takes given rows, which another op takes too");
      this.#givenWidth = weight.cols;
    }
    if (!Object.hasOwn(this.#looksUp, index)) this.#fail(`looks up by ${index}`);
    if (!Number.isInteger(offset) || offset < 0 || offset >= weight.rows)
      this.#fail(`has the offset ${offset} into ${weight.rows} rows`);
    this.#looksUp[index] = Math.min(this.#looksUp[index], weight.rows - offset);
  }

  #checkAdded(width: number, index: number): void {
    this.#equal("its index", index, "the number of such ops before", this.#addedWidths.length);
    this.#equal("the width of on", width, "that of such ops before", this.#addedWidths[0] ?? width);
    this.#addedWidths.push(width);
  }

  #checkSite({ site, weight }: Extract<Op, { op: "linear" }>): void {
    if (site === undefined) return;
    if (!Number.isInteger(site) || site < 0 || site > mostSites)
      this.#fail(`has the site ${site}; sites are integers from 0 to ${mostSites}`);
    if (this.#sites.has(site)) this.#fail(`has the site ${site}, which another linear has too`);
    this.#sites.set(site, weight);
  }

  #checkRmsNorm(op: Extract<Op, { op: "rms_norm" }>): void {
    const { width } = this.#read("in", op.in);
    const group = op.groupSize ?? width;
    this.#positive("groupSize", group);
    if (width % group !== 0)
      this.#fail(`normalises groups of ${group}, which do not divide its ${width} columns`);
    if (op.weight.length !== width)
      this.#equal("the weight", op.weight.length, "the normalised columns", group);
    this.#checkNormed(op, width);
  }

  #checkLayerNorm(op: Extract<Op, { op: "layer_norm" }>): void {
    const { width } = this.#read("in", op.in);
    this.#equal("the weight", op.weight.length, "the normalised columns", width);
    if (op.bias !== undefined) this.#equal("the bias", op.bias.length, "the normalised columns", width);
    this.#checkNormed(op, width);
    // The sum is kept while the norm is written piece by piece.
    if (op.residual === undefined) return;
    this.#apart("residual", this.#span("residual", op.residual), "out", this.#span("out", op.out));
  }

  #checkNormed(op: Extract<Op, { op: "rms_norm" | "layer_norm" }>, width: number): void {
    if (!(op.eps >= 0)) this.#fail(`has eps ${op.eps}`);
    if (op.residual !== undefined) {
      const residual = this.#read("residual", op.residual);
      this.#equal("the width of residual", residual.width, "the width of in", width);
    }
    this.#equal("the width of out", this.#write("out", op.out).width, "the width of in", width);
  }

  #checkExperts(op: Extract<Op, { op: "experts" }>): void {
    const { experts, topK } = op;
    const input = this.#read("in", op.in);
    const scores = this.#read("scores", op.scores);
    this.#equal("the width of scores", scores.width, "the experts", experts.length);
    this.#positive("topK", topK);
    if (topK > experts.length) this.#fail(`chooses ${topK} of ${experts.length} experts`);
    if (!activations.includes(op.activation)) this.#fail(`knows no activation ${op.activation}`);
    const out = this.#write("out", op.out);
    const inner = experts[0]?.down.cols ?? 0;
    for (const [index, expert] of experts.entries())
      checkExpert(
        index,
        expert,
        op.isGated !== false,
        { hidden: input.width, inner, out: out.width, isSplit: op.isSplit === true },
        this.#equal.bind(this),
      );
    checkRouting(op, this.#checker);
    this.#apart("in", input, "out", out);
    this.#apart("scores", scores, "out", out);
  }

  /** For checks in files of their own. */
  get #checker(): OpChecker {
    return {
      read: (name, ref) => this.#read(name, ref),
      write: (name, ref) => this.#write(name, ref),
      apart: (...spans) => this.#apart(...spans),
      equal: (...values) => this.#equal(...values),
      positive: (name, value) => this.#positive(name, value),
      fail: (problem) => this.#fail(problem),
    };
  }

  #stateNeeds(): StateNeed[] {
    const { ops, buffers } = this.#spec;
    const withDraft = stateWidths(ops, buffers, 1);
    return stateWidths(ops, buffers, 0).map((base, index) => ({
      base,
      perDraft: (withDraft[index] ?? 0) - base,
    }));
  }

  #read(name: string, ref: BufferRef): Span {
    const rows = this.#rows.get(ref.buffer);
    const span = this.#span(name, ref);
    if (rows === undefined) this.#fail(`reads buffer ${ref.buffer} (${name}), which nothing has written`);
    if (rows !== this.#current)
      this.#fail(`reads buffer ${ref.buffer} (${name}), which holds the rows before gather`);
    return span;
  }

  #write(name: string, ref: BufferRef): Span {
    this.#rows.set(ref.buffer, this.#current);
    return this.#span(name, ref);
  }

  #span(name: string, ref: BufferRef): Span {
    const bufferWidth = this.#spec.buffers[ref.buffer];
    if (bufferWidth === undefined)
      return this.#fail(`names buffer ${ref.buffer} (${name}), which does not exist`);
    const span = spanOf(ref, this.#spec.buffers);
    const { column, width } = span;
    if (
      !Number.isInteger(column) ||
      !Number.isInteger(width) ||
      column < 0 ||
      width < 1 ||
      column + width > bufferWidth
    ) {
      this.#fail(
        `addresses columns ${column} to ${column + width} of buffer ${ref.buffer} (${name}), which has ${bufferWidth}`,
      );
    }
    return span;
  }

  /** Kernels that read all of `left` while they write `right`. */
  #apart(leftName: string, left: Span, rightName: string, right: Span): void {
    if (left.buffer !== right.buffer) return;
    if (left.column + left.width <= right.column || right.column + right.width <= left.column) return;
    this.#fail(`needs ${leftName} and ${rightName} apart, but they overlap in buffer ${left.buffer}`);
  }

  #needsTokens(): void {
    if (this.#current === "outputs") this.#fail("needs the step's tokens, but comes after gather");
  }

  #equal(leftName: string, left: number, rightName: string, right: number): void {
    if (left !== right) this.#fail(`does not fit: ${leftName} is ${left}, ${rightName} are ${right}`);
  }

  #positive(name: string, value: number): void {
    if (!Number.isInteger(value) || value < 1)
      this.#fail(`needs ${name} to be a positive integer, not ${value}`);
  }

  #above(name: string, value: number): void {
    if (!(value > 0 && Number.isFinite(value)))
      this.#fail(`needs ${name} to be positive and finite, not ${value}`);
  }

  #fail(problem: string): never {
    throw new OctavoError("internal_error", `Cannot compile: ${this.#where} ${problem}.`);
  }
}
