import { OctavoError } from "@octavo/protocol";
import { hashLanes, prefixBlockHashes } from "@octavo/text/prefix-hash/prefix-hash";
import type { GatewayConfig } from "../config/schema.js";
import type { Exchange } from "../exchange/exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import { tenantSalt } from "../exchange/tenant-marks.js";
import { PrefixIndex, type PromptBlocks } from "./prefix-index.js";
import { openPromptTokenizer, type PromptTokenizer } from "./prompt-tokenizer.js";

interface RoutePrefixes {
  readonly tokenizer: PromptTokenizer;
  readonly blockSize: number;
  readonly index: PrefixIndex;
}

/** Hashes are compared inside one process alone; a fixed key lets instances and tests agree. */
const key = Uint32Array.from({ length: hashLanes }, (_, lane) => 0x9e3779b9 * (lane + 1));

/** Counts and hashes prompts of routes that have a tokenizer, as their targets do. */
export class PrefixRouting {
  readonly #routes: ReadonlyMap<string, RoutePrefixes>;

  private constructor(routes: ReadonlyMap<string, RoutePrefixes>) {
    this.#routes = routes;
  }

  /** Throws `invalid_option` for a folder without a tokenizer. */
  static open({ routes }: GatewayConfig): PrefixRouting {
    const tokenizers = new Map<string, PromptTokenizer>();
    const opened = new Map<string, RoutePrefixes>();
    for (const [name, { prefix }] of Object.entries(routes)) {
      if (prefix === undefined) continue;
      const tokenizer = tokenizers.get(prefix.tokenizer) ?? openTokenizer(prefix.tokenizer, name);
      tokenizers.set(prefix.tokenizer, tokenizer);
      opened.set(name, {
        tokenizer,
        blockSize: prefix.block_size,
        index: new PrefixIndex(prefix.block_size, prefix.max_blocks),
      });
    }
    return new PrefixRouting(opened);
  }

  /** The target was gone: its cache is not to be counted on. */
  forget(target: string): void {
    for (const { index } of this.#routes.values()) index.forget(target);
  }

  /** Undefined where the route has no tokenizer, or the request is none that it can lay out. */
  blocksOf(routeName: string, exchange: Exchange): MaybePromise<PromptBlocks | undefined> {
    const { operation } = exchange;
    const route = this.#routes.get(routeName);
    if (route === undefined || (operation !== "chat" && operation !== "completions")) return undefined;
    return blocksOf(route, operation, exchange);
  }
}

async function blocksOf(
  route: RoutePrefixes,
  operation: "chat" | "completions",
  { body, caller }: Exchange,
): Promise<PromptBlocks | undefined> {
  const tokens = await route.tokenizer.encode(operation, body.fields);
  if (tokens === undefined) return undefined;
  // what tenants may not share in the cache is not the same prefix for routing either
  const salt = tenantSalt(caller.tenant, body.fields);
  return {
    index: route.index,
    hashes: prefixBlockHashes(tokens, { blockSize: route.blockSize, salt, key }),
    numTokens: tokens.length,
  };
}

function openTokenizer(folder: string, route: string): PromptTokenizer {
  try {
    return openPromptTokenizer(folder);
  } catch (cause) {
    throw new OctavoError(
      "invalid_option",
      `routes.${route}.prefix.tokenizer: ${folder}: ${OctavoError.from(cause).message}`,
      { param: `routes.${route}.prefix.tokenizer`, cause },
    );
  }
}
