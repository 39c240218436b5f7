/**
 * What a message may contain: plain data, read only. The list is the same for every placement, so
 * that an actor can move to another thread without a change of its protocol.
 *
 *  Allowed: `undefined`, `null`, booleans, numbers, bigints, strings, `Date`, `Uint8Array`, arrays,
 * plain objects, `SharedText`, and `ByteStream` handles. A `Buffer` arrives as a `Uint8Array`. Forbidden:
 * functions, symbols, class instances, `Map`, `Set`, errors, and any `Secret`. A member named
 * `__proto__` is forbidden too, because a frame renames it: send data from outside that may contain
 * one as text.
 */
import { ByteStream } from './stream.js'
import { SharedText } from './text/shared-text.js'

/** Thrown for a message that contains something other than plain data. */
export class NotPlainData extends TypeError {
  override readonly name = 'NotPlainData'
}

/** Anything deeper counts as a cycle. */
const DEPTH_MAX = 64

/**
 * Copies a message as a thread boundary would.
 * @throws {NotPlainData} with the path of the first value that cannot cross.
 */
export function copyMessage<T>(value: T): T {
  return copy(value, 'message', 0) as T
}

function copy(value: unknown, path: string, depth: number): unknown {
  switch (typeof value) {
    case 'undefined':
    case 'boolean':
    case 'number':
    case 'bigint':
    case 'string':
      return value
    case 'object':
      return value === null ? null : copyObject(value, path, depth)
    default:
      throw new NotPlainData(`${path} is a ${typeof value}`)
  }
}

function copyObject(value: object, path: string, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new NotPlainData(`${path} is nested too deeply or in a cycle`)
  if (Array.isArray(value)) {
    return value.map((item, index) => copy(item, `${path}[${index}]`, depth + 1))
  }
  const prototype = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) {
    const target: Record<string, unknown> = {}
    for (const [name, member] of Object.entries(value)) {
      if (name === '__proto__') throw new NotPlainData(`${path} has a member named __proto__`)
      target[name] = copy(member, `${path}.${name}`, depth + 1)
    }
    return target
  }
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (value instanceof Date) return new Date(value.getTime())
  // It never changes, and its identity matters.
  if (value instanceof SharedText) return value
  // A handle, not data: only its last holder reads the bytes behind it.
  if (value instanceof ByteStream) return value
  throw new NotPlainData(`${path} is a ${value.constructor?.name ?? 'class instance'}`)
}

/**
 * Drops a message that has no reader, and cancels the streams in it, so that their writers learn of
 * it.
 */
export function discardMessage(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return
  if (value instanceof ByteStream) value.cancel('discarded')
  else if (!ArrayBuffer.isView(value) && !(value instanceof SharedText)) {
    for (const member of Object.values(value)) discardMessage(member, depth + 1)
  }
}
