const day = "(?:0[1-9]|[12]\\d|3[01])";
const leapYear = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const date = `(?:\\d{4}-(?:(?:0[13578]|1[02])-${day}|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|${leapYear}-02-29)`;
const clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?";
const zone = "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const hostname = `${label}(?:\\.${label}){0,7}`;
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = `${octet}(?:\\.${octet}){3}`;
const group = "[0-9A-Fa-f]{1,4}";
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
const uriCharacters = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})";
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

/** What each format's text is, as a regular expression for the whole of it (RFC 3339, 5321, 1123, 4291, 3986, 9562, 6901). */
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
  [
    "uri",
    `[A-Za-z][A-Za-z0-9+.\\-]*:${uriCharacters}+(?:\\?(?:${uriCharacters}|\\?)*)?(?:#(?:${uriCharacters}|\\?)*)?`,
  ],
  [
    "iri",
    `[A-Za-z][A-Za-z0-9+.\\-]*:${uriCharacters}+(?:\\?(?:${uriCharacters}|\\?)*)?(?:#(?:${uriCharacters}|\\?)*)?`,
  ],
  ["uri-reference", `${uriCharacters}+(?:\\?(?:${uriCharacters}|\\?)*)?(?:#(?:${uriCharacters}|\\?)*)?`],
  ["json-pointer", "(?:/(?:[^~/]|~[01])*)*"],
  ["byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"],
]);

/** Formats that say what a string is for rather than how it is written. */
export const freeFormats: ReadonlySet<string> = new Set([
  "binary",
  "password",
  "path",
  "file-path",
  "directory-path",
  "json-string",
  "textarea",
  "text",
  "regex",
]);

/** Formats of numbers: bounds for those that have them. */
export const numberFormats: ReadonlyMap<string, { readonly minimum?: number; readonly maximum?: number }> =
  new Map([
    ["int32", { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }],
    // The largest of the doubles below 2 ** 63, so that what is written stays in range however it is read.
    ["int64", { minimum: -(2 ** 63), maximum: 2 ** 63 - 1024 }],
    ["float", {}],
    ["double", {}],
  ]);
