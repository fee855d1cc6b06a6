import type { PatternDetector } from "@octavo/text/sensitive/detect";

const cannot =
  "(?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t|will not|(?:am|are) (?:unable|not able|not allowed|not permitted) to|must decline to|have to decline to|refuse to|am not going to)";

/**
 * Openings and phrases of refusals. Patterns agree with people on plain refusals and little beyond them: what a text
 * gives away after a refusal, or withholds without one, is a judge's to say.
 */
export const refusalDetectors: readonly PatternDetector[] = [
  {
    kind: "refusal",
    pattern: new RegExp(
      `\\b(?:i|we)(?:'m)? (?:really |just |simply )?${cannot} (?:really |just )?(?:help|assist|provide|do|comply|fulfil|fulfill|create|write|generate|answer|discuss|support|engage|give|offer|share|participate|continue|complete|produce|support|tell)\\b`,
      "gi",
    ),
  },
  {
    kind: "refusal",
    pattern:
      /\bi(?:'|’)?m (?:sorry|afraid),? (?:but )?(?:i |that |this )?(?:can(?:'|’)?t|cannot|won(?:'|’)?t|is not|isn(?:'|’)?t|am not|not able)|\bi(?:'|’)?m (?:unable|not able|not allowed|not permitted|not comfortable|not going) (?:to|with|doing|providing)\b|\bi must (?:respectfully )?(?:decline|refuse)\b|\bi (?:respectfully |politely )?(?:decline|refuse) to\b/gi,
  },
  {
    kind: "refusal",
    pattern:
      /\b(?:against|violates?|outside) my (?:programming|guidelines|policy|policies|principles|capabilities|ethical guidelines)\b|\b(?:this|your|that) request (?:violates|goes against|is (?:inappropriate|harmful|illegal|unethical))\b|\bnot (?:something|a (?:topic|request)) (?:that )?i can (?:help|assist|discuss|provide)/gi,
  },
  {
    kind: "refusal",
    pattern:
      /(?<!\p{L})(?:ich kann (?:dir |ihnen )?(?:dabei|das|damit|diese\w?|leider|dazu) ?(?:leider )?nicht|das kann ich (?:leider )?nicht|no puedo (?:ayudar|proporcionar|hacer)|je ne peux pas (?:vous |t['’])?(?:aider|fournir|faire)|je ne suis pas en mesure)(?!\p{L})/giu,
  },
];

export const apologyDetectors: readonly PatternDetector[] = [
  {
    kind: "apology",
    pattern:
      /\b(?:i(?:'|’)?m|i am|we(?:'|’)?re|we are) (?:so |very |really |truly |deeply |terribly )?sorry\b|\b(?:my|our|sincere|sincerest|deepest) apologies\b|\bapolog(?:ies for|i[sz]e for|i[sz]e that|i[sz]e if)\b|\b(?:i|we) (?:do |sincerely |deeply )?apologi[sz]e\b|(?:^|[.!?]\s)\s{0,5}(?:sorry|apologies)\b[,.! ]|\bplease (?:forgive|excuse) (?:me|us)\b/gim,
  },
  {
    kind: "apology",
    pattern:
      /(?<!\p{L})(?:es tut (?:mir|uns) (?:sehr |wirklich )?leid|entschuldig(?:ung|en sie)|lo siento|je suis désolée?|je m['’]excuse)(?!\p{L})/giu,
  },
];

export const selfReferenceDetectors: readonly PatternDetector[] = [
  {
    kind: "self_reference",
    pattern:
      /\b(?:as|i(?:'|’)?m|i am|being|i was|me, )(?: just| only| simply)? an? (?:(?:large |small |ai |artificial intelligence |virtual |helpful |text-based |neural )*)(?:language model|ai(?=[,.;:!?)]|\s{1,3}(?:i|and|my|we)\b|\s{0,3}$)|llm|chatbot|bot|(?:ai|virtual|digital|artificial intelligence)[- ](?:assistant|model|system|language model|chatbot)|artificial intelligence|machine learning model)\b/gi,
  },
  {
    kind: "self_reference",
    pattern:
      /\b(?:my|knowledge) (?:training data|knowledge cut-?off|cut-?off date|last (?:knowledge )?update|programming)\b|\bi (?:was|have been) (?:trained|created|developed|made|built) by (?:openai|anthropic|google|meta|mistral|deepseek|alibaba|microsoft|xai)\b|\bi do(?:n(?:'|’)t| not) have (?:personal (?:opinions|experiences|feelings|beliefs)|feelings|emotions|consciousness|a body)\b/gi,
  },
  {
    kind: "self_reference",
    pattern:
      /\b(?:i(?:'|’)?m|i am|my name is) (?:chatgpt|gpt-?\d|claude|gemini|bard|copilot|llama|qwen|mistral|deepseek|grok)\b/gi,
  },
];
