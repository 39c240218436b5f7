/** Parses and validates the parts of a request. */
import { asId } from '../../actors/domain/ids.js'
import { flatString } from '../../runtime/kernel/text/flat-string.js'
import { findJsonLoss } from '../../runtime/kernel/text/json-lossiness.js'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { HttpExchange } from '../http-exchange.js'
import { mediaTypeOf } from '../headers/accept.js'
import type { PointedError, Problem } from '../response/problems.js'
import type { BodyRule, FormFields } from '../route.js'
import { countMembers, findDuplicate, measureJson } from './duplicate-members.js'
import { parseUpload } from './upload.js'
import { unknownMembers } from './unknown-members.js'

const JSON_DEPTH_MAX = 64
const FIELDS_MAX = 200
/** Errors that the answer lists. */
const ERRORS_MAX = 20

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }

const good = <T>(value: T): Parsed<T> => ({ ok: true, value })
const bad = (problem: Problem): Parsed<never> => ({ ok: false, problem })
const badBody = (detail: string): Parsed<never> =>
  bad({ name: 'bad-request', detail, errors: [{ pointer: '#', detail }] })

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Checks Content-Type and Content-Encoding before the body is read. @returns undefined if they are supported. */
export function refuseMedia(
  rule: BodyRule<unknown>,
  exchange: Pick<HttpExchange, 'headers' | 'hasBody'>,
): Problem | undefined {
  const encoding = exchange.headers.get('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return {
      name: 'unsupported-media-type',
      detail: 'Compressed request bodies are not supported.',
    }
  }
  const mediaType = mediaTypeOf(exchange.headers.get('content-type'))
  const expected = expectedMedia(rule)
  if (expected.length === 0 || (mediaType !== null && expected.includes(mediaType)))
    return undefined
  // A missing body gets its own error, which is clearer than a missing type.
  if (mediaType === null && !exchange.hasBody) return undefined
  return {
    name: 'unsupported-media-type',
    detail: `The request body must be ${expected.join(' or ')}.`,
  }
}

function expectedMedia(rule: BodyRule<unknown>): readonly string[] {
  if (rule.kind === 'stream') return []
  if (rule.kind === 'raw') return rule.contentTypes
  if (rule.kind === 'json') return [...(rule.contentTypes ?? []), 'application/json']
  if (rule.kind === 'upload') return ['multipart/form-data']
  return ['application/x-www-form-urlencoded']
}

/** @param onUnknown gets the JSON pointers of unknown members of a JSON body. */
export function parseBody(
  rule: BodyRule<unknown>,
  bytes: Uint8Array,
  onUnknown?: (pointers: readonly string[]) => void,
): Parsed<unknown> {
  if (rule.kind === 'raw' || rule.kind === 'stream') return good(bytes)
  if (rule.kind === 'upload') {
    const form = parseUpload(bytes)
    return form === null ? badBody('The body is not valid multipart/form-data.') : good(form)
  }
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return badBody('The body is not valid UTF-8.')
  }
  if (rule.kind === 'json') {
    return parseJson(rule, text === '' && rule.optional ? '{}' : text, onUnknown)
  }
  const fields = parseFields(text)
  if (!fields.ok || rule.kind === 'fields') return fields
  const object = objectOf(fields.value, '#/')
  return object.ok ? checked(rule.schema, object.value, bodyPointer) : object
}

type JsonRule = Extract<BodyRule<unknown>, { kind: 'json' }>

function parseJson(
  { schema, anyText }: JsonRule,
  text: string,
  onUnknown: ((pointers: readonly string[]) => void) | undefined,
): Parsed<unknown> {
  if (text === '') return badBody('The request has no body.')
  const { depth, members } = measureJson(text)
  if (depth > JSON_DEPTH_MAX)
    return badBody(`The body has more than ${JSON_DEPTH_MAX} levels of nesting.`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return badBody('The body is not valid JSON.')
  }
  if (countMembers(value) < members) {
    const pointer = bodyPointer(findDuplicate(text) ?? [])
    const detail = 'The member occurs more than once.'
    return bad({
      name: 'bad-request',
      detail: `${pointer}: ${detail}`,
      errors: [{ pointer, detail }],
    })
  }
  if (onUnknown !== undefined) {
    const unknown = unknownMembers(schema, value)
    if (unknown.length > 0) onUnknown(unknown)
  }
  const result = checked(schema, value, bodyPointer)
  if (!result.ok || anyText === true) return result
  const lost = findJsonLoss(text, result.value)
  if (lost === null) return result
  const { path, detail } = lost
  const pointer = bodyPointer(path)
  return bad({
    name: 'bad-request',
    detail: `${pointer}: ${detail}`,
    errors: [{ pointer, detail }],
  })
}

