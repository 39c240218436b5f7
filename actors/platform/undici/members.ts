/** Private members of undici. Its version is pinned; another one fails here, at its first connection. */
import { invariant } from '../../../runtime/kernel/assert.js'

export function memberOf<Member>(owner: object, name: string): Member {
  const member = (owner as Readonly<Record<symbol, unknown>>)[keyOf(owner, name)]
  invariant(typeof member === 'object' && member !== null, `undici has the member ${name}`)
  return member as Member
}

export function keyOf(owner: object, name: string): symbol {
  const key = Object.getOwnPropertySymbols(owner).find(({ description }) => description === name)
  invariant(key !== undefined, `undici has the symbol ${name}`)
  return key
}
