// What `npm test` prints: failures whole, skipped tests by name, the slowest files, and the counts as the last line. The counts
// also go to the file named by OCTAVO_TEST_COUNTS, so that CI can add up its runs.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { inspect } from "node:util";
import { root } from "./steps.mjs";

const numSlowest = 10;

export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

export default async function* report(source) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const msByFile = new Map();
  for await (const { type, data } of source) {
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const file = data.file === undefined ? data.name : relative(root, data.file);
    if (data.nesting === 0) msByFile.set(file, (msByFile.get(file) ?? 0) + data.details.duration_ms);
    const { error } = data.details;
    // a suite or a file that failed because of its tests is told by them
    if (data.details.type === "suite" || error?.failureType === "subtestsFailed") continue;
    if (type === "test:fail") {
      counts.failed += 1;
      yield `\nFAILED  ${file}: ${data.name}\n${inspect(error?.cause ?? error, { depth: 8 })}\n`;
    } else if (data.skip === undefined) counts.passed += 1;
    else {
      counts.skipped += 1;
      yield `skipped  ${file}: ${data.name}${typeof data.skip === "string" ? `: ${data.skip}` : ""}\n`;
    }
  }
  const slowest = [...msByFile].toSorted(([, one], [, other]) => other - one).slice(0, numSlowest);
  yield `\nslowest files:\n${slowest.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${file}\n`).join("")}`;
  const path = process.env.OCTAVO_TEST_COUNTS;
  if (path) appendFileSync(path, `${JSON.stringify(counts)}\n`);
  yield `\n${closingLine(counts)}\n`;
}
