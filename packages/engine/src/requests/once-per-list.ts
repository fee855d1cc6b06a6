interface Made<T> {
  readonly list: readonly string[];
  readonly value: T;
}

/**
 * Memoises `make` per list object, which the prompts of one request share. A result lives as long as its list, and is
 * made again if the list's entries changed.
 */
export function oncePerList<T>(make: (list: readonly string[]) => T): (list: readonly string[]) => T {
  const made = new WeakMap<readonly string[], Made<T>>();
  return (list) => {
    const known = made.get(list);
    if (known !== undefined && known.list.length === list.length) {
      if (known.list.every((entry, index) => entry === list[index])) return known.value;
    }
    const value = make(list);
    made.set(list, { list: [...list], value });
    return value;
  };
}
