import { isIPv6 } from "node:net";
import { isGermanTaxId, isIban, isLuhn, isRoutingNumber, isSocialSecurityNumber } from "./checksums.js";
import type { PatternDetector } from "./detect.js";

const digitsOf = (text: string): string => text.replaceAll(/\D/g, "");

const says =
  (words: RegExp) =>
  (around: string): boolean =>
    words.test(around);

const saysSsn = says(/\b(?:ssn|social security|sozialversicherung)/i);
const saysTax = says(/\b(?:steuer|tax)|\bidnr|\btin\b/i);
const saysPhone = says(/\b(?:phone|call|tel|mobile|cell|fax|handy|telefon|whatsapp)/i);
const saysBirth = says(/\b(?:born|birth|dob|geboren|geburts)/i);
const saysRouting = says(/\b(?:routing|aba|rtn)\b/i);

/** Personal data that can be told by its form, most specific first. Names and addresses need a judge or a model. */
export const personalDataDetectors: readonly PatternDetector[] = [
  {
    kind: "email",
    needs: "@",
    pattern:
      /(?<![\w.+%-])[\w+%-]{1,64}(?:\.[\w+%-]{1,64}){0,8}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![a-z0-9-]|\.[a-z])/gi,
  },
  {
    kind: "iban",
    pattern: /(?<![a-z0-9])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,30}(?![a-z0-9])/gi,
    confirms: isIban,
  },
  {
    kind: "credit_card",
    pattern: /(?<![\d.-])[2-6]\d{3}(?:[ -]?\d){9,15}(?![\d-]|\.\d)/g,
    confirms: (match) => hasCardForm(digitsOf(match)) && isLuhn(digitsOf(match)),
  },
  {
    kind: "us_ssn",
    pattern: /(?<![\w-])(?:\d{9}|\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4})(?![\w-])/g,
    confirms: (match, around) =>
      isSocialSecurityNumber(digitsOf(match)) && (/^\d{3}-/.test(match) || saysSsn(around)),
  },
  {
    kind: "de_tax_id",
    pattern: /(?<![\w-])[1-9]\d(?: ?\d{3}){3}(?![\w-])/g,
    confirms: (match, around) => isGermanTaxId(digitsOf(match)) && saysTax(around),
  },
  {
    kind: "us_bank_routing",
    pattern: /(?<![\w-])\d{9}(?![\w-])/g,
    confirms: (match, around) => isRoutingNumber(match) && saysRouting(around),
  },
  {
    kind: "uk_nino",
    pattern:
      /(?<![a-z0-9])(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D](?![a-z0-9])/gi,
  },
  {
    kind: "ip_address",
    pattern: /(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w]|\.\d)/g,
    confirms: (match, around) =>
      !/\bv(?:ersion)?[ .]{0,2}\d/i.test(around) && match !== "0.0.0.0" && !match.startsWith("127."),
  },
  {
    kind: "ip_address",
    needs: ":",
    pattern: /(?<![\w:.])[0-9a-f:]{6,39}(?![\w:])/gi,
    confirms: (match) => match.split(":").length > 3 && /\d|[a-f]{2}/i.test(match) && isIPv6(match),
  },
  {
    kind: "phone",
    pattern: /(?<![\w+.-])\+\d{1,3}[ .-]?(?:\(0\))?(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?![\w])/g,
    confirms: (match) => hasPhoneLength(match),
  },
  {
    kind: "phone",
    pattern: /(?<![\w+.-])(?:\(\d{3}\) ?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}(?![\w-])/g,
  },
  {
    kind: "phone",
    pattern: /(?<![\w+.-])0\d{1,4}[ ./-]?\d{2,4}(?:[ ./-]?\d{2,4}){1,3}(?![\w-])/g,
    confirms: (match, around) => hasPhoneLength(match) && saysPhone(around),
  },
  {
    kind: "date_of_birth",
    pattern: /(?<![\w./-])(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)\d{2}|(?:19|20)\d{2}-\d{2}-\d{2})(?![\w-])/g,
    confirms: (_, around) => saysBirth(around),
  },
];

/** Length and leading digits of Visa, Mastercard, American Express, Diners, Discover, JCB, Maestro and UnionPay. */
function hasCardForm(digits: string): boolean {
  return (
    /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d{2}|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|4[4-9]\d|5\d{2})\d{12}|35\d{14}|62\d{14,17}|5[06-8]\d{10,17})$/.test(
      digits,
    ) && !/^(\d)\1+$/.test(digits)
  );
}

/** ITU-T E.164: at most 15 digits. */
function hasPhoneLength(match: string): boolean {
  const { length } = digitsOf(match);
  return length >= 8 && length <= 15;
}
