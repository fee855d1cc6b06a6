import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LeanLoad, LeanResult } from "./lean-client.js";

const client = fileURLToPath(new URL("./lean-client.js", import.meta.url));

/** A gateway's code is compiled by then. */
export const warmUpSeconds = 5;

/** In a process of its own each time, so that nothing of one way's load is left for the next. */
export async function leanLoad(load: LeanLoad): Promise<LeanResult> {
  const { stdout } = await promisify(execFile)(process.execPath, [client, JSON.stringify(load)]);
  return JSON.parse(stdout) as LeanResult;
}
