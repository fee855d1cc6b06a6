import { z } from "zod";
import { timeSpan } from "../config/fields.js";
import { gateNames } from "./gates.js";

const share = z.number().gt(0).max(1);

/**
 * How a stage uses the canary. `mirror`: a copy of requests is sent to it, for load; answers count by status and latency alone.
 * `shadow`: a copy is sent and its answer compared. `race`: both are asked for the client, the first good answer wins and the
 * other is cancelled. `canary`: the cohort is answered by it.
 */
const stageSchema = z.strictObject({
  mode: z.enum(["mirror", "shadow", "race", "canary"]).default("canary"),
  /** Share of requests; in `canary`, share of all cohort keys. */
  share,
  /** Pairs without which the stage is not left. */
  min_pairs: z.int().min(1).default(100),
  /** Pairs after which a stage that could not be left is held, for a person to decide. */
  max_pairs: z.int().min(1).default(5000),
  /** How long a stage lasts at least. */
  min_time: timeSpan.default(0),
});

const gateSchema = z.strictObject({
  check: z.enum(gateNames),
  /** Name in journals and reports. */
  name: z.string().min(1).max(64).optional(),
  /** Promotes where the canary's mean score is shown to be less than this below the primary's. */
  margin: z.number().gt(0).lt(1).default(0.02),
  /** Rolls back where it is shown to be more than this below. */
  tolerance: z.number().min(0).lt(1).default(0),
  /** Only for `latency`: the longest time that the canary may take, as a multiple of the primary's. */
  ratio: z.number().min(1).max(100).default(1.25),
  /** Only for `within_ms`: deadline of the answer. */
  ms: z.number().gt(0).optional(),
  /** Schema for `json_schema`, text for `contains`. */
  schema: z.record(z.string(), z.unknown()).optional(),
  text: z.string().min(1).optional(),
});

/** A rollout as gateway.yaml has it: a primary, a canary, its steps and what rolls it back. */
export const rolloutSchema = z
  .strictObject({
    name: z.string().regex(/^[\w.-]{1,64}$/, "expected letters, digits, dots, dashes and underscores"),
    /** Requests for this model, as clients name it. */
    model: z.string().min(1),
    primary: z.strictObject({ target: z.string().min(1), model: z.string().min(1).optional() }),
    canary: z.strictObject({ target: z.string().min(1), model: z.string().min(1).optional() }),
    /** What a cohort is dealt by; requests without it are dealt each for itself. */
    key: z
      .string()
      .regex(
        /^(?:tenant|key|user|request|header:[\w-]{1,64})$/,
        "expected tenant, key, user, request or header:NAME",
      )
      .default("tenant"),
    stages: z
      .array(stageSchema)
      .min(1)
      .max(20)
      .default([
        { mode: "shadow", share: 0.2, min_pairs: 100, max_pairs: 5000, min_time: 0 },
        ...[0.01, 0.05, 0.25, 1].map((part) => ({
          mode: "canary" as const,
          share: part,
          min_pairs: 100,
          max_pairs: 5000,
          min_time: 0,
        })),
      ]),
    /** Part of the requests in `canary` stages that both arms answer; the client gets its own arm's answer. */
    pair_share: share.default(0.2),
    /** Pairs being made at the same time; more are not made. */
    max_pairs_open: z.int().min(1).max(10_000).default(16),
    gates: z
      .array(gateSchema)
      .min(1)
      .max(20)
      .default([{ check: "answered", margin: 0.02, tolerance: 0, ratio: 1.25 }]),
    /** Chance of rolling a canary back that is no worse, over the whole rollout. */
    rollback_alpha: z.number().gt(0).max(0.2).default(0.02),
    /** Chance, at each stage, of promoting a canary that is worse by a margin. */
    promote_alpha: z.number().gt(0).max(0.5).default(0.05),
  })
  .superRefine((rollout, context) => {
    const refuse = (message: string, path: (string | number)[]): void => {
      context.addIssue({ code: "custom", message, path });
    };
    const { primary, canary, gates, stages } = rollout;
    if (primary.target === canary.target && primary.model === canary.model)
      refuse("the canary is the primary: nothing would be compared", ["canary"]);
    const names = gates.map((gate) => gate.name ?? gate.check);
    for (const [index, gate] of gates.entries()) {
      if (names.indexOf(names[index]!) < index)
        refuse(`there are two gates ${names[index]}; give one a name`, ["gates", index]);
      if (gate.check === "within_ms" && gate.ms === undefined)
        refuse("within_ms needs ms", ["gates", index, "ms"]);
      if (gate.check === "json_schema" && gate.schema === undefined)
        refuse("json_schema needs a schema", ["gates", index, "schema"]);
      if (gate.check === "contains" && gate.text === undefined)
        refuse("contains needs text", ["gates", index, "text"]);
    }
    for (const [index, stage] of stages.entries()) {
      if (stage.min_pairs > stage.max_pairs)
        refuse("min_pairs is above max_pairs", ["stages", index, "min_pairs"]);
      const before = stages.slice(0, index).findLast(({ mode }) => mode === "canary");
      if (stage.mode === "canary" && before !== undefined && before.share > stage.share)
        refuse("a later stage has a smaller share", ["stages", index, "share"]);
    }
    if (stages.at(-1)!.mode !== "canary" || stages.at(-1)!.share < 1)
      refuse("the last stage must be a canary with share 1: what a promoted canary gets", [
        "stages",
        stages.length - 1,
      ]);
  });

export type RolloutConfig = z.output<typeof rolloutSchema>;
