import { z } from "zod";

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time span as gateway.yaml writes it: `250ms`, `30s`, `10m`, `1h`, `30d`; milliseconds once read. */
export const timeSpan = z
  .string()
  .regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, "expected a time such as 250ms, 30s, 10m, 1h or 30d")
  .transform((text) => Number.parseFloat(text) * (unitsMs[text.replace(/^[\d.]+/, "")] ?? 1));

const unitsBytes: Readonly<Record<string, number>> = { "": 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

export const byteSize = z
  .string()
  .regex(/^\d+(\.\d+)?(KiB|MiB|GiB)?$/, "expected a size such as 512KiB or 32MiB")
  .transform((text) => Math.floor(Number.parseFloat(text) * (unitsBytes[text.replace(/^[\d.]+/, "")] ?? 1)));

export const configName = z
  .string()
  .regex(/^[\w.:/@-]{1,128}$/, "expected 1 to 128 letters, digits and any of `_.:/@-`");

export const httpUrl = z
  .string()
  .regex(/^https?:\/\/[^\s/?#]+[^\s?#]*$/, "expected a URL such as http://127.0.0.1:8000");

/** Dollars per million tokens. */
export const dollars = z.number().min(0);
