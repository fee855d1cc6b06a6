/** SwiftShader, Mesa's lavapipe and Windows' WARP draw with the CPU. */
export function isSoftwareAdapter(info: GPUAdapterInfo): boolean {
  const text = `${info.vendor} ${info.architecture} ${info.device} ${info.description}`;
  return info.isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|microsoft basic render/i.test(text);
}

/** A product that a subgroup computes at once: m rows by n columns over k. */
export interface MatrixShape {
  readonly component: string;
  readonly result: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Of Dawn's `chromium-experimental-subgroup-matrix`, which the types of WebGPU do not know. */
export function matrixShapesOf(info: GPUAdapterInfo): MatrixShape[] {
  const { subgroupMatrixConfigs: configs = [] } = info as {
    readonly subgroupMatrixConfigs?: readonly {
      readonly componentType: string;
      readonly resultComponentType: string;
      readonly M: number;
      readonly N: number;
      readonly K: number;
    }[];
  };
  return configs.map(({ componentType, resultComponentType, M, N, K }) => ({
    component: componentType,
    result: resultComponentType,
    m: M,
    n: N,
    k: K,
  }));
}
