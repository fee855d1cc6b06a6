import { OctavoError } from "@octavo/protocol/errors";

/**
 * The most that one rendering may do, some seconds. A unit is an evaluated expression or a visited value; characters and items
 * that are copied or searched are fractions of one.
 */
export const maxTemplateWork = 20_000_000;

/** A template that does more than it may. */
export class TemplateWorkError extends OctavoError {
  constructor(limit: number) {
    super("template_error", `The template does not end within ${limit} steps.`);
  }
}

/** Work of going once through a text. */
export function textWork(text: string): number {
  return text.length / 64;
}

/** Work of copying a list, or of cutting a text into characters. */
export function listWork(length: number): number {
  return length / 8;
}
