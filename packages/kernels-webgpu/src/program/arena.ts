import type { BufferRef, ProgramSpec } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";

/** Where columns of a buffer lie in the arena: of row 0, and the floats from row to row. */
export interface ArenaPlace {
  readonly at: number;
  readonly stride: number;
  readonly width: number;
}

/** Logits that exist at a time. */
const mostLogitBytes = 64 << 20;

/** All activations of a program, in one buffer, so that any kernel may read and write any of them. */
export class Arena {
  readonly floats: number;
  /** Rows of logits that exist at a time. */
  readonly logitRows: number;
  readonly logits: ArenaPlace;
  /** The hidden rows of a step's outputs, of a program that does not gather them itself. */
  readonly hidden: ArenaPlace;
  /** One row a token, for ops whose result may not overwrite what they read. */
  readonly scratch: ArenaPlace;
  /** Buffers of mixtures: each expert's weight for each row, gates above ups of one expert, and their activations. */
  readonly experts: {
    readonly weights: ArenaPlace;
    readonly gateUp: ArenaPlace;
    readonly activated: ArenaPlace;
  };
  readonly #places: readonly ArenaPlace[];

  constructor({ buffers, ops, hidden, head, maxTokens }: ProgramSpec, mostBytes: number) {
    const vocab = head?.weight.rows ?? 0;
    let end = 0;
    const place = (width: number, rows: number): ArenaPlace => {
      const at = end;
      const stride = Math.ceil(width / 4) * 4;
      end += stride * rows;
      return { at, stride, width };
    };
    this.#places = buffers.map((width) => place(width, maxTokens));
    this.hidden = place(hidden.width ?? (buffers[hidden.buffer] ?? 0) - (hidden.column ?? 0), maxTokens);
    this.scratch = place(Math.max(...buffers), maxTokens);
    const mixtures = ops.filter((op) => op.op === "experts");
    const experts = Math.max(0, ...mixtures.map((op) => op.experts.length));
    const inner = Math.max(0, ...mixtures.flatMap((op) => op.experts.map(({ down }) => down.cols)));
    this.experts = {
      weights: place(experts, maxTokens),
      gateUp: place(2 * inner, maxTokens),
      activated: place(inner, maxTokens),
    };
    this.logitRows = Math.max(1, Math.min(maxTokens, Math.floor(mostLogitBytes / (4 * Math.max(1, vocab)))));
    this.logits = place(vocab, this.logitRows);
    this.floats = end;
    const bytes = end * 4;
    if (bytes > mostBytes) {
      const fits = Math.floor((maxTokens * mostBytes) / bytes);
      throw new OctavoError(
        "out_of_memory",
        `Activations of ${maxTokens} tokens take ${formatBinaryBytes(bytes)}, but this GPU binds at most ${formatBinaryBytes(mostBytes)} at a time: ` +
          `about ${fits} tokens a step fit (--max-num-batched-tokens).`,
      );
    }
  }

  of({ buffer, column = 0, width }: BufferRef): ArenaPlace {
    const whole = this.#places[buffer];
    if (whole === undefined) throw new OctavoError("internal_error", `The program has no buffer ${buffer}.`);
    return { at: whole.at + column, stride: whole.stride, width: width ?? whole.width - column };
  }
}

/** Whether vectors of four floats can be read from its first column on. */
export function isAligned({ at, stride, width }: ArenaPlace): boolean {
  return at % 4 === 0 && stride % 4 === 0 && width % 32 === 0;
}
