import { requireNumber, requireShare } from "../check.js";

/** Rational approximations of Cody (1969, "Rational Chebyshev approximation for the error function"), for the normal tails. */
const middle = {
  above: [
    0.065_682_337_918_207_45, 2.235_252_035_460_683_7, 161.028_231_068_555_87, 1067.689_485_460_370_9,
    18_154.981_253_343_56,
  ],
  below: [1, 47.202_581_904_688_245, 976.098_551_737_776_7, 10_260.932_208_618_979, 45_507.789_335_026_73],
} as const;
const outer = {
  above: [
    1.076_557_677_372_019_2e-8, 0.398_941_512_088_134_66, 8.883_149_794_388_377, 93.506_656_132_177_85,
    597.270_276_394_800_2, 2494.537_585_290_372_6, 6848.190_450_536_283, 11_602.651_437_647_35,
    9842.714_838_383_978,
  ],
  below: [
    1, 22.266_688_044_328_117, 235.387_901_782_625, 1519.377_599_407_554_7, 6485.558_298_266_761,
    18_615.571_640_885_097, 34_900.952_721_145_98, 38_912.003_286_093_27, 19_685.429_676_859_992,
  ],
} as const;
const far = {
  above: [
    0.023_073_441_764_940_174, 0.215_898_534_057_957, 0.127_401_161_160_247_36, 0.022_235_277_870_649_807,
    0.001_421_619_193_227_893_4, 2.911_287_495_116_879_3e-5,
  ],
  below: [
    1, 1.284_260_096_144_911, 0.468_238_212_480_865_1, 0.065_988_137_868_928_56, 0.003_782_396_332_027_582_4,
    7.297_515_550_839_662e-5,
  ],
} as const;

/** Coefficients from the highest power down. */
function polynomial(coefficients: readonly number[], x: number): number {
  let value = 0;
  for (const coefficient of coefficients) value = value * x + coefficient;
  return value;
}

/** Probability that a standard normal variable exceeds |x|, to machine precision relative to itself. */
export function normalTail(x: number): number {
  const size = Math.abs(x);
  if (size <= 0.674_489_75) {
    const square = size * size;
    return 0.5 - (size * polynomial(middle.above, square)) / polynomial(middle.below, square);
  }
  if (size > 40) return 0;
  // exp(-x^2 / 2) in two factors: the first square is exact.
  const coarse = Math.trunc(size * 16) / 16;
  const density = Math.exp((-coarse * coarse) / 2) * Math.exp((-(size - coarse) * (size + coarse)) / 2);
  if (size <= Math.sqrt(32)) return (density * polynomial(outer.above, size)) / polynomial(outer.below, size);
  const square = 1 / (size * size);
  const ratio = (square * polynomial(far.above, square)) / polynomial(far.below, square);
  return (density * (1 / Math.sqrt(2 * Math.PI) - ratio)) / size;
}

/** Distribution function of the standard normal, to machine precision, in the lower tail relative to itself. */
export function normalCdf(x: number): number {
  requireNumber("x", x);
  return x > 0 ? 1 - normalTail(x) : normalTail(x);
}

/** Wichura's PPND16 (1988, Applied Statistics algorithm AS 241), about 16 digits. */
const center = {
  above: [
    2509.080_928_730_122_7, 33_430.575_583_588_13, 67_265.770_927_008_7, 45_921.953_931_549_87,
    13_731.693_765_509_46, 1971.590_950_306_551_3, 133.141_667_891_784_38, 3.387_132_872_796_366_5,
  ],
  below: [
    5226.495_278_852_854, 28_729.085_735_721_943, 39_307.895_800_092_71, 21_213.794_301_586_597,
    5394.196_021_424_751, 687.187_007_492_057_9, 42.313_330_701_600_91, 1,
  ],
} as const;
const near = {
  above: [
    0.000_774_545_014_278_341_4, 0.022_723_844_989_269_184, 0.241_780_725_177_450_6, 1.270_458_252_452_368_4,
    3.647_848_324_763_204_5, 5.769_497_221_460_691, 4.630_337_846_156_546, 1.423_437_110_749_683_5,
  ],
  below: [
    1.050_750_071_644_416_9e-9, 0.000_547_593_808_499_534_5, 0.015_198_666_563_616_457,
    0.148_103_976_427_480_08, 0.689_767_334_985_1, 1.676_384_830_183_803_8, 2.053_191_626_637_759, 1,
  ],
} as const;
const remote = {
  above: [
    2.010_334_399_292_288_1e-7, 2.711_555_568_743_487_6e-5, 0.001_242_660_947_388_078_4,
    0.026_532_189_526_576_124, 0.296_560_571_828_504_87, 1.784_826_539_917_291_3, 5.463_784_911_164_114,
    6.657_904_643_501_103,
  ],
  below: [
    2.044_263_103_389_939_7e-15, 1.421_511_758_316_446e-7, 1.846_318_317_510_054_8e-5,
    0.000_786_869_131_145_613_3, 0.014_875_361_290_850_615, 0.136_929_880_922_735_8, 0.599_832_206_555_888, 1,
  ],
} as const;

/** The x with normalCdf(x) = p; minus and plus infinity for 0 and 1. Throws `invalid_option` outside [0, 1]. */
export function normalQuantile(p: number): number {
  requireShare("p", p);
  if (p === 0) return -Infinity;
  if (p === 1) return Infinity;
  const offset = p - 0.5;
  if (Math.abs(offset) <= 0.425) {
    const r = 0.180_625 - offset * offset;
    return (offset * polynomial(center.above, r)) / polynomial(center.below, r);
  }
  const r = Math.sqrt(-Math.log(offset < 0 ? p : 1 - p));
  const { above, below } = r <= 5 ? near : remote;
  const shifted = r <= 5 ? r - 1.6 : r - 5;
  const size = polynomial(above, shifted) / polynomial(below, shifted);
  return offset < 0 ? -size : size;
}

/** Density of the standard normal. */
export function normalPdf(x: number): number {
  requireNumber("x", x);
  return Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
}
