/** IEEE half and bfloat16 bit patterns, round to nearest even; for writing and checking test files, not for speed. */
const floatView = new Float32Array(1);
const bitsView = new Uint32Array(floatView.buffer);

function bitsOf(value: number): number {
  floatView[0] = value;
  return bitsView[0] ?? 0;
}

function fromBits(bits: number): number {
  bitsView[0] = bits;
  return floatView[0] ?? 0;
}

export function toBfloat16(value: number): number {
  const bits = bitsOf(value);
  if (Number.isNaN(value)) return 0x7fc0;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

export function fromBfloat16(bits: number): number {
  return fromBits(bits << 16);
}

export function toHalf(value: number): number {
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = Math.abs(fromBits(bits));
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundEven(magnitude * 2 ** 24);
  const exponent = ((bits >>> 23) & 0xff) - 127;
  const mantissa = roundEven((magnitude / 2 ** exponent - 1) * 1024);
  // A mantissa that rounds up to 1024 carries into the exponent, which is what the sum does.
  return sign | (((exponent + 15) << 10) + mantissa);
}

export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
