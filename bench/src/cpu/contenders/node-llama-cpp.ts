import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Contender } from "./contender.js";
import { type PeerSetting, tuned } from "./tuned.js";
import { measureInWorker } from "./worker.js";

/** Options of a context (3.x). */
interface NodeLlamaCppOptions {
  readonly flashAttention?: boolean;
  readonly experimentalKvCacheKeyType?: string;
  readonly experimentalKvCacheValueType?: string;
}

const withKv = (type: string) => ({ experimentalKvCacheKeyType: type, experimentalKvCacheValueType: type });

const settings: readonly PeerSetting<NodeLlamaCppOptions>[] = [
  { name: "defaults", value: {} },
  { name: "flash attention", value: { flashAttention: true } },
  { name: "bf16 KV", value: withKv("BF16") },
  { name: "flash attention, q8_0 KV", value: { flashAttention: true, ...withKv("Q8_0") } },
];

/** node-llama-cpp with its prebuilt binaries, from NODE_LLAMA_CPP_DIR's or this repository's node_modules; undefined where neither has it. */
export function findNodeLlamaCpp(
  isTuned: boolean,
  env: NodeJS.ProcessEnv = process.env,
): { readonly contender: Contender; readonly version: string } | undefined {
  const module = [...(env["NODE_LLAMA_CPP_DIR"] ? [env["NODE_LLAMA_CPP_DIR"]] : []), process.cwd()]
    .map((folder) => join(resolve(folder), "node_modules/node-llama-cpp/dist/index.js"))
    .find((path) => existsSync(path));
  if (module === undefined) return undefined;
  const contender = tuned<NodeLlamaCppOptions>({
    name: "node-llama-cpp",
    settings: isTuned ? settings : settings.slice(0, 1),
    supports: (job) =>
      job.kind === "shared-prefix"
        ? job.through === "library"
        : job.kind !== "server" && job.kind !== "waiting",
    measure: (job, context, peerOptions) =>
      measureInWorker("node-llama-cpp-worker.js", job, context, {
        peerModule: pathToFileURL(module).href,
        peerOptions,
      }),
  });
  const manifest: { version?: string } = JSON.parse(readFileSync(join(module, "../../package.json"), "utf8"));
  return { contender, version: manifest.version ?? "unknown" };
}
