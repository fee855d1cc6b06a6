interface Unit {
  readonly dimension: string;
  /** How many of the dimension's base unit one of it is. */
  readonly factor: number;
}

/** SI and customary units (NIST SP 811, appendix B), by every spelling that is understood. */
const dimensions: Readonly<Record<string, readonly (readonly [factor: number, ...spellings: string[]])[]>> = {
  length: [
    [1e-9, "nm"],
    [1e-6, "µm", "μm", "um"],
    [1e-3, "mm", "millimeter", "millimeters", "millimetre", "millimetres"],
    [1e-2, "cm", "centimeter", "centimeters", "centimetre", "centimetres"],
    [1, "m", "meter", "meters", "metre", "metres"],
    [1e3, "km", "kilometer", "kilometers", "kilometre", "kilometres"],
    [0.0254, "in", "inch", "inches"],
    [0.3048, "ft", "foot", "feet"],
    [0.9144, "yd", "yard", "yards"],
    [1609.344, "mi", "mile", "miles"],
  ],
  mass: [
    [1e-6, "mg", "milligram", "milligrams"],
    [1e-3, "g", "gram", "grams"],
    [1, "kg", "kilogram", "kilograms"],
    [1e3, "t", "tonne", "tonnes"],
    [0.028_349_523_125, "oz", "ounce", "ounces"],
    [0.453_592_37, "lb", "lbs", "pound", "pounds"],
  ],
  time: [
    [1e-9, "ns", "nanoseconds"],
    [1e-6, "µs", "μs", "us", "microseconds"],
    [1e-3, "ms", "millisecond", "milliseconds"],
    [1, "s", "sec", "second", "seconds"],
    [60, "min", "mins", "minute", "minutes"],
    [3600, "h", "hr", "hrs", "hour", "hours"],
    [86_400, "d", "day", "days"],
    [604_800, "week", "weeks"],
  ],
  volume: [
    [1e-3, "ml", "milliliter", "milliliters", "millilitre", "millilitres"],
    [1, "l", "liter", "liters", "litre", "litres"],
  ],
  data: [
    [1, "B", "byte", "bytes"],
    [1e3, "kB", "KB"],
    [1e6, "MB"],
    [1e9, "GB"],
    [1e12, "TB"],
    [1024, "KiB"],
    [1024 ** 2, "MiB"],
    [1024 ** 3, "GiB"],
    [1024 ** 4, "TiB"],
  ],
  share: [[0.01, "%", "percent", "per cent"]],
  energy: [
    [1, "J", "joule", "joules"],
    [1e3, "kJ"],
    [3.6e6, "kWh"],
    [4.184, "cal"],
    [4184, "kcal"],
  ],
  power: [
    [1, "W", "watt", "watts"],
    [1e3, "kW"],
    [1e6, "MW"],
  ],
  frequency: [
    [1, "Hz"],
    [1e3, "kHz"],
    [1e6, "MHz"],
    [1e9, "GHz"],
  ],
};

const units: ReadonlyMap<string, Unit> = new Map(
  Object.entries(dimensions).flatMap(([dimension, rows]) =>
    rows.flatMap(([factor, ...spellings]) =>
      spellings.map((spelling) => [spelling, { dimension, factor }] as const),
    ),
  ),
);

/** By its spelling; words in any case, symbols as they are written, since mW is no MW. */
export function unitOf(spelling: string): Unit | undefined {
  return units.get(spelling) ?? (spelling.length > 3 ? units.get(spelling.toLowerCase()) : undefined);
}
