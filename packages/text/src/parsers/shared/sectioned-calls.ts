import type { OutputMachine, MachineContext } from "../machine.js";
import type { Waiting } from "./input.js";
import { untilTag, untilTagPassingSpace } from "./tags.js";

interface SectionTags {
  readonly sectionStart: string;
  readonly sectionEnd: string;
  readonly callStart: string;
  /** Calls begin nowhere else. */
  readonly needsSection?: boolean;
}

/** Consecutive calls between section tags, or without a section unless it is needed; `readCall` reads one call after its start tag. */
export function sectionedCalls(
  { sectionStart, sectionEnd, callStart, needsSection = false }: SectionTags,
  readCall: (context: MachineContext) => Waiting,
): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    const toContent = (text: string): void => sink.content(text);
    const starts = needsSection ? [sectionStart] : [sectionStart, callStart];
    let tag = yield* untilTag(input, starts, toContent);
    while (tag !== undefined) {
      const inSection = [callStart, sectionEnd];
      if (tag === sectionStart) tag = yield* untilTagPassingSpace(input, inSection, toContent);
      while (tag === callStart) {
        yield* readCall(context);
        tag = yield* untilTagPassingSpace(input, inSection, toContent);
      }
      if (tag === undefined) return;
      tag = yield* untilTag(input, starts, toContent);
    }
  };
}
