import { readFile, writeFile } from "node:fs/promises";
import type { SuiteFigure } from "./suite.js";

const begin = "<!-- figures -->";
const end = "<!-- /figures -->";

export function formatTable(figures: readonly SuiteFigure[]): string {
  const rows = figures.map(
    ({ measure, right, of }) => `| ${measure} | ${percent(right, of)} | ${right} of ${of} |`,
  );
  return ["| held-out, greedy | share | cases |", "| --- | ---: | ---: |", ...rows].join("\n");
}

function percent(right: number, of: number): string {
  return `${((100 * right) / of).toFixed(1)} %`;
}

export class CardError extends Error {
  constructor(path: string) {
    super(`${path} lacks the lines ${begin} and ${end} between which the figures go`);
    this.name = "CardError";
  }
}

/** Puts the table between the card's two marker lines. */
export async function rewriteCard(path: string, table: string): Promise<void> {
  const card = await readFile(path, "utf8");
  await writeFile(path, placeFigures(card, table, path));
}

export function placeFigures(card: string, table: string, path = "the card"): string {
  const from = card.indexOf(begin);
  const to = card.indexOf(end);
  if (from < 0 || to < from) throw new CardError(path);
  return `${card.slice(0, from + begin.length)}\n\n${table}\n\n${card.slice(to)}`;
}
