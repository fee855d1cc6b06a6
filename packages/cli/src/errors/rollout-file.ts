import { rolloutSchema } from "@octavo/gateway";
import { type FixProof, renderPatch } from "@octavo/optimize";
import { type PatchableFiles, patchedGateway } from "./patched-files.js";

export interface RolloutNames {
  readonly id: string;
  readonly model: string;
  readonly primary: string;
  readonly canary: string;
}

/** What the gateway watches, by what the fix was proven on. */
const gateOf: Readonly<Record<string, string>> = {
  "failed by is_json": "json_valid",
  "cut off": "finished",
  "first token": "latency",
  "longest gap": "latency",
};

/**
 * An accepted patch as a section of gateway.yaml, in the part of YAML that is JSON: from the target as it is to one that is served with the patch, in the gateway's usual
 * stages. Its own gates decide, with the evidence of real calls.
 */
export function rolloutOf({ patch, target }: FixProof, { id, model, primary, canary }: RolloutNames): string {
  const proven = gateOf[target?.measure ?? ""];
  const rollout = {
    name: `fix-${id.slice(0, 12)}`,
    model,
    primary: { target: primary },
    canary: { target: canary },
    gates: [{ check: "answered" }, ...(proven === undefined ? [] : [{ check: proven }])],
  };
  rolloutSchema.parse(rollout);
  const settings = Object.entries(patch).map(([name, value]) =>
    value === null ? `without ${name}` : `${name}: ${value}`,
  );
  return `# ${canary} is ${primary} served with ${settings.join(", ")}\n${JSON.stringify({ rollouts: [rollout] }, undefined, 2)}\n`;
}

/**
 * gateway.yaml with an accepted patch, in the part of YAML that is JSON. A rollout goes from one target to another and has no arm for
 * routes or limits: the gateway takes them as a whole, and lets calls under way end with what they began with.
 */
export function patchedGatewayText(files: PatchableFiles, { patch }: FixProof, path: string): string {
  const changed = renderPatch({ of: "gateway", set: patch }).trimEnd().split("\n");
  return `${[
    `# ${files.gateway?.name ?? "gateway.yaml"} with:`,
    ...changed.map((line) => `#   ${line.replace(/^# /, "")}`),
    `# check it: octavo gateway check --config ${path}`,
    "# take it over: put it in the place of the gateway's file, then kill -HUP PID of octavo gateway",
  ].join("\n")}\n${JSON.stringify(patchedGateway(files, patch).value, undefined, 2)}\n`;
}
