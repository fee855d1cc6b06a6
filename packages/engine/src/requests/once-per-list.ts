interface Made<T> {
  readonly list: readonly string[];
  readonly value: T;
}

/**
 * Makes something of a list once for all who bring that very list, as the prompts of one request do. What was made is
 * kept as long as the list is, and made anew when its entries changed.
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
