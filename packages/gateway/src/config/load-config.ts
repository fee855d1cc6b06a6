import { OctavoError } from "@octavo/protocol";
import { YamlSource } from "@octavo/protocol/yaml";
import type { z } from "zod";
import { stageDefinitions } from "../stages.js";
import { providers } from "../targets/providers.js";
import { type GatewayConfig, gatewaySchema } from "./schema.js";

export interface ConfigSource {
  /** As errors name it. */
  readonly name: string;
  readonly text: string;
  /** What `${NAME}` stands for. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads gateway.yaml and checks all of it: YAML, fields, names that must be there, cycles of fallbacks. Throws
 * `invalid_option` whose message begins with the line and column at fault.
 */
export function loadGatewayConfig(from: ConfigSource): GatewayConfig {
  const source = new YamlSource(from.name, from.text);
  return readGatewayConfig(source, withEnvironment(source, from.environment), []);
}

/** Where problems of a configuration are said to be. */
type Source = Pick<YamlSource, "value" | "problem">;

/** `pools`: names that routes may refer to. */
export function readGatewayConfig(source: Source, value: unknown, pools: readonly string[]): GatewayConfig {
  const result = gatewaySchema.safeParse(value);
  if (!result.success) throw problemOf(source, result.error.issues);
  const stages = new Map(
    stageDefinitions.flatMap(({ name }) => {
      const section = (result.data as Readonly<Record<string, unknown>>)[name];
      return section === undefined ? [] : [[name, section] as const];
    }),
  );
  const config = { ...result.data, stages } as unknown as GatewayConfig;
  if (pools.length === 0 && Object.keys(config.targets).length === 0)
    throw source.problem(["targets"], "name at least one target");
  checkTargets(source, config);
  checkRoutes(source, config, pools);
  return config;
}

/** `${NAME}` in any string becomes the variable; `$${` stands for `${` itself. */
export function withEnvironment(source: Source, environment: ConfigSource["environment"]): unknown {
  const visit = (value: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof value === "string") {
      return value.replaceAll(/\$\$\{|\$\{([^}]*)\}/g, (whole, name: string | undefined) => {
        if (name === undefined) return whole.slice(1);
        const found = environment[name];
        if (found === undefined || found === "")
          throw source.problem(path, `the environment variable ${name.slice(0, 64)} is not set`);
        return found;
      });
    }
    if (Array.isArray(value)) return value.map((entry, index) => visit(entry, [...path, index]));
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(
        Object.entries(value).map(([name, entry]) => [name, visit(entry, [...path, name])]),
      );
    return value;
  };
  return visit(source.value, []);
}

type Issue = z.core.$ZodIssue;

/** The problem that is furthest inside the file; values are not shown, as they may be keys. */
export function problemOf(source: Source, issues: readonly Issue[]): OctavoError {
  const issue = furthest(issues);
  const message = issue.message.replace(/, received .*$/s, "");
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    return source.problem([...issue.path, key], "there is no such setting");
  }
  return source.problem(issue.path, message);
}

function furthest(issues: readonly Issue[], prefix: readonly PropertyKey[] = []): Issue {
  let best: Issue | undefined;
  for (const issue of issues) {
    const here = { ...issue, path: [...prefix, ...issue.path] };
    const inner = issue.code === "invalid_union" ? issue.errors.filter((branch) => branch.length > 0) : [];
    for (const candidate of [here, ...inner.map((branch) => furthest(branch, here.path))])
      if (best === undefined || rank(candidate) > rank(best)) best = candidate;
  }
  if (best === undefined) throw new OctavoError("internal_error", "validation failed without saying why");
  return best;
}

/** A misspelt key stands one level above where it is: count it as if it were a field of its own. */
function rank(issue: Issue): number {
  const isSpecific = issue.code !== "invalid_union" && issue.code !== "invalid_type";
  return (issue.path.length + (issue.code === "unrecognized_keys" ? 1 : 0)) * 2 + (isSpecific ? 1 : 0);
}

function checkTargets(source: Source, { targets }: GatewayConfig): void {
  for (const [name, target] of Object.entries(targets)) {
    const row = providers[target.provider];
    if (target.url === undefined && row.url === undefined)
      throw source.problem(["targets", name], `a target of provider ${target.provider} needs a url`);
    if (row.needsKey && target.api_key === undefined)
      throw source.problem(["targets", name], `a target of provider ${target.provider} needs an api_key`);
    for (const [header, text] of Object.entries(target.headers))
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header) || /[\r\n\0]/.test(text))
        throw source.problem(["targets", name, "headers", header], "not a header");
  }
}

function checkRoutes(source: Source, { targets, routes }: GatewayConfig, pools: readonly string[]): void {
  for (const [name, route] of Object.entries(routes)) {
    for (const [index, one] of route.targets.entries()) {
      const path = ["routes", name, "targets", index];
      if ("pool" in one) {
        if (!pools.includes(one.pool)) throw source.problem(path, `there is no pool ${one.pool}`);
        continue;
      }
      const { target, model } = one;
      const found = targets[target];
      if (found === undefined) throw source.problem(path, `there is no target ${target}`);
      if (model !== undefined && found.models[model] === undefined)
        throw source.problem(path, `the target ${target} has no model ${model}`);
    }
    for (const [index, fallback] of route.fallbacks.entries())
      if (routes[fallback] === undefined)
        throw source.problem(["routes", name, "fallbacks", index], `there is no route ${fallback}`);
    if (route.strategy === "prefix_aware" && route.prefix === undefined)
      throw source.problem(["routes", name, "strategy"], "prefix_aware needs the section prefix");
    const cycle = cycleFrom(routes, name);
    if (cycle !== undefined)
      throw source.problem(["routes", name, "fallbacks"], `fallbacks in a circle: ${cycle.join(" → ")}`);
  }
}

function cycleFrom(
  routes: GatewayConfig["routes"],
  start: string,
  path: readonly string[] = [start],
): readonly string[] | undefined {
  for (const next of routes[path.at(-1) ?? start]?.fallbacks ?? []) {
    if (next === start) return [...path, next];
    if (path.includes(next)) continue;
    const cycle = cycleFrom(routes, start, [...path, next]);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
