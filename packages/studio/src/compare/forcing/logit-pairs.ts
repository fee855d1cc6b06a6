import type { EngineHooks } from "@octavo/engine";

type OnPair = (position: number, baseline: Float32Array, variant: Float32Array) => void;

/**
 * Brings the logits of two engines together that run the same tokens, one sequence at a time. The one that is ahead waits
 * between its steps until the other has caught up, so that no more than one step's logits of each are in memory.
 */
export class LogitPairs {
  readonly baseline: EngineHooks;
  readonly variant: EngineHooks;
  readonly #sides: readonly [Side, Side] = [new Side(), new Side()];
  #wants: (position: number) => boolean = () => false;
  #onPair: OnPair = () => undefined;
  #isReleased = false;

  constructor() {
    this.baseline = this.#hooks(0);
    this.variant = this.#hooks(1);
  }

  /** Before a sequence begins: the positions whose prediction is wanted, and who takes the pairs. */
  expect(wants: (position: number) => boolean, onPair: OnPair): void {
    this.#wants = wants;
    this.#onPair = onPair;
  }

  /** Rows that only one of the engines has given; 0 after a sequence that both have run to its end. */
  get numUnpaired(): number {
    return this.#sides[0].rows.size + this.#sides[1].rows.size;
  }

  /** Lets both engines go on alone, to their end: after a failure of either. */
  release(): void {
    this.#isReleased = true;
    for (const side of this.#sides) {
      side.rows.clear();
      side.goOn?.();
    }
  }

  #hooks(index: 0 | 1): EngineHooks {
    const own = this.#sides[index];
    const other = this.#sides[1 - index]!;
    return {
      onLogits: (_requestId, _sequenceIndex, position, logits) => {
        if (this.#isReleased || !this.#wants(position)) return;
        const waiting = other.rows.get(position);
        if (waiting === undefined) {
          own.rows.set(position, logits);
          return;
        }
        other.rows.delete(position);
        if (index === 0) this.#onPair(position, logits, waiting);
        else this.#onPair(position, waiting, logits);
        if (other.rows.size === 0) other.goOn?.();
      },
      afterStep: () => {
        if (own.rows.size === 0) return undefined;
        return new Promise<void>((resolve) => {
          own.goOn = () => {
            own.goOn = undefined;
            resolve();
          };
        });
      },
    };
  }
}

/** One engine's rows that the other has not given yet, and how to let it go on. */
class Side {
  readonly rows = new Map<number, Float32Array>();
  goOn: (() => void) | undefined;
}
