import { OctavoError } from "@octavo/protocol";
import { type ServerProcess, withServerProcess } from "../contenders/served.js";
import { PromptSource } from "../workers/prompts.js";
import type { PeerAnswer } from "./near-tie.js";

const PROMPT_TOKENS = 24;
const GREEDY_TOKENS = 64;
const TOP = 8;

/** What llama-server answers to a prompt of token ids. */
export async function llamaServerAnswer(server: ServerProcess, vocabSize: number): Promise<PeerAnswer> {
  const prompt = new PromptSource(vocabSize).next(PROMPT_TOKENS);
  return await withServerProcess(server, async () => {
    const response = await fetch(`${server.baseUrl}/completion`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        prompt,
        n_predict: GREEDY_TOKENS,
        temperature: 0,
        n_probs: TOP,
        ignore_eos: true,
        cache_prompt: false,
        return_tokens: true,
      }),
    });
    const body: unknown = await response.json();
    const steps = stepsOf(body);
    if (!response.ok || steps === undefined || steps.length !== GREEDY_TOKENS) {
      throw new OctavoError(
        "engine_failed",
        `llama-server gave no token probabilities: ${JSON.stringify(body).slice(0, 300)}`,
      );
    }
    return {
      prompt,
      greedy: steps.map((step) => step.id),
      top: steps.map((step) => step.top_logprobs.map(({ id, logprob }) => [id, logprob] as const)),
    };
  });
}

interface Step {
  readonly id: number;
  readonly top_logprobs: readonly { readonly id: number; readonly logprob: number }[];
}

function stepsOf(body: unknown): readonly Step[] | undefined {
  if (typeof body !== "object" || body === null || !("completion_probabilities" in body)) return undefined;
  const { completion_probabilities: steps } = body;
  return Array.isArray(steps) ? (steps as readonly Step[]) : undefined;
}
