import { asArray, asNumber, asRecord, asString } from "@octavo/protocol";

/** A generated token and its alternatives. Texts are byte strings: one character for each byte of UTF-8. */
export interface TokenChoice {
  readonly text: string;
  readonly probability: number;
  readonly alternatives: readonly { readonly text: string; readonly probability: number }[];
}

/** Where in an answer the label stands. */
export interface LabelPlace {
  /** The answer's text; the tokens may have more before it, such as reasoning. */
  readonly content: string;
  /** Offset of the label in `content`, in UTF-16 units. */
  readonly offset: number;
  /** What must follow the label, such as the quote that ends a JSON string; empty where the answer may just end. */
  readonly terminator: string;
}

/** With less probability mass on labels than this, no probabilities are reported. */
const leastCoverage = 0.1;
/** More on texts that could still become several labels makes their shares a guess. */
const mostAmbiguous = 0.05;

/** The `logprobs` of a chat completion's choice; empty where there are none. */
export function readTokenChoices(logprobs: unknown): readonly TokenChoice[] {
  return asArray(asRecord(logprobs)["content"]).map((entry) => {
    const fields = asRecord(entry);
    return {
      ...readOne(fields),
      alternatives: asArray(fields["top_logprobs"]).map((one) => readOne(asRecord(one))),
    };
  });
}

/**
 * The probability of each label, from the alternatives to the tokens that spelled the one that was given. Labels that
 * share a prefix are separated at the token where they diverge: the walk goes on along the given label, and its probability is
 * the product. What the alternatives do not resolve is left out; the rest is scaled to sum to 1.
 *
 * @returns undefined where the tokens do not spell the answer, or say too little about the labels
 */
export function labelProbabilities(
  tokens: readonly TokenChoice[],
  place: LabelPlace,
  labels: readonly string[],
): Readonly<Record<string, number>> | undefined {
  const spelled = tokens.map(({ text }) => text).join("");
  const base = spelled.lastIndexOf(byteString(place.content));
  if (base < 0) return undefined;
  // a space before the label may belong to its first token
  const start = spelled
    .slice(0, base + byteString(place.content.slice(0, place.offset)).length)
    .trimEnd().length;
  const forms = labels.map((label) => normal(byteString(label) + place.terminator));
  const masses = forms.map(() => 0);
  let ambiguous = 0;
  let mass = 1;
  let given = "";
  let position = 0;
  for (const token of tokens) {
    const end = position + token.text.length;
    const head = spelled.slice(position, Math.max(position, Math.min(start, end)));
    position = end;
    if (end <= start) continue;
    const extended = given + token.text.slice(head.length);
    for (const alternative of token.alternatives) {
      if (alternative.text === token.text || !alternative.text.startsWith(head)) continue;
      const found = matching(forms, given + alternative.text.slice(head.length));
      if (found.length === 1) masses[found[0]!]! += mass * alternative.probability;
      else if (found.length > 1) ambiguous += mass * alternative.probability;
    }
    mass *= token.probability;
    given = extended;
    const found = matching(forms, given);
    if (found.length > 1) continue;
    if (found.length === 1) masses[found[0]!]! += mass;
    mass = 0;
    break;
  }
  // the answer ended where one label is another's beginning
  const ended = forms.indexOf(normal(given));
  if (ended >= 0) masses[ended]! += mass;
  else ambiguous += mass;
  const coverage = masses.reduce((sum, one) => sum + one, 0);
  if (coverage < leastCoverage || ambiguous > mostAmbiguous * (coverage + ambiguous)) return undefined;
  return Object.fromEntries(labels.map((label, index) => [label, masses[index]! / coverage]));
}

/** The labels that a text may still become; where it is past all of them, the longest that it begins with. */
function matching(forms: readonly string[], text: string): readonly number[] {
  const spelled = normal(text);
  const open = forms.flatMap((form, index) => (form.startsWith(spelled) ? [index] : []));
  if (open.length > 0) return open;
  let longest: number | undefined;
  for (const [index, form] of forms.entries())
    if (spelled.startsWith(form) && form.length > (forms[longest ?? -1]?.length ?? 0)) longest = index;
  return longest === undefined ? [] : [longest];
}

/** Free answers begin with a space or a capital as they like. */
function normal(text: string): string {
  return text.trimStart().toLowerCase();
}

function readOne(fields: Readonly<Record<string, unknown>>): { text: string; probability: number } {
  const bytes = fields["bytes"];
  const text = Array.isArray(bytes)
    ? String.fromCharCode(...bytes.filter((byte) => typeof byte === "number"))
    : byteString(asString(fields["token"]) ?? "");
  return { text, probability: Math.exp(asNumber(fields["logprob"]) ?? Number.NEGATIVE_INFINITY) };
}

function byteString(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
