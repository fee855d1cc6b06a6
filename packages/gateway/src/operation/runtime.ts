import { randomInt } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { BodyMemory, OctavoError } from "@octavo/protocol";

import { type GatewayConfig, gatewaySchema, type RouteConfig } from "../config/schema.js";
import type { LiveExchange } from "../exchange/live-exchange.js";
import type { Stage, StageContext, StageHooks } from "../exchange/stage.js";
import { stageDefinitions } from "../stages.js";
import { LiveTarget } from "../targets/live-target.js";
import { HealthProbes } from "../targets/health-probe.js";
import { SharedBreakers } from "../targets/shared-breakers.js";
import { AttemptBudget } from "../relay/attempt-budget.js";
import { type LiveRoute, TargetRouter } from "../routing/router.js";
import { PrefixRouting } from "../routing/prefix-routing.js";
import type { TargetPool } from "../routing/target-pool.js";

export interface NamedStage {
  readonly name: string;
  readonly stage: Stage;
}

interface RouteBudgets {
  readonly retries: AttemptBudget;
  readonly hedges: AttemptBudget;
}

/**
 * Everything that follows from one gateway.yaml: targets, routes, stages. A reload makes a new one, which takes over the
 * targets that did not change with their connections and their health; the old one ends with its last exchange.
 */
export class GatewayRuntime {
  readonly config: GatewayConfig;
  readonly targets: ReadonlyMap<string, LiveTarget>;
  readonly router: TargetRouter;
  readonly stages: readonly NamedStage[];
  readonly prefixes: PrefixRouting;
  /** Bodies of the requests under way. */
  readonly bodies: BodyMemory;
  readonly #probes: HealthProbes;
  readonly #breakers: SharedBreakers;
  readonly #budgets = new Map<string, RouteBudgets>();
  #numOpen = 0;
  #isRetired = false;
  #onClosed: (() => void) | undefined;

  private constructor(
    config: GatewayConfig,
    targets: ReadonlyMap<string, LiveTarget>,
    stages: readonly NamedStage[],
    prefixes: PrefixRouting,
    context: StageContext,
    pools: ReadonlyMap<string, TargetPool>,
  ) {
    this.config = config;
    this.targets = targets;
    this.stages = stages;
    this.prefixes = prefixes;
    this.bodies = new BodyMemory(config.limits.max_body_memory);
    this.router = new TargetRouter(config, { targets, pools }, defaultRoute);
    this.#breakers = new SharedBreakers(targets.values(), context.store, context.nowMs);
    this.#probes = new HealthProbes(targets.values(), (target, isOk) => {
      if (!isOk) prefixes.forget(target.name);
      context.log(isOk ? "info" : "warn", isOk ? "target_healthy" : "target_unhealthy", {
        target: target.name,
      });
    });
  }

  /** Throws what a stage or a tokenizer refuses; nothing is left open then. */
  static async open(
    config: GatewayConfig,
    context: StageContext,
    before: GatewayRuntime | undefined,
    pools: ReadonlyMap<string, TargetPool>,
  ): Promise<GatewayRuntime> {
    const targets = new Map(
      Object.entries(config.targets).map(([name, target]) => {
        const known = before?.targets.get(name);
        return [
          name,
          known !== undefined && isDeepStrictEqual(known.config, target)
            ? known
            : new LiveTarget(name, target),
        ];
      }),
    );
    const prefixes = PrefixRouting.open(config);
    const stages: NamedStage[] = [];
    for (const definition of stageDefinitions) {
      const { name } = definition;
      const section = config.stages.get(name);
      if (section !== undefined) stages.push({ name, stage: await definition.create(section, context) });
    }
    return new GatewayRuntime(config, targets, stages, prefixes, context, pools);
  }

  budgets({ name, config, pool }: LiveRoute): RouteBudgets {
    let budgets = this.#budgets.get(name);
    if (budgets === undefined) {
      budgets = {
        // a member that died takes all of its calls with it: attempts are bounded by the call, not by a share
        retries: new AttemptBudget(pool === undefined ? config.retries.budget : Infinity),
        hedges: new AttemptBudget(config.hedge?.max_share ?? 0, 1),
      };
      this.#budgets.set(name, budgets);
    }
    return budgets;
  }

  enter(): void {
    this.#numOpen += 1;
  }

  leave(): void {
    this.#numOpen -= 1;
    if (this.#isRetired && this.#numOpen === 0) this.#onClosed?.();
  }

  /** Resolves when the last exchange is over and all is closed that `successor` does not use. */
  async retire(successor: GatewayRuntime | undefined): Promise<void> {
    this.#isRetired = true;
    this.#probes.close();
    this.#breakers.close();
    if (this.#numOpen > 0)
      await new Promise<void>((resolve) => {
        this.#onClosed = resolve;
      });
    for (const { stage } of this.stages) await stage.close?.();
    for (const [name, target] of this.targets)
      if (successor?.targets.get(name) !== target) await target.close();
  }
}

/** Defaults for routes that gateway.yaml does not spell out. */
const defaultRoute: RouteConfig = (() => {
  const parsed = gatewaySchema.shape.routes.parse({ default: { models: ["*"], targets: ["any"] } });
  const route = (parsed as Readonly<Record<string, RouteConfig>>)["default"];
  if (route === undefined) throw new OctavoError("internal_error", "routes have no defaults");
  return route;
})();

/** What the hooks of an exchange's stages are, and the answer that one of them gave. */
export async function runStages(
  stages: readonly NamedStage[],
  exchange: LiveExchange,
  hooks: StageHooks[],
): Promise<void> {
  for (const { stage } of stages) {
    const made = stage.onRequest(exchange);
    const hook = made instanceof Promise ? await made : made;
    if (hook === undefined) continue;
    hooks.push(hook);
    if (hook.answer !== undefined) return;
  }
}

/** For answers that must be continued elsewhere: OpenAI's range of seeds that every server takes. */
export function drawSeed(): number {
  return randomInt(0, 2 ** 31 - 1);
}
