import { z } from "zod";
import { configName } from "./fields.js";

const names = z.array(configName).min(1);

/** All of its fields must hold. */
const simple = z.strictObject({
  /** The caller, or the header `x-octavo-tags`, has one of them. */
  tags: names.optional(),
  tenants: names.optional(),
  /** Fields of the body's `metadata`, or of the header `x-octavo-metadata` (JSON): equal to the value, or one of the values. */
  metadata: z.record(z.string(), z.union([z.string(), z.array(z.string()).min(1)])).optional(),
  stream: z.boolean().optional(),
  has_tools: z.boolean().optional(),
  has_images: z.boolean().optional(),
  /** Prompt tokens; counted exactly where a tokenizer is configured, else about four bytes each. */
  min_prompt_tokens: z.int().min(0).optional(),
  max_prompt_tokens: z.int().min(0).optional(),
  /** 0 to 1, by length, turns, tools, code and reasoning words; see the guide. */
  min_complexity: z.number().min(0).max(1).optional(),
  max_complexity: z.number().min(0).max(1).optional(),
});

export type SimpleCondition = z.output<typeof simple>;

export const condition = z.union([
  simple,
  z.strictObject({ any: z.array(simple).min(1) }),
  z.strictObject({ not: simple }),
]);

export type Condition = z.output<typeof condition>;
