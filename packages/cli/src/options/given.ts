type Given<T> = { readonly [Key in keyof T]?: Exclude<T[Key], undefined> };

/** The fields that are there, for callees whose optional fields may not be undefined. */
export function given<T extends object>(values: T): Given<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;
}
