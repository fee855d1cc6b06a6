import { readFile } from "node:fs/promises";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";
import { serverVersion } from "../version.js";

/**
 * What this server is, for comparing several that should be alike: artifact, kernel path, settings that change answers or
 * speed, and its clocks.
 */
export async function handleServerInfo(service: Service, { response }: RequestContext): Promise<void> {
  const { model, config, fingerprint, modelNames } = service;
  const { totalBlocks, blockSize } = model.engine.stats;
  sendJson(response, 200, {
    version: serverVersion,
    replica_id: config.replicaId,
    model_names: modelNames,
    artifact_digest: (await model.artifactDigest?.()) ?? null,
    fingerprint,
    kernel_path: model.numerics,
    settings: {
      max_model_len: model.engine.maxModelLen,
      num_blocks: totalBlocks,
      block_size: blockSize,
      scheduling_policy: config.schedulingPolicy,
      enable_fault_injection: config.enableFaultInjection,
    },
    clock: { unix_ms: Date.now(), cpu_mhz: (await cpuMhz()) ?? null },
  });
}

/** The mean of what Linux reports of its processors now; undefined elsewhere. A machine that throttles has a lower one than its peers. */
async function cpuMhz(): Promise<number | undefined> {
  const text = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  const found = Array.from(text.matchAll(/^cpu MHz\s*: ([\d.]+)/gm), ([, mhz]) => Number(mhz));
  return found.length === 0 ? undefined : Math.round(found.reduce((sum, mhz) => sum + mhz, 0) / found.length);
}
