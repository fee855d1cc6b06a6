import type { CaseSource, Json } from "../task.js";

export type ParameterKind =
  | "city"
  | "person"
  | "email"
  | "date"
  | "time"
  | "phrase"
  | "word"
  | "code"
  | "product"
  | "company"
  | "integer"
  | "small"
  | "price"
  | "boolean"
  | "enum";

export interface ParameterPlan {
  readonly name: string;
  readonly kind: ParameterKind;
  readonly options?: readonly string[];
}

/** Reads `name:kind` or `name:kind:option,option`, one parameter per `;`. */
export function readParameters(plan: string): ParameterPlan[] {
  if (plan === "") return [];
  return plan.split(";").map((entry) => {
    const [name = "", kind = "", options] = entry.trim().split(":");
    const base = { name, kind: kind as ParameterKind };
    return options === undefined ? base : { ...base, options: options.split(",") };
  });
}

export function drawParameter(plan: ParameterPlan, { random, pools }: CaseSource): Json {
  switch (plan.kind) {
    case "city":
      return pools.city(random);
    case "person":
      return pools.person(random);
    case "email":
      return pools.email(random);
    case "date":
      return pools.date(random);
    case "time":
      return pools.time(random);
    case "phrase":
      return pools.phrase(random);
    case "word":
      return pools.word(random);
    case "code":
      return pools.code(random);
    case "product":
      return pools.product(random);
    case "company":
      return pools.company(random);
    case "integer":
      return pools.integer(random);
    case "small":
      return random.int(1, 99);
    case "price":
      return pools.price(random);
    case "boolean":
      return random.chance(0.5);
    case "enum":
      return random.pick(plan.options ?? []);
  }
}
