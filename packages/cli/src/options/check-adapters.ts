import { existsSync } from "node:fs";
import { join } from "node:path";
import type { LoadOptions } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol/errors";

/** Throws `invalid_option` for a path that holds no adapter; called before the model is loaded. Hub ids are looked up later. */
export function checkAdapters(modules: NonNullable<LoadOptions["loraModules"]>): void {
  for (const { name, path } of modules) {
    const isHubId = !existsSync(path) && /^[\w.-]+\/[\w.-]+(@\S+)?$/.test(path) && !path.startsWith(".");
    if (isHubId || existsSync(join(path, "adapter_config.json"))) continue;
    const problem = existsSync(path) ? "holds no adapter_config.json" : "is not there";
    throw new OctavoError("invalid_option", `--lora-modules ${name}: ${path} ${problem}`, {
      param: "lora_modules",
    });
  }
}
