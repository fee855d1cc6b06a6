import { asArray, asNumber, asRecord, asString } from "@octavo/protocol";
import type { Neighbour } from "./target.js";

/** What `/v1/requests/ID/neighbours` of Octavo says; undefined where it is something else. */
export function neighboursIn(value: unknown): readonly Neighbour[] | undefined {
  const { neighbours } = asRecord(value);
  if (!Array.isArray(neighbours)) return undefined;
  return neighbours.map(asRecord).flatMap((one): readonly Neighbour[] => {
    const requestId = asString(one["request_id"]);
    const promptTokens = asNumber(one["prompt_tokens"]);
    if (requestId === undefined || promptTokens === undefined) return [];
    const outputs = asArray(one["output_tokens"]).map((tokens) => asNumber(tokens) ?? 0);
    return [
      {
        requestId,
        arrivalOffsetMs: asNumber(one["arrival_offset_ms"]) ?? 0,
        promptTokens,
        cachedTokens: asNumber(one["cached_tokens"]) ?? 0,
        outputTokens: outputs.reduce((sum, tokens) => sum + tokens, 0),
        kernelMs: asNumber(one["kernel_ms_meanwhile"]) ?? 0,
      },
    ];
  });
}
