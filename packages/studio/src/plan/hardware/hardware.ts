/** Types that matrix units multiply in; sums are f32, or int32 for int8. */
export type ComputeType = "bf16" | "fp8" | "int8";

/** One device. */
export interface Hardware {
  readonly name: string;
  readonly memoryBytes: number;
  /** Bytes read per second. */
  readonly bandwidth: number;
  /** Operations per second, dense, a multiply-add counting two. Absent where the hardware has no such units. */
  readonly flops: Readonly<{ bf16: number }> & Readonly<Partial<Record<ComputeType, number>>>;
  /** Where the figures come from. */
  readonly source: string;
}

const tera = 1e12;
const giga = 1e9;

/**
 * Peak figures of public datasheets, without sparsity (datasheets often print twice as much, "with sparsity").
 * Consumer cards: with f32 sums, which is half of what they reach with f16 sums.
 */
export const hardwareTable: Readonly<Record<string, Hardware>> = {
  b200: {
    name: "NVIDIA B200 SXM, 180 GB",
    memoryBytes: 180 * giga,
    bandwidth: 7.7 * tera,
    flops: { bf16: 2250 * tera, fp8: 4500 * tera, int8: 4500 * tera },
    source: "NVIDIA DGX B200 datasheet (eighth of a system)",
  },
  h200: {
    name: "NVIDIA H200 SXM, 141 GB",
    memoryBytes: 141 * giga,
    bandwidth: 4.8 * tera,
    flops: { bf16: 989.4 * tera, fp8: 1978.9 * tera, int8: 1978.9 * tera },
    source: "NVIDIA H200 datasheet",
  },
  h100: {
    name: "NVIDIA H100 SXM, 80 GB",
    memoryBytes: 80 * giga,
    bandwidth: 3.35 * tera,
    flops: { bf16: 989.4 * tera, fp8: 1978.9 * tera, int8: 1978.9 * tera },
    source: "NVIDIA H100 datasheet",
  },
  "h100-pcie": {
    name: "NVIDIA H100 PCIe, 80 GB",
    memoryBytes: 80 * giga,
    bandwidth: 2 * tera,
    flops: { bf16: 756 * tera, fp8: 1513 * tera, int8: 1513 * tera },
    source: "NVIDIA H100 PCIe datasheet",
  },
  a100: {
    name: "NVIDIA A100 SXM, 80 GB",
    memoryBytes: 80 * giga,
    bandwidth: 2.039 * tera,
    flops: { bf16: 312 * tera, int8: 624 * tera },
    source: "NVIDIA A100 datasheet",
  },
  "a100-40gb": {
    name: "NVIDIA A100 SXM, 40 GB",
    memoryBytes: 40 * giga,
    bandwidth: 1.555 * tera,
    flops: { bf16: 312 * tera, int8: 624 * tera },
    source: "NVIDIA A100 datasheet",
  },
  l40s: {
    name: "NVIDIA L40S, 48 GB",
    memoryBytes: 48 * giga,
    bandwidth: 864 * giga,
    flops: { bf16: 362.05 * tera, fp8: 733 * tera, int8: 733 * tera },
    source: "NVIDIA L40S datasheet",
  },
  l4: {
    name: "NVIDIA L4, 24 GB",
    memoryBytes: 24 * giga,
    bandwidth: 300 * giga,
    flops: { bf16: 121 * tera, fp8: 242.5 * tera, int8: 242.5 * tera },
    source: "NVIDIA L4 datasheet",
  },
  a10g: {
    name: "NVIDIA A10G, 24 GB",
    memoryBytes: 24 * giga,
    bandwidth: 600 * giga,
    flops: { bf16: 70 * tera, int8: 140 * tera },
    source: "NVIDIA A10G datasheet (as sold by AWS)",
  },
  rtx4090: {
    name: "NVIDIA GeForce RTX 4090, 24 GB",
    memoryBytes: 24 * giga,
    bandwidth: 1008 * giga,
    flops: { bf16: 165.2 * tera, fp8: 330.3 * tera, int8: 660.6 * tera },
    source: "NVIDIA Ada GPU architecture whitepaper, appendix A",
  },
  rtx3090: {
    name: "NVIDIA GeForce RTX 3090, 24 GB",
    memoryBytes: 24 * giga,
    bandwidth: 936 * giga,
    flops: { bf16: 71 * tera, int8: 284 * tera },
    source: "NVIDIA Ampere GA102 whitepaper",
  },
  mi300x: {
    name: "AMD Instinct MI300X, 192 GB",
    memoryBytes: 192 * giga,
    bandwidth: 5.3 * tera,
    flops: { bf16: 1307.4 * tera, fp8: 2614.9 * tera, int8: 2614.9 * tera },
    source: "AMD Instinct MI300X datasheet",
  },
  "m3-max": {
    name: "Apple M3 Max, 40-core GPU, 128 GB",
    memoryBytes: 128 * giga,
    bandwidth: 400 * giga,
    flops: { bf16: 14.2 * tera },
    source:
      "Apple's MacBook Pro specifications (memory, bandwidth); operations from 40 cores of 128 lanes at 1.39 GHz, which Apple does not publish",
  },
  "m2-ultra": {
    name: "Apple M2 Ultra, 76-core GPU, 192 GB",
    memoryBytes: 192 * giga,
    bandwidth: 800 * giga,
    flops: { bf16: 27.2 * tera },
    source:
      "Apple's Mac Studio specifications (memory, bandwidth); operations from 76 cores of 128 lanes at 1.4 GHz, which Apple does not publish",
  },
};
