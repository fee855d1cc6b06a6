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
const ibanLengths: ReadonlyMap<string, number> = new Map(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29
  ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28
  LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25
  QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20`
    .split(/\s+/)
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/** Length by country and remainder 1 modulo 97 (ISO 13616, ISO 7064). */
export function isIban(text: string): boolean {
  const plain = text.replaceAll(/[\s-]/g, "").toUpperCase();
  if (ibanLengths.get(plain.slice(0, 2)) !== plain.length) return false;
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
