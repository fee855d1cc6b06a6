import { Random } from "@octavo/statistics";
import type { EvalCase } from "../../cases/eval-case.js";

const words =
  "river stone window garden letter market winter signal copper bridge orange silver forest engine ticket harbor pencil mirror candle basket".split(
    " ",
  );

/** A prompt of about so many tokens that shares no prefix with any other, to be answered at length. */
export function fillerCase(
  index: number,
  promptTokens: number,
  outputTokens: number,
  seed: number,
): EvalCase {
  const random = new Random(seed * 1_000_003 + index);
  // digits and spaced words are about a token each in most vocabularies
  const text = Array.from({ length: Math.max(1, promptTokens) }, () => random.pick(words)).join(" ");
  return {
    id: `filler-${seed}-${index}`,
    messages: [{ role: "user", content: `${index} ${seed}: ${text}` }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: { maxTokens: outputTokens, temperature: 0, extraBody: { min_tokens: outputTokens } },
    tenant: undefined,
    cluster: undefined,
    tags: ["filler"],
    metadata: {},
  };
}
