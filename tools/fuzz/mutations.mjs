// Damage to inputs: bytes and numbers changed, pieces cut, doubled, moved, words of the format put in, other inputs mixed in.

const extremes = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];

/** A damaged copy of `bytes`; `random` is a TestRandom. */
export function mutated(bytes, { random, words, others, maxBytes }) {
  let result = Buffer.from(bytes);
  for (let changes = 1 + random.below(4); changes > 0; changes -= 1) {
    const at = random.below(result.length + 1);
    const length = Math.min(1 + random.below(random.below(4) === 0 ? 256 : 16), result.length - at);
    const piece = result.subarray(at, at + length);
    const join = (...parts) => Buffer.concat(parts);
    const before = result.subarray(0, at);
    switch (random.below(10)) {
      case 0:
        if (length > 0) result[at] ^= 1 << random.below(8);
        break;
      case 1:
        if (length > 0) result[at] = random.below(256);
        break;
      case 2:
        result = join(before, result.subarray(at + length));
        break;
      case 3:
        result = join(before, piece, ...Array(1 + random.below(4)).fill(piece), result.subarray(at + length));
        break;
      case 4:
        if (at + 8 <= result.length) {
          const value = extremes[random.below(extremes.length)];
          result.writeUInt32LE(value, at);
          if (random.below(2) === 0) result.writeUInt32LE(random.below(2) === 0 ? 0 : value, at + 4);
        }
        break;
      case 5:
        result = join(
          before,
          Buffer.from(String((random.next() - 0.5) * 10 ** random.below(22))),
          result.subarray(at + length),
        );
        break;
      case 6: {
        const other = others[random.below(others.length)] ?? result;
        const from = random.below(other.length + 1);
        result = join(
          before,
          other.subarray(from, from + 1 + random.below(64)),
          result.subarray(at + length),
        );
        break;
      }
      case 7:
        result = result.subarray(0, at);
        break;
      default:
        if (words.length > 0)
          result = join(
            before,
            Buffer.from(words[random.below(words.length)]),
            result.subarray(random.below(2) === 0 ? at : at + length),
          );
    }
    if (result.length > maxBytes) result = result.subarray(0, maxBytes);
  }
  return Buffer.from(result);
}

const values = [
  null,
  true,
  false,
  0,
  -1,
  0.1,
  1e21,
  2 ** 53,
  "",
  "a",
  [],
  {},
  [[]],
  { type: "string" },
  "\ud800",
  "__proto__",
];

/** A damaged copy of JSON: values replaced, removed, doubled, moved from elsewhere; undefined where the bytes are no JSON. */
export function mutatedJson(bytes, { random, others }) {
  const tree = parsed(bytes);
  if (tree === undefined) return undefined;
  const holder = { tree };
  const donor = parsed(others[random.below(others.length)] ?? bytes) ?? tree;
  for (let changes = 1 + random.below(3); changes > 0; changes -= 1) {
    const places = placesOf(holder);
    const { parent, key } = places[random.below(places.length)];
    const pieces = placesOf({ donor });
    const other = pieces[random.below(pieces.length)];
    switch (random.below(5)) {
      case 0:
        parent[key] = values[random.below(values.length)];
        break;
      case 1:
        if (parent !== holder) delete parent[key];
        break;
      case 2:
        if (!Array.isArray(parent) && parent !== holder) parent[other.key] = parent[key];
        else parent[key] = [parent[key], parent[key]];
        break;
      case 3:
        parent[key] = { [typeof other.key === "string" ? other.key : "not"]: parent[key] };
        break;
      default:
        parent[key] = structuredClone(other.parent[other.key]);
    }
  }
  return Buffer.from(JSON.stringify(holder.tree) ?? "null");
}

function parsed(bytes) {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Where values stand in a tree, the first few thousand. */
function placesOf(root) {
  const places = [];
  const open = [root];
  for (let parent = open.pop(); parent !== undefined && places.length < 4096; parent = open.pop())
    for (const key of Object.keys(parent)) {
      places.push({ parent, key });
      if (typeof parent[key] === "object" && parent[key] !== null) open.push(parent[key]);
    }
  return places;
}
