import type { JsonValue } from "../grammar.js";
import { choice, type Node, nothing, sequence, text } from "../node.js";
import type { Conjunction } from "./conjunction.js";
import { countKeyword } from "./keywords.js";
import type { SchemaContext } from "./schema-context.js";
import { pathOf, schemaError } from "./schema-error.js";

/** What each position of an array allows, and how many positions it has. */
export interface ArrayShape {
  readonly least: number;
  readonly most: number;
  /** Positions with schemas of their own. */
  readonly numPrefix: number;
  readonly schemasAt: (index: number) => Conjunction | undefined;
}

/** Most `contains` of one array, and most states for counting (positions times counts). */
const maxContains = 3;
const maxStates = 4096;

/** How many items must satisfy a schema. */
interface ContainsCount {
  readonly schema: JsonValue;
  readonly path: string;
  readonly least: number;
  readonly most: number;
}

export function containsCounts(conjunction: Conjunction): ContainsCount[] {
  const counts: ContainsCount[] = [];
  for (const located of conjunction) {
    const { schema, path } = located;
    const { contains } = schema;
    if (contains === undefined) continue;
    const least = countKeyword(located, "minContains") ?? 1;
    const most = countKeyword(located, "maxContains") ?? Infinity;
    if (least === 0 && most === Infinity) continue;
    counts.push({ schema: contains, path: pathOf(path, "contains"), least, most });
    if (counts.length > maxContains)
      throw schemaError(pathOf(path, "contains"), `stands beside more than ${maxContains - 1} others`);
  }
  return counts;
}

/**
 * Items some of which satisfy the schemas of `contains`. Each item is taken either as one that is counted, and is
 * satisfies the schema, or as one that is not counted: an uncounted item may satisfy it too, unless there is an upper bound.
 */
export function countedItems(
  counts: readonly ContainsCount[],
  { least, most, numPrefix, schemasAt }: ArrayShape,
  compiler: SchemaContext,
): Node {
  const { spaces, rules } = compiler;
  const lastPlace = most === Infinity ? Math.max(numPrefix, least, 1) : most;
  const hasUpper = counts.map((count) => count.most !== Infinity);
  const highest = counts.map((count, index) => (hasUpper[index] ? count.most : count.least));
  if (counts.some((count) => count.most < count.least)) return nothing;
  const numStates = highest.reduce((product, value) => product * (value + 1), lastPlace + 1);
  if (numStates > maxStates)
    throw schemaError(
      counts[0]!.path,
      `needs ${numStates} states with these counts; at most ${maxStates} are made`,
    );
  const comma = sequence(text(","), spaces.afterComma);
  const isEnough = (place: number, seen: readonly number[]): boolean =>
    place >= least && counts.every((count, index) => seen[index]! >= count.least);
  const from = rules.family("contains", (place: number, seen: readonly number[]): Node => {
    const options: Node[] = [];
    if (place > 0 && isEnough(place, seen)) options.push(sequence(spaces.inside, text("]")));
    if (place >= most) return choice(...options);
    const lead = place === 0 ? sequence() : comma;
    for (let set = 0; set < 1 << counts.length; set += 1) {
      const next = [...seen];
      const schemas: (readonly [JsonValue, string])[] = [];
      let isPossible = true;
      for (const [index, count] of counts.entries()) {
        const isCounted = (set & (1 << index)) !== 0;
        if (isCounted) {
          isPossible &&= seen[index]! < highest[index]!;
          next[index]! += 1;
          schemas.push([count.schema, count.path]);
        } else if (hasUpper[index]) schemas.push([compiler.combinations.not(count.schema), count.path]);
      }
      if (!isPossible) continue;
      const own = schemasAt(place);
      const counted = compiler.conjunction(schemas);
      if (own === undefined || counted === undefined) continue;
      const following = from(Math.min(place + 1, lastPlace), next);
      options.push(sequence(lead, compiler.value([...own, ...counted]), following));
    }
    return choice(...options);
  });
  const none = counts.map(() => 0);
  const filled = sequence(text("["), spaces.inside, from(0, none));
  return isEnough(0, none) ? choice(text("[]"), filled) : filled;
}
