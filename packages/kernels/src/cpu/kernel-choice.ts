import { OctavoError } from "@octavo/protocol/errors";
import type { NativeAddon } from "./addon.js";
import {
  type ChosenPaths,
  type KernelKind,
  kernelKinds,
  type KernelPath,
  kernelPaths,
  type ProbedPath,
  type ProbedTimes,
} from "./kernel-paths.js";
import { cachedTimes } from "./probe-cache.js";

/** Another path must be this much faster than the one by features: bits should not change for what may be noise. */
const clearlyFaster = 1.15;

/** The kinds that another path computes clearly faster than the path of the machine's features, and why. */
export function chooseByTimes(times: ProbedTimes): {
  readonly paths: ChosenPaths;
  readonly reasons: readonly string[];
} {
  const paths: Partial<Record<KernelKind, KernelPath>> = {};
  const reasons: string[] = [];
  for (const kind of kernelKinds) {
    const [byFeatures, ...others] = times[kind];
    if (byFeatures === undefined) continue;
    const [path, seconds] = others.reduce((best, next) => (next[1] < best[1] ? next : best), byFeatures);
    const gain = byFeatures[1] / seconds;
    if (gain < clearlyFaster) continue;
    paths[kind] = path;
    reasons.push(`${kind} on ${path}, ${gain.toFixed(2)} times as fast here as on ${byFeatures[0]}`);
  }
  return { paths, reasons };
}

/** Reads `bf16=avx512,ops=avx2`. Throws `invalid_option`. */
export function parseKernelPaths(text: string): ChosenPaths {
  const paths: Partial<Record<KernelKind, KernelPath>> = {};
  for (const entry of text.split(",")) {
    const [kind, path] = entry.split("=", 2).map((part) => part.trim());
    const knownKind = kernelKinds.find((name) => name === kind);
    const knownPath = kernelPaths.find((name) => name === path);
    if (knownKind === undefined || knownPath === undefined) {
      throw invalidKernels(
        `kernels is auto, features or a list like bf16=avx512 of kinds (${kernelKinds.join(", ")}) and paths (${kernelPaths.join(", ")}), not "${text}".`,
      );
    }
    paths[knownKind] = knownPath;
  }
  return paths;
}

/**
 * Decides on which paths this process computes, before its first backend exists; later backends find it decided.
 * @param wanted - `features`: the best instruction set that the processor names; `auto`: what was measured to be clearly faster, at
 *   most once a machine and build; or paths by kind. OCTAVO_ISA, where set, turns `auto` into `features`.
 * @returns why kinds left the path of the features
 * @throws `invalid_option` for paths that this machine lacks, or that an earlier backend of the process does not run on
 */
export function settleKernels(addon: NativeAddon, wanted: string, env: NodeJS.ProcessEnv): readonly string[] {
  if (wanted === "features") return [];
  const force = (kind: KernelKind, path: KernelPath): boolean =>
    addon.setKernelPath(kernelKinds.indexOf(kind), kernelPaths.indexOf(path));
  if (wanted === "auto") {
    if (env["OCTAVO_ISA"]) return [];
    const times = cachedTimes(env, () => probeAll(addon));
    if (times === undefined) return [];
    const { paths, reasons } = chooseByTimes(times);
    return Object.entries(paths).every(([kind, path]) => force(kind as KernelKind, path)) ? reasons : [];
  }
  const forced = Object.entries(parseKernelPaths(wanted)) as [KernelKind, KernelPath][];
  for (const [kind, path] of forced) {
    if (force(kind, path)) continue;
    throw invalidKernels(
      `${kind} cannot run on ${path}: this machine, or this process since its first backend, does not have it.`,
    );
  }
  return forced.map(([kind, path]) => `${kind} on ${path}, as asked`);
}

/** Times of all kinds; undefined once a backend exists. */
function probeAll(addon: NativeAddon): ProbedTimes | undefined {
  const times: Partial<Record<KernelKind, readonly ProbedPath[]>> = {};
  for (const [index, kind] of kernelKinds.entries()) {
    const probed = addon.probeKernels(index);
    if (probed === undefined) return undefined;
    times[kind] = probed;
  }
  return times as ProbedTimes;
}

/** What a backend's features say of its paths: `avx512_bf16` where any kind uses it, and the kinds on another path than the best. */
export function kernelFeatures(paths: Readonly<Record<KernelKind, KernelPath>>, best: KernelPath): string[] {
  const others = kernelKinds.filter((kind) => paths[kind] !== best);
  return [
    ...(best === "avx512_bf16" && others.length < kernelKinds.length ? ["avx512_bf16"] : []),
    ...others.map((kind) => `${kind}:${paths[kind]}`),
  ];
}

function invalidKernels(message: string): OctavoError {
  return new OctavoError("invalid_option", message, { param: "kernels" });
}
