import { z } from "zod";
import { isTokenId, maxTokenId, requestLimits, withWireForm } from "./fields.js";

/** One prompt of a completions or embeddings request: text, or ids that are taken as they are. */
export type PromptInput =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "tokens"; readonly tokens: Int32Array };

/** A wire array of token ids; checked in one pass because prompts of 100,000 ids are ordinary. */
export const tokenIdArray = z.unknown().transform((value, context): Int32Array => {
  if (!Array.isArray(value)) {
    context.addIssue({ code: "custom", message: "must be an array of token ids" });
    return z.NEVER;
  }
  const problem = findBadTokenId(value);
  if (problem !== undefined) {
    context.addIssue({
      code: "custom",
      message: "token ids must be integers from 0 to 2147483647",
      path: [problem],
    });
    return z.NEVER;
  }
  return new Int32Array(value as number[]);
});
const tokenId = z.int().min(0).max(maxTokenId);
withWireForm(tokenIdArray, { items: tokenId });

/**
 * OpenAI's four forms (string, strings, ids, arrays of ids) as one list of prompts.
 * `batch` says whether the caller sent an array of prompts.
 */
export const promptInputs = z.unknown().transform((value, context): readonly PromptInput[] => {
  const fail = (message: string, path: PropertyKey[] = []): never => {
    context.addIssue({ code: "custom", message, path });
    return z.NEVER;
  };
  if (typeof value === "string") return [{ kind: "text", text: value }];
  if (!Array.isArray(value))
    return fail("must be a string, an array of strings, an array of token ids or an array of such arrays");
  if (value.length === 0) return fail("must not be empty");
  const items: readonly unknown[] = value;
  if (typeof items[0] === "number") {
    const bad = findBadTokenId(items);
    if (bad !== undefined) return fail("token ids must be integers from 0 to 2147483647", [bad]);
    return [{ kind: "tokens", tokens: new Int32Array(items as readonly number[]) }];
  }
  if (items.length > requestLimits.prompts) {
    return fail(`at most ${requestLimits.prompts} prompts are allowed in one request, got ${items.length}`);
  }
  const prompts: PromptInput[] = [];
  for (const [index, item] of items.entries()) {
    if (typeof item === "string") {
      prompts.push({ kind: "text", text: item });
    } else if (Array.isArray(item)) {
      const bad = findBadTokenId(item);
      if (bad !== undefined) return fail("token ids must be integers from 0 to 2147483647", [index, bad]);
      prompts.push({ kind: "tokens", tokens: new Int32Array(item as number[]) });
    } else {
      return fail("must be a string or an array of token ids", [index]);
    }
  }
  return prompts;
});

withWireForm(promptInputs, {
  anyOf: [
    z.string(),
    z.array(z.string()).min(1).max(requestLimits.prompts),
    z.array(tokenId).min(1),
    z.array(z.array(tokenId)).min(1).max(requestLimits.prompts),
  ],
});

function findBadTokenId(items: readonly unknown[]): number | undefined {
  const index = items.findIndex((item) => !isTokenId(item));
  return index < 0 ? undefined : index;
}
