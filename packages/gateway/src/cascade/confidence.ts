import { asObjects, asRecord, type JsonFields } from "@octavo/protocol";

/** Geometric mean of the probabilities of an answer's tokens, from its logprobs; undefined where it has none. */
export function answerConfidence(json: JsonFields): number | undefined {
  const logprobs = asRecord(asObjects(json["choices"])[0]?.["logprobs"]);
  const values = Array.isArray(logprobs["token_logprobs"])
    ? (logprobs["token_logprobs"] as unknown[])
    : asObjects(logprobs["content"]).map(({ logprob }) => logprob);
  const known = values.filter((value): value is number => typeof value === "number" && value <= 0);
  if (known.length === 0) return undefined;
  return Math.exp(known.reduce((sum, value) => sum + value, 0) / known.length);
}
