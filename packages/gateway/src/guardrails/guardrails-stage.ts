import { OctavoError } from "@octavo/protocol";
import type { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";
import type { GuardrailRecord } from "../exchange/ledger-entry.js";
import type {
  Stage,
  StageContext,
  StageDefinition,
  StageHooks,
  TextChannel,
  TextFilter,
} from "../exchange/stage.js";
import {
  blocked,
  compileFindingRules,
  groupOf,
  judgeUnmasked,
  noteRule,
  type RuleGroup,
  RuledText,
  ruledWhole,
  ruleFailed,
} from "./finding-rules.js";
import {
  type FindingRule,
  type GuardrailRule,
  guardrailsSchema,
  type VerdictRule,
} from "./guardrail-config.js";
import { rewriteTexts } from "./request-texts.js";
import { type CompiledVerdictRule, compileVerdictRule } from "./verdict-rules.js";

type Direction = GuardrailRecord["direction"];

/** The rules of one direction. */
interface RuleSet {
  readonly rules: readonly GuardrailRule[];
  /** Rules that hold text back until it is known to be free of findings. */
  readonly enforced: RuleGroup | undefined;
  /** Rules that only note. */
  readonly noted: RuleGroup | undefined;
  /** Rules against attacks that block or note, on what masks hide. */
  readonly attacks: RuleGroup | undefined;
  readonly verdicts: readonly CompiledVerdictRule[];
}

/** Operations whose answers are text. */
const writing: ReadonlySet<string> = new Set(["chat", "completions", "responses", "messages"]);

const trustedRoles: ReadonlySet<string> = new Set(["system", "developer", "assistant"]);

const isVerdict = (rule: GuardrailRule): rule is VerdictRule =>
  rule.check === "schema" || rule.check === "webhook" || rule.check === "judge";

class GuardrailsStage implements Stage {
  readonly #request: RuleSet;
  /** Rules for system prompts and earlier answers, which may give instructions. */
  readonly #trusted: RuleSet;
  readonly #response: RuleSet;

  constructor(rules: readonly GuardrailRule[], context: StageContext) {
    this.#request = ruleSet(rules, "request", context);
    const others = rules.filter(({ check }) => check !== "injection" && check !== "code_injection");
    this.#trusted = ruleSet(others, "request", context);
    this.#response = ruleSet(rules, "response", context);
  }

  onRequest(exchange: Exchange): StageHooks | undefined | Promise<StageHooks | undefined> {
    this.#checkTexts(exchange);
    const hooks =
      this.#response.rules.length > 0 && writing.has(exchange.operation)
        ? { filterText: new AnswerFilter(this.#response, exchange) }
        : undefined;
    if (this.#request.verdicts.length === 0) return hooks;
    return this.#judgeRequest(exchange).then(() => hooks);
  }

  #checkTexts(exchange: Exchange): void {
    const { fields } = exchange.body;
    const changed = rewriteTexts(fields, ({ role, text }) => {
      const { enforced, noted, attacks } = trustedRoles.has(role) ? this.#trusted : this.#request;
      if (noted !== undefined) ruledWhole(noted, "request", exchange.ledger, text);
      if (attacks !== undefined) judgeUnmasked(attacks, "request", exchange.ledger, text);
      return enforced === undefined ? text : ruledWhole(enforced, "request", exchange.ledger, text);
    });
    if (changed !== fields) exchange.body.change(changed);
  }

  /** All texts of a request together, as a model reads them. */
  async #judgeRequest(exchange: Exchange): Promise<void> {
    const texts: string[] = [];
    rewriteTexts(exchange.body.fields, ({ role, text }) => {
      if (!trustedRoles.has(role)) texts.push(text);
      return text;
    });
    const whole = texts.join("\n\n");
    for (const rule of this.#request.verdicts) {
      const judged = await judge(rule, whole, "request", exchange);
      if (judged === whole) continue;
      throw new OctavoError(
        "guardrail_unavailable",
        `The rule ${rule.rule.name} replaced the text of a request, which only answers allow.`,
      );
    }
  }
}

/** The text after the rule; throws where it blocks. */
async function judge(
  compiled: CompiledVerdictRule,
  text: string,
  direction: Direction,
  exchange: Exchange,
): Promise<string> {
  const { rule } = compiled;
  let verdict: Awaited<ReturnType<CompiledVerdictRule["judge"]>>;
  try {
    verdict = await compiled.judge(text, direction, exchange);
  } catch (cause) {
    exchange.signal.throwIfAborted();
    ruleFailed(rule, direction, exchange.ledger, OctavoError.from(cause).message.slice(0, 200), cause);
    return text;
  }
  const { reason, text: replacement } = verdict;
  const redacts = rule.action === "redact" && replacement !== undefined && replacement !== text;
  if (redacts) {
    noteRule(exchange.ledger, rule, direction, "redact", reason);
    return replacement;
  }
  if (reason === undefined) return text;
  const action = rule.action === "flag" ? "flag" : "block";
  noteRule(exchange.ledger, rule, direction, action, reason);
  if (action === "block") throw blocked(rule, direction, reason);
  return text;
}

interface FollowedChannel {
  readonly enforced: RuledText | undefined;
  readonly noted: RuledText | undefined;
  /** What no rule has read yet. */
  unread: string;
  /** What verdict rules wait for. */
  whole: string;
}

/** An answer's text, channel by channel. Rules that judge the whole hold all of it back. */
class AnswerFilter implements TextFilter {
  readonly #rules: RuleSet;
  readonly #exchange: Exchange;
  readonly #channels = new Map<string, FollowedChannel>();

  constructor(rules: RuleSet, exchange: Exchange) {
    this.#rules = rules;
    this.#exchange = exchange;
  }

  push(channel: TextChannel, text: string): string {
    const followed = this.#follow(channel);
    // an answer that leaves as a whole is read as a whole, which is faster
    if (!this.#exchange.ledger.isStream) {
      followed.unread += text;
      return "";
    }
    followed.noted?.push(text);
    const passed = followed.enforced?.push(text) ?? text;
    if (this.#verdictsOf(channel).length === 0) return passed;
    followed.whole += passed;
    return "";
  }

  end(channel: TextChannel): string | Promise<string> {
    const { noted, enforced, unread, whole } = this.#follow(channel);
    this.#channels.delete(keyOf(channel));
    noted?.end(unread);
    const rest = enforced?.end(unread) ?? unread;
    const verdicts = this.#verdictsOf(channel);
    return verdicts.length === 0 ? rest : this.#judge(verdicts, whole + rest);
  }

  async #judge(verdicts: readonly CompiledVerdictRule[], text: string): Promise<string> {
    let judged = text;
    for (const rule of verdicts) judged = await judge(rule, judged, "response", this.#exchange);
    return judged;
  }

  /** A schema is for what the model says, not for its thoughts and calls. */
  #verdictsOf({ kind }: TextChannel): readonly CompiledVerdictRule[] {
    const { verdicts } = this.#rules;
    return kind === "content" ? verdicts : verdicts.filter(({ rule }) => rule.check !== "schema");
  }

  #follow(channel: TextChannel): FollowedChannel {
    const key = keyOf(channel);
    let followed = this.#channels.get(key);
    if (followed === undefined) {
      const { enforced, noted } = this.#rules;
      const { ledger } = this.#exchange;
      followed = {
        enforced: enforced && new RuledText(enforced, "response", ledger),
        noted: noted && new RuledText(noted, "response", ledger),
        unread: "",
        whole: "",
      };
      this.#channels.set(key, followed);
    }
    return followed;
  }
}

const keyOf = ({ choice, kind, index }: TextChannel): string => `${choice} ${kind} ${index}`;

function ruleSet(rules: readonly GuardrailRule[], direction: Direction, context: StageContext): RuleSet {
  const own = rules.filter(({ on }) => (on as readonly Direction[]).includes(direction));
  const findings = compileFindingRules(own.filter((rule): rule is FindingRule => !isVerdict(rule)));
  const group = (chosen: typeof findings): RuleGroup | undefined =>
    chosen.length === 0 ? undefined : groupOf(chosen);
  return {
    rules: own,
    enforced: group(findings.filter(({ rule }) => rule.action !== "flag")),
    noted: group(findings.filter(({ rule }) => rule.action === "flag")),
    attacks: group(findings.filter(({ rule }) => rule.check === "injection" && rule.action !== "redact")),
    verdicts: own.filter(isVerdict).map((rule) => compileVerdictRule(rule, context)),
  };
}

export const guardrailsStage: StageDefinition<typeof guardrailsSchema> = {
  name: "guardrails",
  schema: guardrailsSchema,
  create: ({ rules }: z.output<typeof guardrailsSchema>, context) => new GuardrailsStage(rules, context),
};
