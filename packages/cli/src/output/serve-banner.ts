import type { LanguageModel, LLM } from "@octavo/engine";

export interface BannerFacts {
  readonly url: string;
  /** Where it listens on no port. */
  readonly uds?: string | undefined;
  readonly model: LanguageModel;
  /** Names of the models beside it. */
  readonly others?: readonly string[];
  /** What runs the kernels. */
  readonly backend: Pick<
    LLM["backend"]["info"],
    "name" | "instructionSet" | "features" | "kernelReasons" | "numThreads"
  >;
  /** Names requests may use; empty means the model's own. */
  readonly names: readonly string[];
  readonly needsKey: boolean;
  /** Warnings about injected faults. */
  readonly faults: readonly string[];
}

/** What `octavo serve` prints once it is ready: address, model, and a command to try it with. */
export function serveBanner(facts: BannerFacts): string {
  const { url, uds, model, others = [], backend, names, needsKey, faults } = facts;
  const name = names[0] ?? model.name;
  const { stats } = model.engine;
  const key = needsKey ? ` \\\n  -H 'Authorization: Bearer YOUR_KEY'` : "";
  const chats = model.chatTemplate !== undefined;
  const [path, body] = chats
    ? ["/v1/chat/completions", { model: name, messages: [{ role: "user", content: "Hello! Who are you?" }] }]
    : ["/v1/completions", { model: name, prompt: "Once upon a time", max_tokens: 32 }];
  const kernels = [backend.instructionSet, ...backend.features].join(" + ");
  return [
    "",
    `  Octavo serves ${[name, ...others].join(", ")} at ${uds === undefined ? `${url}/v1` : `the socket ${uds}`}`,
    `  context ${model.engine.maxModelLen} tokens, KV cache ${stats.totalBlocks} blocks`,
    backend.name === "cpu"
      ? `  ${kernels} kernels on ${backend.numThreads} ${backend.numThreads === 1 ? "thread" : "threads"}`
      : `  ${backend.name} kernels on ${kernels}`,
    ...(backend.kernelReasons ?? []).map((reason) => `  ${reason}`),
    ...faults.map((fault) => `  WARNING: ${fault}`),
    "",
    `curl ${uds === undefined ? "" : `--unix-socket ${uds} `}${url}${path}${key} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
    "",
    "",
  ].join("\n");
}
