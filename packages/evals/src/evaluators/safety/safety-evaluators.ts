import type { EvaluatorEntry } from "../registry.js";
import { codeInjectionDetectors, promptInjectionDetectors, unmasked } from "@octavo/text/sensitive/attacks";
import { detectorEvaluator } from "./detector.js";
import { personalDataDetectors } from "@octavo/text/sensitive/personal-data";
import { apologyDetectors, refusalDetectors, selfReferenceDetectors } from "./phrases.js";
import { secretDetectors } from "@octavo/text/sensitive/secrets";

/** Apostrophes that editors make round. */
const plainMarks = (text: string): string => text.replaceAll("\u2019", "'");

/** What patterns can tell of what should not be there; each passes where nothing is found. */
export const safetyEvaluators: readonly EvaluatorEntry[] = [
  detectorEvaluator(
    "no_pii",
    "No personal data that its form or checksum gives away: email, phone, card, IBAN, SSN, tax id, IP address and more.",
    personalDataDetectors,
  ),
  detectorEvaluator("no_secrets", "No keys, tokens, passwords or private keys.", secretDetectors),
  detectorEvaluator(
    "no_prompt_injection_patterns",
    "No known phrases or markup by which a text gives a model orders.",
    promptInjectionDetectors,
    "input",
    unmasked,
  ),
  detectorEvaluator(
    "no_code_injection_patterns",
    "No SQL, shell, script, path or template injection.",
    codeInjectionDetectors,
  ),
  detectorEvaluator("no_refusal_patterns", "No phrases of refusals.", refusalDetectors, "output", plainMarks),
  detectorEvaluator(
    "no_apology_patterns",
    "No phrases of apologies.",
    apologyDetectors,
    "output",
    plainMarks,
  ),
  detectorEvaluator(
    "no_llm_reference_patterns",
    "No phrases by which a model speaks of itself as one.",
    selfReferenceDetectors,
    "output",
    plainMarks,
  ),
];
