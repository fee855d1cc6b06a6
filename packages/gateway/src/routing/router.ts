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
import type { TargetPool } from "./target-pool.js";

interface RouteTarget {
  readonly live: LiveTarget;
  readonly model: string | undefined;
  readonly weight: number;
}

/** A route with its targets looked up. */
export interface LiveRoute {
  readonly name: string;
  readonly config: RouteConfig;
  readonly targets: readonly RouteTarget[];
  /** Whose members are targets too, as of the moment. */
  readonly pool: TargetPool | undefined;
  turn: number;
}

/** What gateway.yaml names, and the pools that exist beside it. */
export interface TargetSources {
  readonly targets: ReadonlyMap<string, LiveTarget>;
  readonly pools: ReadonlyMap<string, TargetPool>;
}

/** The route of one request, and what its plan depends on. */
export interface RouteChoice {
  readonly route: LiveRoute;
  /** The route and its fallbacks, in order. */
  readonly chain: readonly LiveRoute[];
  readonly lane: LaneConfig | undefined;
  readonly sessionKey: string | undefined;
  /** The one replica that the client asks for; nobody else may answer. */
  readonly pinned: string | undefined;
}

/** Ray's readers know the first; answers name the replica in `x-octavo-target`. */
const pinHeaders = ["x-octavo-replica-id", "x-ray-serve-replica-id"] as const;

const quantile = 0.95;

/** Routes as configured, over live targets: finds the route of a request and asks `planAttempts` for its order. */
export class TargetRouter {
  readonly #routes: ReadonlyMap<string, LiveRoute>;
  readonly #lanes: readonly LaneConfig[];
  readonly #sources: TargetSources;
  /** Routes of models that no route names. */
  readonly #implicit: ReadonlyMap<string, LiveRoute>;

  constructor(config: GatewayConfig, sources: TargetSources, defaults: RouteConfig) {
    const { targets, pools } = sources;
    this.#sources = sources;
    this.#lanes = Object.values(config.lanes);
    this.#routes = new Map(
      Object.entries(config.routes).map(([name, route]) => [
        name,
        {
          name,
          config: route,
          turn: 0,
          pool: route.targets.map((one) => ("pool" in one ? pools.get(one.pool) : undefined)).find(Boolean),
          targets: route.targets.flatMap((one) => {
            if ("pool" in one) return [];
            const live = targets.get(one.target);
            if (live === undefined) throw new OctavoError("internal_error", `no target ${one.target}`);
            return [{ live, model: one.model, weight: one.weight ?? live.config.weight }];
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
          pool: undefined,
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
        for (const { live, model } of targetsOf(route)) {
          if (!pattern.endsWith("*")) add(pattern, live.name);
          else if (model === undefined)
            for (const name of Object.keys(live.config.models))
              if (matches(pattern, name)) add(name, live.name);
        }
    for (const route of this.#implicit.values())
      for (const { live } of route.targets) add(route.name, live.name);
    // a deployment at zero replicas serves its model all the same
    for (const { config, pool } of this.#routes.values())
      for (const name of config.models)
        if (pool !== undefined && !name.endsWith("*") && !models.has(name)) models.set(name, new Set());
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
      pinned: route.pool === undefined ? undefined : pinOf(headers),
    };
  }

  plan(
    choice: RouteChoice,
    facts: RoutingFacts,
    nowMs: number,
    random: () => number,
    prefix: PromptBlocks | undefined,
  ): readonly PlannedAttempt[] {
    const { pinned } = choice;
    const routes = choice.chain.map((route): RouteStates => {
      const states = statesOf(route, facts, nowMs, choice.lane?.share ?? 1, prefix);
      return {
        strategy: route.config.strategy,
        states: pinned === undefined ? states : states.filter(({ target }) => target === pinned),
      };
    });
    return planAttempts(routes, {
      promptTokens: prefix?.numTokens ?? facts.promptTokens,
      maxTokens: facts.maxTokens,
      maxImbalance: choice.route.config.prefix?.max_imbalance ?? 0,
      turn: choice.route.turn++,
      random,
      sessionKey: choice.sessionKey,
    });
  }

  /** Whether a target would take the request now; of a pinned one, its own. */
  hasRoom(
    { chain, pinned, lane }: RouteChoice,
    { model: asked, operation }: RoutingFacts,
    nowMs: number,
  ): boolean {
    return chain.some((route) =>
      targetsOf(route).some(
        ({ live, model }) =>
          (pinned === undefined || live.name === pinned) &&
          live.modelName(model ?? asked) !== undefined &&
          live.family.operations.includes(operation) &&
          live.admits(nowMs, lane?.share),
      ),
    );
  }

  /** Highest price among all targets that the chain may end at. */
  highestPrice({ chain }: RouteChoice, facts: RoutingFacts): ModelPrice | undefined {
    let highest: ModelPrice | undefined;
    for (const route of chain)
      for (const { live, model } of targetsOf(route)) {
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
    const { targets, pools } = this.#sources;
    const known = targets.get(name);
    if (known !== undefined) return known;
    for (const pool of pools.values()) {
      const member = pool.member(name);
      if (member !== undefined) return member;
    }
    return undefined;
  }

  /** Those of gateway.yaml and of all pools, leaving ones included. */
  *everyTarget(): Iterable<LiveTarget> {
    yield* this.#sources.targets.values();
    for (const pool of this.#sources.pools.values()) yield* pool.all;
  }

  #find(facts: RoutingFacts): LiveRoute | undefined {
    for (const route of this.#routes.values())
      if (serves(route, facts.model) && (route.config.when === undefined || holds(route.config.when, facts)))
        return route;
    return this.#implicit.get(facts.model);
  }
}

function targetsOf({ targets, pool }: LiveRoute): readonly RouteTarget[] {
  if (pool === undefined) return targets;
  const members = Array.from(pool.members, (live) => ({
    live,
    model: undefined,
    weight: live.config.weight,
  }));
  return [...targets, ...members];
}

function pinOf(headers: IncomingHttpHeaders): string | undefined {
  for (const name of pinHeaders) {
    const value = headers[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

function serves(route: LiveRoute, model: string): boolean {
  return route.config.models.some((pattern) => matches(pattern, model));
}

function matches(pattern: string, model: string): boolean {
  return pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : pattern === model;
}

function statesOf(
  route: LiveRoute,
  facts: RoutingFacts,
  nowMs: number,
  share: number,
  prefix: PromptBlocks | undefined,
): readonly TargetState[] {
  return targetsOf(route).flatMap(({ live, model: asked, weight }) => {
    const model = asked ?? facts.model;
    if (live.modelName(model) === undefined || !live.family.operations.includes(facts.operation)) return [];
    return [
      {
        target: live.name,
        model,
        weight,
        admits: live.admits(nowMs, share),
        outstanding: live.outstanding,
        outstandingTokens: live.outstandingTokens,
        firstByteMs:
          route.config.strategy === "least_latency" ? live.firstByte.quantile(quantile) : undefined,
        price: live.expectedPriceOf(model),
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
