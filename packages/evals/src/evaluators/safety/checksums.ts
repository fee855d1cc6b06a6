/** Luhn's check of card numbers (ISO/IEC 7812-1). */
export function isLuhn(digits: string): boolean {
  let sum = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place]);
    const doubled = place % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Lengths of IBANs by country (SWIFT's registry). */
const ibanLengths: Readonly<Record<string, number>> = {
  AD: 24,
  AE: 23,
  AL: 28,
  AT: 20,
  AZ: 28,
  BA: 20,
  BE: 16,
  BG: 22,
  BH: 22,
  BI: 27,
  BR: 29,
  BY: 28,
  CH: 21,
  CR: 22,
  CY: 28,
  CZ: 24,
  DE: 22,
  DJ: 27,
  DK: 18,
  DO: 28,
  EE: 20,
  EG: 29,
  ES: 24,
  FI: 18,
  FK: 18,
  FO: 18,
  FR: 27,
  GB: 22,
  GE: 22,
  GI: 23,
  GL: 18,
  GR: 27,
  GT: 28,
  HR: 21,
  HU: 28,
  IE: 22,
  IL: 23,
  IQ: 23,
  IS: 26,
  IT: 27,
  JO: 30,
  KW: 30,
  KZ: 20,
  LB: 28,
  LC: 32,
  LI: 21,
  LT: 20,
  LU: 20,
  LV: 21,
  LY: 25,
  MC: 27,
  MD: 24,
  ME: 22,
  MK: 19,
  MN: 20,
  MR: 27,
  MT: 31,
  MU: 30,
  NI: 28,
  NL: 18,
  NO: 15,
  OM: 23,
  PK: 24,
  PL: 28,
  PS: 29,
  PT: 25,
  QA: 29,
  RO: 24,
  RS: 22,
  RU: 33,
  SA: 24,
  SC: 31,
  SD: 18,
  SE: 24,
  SI: 19,
  SK: 24,
  SM: 27,
  SO: 23,
  ST: 25,
  SV: 28,
  TL: 23,
  TN: 24,
  TR: 26,
  UA: 29,
  VA: 22,
  VG: 24,
  XK: 20,
};

/** Length by country and remainder 1 modulo 97 (ISO 13616, ISO 7064). */
export function isIban(text: string): boolean {
  const plain = text.replaceAll(/[\s-]/g, "").toUpperCase();
  if (ibanLengths[plain.slice(0, 2)] !== plain.length) return false;
  let remainder = 0;
  for (const character of plain.slice(4) + plain.slice(0, 4)) {
    for (const digit of String(Number.parseInt(character, 36)))
      remainder = (remainder * 10 + Number(digit)) % 97;
  }
  return remainder === 1;
}

/**
 * German tax identification numbers (§ 139b AO): eleven digits, the first not zero; of the first ten one digit comes two or
 * three times; the last is the check digit of ISO 7064, MOD 11,10.
 */
export function isGermanTaxId(digits: string): boolean {
  if (!/^[1-9]\d{10}$/.test(digits)) return false;
  const counts = Array.from(
    { length: 10 },
    (_, digit) => digits.slice(0, 10).split(String(digit)).length - 1,
  );
  const repeated = counts.filter((count) => count > 1);
  if (repeated.length !== 1 || repeated[0]! > 3) return false;
  let product = 10;
  for (const digit of digits.slice(0, 10)) {
    const sum = (Number(digit) + product) % 10;
    product = ((sum === 0 ? 10 : sum) * 2) % 11;
  }
  return (11 - product) % 10 === Number(digits[10]);
}

/** US social security numbers that can have been issued: no area 000, 666 or 9xx, no group 00, no serial 0000. */
export function isSocialSecurityNumber(digits: string): boolean {
  return /^(?!000|666|9)\d{3}(?!00)\d{2}(?!0000)\d{4}$/.test(digits);
}

/** Routing numbers of US banks: weights 3, 7, 1. */
export function isRoutingNumber(digits: string): boolean {
  if (!/^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)\d{7}$/.test(digits)) return false;
  const weights = [3, 7, 1];
  const sum = Array.from(digits).reduce((all, digit, place) => all + Number(digit) * weights[place % 3]!, 0);
  return sum % 10 === 0;
}
