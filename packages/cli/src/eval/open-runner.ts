import {
  BatchJobsRunner,
  BullMqRunner,
  type GateConfig,
  LocalRunner,
  RayCluster,
  type Runner,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import type { RunnerFlags } from "./eval-rows.js";

type JudgeConfig = GateConfig["file"]["judge"];

/**
 * The runner that the flags ask for.
 * @throws OctavoError `invalid_option` for flags that do not go together
 */
export function openRunner(flags: Omit<RunnerFlags, "journal">, judge: JudgeConfig): Runner {
  const { scorerThreads, redis, queue, ray, sharedFolder } = flags;
  const places = { "--scorer-threads": scorerThreads, "--redis": redis, "--ray": ray };
  const named = Object.entries(places).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
  if (named.length > 1) {
    throw new OctavoError("invalid_option", `${named.join(" and ")} all say where to score: choose one`);
  }
  if (queue !== undefined && redis === undefined) {
    throw new OctavoError("invalid_option", "--queue needs --redis");
  }
  if ((sharedFolder === undefined) !== (ray === undefined)) {
    throw new OctavoError("invalid_option", "--ray and --shared-folder belong together");
  }
  if (redis !== undefined) {
    return new BullMqRunner({ redisUrl: redis, ...(queue !== undefined && { queueName: queue }) });
  }
  if (ray !== undefined && sharedFolder !== undefined) {
    const cluster = new RayCluster({ dashboardUrl: ray });
    return new BatchJobsRunner(cluster, { sharedFolder, workerArguments: judgeArguments(judge) });
  }
  return new LocalRunner({ threads: scorerThreads ?? 0 });
}

/** The judge as arguments of a job; the job's machine has the key in the same environment variable. */
function judgeArguments(judge: JudgeConfig): string[] {
  if (judge === undefined) return [];
  if (judge.model === undefined) {
    throw new OctavoError("invalid_option", "jobs on a cluster need --judge-model");
  }
  const base = judge.base_url.replace(/\/+$/, "");
  const key = judge.api_key_env === undefined ? [] : ["--judge-key-env", judge.api_key_env];
  return ["--judge", /\/v\d+$/.test(base) ? base : `${base}/v1`, "--judge-model", judge.model, ...key];
}
