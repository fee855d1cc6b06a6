import type { PatternDetector } from "./detect.js";

/** Values that stand for a secret in examples. */
const placeholder =
  /example|placeholder|change.?me|your[_-]?|dummy|redacted|x{4,}|\*{3,}|\.{3,}|<[^>]{1,40}>|\$\{|%[a-z_]{1,40}%/i;

const isReal = (match: string): boolean => !placeholder.test(match);

/** Shannon's entropy of the characters, in bits each. */
function bitsPerCharacter(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

/** Keys and tokens by the prefixes that their issuers give them so that they can be found, then by what is said of them. */
export const secretDetectors: readonly PatternDetector[] = [
  {
    kind: "private_key",
    // with its body where it ends, so that nothing of it is left when it is cut out
    pattern:
      /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=,:.()\s-]{0,16384}?-----END [A-Z0-9 ]{1,60}-----)?/g,
  },
  {
    kind: "aws_access_key",
    pattern: /(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Z0-9])/g,
    confirms: isReal,
  },
  {
    kind: "aws_secret_key",
    needs: /aws|key/i,
    pattern: /(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])/g,
    confirms: (match, around) =>
      isReal(match) && /aws|secret.{0,3}(?:access.{0,3})?key/i.test(around) && bitsPerCharacter(match) > 4,
  },
  {
    kind: "github_token",
    pattern: /(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_\w{60,251})(?!\w)/g,
    confirms: isReal,
  },
  { kind: "gitlab_token", pattern: /(?<![\w-])glpat-[\w-]{20,64}(?!\w)/g, confirms: isReal },
  { kind: "slack_token", pattern: /(?<![\w-])xox[abeoprs]-[A-Za-z0-9-]{10,250}(?!\w)/g, confirms: isReal },
  {
    kind: "slack_webhook",
    pattern: /https:\/\/hooks\.slack\.com\/(?:services|workflows)\/[\w/-]{20,200}/g,
    confirms: isReal,
  },
  { kind: "google_api_key", pattern: /(?<![\w-])AIza[\w-]{35}(?![\w-])/g, confirms: isReal },
  { kind: "stripe_key", pattern: /(?<!\w)[rs]k_(?:live|test)_[A-Za-z0-9]{16,247}(?!\w)/g, confirms: isReal },
  { kind: "anthropic_key", pattern: /(?<![\w-])sk-ant-[\w-]{20,250}(?!\w)/g, confirms: isReal },
  {
    kind: "openai_key",
    pattern: /(?<![\w-])sk-(?:proj-|svcacct-|admin-)?[\w-]{20,250}(?!\w)/g,
    confirms: (match) => isReal(match) && /\d/.test(match) && bitsPerCharacter(match) > 3.5,
  },
  { kind: "hugging_face_token", pattern: /(?<!\w)hf_[A-Za-z0-9]{30,64}(?!\w)/g, confirms: isReal },
  { kind: "npm_token", pattern: /(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)/g, confirms: isReal },
  { kind: "pypi_token", pattern: /(?<![\w-])pypi-[\w-]{50,250}(?!\w)/g, confirms: isReal },
  {
    kind: "jwt",
    pattern: /(?<![\w.-])eyJ[\w-]{10,2000}\.eyJ[\w-]{4,4000}\.[\w-]{10,1000}(?![\w.-])/g,
    confirms: hasTokenHeader,
  },
  {
    kind: "url_password",
    needs: "://",
    pattern: /(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{1,64}:[^\s@/]{3,128}@[\w.-]{1,253}/gi,
    confirms: (match) => isReal(match) && !/:(?:password|pass|pwd|secret)@/i.test(match),
  },
  {
    kind: "assigned_secret",
    needs: /key|secret|token|passw|pwd|bearer/i,
    pattern:
      /(?<![a-z])(?:api[_-]?key|apikey|secret(?:[_-]?key)?|access[_-]?token|auth[_-]?token|client[_-]?secret|passw(?:or)?d|pwd|bearer)["']?\s{0,3}(?:[:=]|\bis\b|\s)\s{0,3}["'`]?[^\s"'`,;<>]{12,256}/gi,
    confirms: (match) => isReal(match) && isHighEntropy(match),
  },
];

/** The value alone: letters and digits mixed, and more varied than words are. */
function isHighEntropy(match: string): boolean {
  const value = /[^\s"'`=:]{12,256}$/.exec(match)?.[0] ?? "";
  return /\d/.test(value) && /[a-z]/i.test(value) && bitsPerCharacter(value) >= 3.3;
}

/** Whether the first part of a token is a JSON object that names its algorithm (RFC 7519). */
function hasTokenHeader(token: string): boolean {
  try {
    const header: unknown = JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString());
    return typeof header === "object" && header !== null && "alg" in header;
  } catch {
    return false;
  }
}
