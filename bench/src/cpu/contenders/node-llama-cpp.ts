import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Contender } from "./contender.js";
import { measureInWorker } from "./worker.js";

/** node-llama-cpp with its prebuilt binaries, from NODE_LLAMA_CPP_DIR's or this repository's node_modules; undefined where neither has it. */
export function findNodeLlamaCpp(
  env: NodeJS.ProcessEnv = process.env,
): { readonly contender: Contender; readonly version: string } | undefined {
  const module = [...(env["NODE_LLAMA_CPP_DIR"] ? [env["NODE_LLAMA_CPP_DIR"]] : []), process.cwd()]
    .map((folder) => join(resolve(folder), "node_modules/node-llama-cpp/dist/index.js"))
    .find((path) => existsSync(path));
  if (module === undefined) return undefined;
  const contender: Contender = {
    name: "node-llama-cpp",
    supports: ({ kind }) => kind !== "server" && kind !== "waiting",
    measure: (job, context) =>
      measureInWorker("node-llama-cpp-worker.js", job, context, pathToFileURL(module).href),
  };
  const manifest: { version?: string } = JSON.parse(readFileSync(join(module, "../../package.json"), "utf8"));
  return { contender, version: manifest.version ?? "unknown" };
}
