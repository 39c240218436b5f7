/** The stored form of a password hash (PHC string format) and its cost parameters. */

/** The cost of one hash (RFC 9106 section 3.1). */
export type Argon2Cost = {
  readonly memoryKib: number
  readonly iterations: number
  readonly parallelism: number
}

/**
 * Both engines write m, t, p in this order. argon2 0.45 writes m, p, t and is not used: a hash in that order does not
 * parse here.
 */
const ARGON2ID =
  /^\$argon2id\$v=19\$m=([1-9][0-9]{0,9}),t=([1-9][0-9]{0,9}),p=([1-9][0-9]{0,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{22,86})$/

/** The cost parameters of a stored hash; null when it is not an argon2id hash of version 19. */
export function costOf(phc: string): Argon2Cost | null {
  const match = ARGON2ID.exec(phc)
  if (match === null) return null
  const [, memoryKib, iterations, parallelism] = match
  return {
    memoryKib: Number(memoryKib),
    iterations: Number(iterations),
    parallelism: Number(parallelism),
  }
}

export function sameCost(cost: Argon2Cost, other: Argon2Cost): boolean {
  return (
    cost.memoryKib === other.memoryKib &&
    cost.iterations === other.iterations &&
    cost.parallelism === other.parallelism
  )
}

export function formatPhc(cost: Argon2Cost, salt: Uint8Array, hash: Uint8Array): string {
  const { memoryKib, iterations, parallelism } = cost
  const parameters = `m=${memoryKib},t=${iterations},p=${parallelism}`
  return `$argon2id$v=19$${parameters}$${unpadded(salt)}$${unpadded(hash)}`
}

function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replace(/=+$/, '')
}
