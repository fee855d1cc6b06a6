const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** Python's `datetime.strftime` in the C locale and local time; `%-d` and its like drop the padding, as glibc does. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%([-_0^]?)([a-zA-Z%])/g, (whole, flag: string, code: string) => {
    const text = field(date, code);
    if (text === undefined) return whole;
    if (flag === "-") return text.replace(/^[0 ]+(?=\d)/, "");
    if (flag === "_") return text.replace(/^0+(?=\d)/, (zeros) => " ".repeat(zeros.length));
    return flag === "^" ? text.toUpperCase() : text;
  });
}

function field(date: Date, code: string): string | undefined {
  const two = (value: number): string => String(value).padStart(2, "0");
  const part = (nested: string): string => strftime(date, nested);
  const weekday = weekdays[date.getDay()]!;
  const month = months[date.getMonth()]!;
  const dayOfYear = Math.round(
    (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 1)) /
      86_400_000,
  );
  switch (code) {
    case "Y":
      return String(date.getFullYear()).padStart(4, "0");
    case "y":
      return two(date.getFullYear() % 100);
    case "m":
      return two(date.getMonth() + 1);
    case "d":
      return two(date.getDate());
    case "e":
      return String(date.getDate()).padStart(2, " ");
    case "H":
      return two(date.getHours());
    case "I":
      return two(date.getHours() % 12 || 12);
    case "M":
      return two(date.getMinutes());
    case "S":
      return two(date.getSeconds());
    case "f":
      return String(date.getMilliseconds() * 1000).padStart(6, "0");
    case "p":
      return date.getHours() < 12 ? "AM" : "PM";
    case "A":
      return weekday;
    case "a":
      return weekday.slice(0, 3);
    case "B":
      return month;
    case "b":
    case "h":
      return month.slice(0, 3);
    case "j":
      return String(dayOfYear + 1).padStart(3, "0");
    case "w":
      return String(date.getDay());
    case "u":
      return String(date.getDay() || 7);
    case "U":
      return two(Math.floor((dayOfYear + 7 - date.getDay()) / 7));
    case "W":
      return two(Math.floor((dayOfYear + 7 - ((date.getDay() + 6) % 7)) / 7));
    case "s":
      return String(Math.floor(date.getTime() / 1000));
    case "D":
    case "x":
      return part("%m/%d/%y");
    case "F":
      return part("%Y-%m-%d");
    case "T":
    case "X":
      return part("%H:%M:%S");
    case "R":
      return part("%H:%M");
    case "c":
      return part("%a %b %e %H:%M:%S %Y");
    case "z":
    case "Z":
      return "";
    case "n":
      return "\n";
    case "t":
      return "\t";
    case "%":
      return "%";
    default:
      return undefined;
  }
}
