import { readFileSync } from "node:fs";
import type { ApiMethod } from "./kubelet.js";

/** One request of the driver, and what Kubernetes' own API server answered. */
export interface RecordedApiCall {
  readonly name: string;
  readonly method: ApiMethod;
  readonly path: string;
  readonly type?: string | undefined;
  readonly body?: object | undefined;
  readonly status: number;
  /** One object, or the events of a watch. */
  readonly answers: readonly unknown[];
}

interface Recording {
  readonly version: string;
  readonly exchanges: readonly RecordedApiCall[];
}

export const recording = JSON.parse(
  readFileSync(new URL("../../fixtures/kubernetes.json", import.meta.url), "utf8"),
) as Recording;

/** Which client wrote which field: long, and nobody reads it. */
export function withoutManagedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutManagedFields);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => name !== "managedFields");
  return Object.fromEntries(kept.map(([name, field]) => [name, withoutManagedFields(field)]));
}
