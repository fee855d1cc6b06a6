import type { IncomingHttpHeaders } from "node:http";
import { asString, type JsonFields, OctavoError } from "@octavo/protocol";
import type { GatewayConfig, LaneConfig, RouteConfig } from "../config/schema.js";
import type { ModelPrice, PlannedAttempt } from "../exchange/exchange.js";
import type { LiveTarget } from "../targets/live-target.js";
import { holds } from "./conditions.js";
import { planAttempts, type RouteStates } from "./plan.js";
import type { PromptBlocks } from "./prefix-index.js";
import type { RoutingFacts } from "./request-facts.js";
import type { TargetState } from "./strategies.js";

/** A route with its targets looked up. */
export interface LiveRoute {
  readonly name: string;
  readonly config: RouteConfig;
  readonly targets: readonly {
    readonly live: LiveTarget;
    readonly model: string | undefined;
    readonly weight: number;
  }[];
  turn: number;
}

/** The route of one request, and what its plan depends on. */
export interface RouteChoice {
  readonly route: LiveRoute;
  /** The route and its fallbacks, in order. */
  readonly chain: readonly LiveRoute[];
  readonly lane: LaneConfig | undefined;
  readonly sessionKey: string | undefined;
}

const quantile = 0.95;

/** Routes as configured, over live targets: finds the route of a request and asks `planAttempts` for its order. */
export class TargetRouter {
  readonly #routes: ReadonlyMap<string, LiveRoute>;
  readonly #lanes: readonly LaneConfig[];
  readonly #targets: ReadonlyMap<string, LiveTarget>;
  /** Routes of models that no route names. */
  readonly #implicit: ReadonlyMap<string, LiveRoute>;

  constructor(config: GatewayConfig, targets: ReadonlyMap<string, LiveTarget>, defaults: RouteConfig) {
    this.#targets = targets;
    this.#lanes = Object.values(config.lanes);
    this.#routes = new Map(
      Object.entries(config.routes).map(([name, route]) => [
        name,
        {
          name,
          config: route,
          turn: 0,
          targets: route.targets.map(({ target, model, weight }) => {
            const live = targets.get(target);
            if (live === undefined) throw new OctavoError("internal_error", `no target ${target}`);
            return { live, model, weight: weight ?? live.config.weight };
          }),
        },
      ]),
    );
    const implicit = new Map<string, LiveRoute>();
    for (const live of targets.values())
      for (const model of Object.keys(live.config.models)) {
        if ([...this.#routes.values()].some((route) => serves(route, model))) continue;
        const before = implicit.get(model);
        implicit.set(model, {
          name: model,
          config: defaults,
          turn: 0,
          targets: [...(before?.targets ?? []), { live, model, weight: live.config.weight }],
        });
      }
    this.#implicit = implicit;
  }

  /** Names that clients may use, with the targets that stand behind them. */
  models(): ReadonlyMap<string, readonly string[]> {
    const models = new Map<string, Set<string>>();
    const add = (name: string, target: string): void => {
      models.set(name, (models.get(name) ?? new Set()).add(target));
    };
    for (const route of this.#routes.values())
      for (const pattern of route.config.models)
        for (const { live, model } of route.targets) {
          if (!pattern.endsWith("*")) add(pattern, live.name);
          else if (model === undefined)
            for (const name of Object.keys(live.config.models))
              if (matches(pattern, name)) add(name, live.name);
        }
    for (const route of this.#implicit.values())
      for (const { live } of route.targets) add(route.name, live.name);
    return new Map([...models].map(([name, targets]) => [name, [...targets]]));
  }

  /** Throws `model_not_found` where no route takes the model, or none whose condition holds. */
  choose(facts: RoutingFacts, fields: JsonFields, headers: IncomingHttpHeaders): RouteChoice {
    const route = this.#find(facts);
    if (route === undefined)
      throw new OctavoError(
        "model_not_found",
        `There is no model ${JSON.stringify(facts.model.slice(0, 128))} here.`,
        {
          param: "model",
        },
      );
    const chain = [route];
    for (let at = 0; at < chain.length; at += 1)
      for (const name of chain[at]?.config.fallbacks ?? []) {
        const next = this.#routes.get(name);
        if (next !== undefined && !chain.includes(next)) chain.push(next);
      }
    return {
      route,
      chain,
      lane: this.#lanes.find(({ when }) => holds(when, facts)),
      sessionKey: sessionKeyOf(route.config, fields, headers),
    };
  }

  plan(
    choice: RouteChoice,
    facts: RoutingFacts,
    nowMs: number,
    random: () => number,
    prefix: PromptBlocks | undefined,
  ): readonly PlannedAttempt[] {
    const routes = choice.chain.map((route): RouteStates => ({
      strategy: route.config.strategy,
      states: statesOf(route, facts, nowMs, choice.lane?.share ?? 1, prefix),
    }));
    return planAttempts(routes, {
      promptTokens: prefix?.numTokens ?? facts.promptTokens,
      maxTokens: facts.maxTokens,
      turn: choice.route.turn++,
      random,
      sessionKey: choice.sessionKey,
    });
  }

  /** Of all targets that the chain may end at. */
  highestPrice({ chain }: RouteChoice, facts: RoutingFacts): ModelPrice | undefined {
    let highest: ModelPrice | undefined;
    for (const { targets } of chain)
      for (const { live, model } of targets) {
        const price = live.priceOf(model ?? facts.model);
        if (price === undefined) continue;
        highest = {
          input: Math.max(highest?.input ?? 0, price.input),
          cachedInput: Math.max(highest?.cachedInput ?? 0, price.cachedInput),
          output: Math.max(highest?.output ?? 0, price.output),
        };
      }
    return highest;
  }

  target(name: string): LiveTarget | undefined {
    return this.#targets.get(name);
  }

  #find(facts: RoutingFacts): LiveRoute | undefined {
    for (const route of this.#routes.values())
      if (serves(route, facts.model) && (route.config.when === undefined || holds(route.config.when, facts)))
        return route;
    return this.#implicit.get(facts.model);
  }
}

function serves(route: LiveRoute, model: string): boolean {
  return route.config.models.some((pattern) => matches(pattern, model));
}

function matches(pattern: string, model: string): boolean {
  return pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : pattern === model;
}

function statesOf(
  { targets, config }: LiveRoute,
  facts: RoutingFacts,
  nowMs: number,
  share: number,
  prefix: PromptBlocks | undefined,
): readonly TargetState[] {
  return targets.flatMap(({ live, model: asked, weight }) => {
    const model = asked ?? facts.model;
    if (live.modelName(model) === undefined || !live.family.operations.includes(facts.operation)) return [];
    return [
      {
        target: live.name,
        model,
        weight,
        admits: live.admits(nowMs, share),
        outstanding: live.outstanding,
        firstByteMs: config.strategy === "least_latency" ? live.firstByte.quantile(quantile) : undefined,
        price: live.priceOf(model),
        cachedTokens: prefix?.index.predict(live.name, prefix.hashes, prefix.numTokens),
      },
    ];
  });
}

function sessionKeyOf(
  { affinity }: RouteConfig,
  fields: JsonFields,
  headers: IncomingHttpHeaders,
): string | undefined {
  if (affinity === undefined) return undefined;
  if ("header" in affinity) {
    const value = headers[affinity.header];
    return typeof value === "string" && value !== "" ? value : undefined;
  }
  return asString(fields[affinity.field]);
}
