import { z } from "zod";
import { configName, httpUrl, timeSpan } from "../config/fields.js";

const common = {
  name: z.string().min(1).max(64),
  /** Which texts it reads. */
  on: z
    .array(z.enum(["request", "response"]))
    .min(1)
    .default(["request", "response"]),
  /** Where the rule itself fails: `closed` ends the call, `open` lets it go on. */
  on_failure: z.enum(["closed", "open"]).default("closed"),
};

/** Pattern rules can also cut out what they find. */
const findingAction = z.enum(["block", "redact", "flag"]).default("block");
const verdictAction = z.enum(["block", "flag"]).default("block");

const detectorRule = z.strictObject({
  ...common,
  check: z.enum(["pii", "secrets", "injection", "code_injection"]),
  action: findingAction,
  /** Kinds that the check knows, such as `email`; all by default. */
  kinds: z.array(z.string().min(1)).min(1).optional(),
});

const blocklistRule = z.strictObject({
  ...common,
  check: z.literal("blocklist"),
  action: findingAction,
  /** Whole words or phrases, whatever their case. */
  words: z.array(z.string().min(1).max(200)).min(1).max(5000),
});

const patternRule = z.strictObject({
  ...common,
  check: z.literal("pattern"),
  action: findingAction,
  /** Regular expressions of RE2's syntax: no lookaround, no back-references, time linear in the text. */
  patterns: z.array(z.string().min(1).max(2000)).min(1).max(200),
  ignore_case: z.boolean().default(false),
  /** Characters of a stream that may wait for a match to end; beyond them the rule has failed. */
  max_held_characters: z.int().min(1).default(10_000),
});

const schemaRule = z.strictObject({
  ...common,
  on: z.tuple([z.literal("response")]).default(["response"]),
  check: z.literal("schema"),
  action: verdictAction,
  schema: z.record(z.string(), z.unknown()),
});

const webhookRule = z.strictObject({
  ...common,
  check: z.literal("webhook"),
  action: findingAction,
  url: httpUrl,
  headers: z.record(z.string(), z.string()).default({}),
  timeout: timeSpan.default(5000),
});

const judgeRule = z.strictObject({
  ...common,
  check: z.literal("judge"),
  action: verdictAction,
  target: configName,
  model: configName,
  /** What is not allowed, in words that complete "Does the text ...?" */
  rubric: z.string().min(1).max(8000),
  timeout: timeSpan.default(20_000),
});

export const guardrailRuleSchema = z.discriminatedUnion("check", [
  detectorRule,
  blocklistRule,
  patternRule,
  schemaRule,
  webhookRule,
  judgeRule,
]);

export const guardrailsSchema = z
  .strictObject({ rules: z.array(guardrailRuleSchema).min(1).max(100) })
  .superRefine(({ rules }, context) => {
    const names = rules.map(({ name }) => name);
    for (const [index, name] of names.entries())
      if (names.indexOf(name) < index)
        context.addIssue({
          code: "custom",
          message: `there are two rules ${name}`,
          path: ["rules", index, "name"],
        });
  });

export type GuardrailRule = z.output<typeof guardrailRuleSchema>;
export type FindingRule = Extract<
  GuardrailRule,
  { check: "pii" | "secrets" | "injection" | "code_injection" | "blocklist" | "pattern" }
>;
export type VerdictRule = Exclude<GuardrailRule, FindingRule>;
