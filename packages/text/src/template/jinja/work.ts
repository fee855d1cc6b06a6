import { OctavoError } from "@octavo/protocol/errors";

/** The most that one rendering may do, in units of about one evaluated expression: some seconds. */
export const maxTemplateWork = 20_000_000;

/** A template that does more than it may. */
export class TemplateWorkError extends OctavoError {
  constructor(limit: number) {
    super("template_error", `The template does not end within ${limit} steps.`);
  }
}

/** Of the rendering that runs now: a rendering is synchronous, so there is one at a time. */
let limit = Infinity;
let left = Infinity;

/** Runs a rendering that may do so much work; throws `TemplateWorkError` beyond. */
export function withWork<Result>(units: number, render: () => Result): Result {
  const outer = { limit, left };
  limit = units;
  left = units;
  try {
    return render();
  } finally {
    ({ limit, left } = outer);
  }
}

/** Counts work: one unit for an expression or a visited value, fewer for each item or character that is copied or searched. */
export function spend(units: number): void {
  left -= units;
  if (left < 0) throw new TemplateWorkError(limit);
}

/** Work of going once through a text. */
export function textWork(text: string): number {
  return text.length / 64;
}

/** Work of copying a list, or of cutting a text into characters. */
export function listWork(length: number): number {
  return length / 8;
}
