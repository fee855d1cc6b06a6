import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type ApiPrice, OctavoError, parseWith, priceTable, type PriceTable } from "@octavo/protocol";

/** The table that ships with Octavo. */
const ownTable = fileURLToPath(new URL("../../data/api-prices.json", import.meta.url));

/** Throws `invalid_option` saying what is wrong with the table. */
export async function readPriceTable(path: string = ownTable): Promise<PriceTable> {
  try {
    return parseWith(priceTable, JSON.parse(await readFile(path, "utf8")));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new OctavoError("invalid_option", `prices: ${path} is not a price table: ${reason}`, {
      param: "prices",
      cause,
    });
  }
}

/** Prices in the order of `names`; all of them without names. */
export function namedPrices(table: PriceTable, names: readonly string[] | undefined): readonly ApiPrice[] {
  if (names === undefined) return table.prices;
  return names.map((name) => {
    const found = table.prices.find((price) => price.name === name);
    if (found !== undefined) return found;
    const known = table.prices.map((price) => price.name).join(", ");
    throw new OctavoError("invalid_option", `compare: the price table has no ${name}; it has ${known}`, {
      param: "compare",
    });
  });
}

/** What the same tokens would have cost at that price. */
export function apiDollars(
  price: ApiPrice,
  tokens: { readonly inputTokens: number; readonly cachedTokens: number; readonly outputTokens: number },
): number {
  const { inputTokens, cachedTokens, outputTokens } = tokens;
  const fresh = Math.max(0, inputTokens - cachedTokens);
  const millionths =
    fresh * price.input + cachedTokens * (price.cachedInput ?? price.input) + outputTokens * price.output;
  return millionths / 1e6;
}