/**
 * Parses application/x-www-form-urlencoded, of bodies and queries, into pairs in order. Values of names that end
 * with `_id` are lower-cased. Other values, such as `state` and `nonce`, are returned to the client unchanged.
 */
export function parseFields(text: string): Parsed<FormFields> {
  if (text === '') return good([])
  const fields: [string, string][] = []
  for (const pair of text.split('&')) {
    if (pair === '') continue
    if (fields.length >= FIELDS_MAX) {
      return bad({
        name: 'bad-request',
        detail: `The request has more than ${FIELDS_MAX} parameters.`,
      })
    }
    const equals = pair.indexOf('=')
    const name = decode(equals < 0 ? pair : pair.slice(0, equals))
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1))
    if (name === null || value === null) {
      return bad({ name: 'bad-request', detail: 'A parameter has an invalid percent escape.' })
    }
    fields.push([name, name.endsWith('_id') ? asId(value) : value])
  }
  return good(fields)
}

function decode(text: string): string | null {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  // A copy, because a slice would keep the whole body, with its secrets, in memory.
  if (!spaced.includes('%')) return flatString(spaced)
  try {
    return decodeURIComponent(spaced)
  } catch {
    return null
  }
}

/**
 * Fields as an object. A repeated name is ambiguous and refused (RFC 6749 section 3.1). NUL is refused as in JSON
 * (`findJsonLoss`), because PostgreSQL cannot store it.
 */
export function objectOf(fields: FormFields, prefix: string): Parsed<Record<string, string>> {
  const object: Record<string, string> = {}
  for (const [name, value] of fields) {
    if (value.includes('\0') || name.includes('\0')) {
      const detail = 'Must not contain NUL.'
      const pointer = `${prefix}${name.replaceAll('\0', '')}`
      return bad({
        name: 'bad-request',
        detail: `${pointer}: ${detail}`,
        errors: [{ pointer, detail }],
      })
    }
    if (Object.hasOwn(object, name)) {
      const detail = `The parameter is given more than once.`
      return bad({
        name: 'bad-request',
        detail: `A parameter is given more than once.`,
        errors: [{ pointer: `${prefix}${name}`, detail }],
      })
    }
    if (name !== '__proto__') object[name] = value
    // Defined, not assigned: an assignment to `__proto__` would set the prototype.
    else
      Object.defineProperty(object, name, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      })
  }
  return good(object)
}

/**
 * Validates a value. Issues become the `errors` of a 400.
 *
 * The schema is run without `safeParse`: its result of a failure has a getter, and to build that object costs ten times
 * more than to run the schema. Refused requests must be cheap.
 */
export function checked(
  schema: z.ZodType,
  value: unknown,
  pointerOf: (path: readonly PropertyKey[]) => string,
): Parsed<unknown> {
  const context = { async: false }
  const result = schema._zod.run({ value, issues: [] }, context)
  if (result instanceof Promise) throw new z.core.$ZodAsyncError()
  if (result.issues.length === 0) return good(result.value)
  const errors: PointedError[] = result.issues.slice(0, ERRORS_MAX).map((issue) => {
    const { path, message } = z.core.util.finalizeIssue(issue, context, z.core.config())
    return { pointer: pointerOf(path), detail: message }
  })
  const [first] = errors
  return bad({
    name: 'bad-request',
    detail: first === undefined ? 'The request is invalid.' : `${first.pointer}: ${first.detail}`,
    errors,
  })
}

/** A JSON pointer as URI fragment (RFC 6901 section 6): `#/redirect_uris/0`. */
function bodyPointer(path: readonly PropertyKey[]): string {
  const parts = path.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1'))
  return parts.length === 0 ? '#' : `#/${parts.join('/')}`
}

export const queryPointer = (path: readonly PropertyKey[]): string => `query:${path.join('.')}`
export const pathPointer = (path: readonly PropertyKey[]): string => `path:${path.join('.')}`
export const headerPointer = (path: readonly PropertyKey[]): string => `header:${path.join('.')}`

/** The fingerprint of a body for idempotency keys. */
export function fingerprintOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('sha256').update(bytes).digest())
}

/** Parses an idempotency-key: 1 to 255 visible ASCII characters, bare or as a quoted string. Null if invalid. */
export function idempotencyKey(value: string): string | null {
  const bare =
    /^"((?:[!#-[\]-~]|\\["\\])*)"$/.exec(value)?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? value
  return /^[!-~]{1,255}$/.test(bare) ? bare : null
}
