import { chat } from "./chat/chat.js";
import { copying } from "./copying.js";
import { extraction } from "./extraction/extraction.js";
import { grounded } from "./grounded.js";
import { Pools } from "./pools/pools.js";
import { CaseRandom } from "./random.js";
import { retrieval } from "./retrieval.js";
import type { GoldenCase, TaskFamily, TaskName } from "./task.js";
import type { Split } from "./split.js";
import { toolCalls } from "./tool-calls/tool-calls.js";

const taskFamilies: { readonly [Name in TaskName]: TaskFamily<Name> } = {
  chat,
  extraction,
  tools: toolCalls,
  grounded,
  copying,
  retrieval,
};

export interface CaseRequest {
  readonly task: TaskName;
  readonly split: Split;
  readonly seed: string | number;
  readonly contextTokens?: number;
}

/** The endless, repeatable stream of cases for one task, split and seed. */
export function* cases(request: CaseRequest): Generator<GoldenCase & { readonly id: string }, never> {
  const { task, split, seed, contextTokens } = request;
  const pools = new Pools(split);
  const length = contextTokens === undefined ? "" : `-${contextTokens}`;
  for (let index = 0; ; index++) {
    const id = `${task}${length}-${split}-${seed}-${index}`;
    const source = {
      random: new CaseRandom(id),
      split,
      pools,
      ...(contextTokens === undefined ? {} : { contextTokens }),
    };
    yield { id, ...taskFamilies[task].generate(source) };
  }
}
