import type { Answer } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import { OctavoError, queueDepthHeader } from "@octavo/protocol";
import type { AnswerOptions, Target } from "../../targets/target.js";

/**
 * A deployment made of replicas: each request goes to the one with fewest under way, the first of equals. Answers say how
 * deep the deployment's queue was when the request came and how many replicas it had, in the headers that a gateway would
 * set. A request that was sent to a replica stays there, as with Ray Serve's router.
 */
export class LeastQueueRouter implements Target {
  readonly name: string;
  readonly #replicas: { readonly target: Target; underWay: number }[];

  constructor(name: string, targets: readonly Target[]) {
    this.name = name;
    this.#replicas = targets.map((target) => ({ target, underWay: 0 }));
  }

  add(target: Target): void {
    this.#replicas.push({ target, underWay: 0 });
  }

  get replicaCount(): number {
    return this.#replicas.length;
  }

  async answer(evalCase: EvalCase, options: AnswerOptions): Promise<Answer> {
    const depth = this.#replicas.reduce((sum, { underWay }) => sum + underWay, 0);
    const replicaCount = this.#replicas.length;
    const [least] = this.#replicas.toSorted((a, b) => a.underWay - b.underWay);
    if (least === undefined)
      throw new OctavoError("invalid_option", `${this.name} has no replica`, { param: "replicas" });
    least.underWay += 1;
    try {
      const answer = await least.target.answer(evalCase, options);
      return {
        ...answer,
        headers: {
          ...answer.headers,
          [queueDepthHeader]: String(depth),
          "x-octavo-replica-count": String(replicaCount),
        },
      };
    } finally {
      least.underWay -= 1;
    }
  }
}
