const weekdays = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const months = "January February March April May June July August September October November December".split(
  " ",
);

/** Python's `datetime.strftime` in the C locale and local time; `%-d` and its like drop the padding, as glibc does. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%([-_0^]?)([a-zA-Z%])/g, (whole, flag: string, code: string) => {
    const text = fieldText(date, code);
    if (text === undefined) return whole;
    if (flag === "-") return text.replace(/^[0 ]+(?=\d)/, "");
    if (flag === "_") return text.replace(/^0+(?=\d)/, (zeros) => " ".repeat(zeros.length));
    return flag === "^" ? text.toUpperCase() : text;
  });
}

const two = (value: number): string => String(value).padStart(2, "0");
const weekday = (date: Date): string => weekdays[date.getDay()]!;
const month = (date: Date): string => months[date.getMonth()]!;

function dayOfYear(date: Date): number {
  const day = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((day - Date.UTC(date.getFullYear(), 0, 1)) / 86_400_000);
}

/** What the letters stand for: a format made of others, or a part of the date. */
const fields: Readonly<Record<string, string | ((date: Date) => string)>> = {
  Y: (date) => String(date.getFullYear()).padStart(4, "0"),
  y: (date) => two(date.getFullYear() % 100),
  m: (date) => two(date.getMonth() + 1),
  d: (date) => two(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2, " "),
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  M: (date) => two(date.getMinutes()),
  S: (date) => two(date.getSeconds()),
  f: (date) => String(date.getMilliseconds() * 1000).padStart(6, "0"),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  A: weekday,
  a: (date) => weekday(date).slice(0, 3),
  B: month,
  b: (date) => month(date).slice(0, 3),
  h: "%b",
  j: (date) => String(dayOfYear(date) + 1).padStart(3, "0"),
  w: (date) => String(date.getDay()),
  u: (date) => String(date.getDay() || 7),
  U: (date) => two(Math.floor((dayOfYear(date) + 7 - date.getDay()) / 7)),
  W: (date) => two(Math.floor((dayOfYear(date) + 7 - ((date.getDay() + 6) % 7)) / 7)),
  s: (date) => String(Math.floor(date.getTime() / 1000)),
  D: "%m/%d/%y",
  x: "%m/%d/%y",
  F: "%Y-%m-%d",
  T: "%H:%M:%S",
  X: "%H:%M:%S",
  R: "%H:%M",
  c: "%a %b %e %H:%M:%S %Y",
  z: "",
  Z: "",
  n: "\n",
  t: "\t",
  "%": () => "%",
};

function fieldText(date: Date, code: string): string | undefined {
  const field = Object.hasOwn(fields, code) ? fields[code] : undefined;
  return typeof field === "string" ? strftime(date, field) : field?.(date);
}
