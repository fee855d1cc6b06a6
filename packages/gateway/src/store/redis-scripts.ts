/**
 * Scripts run one at a time in Redis, so each is one step for all instances. Every one is given the epoch that its caller knows
 * and does nothing when Redis has another: it was emptied, and what was counted there is forgotten.
 */
const checked = (body: string): string =>
  `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('EPOCH') end\n${body}`;

const now = `local time = redis.call('TIME'); local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

export const redisScripts = {
  /** window; limit, want, least, expiry */
  octavoTake: checked(`
    local left = tonumber(ARGV[2]) - tonumber(redis.call('GET', KEYS[2]) or '0')
    local granted = math.min(left, tonumber(ARGV[3]))
    if granted < tonumber(ARGV[4]) then return 0 end
    redis.call('INCRBY', KEYS[2], string.format('%.0f', granted))
    redis.call('PEXPIREAT', KEYS[2], ARGV[5])
    return granted`),

  /** window; amount */
  octavoGiveBack: checked(`
    local taken = tonumber(redis.call('GET', KEYS[2]) or '0')
    local returned = math.min(taken, tonumber(ARGV[2]))
    if returned > 0 then redis.call('DECRBY', KEYS[2], string.format('%.0f', returned)) end
    return returned`),

  /** window */
  octavoTaken: checked(`return tonumber(redis.call('GET', KEYS[2]) or '0')`),

  /**
   * buckets; when the store forgot or 0, then of each: ms per cell, burst, amount. All or none; the index of the one that has too
   * little and its wait, or -1. After a loss a bucket starts empty.
   */
  octavoTakeRates: checked(`
    ${now}
    local forgotten, after = tonumber(ARGV[2]), {}
    for i = 2, #KEYS do
      local interval, burst, amount = tonumber(ARGV[3 * i - 3]), tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
      local initial = forgotten > 0 and forgotten + burst * interval or now
      local arrival = math.max(now, after[KEYS[i]] or tonumber(redis.call('GET', KEYS[i]) or initial))
      local left = math.floor((burst * interval - (arrival - now)) / interval + 1e-9)
      if left < amount then return {i - 2, math.ceil(arrival + (amount - burst) * interval - now)} end
      after[KEYS[i]] = arrival + amount * interval
    end
    for key, value in pairs(after) do
      redis.call('SET', key, string.format('%.3f', value), 'PX', math.ceil(value - now) + 1000)
    end
    return {-1, 0}`),

  /** buckets; of each: ms per cell, amount */
  octavoGiveBackRates: checked(`
    for i = 2, #KEYS do
      local arrival = redis.call('GET', KEYS[i])
      if arrival then
        redis.call('SET', KEYS[i], string.format('%.3f', arrival - ARGV[2 * i - 2] * ARGV[2 * i - 1]), 'KEEPTTL')
      end
    end
    return 1`),

  /** pool; owner, wanted, limit, ttl, when the store forgot or 0. Others' places are known again once all have renewed them. */
  octavoHoldSlots: checked(`
    ${now}
    local others, entries = 0, redis.call('HGETALL', KEYS[2])
    for i = 1, #entries, 2 do
      local held, expires = string.match(entries[i + 1], '^(%d+):(%d+)$')
      if tonumber(expires) <= now then redis.call('HDEL', KEYS[2], entries[i])
      elseif entries[i] ~= ARGV[2] then others = others + tonumber(held) end
    end
    if tonumber(ARGV[6]) > 0 and now < tonumber(ARGV[6]) + tonumber(ARGV[5]) then
      local own = string.match(redis.call('HGET', KEYS[2], ARGV[2]) or '0:', '^(%d+):')
      if tonumber(ARGV[3]) > tonumber(own) then ARGV[3] = own end
    end
    local held = math.max(0, math.min(tonumber(ARGV[3]), tonumber(ARGV[4]) - others))
    if held == 0 then redis.call('HDEL', KEYS[2], ARGV[2])
    else redis.call('HSET', KEYS[2], ARGV[2], held .. ':' .. string.format('%.0f', now + ARGV[5])) end
    redis.call('PEXPIRE', KEYS[2], ARGV[5])
    return held`),

  /** document; value, version */
  octavoWriteDocument: checked(`
    local version = tonumber(redis.call('HGET', KEYS[2], 'version') or '0')
    if version ~= tonumber(ARGV[3]) then return 0 end
    redis.call('HSET', KEYS[2], 'value', ARGV[2], 'version', version + 1)
    return 1`),

  /** Makes an epoch where none is, or where the one there does not know of a loss that the caller knows of. */
  octavoBeginEpoch: `
    ${now}
    local there = redis.call('GET', KEYS[1])
    if there and there ~= ARGV[2] then return there end
    local epoch = ARGV[1] .. ':' .. (ARGV[3] == '1' and string.format('%.0f', now) or '0')
    redis.call('SET', KEYS[1], epoch)
    return epoch`,
} as const;
