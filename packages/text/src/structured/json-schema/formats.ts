const day = "(?:0[1-9]|[12]\\d|3[01])";
const leapYear = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const date = `(?:\\d{4}-(?:(?:0[13578]|1[02])-${day}|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|${leapYear}-02-29)`;
const clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?";
const zone = "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
// No hyphens as third and fourth character: such labels are Punycode, and few of them are valid (RFC 5891).
const letterOrDigit = "[A-Za-z0-9]";
const inner = "[A-Za-z0-9-]";
const thirdAndFourth = `(?:${letterOrDigit}${inner}|-${letterOrDigit})`;
const labelUpTo = (length: number): string =>
  `${letterOrDigit}(?:${inner}{0,2}${letterOrDigit}|${inner}${thirdAndFourth}${inner}{0,${length - 5}}${letterOrDigit})?`;
// At most 253 characters: few labels of full length, or more shorter ones.
const hostname = `(?:${labelUpTo(63)}(?:\\.${labelUpTo(63)}){0,2}|${labelUpTo(30)}(?:\\.${labelUpTo(30)}){3,7})`;
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = `${octet}(?:\\.${octet}){3}`;
const group = "[0-9A-Fa-f]{1,4}";
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const escaped = "%[0-9A-Fa-f]{2}";
const uriCharacter = `(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@]|${escaped})`;
const nameCharacter = `(?:[A-Za-z0-9\\-._~!$&'()*+,;=]|${escaped})`;
const authority = `(?:(?:${nameCharacter}|:)*@)?${nameCharacter}+(?::\\d{0,5})?`;
const segments = `(?:/${uriCharacter}*)*`;
const absolutePath = `/(?:${uriCharacter}+${segments})?`;
const ending = `(?:\\?(?:${uriCharacter}|[/?])*)?(?:#(?:${uriCharacter}|[/?])*)?`;
const uri = `[A-Za-z][A-Za-z0-9+.\\-]*:(?://${authority}${segments}|${absolutePath}|${uriCharacter}+${segments})${ending}`;
// A relative path whose first segment has no colon, which would make it a scheme.
const relative = `(?://${authority}${segments}|${absolutePath}|(?:${nameCharacter}|@)+${segments})${ending}`;
const duration =
  "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))?|" +
  "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";

function ipv6(): string {
  const forms = [`(?:${group}:){7}${group}`];
  for (let before = 0; before <= 7; before += 1) {
    const head = before === 0 ? "" : `${group}(?::${group}){${before - 1}}`;
    const most = 7 - before;
    forms.push(most === 0 ? `${head}::` : `${head}::(?:${group}(?::${group}){0,${most - 1}})?`);
  }
  return `(?:${forms.join("|")})`;
}

/** Each format as a regular expression for the whole text (RFC 3339, 5321, 1123, 4291, 3986, 9562, 6901). */
export const formatPatterns: ReadonlyMap<string, string> = new Map([
  ["date", date],
  ["time", clock + zone],
  ["date-time", `${date}T${clock}${zone}`],
  ["duration", duration],
  ["email", `${atom}(?:\\.${atom})*@${hostname}`],
  ["idn-email", `${atom}(?:\\.${atom})*@${hostname}`],
  ["hostname", hostname],
  ["idn-hostname", hostname],
  ["ipv4", ipv4],
  ["ipv6", ipv6()],
  ["uuid", "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"],
  ["uri", uri],
  ["iri", uri],
  ["uri-reference", `(?:${uri}|${relative})`],
  ["iri-reference", `(?:${uri}|${relative})`],
  ["json-pointer", "(?:/(?:[^~/]|~[01])*)*"],
  ["byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"],
]);

/** JSON Schema's own formats that no pattern enforces: a schema with one is refused. Any other name is an annotation. */
export const unenforcedFormats: ReadonlySet<string> = new Set([
  "uri-template",
  "relative-json-pointer",
  "regex",
]);

/** Formats of numbers: bounds for those that have them. */
export const numberFormats: ReadonlyMap<string, { readonly minimum?: number; readonly maximum?: number }> =
  new Map([
    ["int32", { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }],
    // The largest of the doubles below 2 ** 63, so that generated numbers stay in range in any parser.
    ["int64", { minimum: -(2 ** 63), maximum: 2 ** 63 - 1024 }],
    ["float", {}],
    ["double", {}],
  ]);
