import type { Pools } from "./pools/pools.js";
import type { CaseRandom } from "./random.js";
import type { Split } from "./split.js";

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonRecord = { readonly [key: string]: Json };

export interface TaskCall {
  readonly name: string;
  readonly arguments: JsonRecord;
}

export interface TaskTool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonRecord };
}

/** A chat message as the template takes it; `tool_calls` carry their arguments as objects. */
export type Message =
  | { readonly role: "system" | "user" | "tool"; readonly content: string }
  | {
      readonly role: "assistant";
      readonly content: string;
      readonly tool_calls?: readonly { readonly type: "function"; readonly function: TaskCall }[];
    };

/**
 * One example: the prompt, which ends with a user or tool message, and its one right answer. `gold` is the exact text the
 * model should write, tool-call markup included.
 */
export interface GoldenCase {
  readonly task: TaskName;
  /** A finer label inside the task, such as the haystack's form. */
  readonly kind: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly TaskTool[];
  /** The text the answer must be grounded in, when the task has one. */
  readonly context: string | null;
  readonly gold: string;
  readonly schema?: JsonRecord;
  readonly expectedCalls?: readonly TaskCall[];
}

export interface CaseSource {
  readonly random: CaseRandom;
  readonly split: Split;
  readonly pools: Pools;
  /** Wanted prompt length in tokens, for the families whose contexts can grow. */
  readonly contextTokens?: number;
}

/** A task family writes one fresh case from the source's random stream and nothing else. */
export interface TaskFamily<Name extends string = TaskName> {
  readonly name: Name;
  generate(source: CaseSource): GoldenCase;
}

export const taskNames = ["chat", "extraction", "tools", "grounded", "copying", "retrieval"] as const;
export type TaskName = (typeof taskNames)[number];
