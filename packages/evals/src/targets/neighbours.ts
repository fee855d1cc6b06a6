import { listOf, numberOf, recordOf, stringOf } from "../http/json.js";
import type { Neighbour } from "./target.js";

/** What `/v1/requests/ID/neighbours` of Octavo says; undefined where it is something else. */
export function neighboursOf(value: unknown): readonly Neighbour[] | undefined {
  const { neighbours } = recordOf(value);
  if (!Array.isArray(neighbours)) return undefined;
  return neighbours.map(recordOf).flatMap((one): readonly Neighbour[] => {
    const requestId = stringOf(one["request_id"]);
    const promptTokens = numberOf(one["prompt_tokens"]);
    if (requestId === undefined || promptTokens === undefined) return [];
    const outputs = listOf(one["output_tokens"]).map((tokens) => numberOf(tokens) ?? 0);
    return [
      {
        requestId,
        arrivalOffsetMs: numberOf(one["arrival_offset_ms"]) ?? 0,
        promptTokens,
        cachedTokens: numberOf(one["cached_tokens"]) ?? 0,
        outputTokens: outputs.reduce((sum, tokens) => sum + tokens, 0),
        kernelMs: numberOf(one["kernel_ms_meanwhile"]) ?? 0,
      },
    ];
  });
}
