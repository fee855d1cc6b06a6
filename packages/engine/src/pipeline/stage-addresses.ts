import { OctavoError } from "@octavo/protocol/errors";
import { readStageKey } from "./handshake.js";
import type { StageAddress } from "./stage-client.js";

/** Stages that run on other hosts. */
export interface RemoteStages {
  readonly addresses: readonly StageAddress[];
  readonly key: Buffer;
  /** What every stage's artifact must be. */
  readonly artifactDigest: string;
}

interface StageOptions {
  readonly pipelineParallelSize: number;
  readonly pipelineStageAddresses: readonly string[];
  readonly pipelineKeyFile?: string | undefined;
}

/** Undefined where stages are processes of this host. Throws `invalid_option`. */
export function remoteStages({
  pipelineParallelSize: count,
  pipelineStageAddresses: given,
  pipelineKeyFile: keyFile,
}: StageOptions): Omit<RemoteStages, "artifactDigest"> | undefined {
  if (given.length === 0 && keyFile === undefined) return undefined;
  const fail = (message: string): OctavoError =>
    new OctavoError("invalid_option", `pipeline_stage_addresses: ${message}`, {
      param: "pipeline_stage_addresses",
    });
  if (given.length !== count - 1)
    throw fail(
      `expected ${count - 1} for pipeline_parallel_size ${count}, one for every stage but the last, which is the server; got ${given.length}`,
    );
  if (keyFile === undefined) throw fail("needs pipeline_key_file, the secret that the stages have too");
  const addresses = given.map((text) => {
    const [, bracketed, plain, port] = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text) ?? [];
    const host = bracketed ?? plain;
    if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
      throw fail(`expected host:port, got ${JSON.stringify(text)}`);
    return { host, port: Number(port) };
  });
  return { addresses, key: readStageKey(keyFile) };
}
