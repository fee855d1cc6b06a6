import { normalizeUnicode } from "../tokenizer/unicode-normalization.js";
import type { PatternDetector } from "./detect.js";

/**
 * Text as patterns of attacks read it: compatibility forms and look-alike spaces folded, invisible characters gone, since
 * they are put between letters so that nobody finds the words.
 */
export function unmasked(text: string): string {
  if (!mayBeMasked.test(text)) return text;
  return normalizeUnicode(text, "NFKC")
    .replaceAll(/[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]/g, "")
    .replaceAll(/[ \t\u00a0]+/g, " ");
}

/** Plain characters with single spaces are read as they are. */
const mayBeMasked = /[^\n\x20-\x7e]| {2}/;

/** Ways in which a text tries to give a model orders. A list of patterns finds what is known: it does not protect. */
export const promptInjectionDetectors: readonly PatternDetector[] = [
  {
    kind: "override",
    pattern:
      /\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,30}\b(?:previous|prior|above|earlier|preceding|all|any|your|the|system)\b[^.\n]{0,30}\b(?:instructions?|prompts?|rules?|directions?|guidelines?|context|messages?)\b/gi,
  },
  {
    kind: "override",
    pattern:
      /\b(?:ignorier\w{0,3}|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung|anweisungen|regeln|vorgaben)\b|\b(?:ignora|olvida)\b[^.\n]{0,40}\b(?:instrucciones|reglas)\b|\b(?:ignorez?|oubliez?)\b[^.\n]{0,40}\b(?:instructions|consignes|règles)(?![a-zà-öø-ÿ])/gi,
  },
  {
    kind: "new_role",
    pattern:
      /\b(?:you are now|from now on,? you|act as|pretend (?:to be|you are)|roleplay as)\b[^.\n]{0,60}\b(?:dan|jailbr\w{0,10}|unrestricted|unfiltered|uncensored|developer mode|evil|no (?:rules|restrictions|limits|filters?)|without (?:any )?(?:rules|restrictions|limits|filters?))\b/gi,
  },
  {
    kind: "new_role",
    pattern: /\bdo anything now\b|\b(?:enable|enter|activate) (?:developer|debug|god|dan|jailbreak) mode\b/gi,
  },
  {
    kind: "prompt_leak",
    pattern:
      /\b(?:reveal|show|print|repeat|output|display|tell me|leak|what (?:is|are|were))\b[^.\n]{0,30}\b(?:system prompt|initial prompt|hidden (?:prompt|instructions?)|(?:your|the) (?:original |initial |system )?instructions|(?:text|words|everything) above)\b/gi,
  },
  {
    kind: "role_markup",
    pattern:
      /<\|(?:im_start|im_end|system|user|assistant|start_header_id|eot_id|endoftext)\|>|\[\/?INST\]|<<\/?SYS>>|^\s{0,10}#{2,4} {0,3}(?:system|new instructions?|instruction override)\b/gim,
  },
  {
    kind: "new_instructions",
    pattern:
      /\b(?:new|updated|real|actual|important) (?:system )?(?:instructions?|directives?|orders?)\s{0,3}:/gi,
  },
  {
    kind: "exfiltration",
    pattern: /!\[[^\]]{0,100}\]\(https?:\/\/[^\s)]{1,200}[?&][^\s)=]{1,40}=[^\s)]{0,500}\)/gi,
  },
  {
    kind: "exfiltration",
    pattern:
      /\b(?:send|post|forward|upload|email|exfiltrate)\b[^.\n]{0,60}\b(?:conversation|chat history|credentials?|passwords?|api keys?|secrets?|system prompt)\b[^.\n]{0,30}\bto\b[^.\n]{0,40}(?:https?:|@|\burl\b|\bserver\b|\bendpoint\b)/gi,
  },
  // letters of Unicode's tag block show nowhere and are read by tokenisers
  { kind: "hidden_text", pattern: /[\u{e0020}-\u{e007e}]{4,}/gu },
];

/** Commands and queries that end another's string, and scripts, in what a model writes for a database, a shell or a page. */
export const codeInjectionDetectors: readonly PatternDetector[] = [
  {
    kind: "sql",
    pattern:
      /['"]\s{0,3}(?:or|and)\s{1,3}(?:['"]?\w{1,20}['"]?\s{0,3}(?:=|like)\s{0,3}['"]?\w{1,20}['"]?|true)\b/gi,
  },
  {
    kind: "sql",
    pattern:
      /['"]?\s{0,3};\s{0,3}(?:drop|alter|truncate|delete|insert|update|grant|shutdown|exec)\s{1,3}(?:table|database|from|into|all|xp_\w{1,30}|\w{1,64}\s{1,3}set)\b/gi,
  },
  { kind: "sql", pattern: /\bunion\s{1,3}(?:all\s{1,3})?select\b[^;\n]{0,200}(?:\bfrom\b|--|#|\bnull\b)/gi },
  {
    kind: "sql",
    pattern:
      /\b(?:xp_cmdshell|information_schema\.\w{1,30}|pg_sleep\s{0,3}\(|waitfor\s{1,3}delay|benchmark\s{0,3}\(\s{0,3}\d|load_file\s{0,3}\(|into\s{1,3}outfile)/gi,
  },
  {
    kind: "shell",
    pattern:
      /(?:[;&|`]|\$\()\s{0,3}(?:sudo\s{1,3})?(?:rm\s{1,3}-\w{0,5}[rf]|mkfs|dd\s{1,3}if=|chmod\s{1,3}(?:-R\s{1,3})?777|nc\s{1,3}-|cat\s{1,3}\/etc\/|shutdown|reboot)/gi,
  },
  {
    kind: "shell",
    pattern: /\brm\s{1,3}-(?:rf|fr)\s{1,3}(?:--no-preserve-root\s{1,3})?(?:\/|~|\$HOME|\*)(?:\s|$|\*)/gim,
  },
  {
    kind: "shell",
    pattern:
      /\b(?:curl|wget)\s[^|\n]{1,300}\|\s{0,3}(?:sudo\s{1,3})?(?:ba|z|da)?sh\b|\/dev\/tcp\/|:\(\)\s{0,3}\{\s{0,3}:\|:&\s{0,3}\};:/gi,
  },
  {
    kind: "script",
    pattern:
      /<script\b[^>]{0,500}>|\bjavascript\s{0,3}:\s{0,3}\w|<[a-z][^>]{0,500}\son(?:error|load|click|mouseover|focus)\s{0,3}=/gi,
  },
  { kind: "path", pattern: /(?:\.\.[\\/]){2,}[\w.-]{1,100}|(?<![\w/])\/etc\/(?:passwd|shadow)\b/gi },
  {
    kind: "template",
    pattern:
      /\{\{\s{0,3}[^}\n]{0,100}(?:__class__|__mro__|__globals__|constructor\.constructor|config\.items)[^}\n]{0,100}\}\}|\$\{jndi:/gi,
  },
];
