import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { PromptInput } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import type { Service } from "../service.js";
import { encodePrompt, type PromptEncoding } from "./encode-prompt.js";

/** Characters tokenised without yielding to the event loop. */
const charactersPerTurn = 16_384;

/**
 * The tokens of each prompt of a request, in order. Short texts are tokenised on the event loop, with yields in between: a
 * request may have thousands. Ids are checked against the vocabulary. `fieldOf` names a prompt in errors.
 */
export async function tokenizePrompts(
  service: Service,
  context: RequestContext,
  prompts: readonly PromptInput[],
  encoding: PromptEncoding,
  fieldOf: (index: number) => string,
): Promise<readonly Int32Array[]> {
  const { signal } = context;
  const results: Int32Array[] = [];
  let characters = 0;
  for (const [index, prompt] of prompts.entries()) {
    if (prompt.kind === "tokens") {
      service.checkTokens(prompt.tokens, fieldOf(index));
      results.push(prompt.tokens);
      continue;
    }
    characters += prompt.text.length;
    if (characters > charactersPerTurn) {
      characters = prompt.text.length;
      await eventLoopTurn();
      signal.throwIfAborted();
    }
    results.push(await encodePrompt(service.model, prompt.text, encoding, context, fieldOf(index)));
  }
  return results;
}
