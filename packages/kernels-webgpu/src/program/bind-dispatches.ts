import type { Gpu } from "../device/gpu.js";
import { encodeParams } from "../wgsl/shader.js";
import type { BoundDispatch, DispatchPlan } from "./dispatch.js";

/** What an op was lowered to, under the name by which it is timed. */
export type OpDispatches = readonly [op: string, plans: readonly DispatchPlan[]];

/** Dispatches over a step's plan and the arena. All parameters lie in one buffer, each at the alignment that bindings need. */
export function bindDispatches(
  gpu: Gpu,
  { step, arena }: { readonly step: GPUBuffer; readonly arena: GPUBuffer },
  ops: readonly OpDispatches[],
): { readonly uniforms: GPUBuffer; readonly bound: BoundDispatch[][] } {
  const align = gpu.device.limits.minUniformBufferOffsetAlignment;
  const plans = ops.flatMap(([, ofOp]) => ofOp);
  const words = new Uint32Array((plans.length * align) / 4);
  for (const [index, plan] of plans.entries())
    words.set(encodeParams(plan.shader.params, plan.params), (index * align) / 4);
  const uniforms = gpu.uniform(words);
  let offset = 0;
  const bind = (op: string, plan: DispatchPlan): BoundDispatch => {
    const size = Math.ceil((Object.keys(plan.shader.params).length * 4) / 16) * 16;
    const resources: GPUBufferBinding[] = [
      { buffer: uniforms, offset, size },
      { buffer: step },
      { buffer: arena },
      ...plan.buffers.map((buffer) => ({ buffer })),
    ];
    offset += align;
    const group = gpu.device.createBindGroup({
      layout: gpu.layout(plan.shader.bindings),
      entries: resources.map((resource, binding) => ({ binding, resource })),
    });
    return { op, site: plan.site, group, launch: plan.launch };
  };
  return { uniforms, bound: ops.map(([op, ofOp]) => ofOp.map((plan) => bind(op, plan))) };
}
