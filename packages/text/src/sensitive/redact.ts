import { detect } from "./detect.js";
import { personalDataDetectors } from "./personal-data.js";
import { secretDetectors } from "./secrets.js";

const detectors = [...secretDetectors, ...personalDataDetectors];

/** The text with `[kind]`, such as `[email]`, in place of each secret and piece of personal data that has a known form. */
export function redact(text: string): string {
  const findings = detect(text, detectors).toSorted((left, right) => left.start - right.start);
  let redacted = "";
  let from = 0;
  for (const { kind, start, end } of findings) {
    redacted += `${text.slice(from, start)}[${kind}]`;
    from = end;
  }
  return redacted + text.slice(from);
}
