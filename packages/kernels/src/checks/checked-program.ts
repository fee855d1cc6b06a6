import type { Activation, Matrix, PlainActivation, ProgramSpec } from "../backend.js";
import type { StateNeed } from "./recurrent-ops.js";

/** What steps are checked against. */
export interface CheckedProgram {
  readonly spec: ProgramSpec;
  readonly maxTokens: number;
  /** Token ids that every embedding can look up. */
  readonly numEmbeddings: number;
  /** Rows of the output head. */
  readonly vocabSize: number;
  /** Weights of the linears that adapters can reach, by site. */
  readonly sites: ReadonlyMap<number, Matrix>;
  /** undefined when no op attends. */
  readonly attention:
    | { readonly numLayers: number; readonly numKvHeads: number; readonly headDim: number }
    | undefined;
  /** Of each recurrent op. */
  readonly states: readonly StateNeed[];
}

export const activations: readonly string[] = [
  "silu",
  "gelu",
  "gelu_tanh",
  "clamped_swiglu",
  "sigmoid",
  "identity",
] satisfies Activation[];

export const plainActivations: readonly string[] = ["silu", "gelu", "gelu_tanh"] satisfies PlainActivation[];
