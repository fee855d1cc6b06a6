import type { LanguageModel } from "@octavo/engine";

export interface BannerFacts {
  readonly url: string;
  readonly model: LanguageModel;
  /** Names requests may use; empty means the model's own. */
  readonly names: readonly string[];
  readonly needsKey: boolean;
}

/** What `octavo serve` prints once it answers: where, what, and a line to try it with. */
export function serveBanner({ url, model, names, needsKey }: BannerFacts): string {
  const name = names[0] ?? model.name;
  const { stats } = model.engine;
  const key = needsKey ? ` \\\n  -H 'Authorization: Bearer YOUR_KEY'` : "";
  const chats = model.chatTemplate !== undefined;
  const [path, body] = chats
    ? ["/v1/chat/completions", { model: name, messages: [{ role: "user", content: "Hello! Who are you?" }] }]
    : ["/v1/completions", { model: name, prompt: "Once upon a time", max_tokens: 32 }];
  return [
    "",
    `  Octavo serves ${name} at ${url}/v1`,
    `  context ${model.engine.maxModelLen} tokens, KV cache ${stats.totalBlocks} blocks`,
    "",
    `curl ${url}${path}${key} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
    "",
    "",
  ].join("\n");
}
