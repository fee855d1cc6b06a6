import type { WeightCorruption } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { InvalidArgumentError } from "commander";

/** `octavo serve`'s flags of faults. */
export interface FaultFlags {
  readonly enableFaultInjection?: boolean;
  readonly faultCorruptWeights?: WeightCorruption;
  readonly faultStartDelay?: number;
}

/** SEED:SCALE or SEED:SCALE:PATTERN. */
export function parseCorruption(text: string): WeightCorruption {
  const [, seed, scale, pattern] = /^(\d{1,15}):([^:]+)(?::(.+))?$/s.exec(text) ?? [];
  const size = scale?.trim() === "" ? Number.NaN : Number(scale);
  if (seed === undefined || !Number.isFinite(size)) {
    const example = "such as 1:0.05 or 1:0.05:*.mlp.*";
    throw new InvalidArgumentError(`expected SEED:SCALE or SEED:SCALE:PATTERN, ${example}, not "${text}".`);
  }
  return { seed: Number(seed), scale: size, ...(pattern !== undefined && { pattern }) };
}

/** Throws `invalid_option` for a fault that nobody allowed. */
export function checkFaultFlags(flags: FaultFlags): void {
  if (flags.enableFaultInjection === true) return;
  const asked = {
    "fault-corrupt-weights": flags.faultCorruptWeights,
    "fault-start-delay": flags.faultStartDelay,
  };
  for (const [param, value] of Object.entries(asked)) {
    if (value === undefined) continue;
    throw new OctavoError("invalid_option", `--${param} needs --enable-fault-injection`, { param });
  }
}
