import type { LLM } from "@octavo/engine";
import { cases } from "@octavo/octavo-mini";
import type { DraftedWorkload } from "./compare.js";

const numPrompts = 24;

/** Conversations of one kind that the embedded model was not trained on. */
function promptsLike(task: "copying" | "extraction", isWanted: (kind: string) => boolean) {
  return (llm: LLM, round: number): string[] => {
    const prompts: string[] = [];
    for (const { kind, messages } of cases({ task, split: "heldout", seed: `speculation-${round}` })) {
      if (isWanted(kind))
        prompts.push(llm.renderChat({ messages: messages.map((message) => ({ ...message })) }));
      if (prompts.length === numPrompts) break;
    }
    return prompts;
  };
}

const greedy = { temperature: 0, maxTokens: 400 };

function passages(atLeast: number | undefined): DraftedWorkload {
  const promptsOf = promptsLike("copying", (kind) => kind === "copy");
  return { name: "extraction of passages", promptsOf, options: greedy, rounds: 9, atLeast };
}

export function fields(): DraftedWorkload {
  const promptsOf = promptsLike("extraction", () => true);
  return { name: "extraction of fields into JSON", promptsOf, options: greedy, rounds: 9 };
}

/** At this temperature a small model says anything: what has stood before says little of what follows. */
export function freeSampling(name: string, prompts: number, maxTokens: number): DraftedWorkload {
  return {
    name,
    promptsOf: (llm, round) =>
      Array.from({ length: prompts }, (_, index) => {
        const content = `Tell me the story number ${round * prompts + index}.`;
        return llm.renderChat({ messages: [{ role: "user", content }] });
      }),
    options: { temperature: 2.5, maxTokens, ignoreEos: true },
    rounds: 9,
    atLeast: 0.97,
  };
}

export function embeddedWorkloads(atLeast: number | undefined): DraftedWorkload[] {
  return [passages(atLeast), fields(), freeSampling("free sampling", numPrompts, 160)];
}

/** Ids that count up from anywhere, for the model that `cycleModel` writes. */
export function counting(name: string): DraftedWorkload {
  const prompts = 32;
  return {
    name,
    promptsOf: (_, round) =>
      Array.from({ length: prompts }, (__, index) =>
        Int32Array.from(
          { length: 16 },
          (___, at) => 1000 + (((round * prompts + index) * 997 + at * 7919) % 30_000),
        ),
      ),
    options: { temperature: 0, maxTokens: 64, ignoreEos: true },
    rounds: 5,
    turns: 2,
  };
}
