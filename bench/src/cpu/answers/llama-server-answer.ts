import { OctavoError } from "@octavo/protocol/errors";
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
    const answer = answerOf(body);
    if (!response.ok || answer === undefined || answer.tokens.length !== GREEDY_TOKENS) {
      throw new OctavoError(
        "engine_failed",
        `llama-server gave no token probabilities: ${JSON.stringify(body).slice(0, 300)}`,
      );
    }
    return { prompt, greedy: answer.tokens, top: alignSteps(answer.tokens, answer.steps) };
  });
}

/** The server leaves out the probabilities of tokens that end within a character; such steps have none here. */
export function alignSteps(tokens: readonly number[], steps: readonly LlamaServerStep[]): PeerAnswer["top"] {
  let next = 0;
  return tokens.map((token) => {
    const step = steps[next];
    if (step?.id !== token) return [];
    next += 1;
    return step.top_logprobs.map(({ id, logprob }) => [id, logprob] as const);
  });
}

interface LlamaServerStep {
  readonly id: number;
  readonly top_logprobs: readonly { readonly id: number; readonly logprob: number }[];
}

function answerOf(
  body: unknown,
): { readonly tokens: readonly number[]; readonly steps: readonly LlamaServerStep[] } | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  if (!("completion_probabilities" in body) || !("tokens" in body)) return undefined;
  const { completion_probabilities: steps, tokens } = body;
  return Array.isArray(steps) && Array.isArray(tokens)
    ? { tokens: tokens as readonly number[], steps: steps as readonly LlamaServerStep[] }
    : undefined;
}
