/**
 * Principals on their way to another thread: as one text per token, which is written, sent and parsed once, however many
 * calls the token makes.
 */
import { SharedText } from '../../runtime/kernel/text/shared-text.js'
import type { Principal } from './principal.js'

const packed = new WeakMap<Principal, SharedText>()
const read = new WeakMap<SharedText, Principal>()

/** The principal as JSON. The object must not change afterwards. */
export function packPrincipal(principal: Principal): SharedText {
  let shared = packed.get(principal)
  if (shared === undefined) {
    shared = new SharedText(JSON.stringify(principal))
    packed.set(principal, shared)
  }
  return shared
}

/** Reads a packed principal. The same text object gives the same principal. */
export function readPrincipal(shared: SharedText): Principal {
  let principal = read.get(shared)
  if (principal === undefined) {
    principal = JSON.parse(shared.text) as Principal
    read.set(shared, principal)
  }
  return principal
}
