import { isIPv4, isIPv6 } from "node:net";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject } from "../../grammar.js";

const options = { strict: false, logger: false } as const;

/** Whether a date of the calendar, as a parser of dates has it. */
function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  const isKnown = /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(date.getTime());
  return isKnown && date.toISOString().startsWith(text);
}

function isTime(text: string): boolean {
  const parts = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-](\d\d):(\d\d))$/.exec(text);
  if (parts === null) return false;
  const [hours, minutes, seconds, zoneHours = 0, zoneMinutes = 0] = parts
    .slice(1)
    .map((part: string | undefined) => (part === undefined ? undefined : Number(part)));
  return hours! < 24 && minutes! < 60 && seconds! < 60 && zoneHours < 24 && zoneMinutes < 60;
}

function isHostname(text: string): boolean {
  const isLabel = (label: string): boolean => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i.test(label);
  return text.length <= 253 && text.split(".").every(isLabel);
}

/** Formats as their documents have them, written apart from those that output is held to. */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: isTime,
  "date-time": (text) => /^.{10}[Tt]/.test(text) && isDate(text.slice(0, 10)) && isTime(text.slice(11)),
  duration: (text) =>
    /^P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/.test(text),
  email: (text) => {
    const at = text.lastIndexOf("@");
    return at > 0 && /^[^\s@"(),:;<>[\]\\]+$/.test(text.slice(0, at)) && isHostname(text.slice(at + 1));
  },
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: isIPv6,
  uuid: (text) => /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text),
  uri: (text) => /^[a-z][a-z\d+.-]*:[^\s"<>\\^`{|}]+$/i.test(text),
  "uri-reference": (text) => /^[^\s"<>\\^`{|}]*$/.test(text),
};

const judges = [Ajv, Ajv2020].map((Judge) => {
  const ajv = new Judge(options);
  for (const [name, validate] of Object.entries(formats)) ajv.addFormat(name, validate);
  return ajv;
});

/**
 * What ajv says of values under a schema, in the draft that it names (2020-12 unless draft 7), formats included: undefined
 * of those that are valid.
 */
export function schemaJudge(schema: JsonObject): (value: unknown) => string | undefined {
  const { $schema: draft } = schema;
  const isDraft7 = typeof draft === "string" && draft.includes("draft-07");
  const ajv = judges[isDraft7 ? 0 : 1]!;
  const validate = ajv.compile(schema);
  return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors));
}
