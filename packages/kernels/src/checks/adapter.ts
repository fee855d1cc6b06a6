import { OctavoError } from "@octavo/protocol/errors";
import type { AdapterSite, Matrix } from "../backend.js";

/** Refuses an adapter whose matrices do not fit the linears at `sites`, with `artifact_invalid` saying where. */
export function checkAdapter(adapted: readonly AdapterSite[], sites: ReadonlyMap<number, Matrix>): void {
  const seen = new Set<number>();
  for (const { site, down, parts } of adapted) {
    const weight = sites.get(site);
    if (weight === undefined) return fail(site, "the program has no such linear");
    if (seen.has(site)) fail(site, "it is adapted twice");
    seen.add(site);
    if (down.cols !== weight.cols)
      fail(site, `down takes ${down.cols} columns, the linear has ${weight.cols}`);
    const ranks = parts.reduce((sum, { up }) => sum + up.cols, 0);
    if (ranks !== down.rows)
      fail(site, `down has ${down.rows} rows, the ranks of the parts add up to ${ranks}`);
    let end = 0;
    for (const { column, up, scale } of parts.toSorted((a, b) => a.column - b.column)) {
      if (!Number.isInteger(column) || column < end || column + up.rows > weight.rows) {
        fail(
          site,
          `a part adds to the outputs ${column} to ${column + up.rows} of ${weight.rows}, or to those of another`,
        );
      }
      end = column + up.rows;
      if (!Number.isFinite(Math.fround(scale))) fail(site, `a part has the scale ${scale}`);
    }
  }
}

function fail(site: number, problem: string): never {
  throw new OctavoError("artifact_invalid", `The adapter does not fit at site ${site}: ${problem}.`);
}
