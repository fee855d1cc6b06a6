import { type GatewayConfig, isShownInReplay } from "@octavo/gateway";
import {
  type CallFinding,
  findingsOfGatewayLog,
  type FixProof,
  proveFix,
  recordedGateway,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { type PatchableFiles, patchedGateway } from "./patched-files.js";
import { ReplayedGateway } from "./replayed-gateway.js";
import type { ProofOptions } from "./proof-options.js";

export interface GatewayProofOptions extends ProofOptions {
  readonly files: Pick<PatchableFiles, "gateway">;
  /** Of the gateway's log. */
  readonly lines: readonly unknown[];
  /** Whether a finding is the cluster's. */
  readonly isWanted: (finding: CallFinding) => boolean;
  /** From which on a first byte is late, in ms. */
  readonly firstTokenMs: number;
  /** Most calls that are replayed. */
  readonly requests: number;
  readonly signal: AbortSignal;
}

/**
 * Proves a patch of gateway.yaml: two gateways, as the file is and with the patch, in front of stand-ins that do what the log says of each
 * target. The first pair is answered as it was recorded, where it was; the others with what was recorded of calls that are alike, both of
 * a pair from the same seeds. Both run at once, as what they take is waiting.
 * @throws OctavoError `invalid_option` for a setting that the gateway refuses or that a replay does not show, before anything runs
 */
export async function proveOnGateway(options: GatewayProofOptions): Promise<FixProof> {
  const { entry, patch, files, lines, isWanted, firstTokenMs, speedup, seed, signal } = options;
  const configs = { before: patchedGateway(files, {}).config, after: patchedGateway(files, patch).config };
  const hidden = Object.keys(patch).find((name) => !isShownInReplay(name));
  if (hidden !== undefined)
    throw new OctavoError("invalid_option", `the patch sets ${hidden}, which a replay cannot show`, {
      param: hidden,
    });
  const { findings } = findingsOfGatewayLog(lines, { firstTokenMs });
  const workload = recordedGateway(lines, {
    cause: entry.cause,
    routes: entry.routes,
    found: new Set(findings.filter(isWanted).map(({ traceId }) => traceId)),
    mostRequests: options.requests,
  });
  const side = (config: GatewayConfig) => (pair: number) =>
    ReplayedGateway.start({ config, workload, pair, seed, speedup, signal });
  return proveFix({
    ...options,
    on: "gateway",
    workload,
    measures: workload.measures,
    before: side(configs.before),
    after: side(configs.after),
    isTogether: true,
    standard: { leastImprovement: options.leastImprovement },
    nowMs: Date.now(),
  });
}
