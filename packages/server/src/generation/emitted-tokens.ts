import type { GenerationRequest } from "@octavo/engine";
import type { OctavoFields } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";

/** What another server gave of the answer already. Throws `invalid_request` for several prompts. */
export function emittedTokens(
  octavo: OctavoFields | null | undefined,
  numPrompts = 1,
): Pick<GenerationRequest, "emittedTokens"> {
  const ids = octavo?.emitted_token_ids ?? undefined;
  if (ids === undefined) return {};
  if (numPrompts !== 1) throw invalidField("octavo.emitted_token_ids", "needs a request with one prompt");
  return { emittedTokens: Int32Array.from(ids) };
}
