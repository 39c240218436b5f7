/** The operations of a service, from its OpenAPI document, and the requests that options describe. */
import { distance } from 'fastest-levenshtein'

export type Operation = {
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its parameters in braces. */
  readonly path: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  /** Media types of the request body, the best one first. Empty: no body. */
  readonly bodyTypes: readonly string[]
}

type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
}

type Members = Readonly<Record<string, unknown>>

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const SUGGESTIONS = 3

/** @throws if the text is not an OpenAPI document. */
export function operationsOf(document: unknown): readonly Operation[] {
  const paths = membersOf(membersOf(document)['paths'])
  if (Object.keys(paths).length === 0)
    throw new Error('GET /openapi.json returned no OpenAPI document: openapi.enabled may be false')
  return Object.entries(paths).flatMap(([path, item]) => {
    const shared = parametersOf(membersOf(item)['parameters'])
    return METHODS.flatMap((method) => {
      const operation = membersOf(membersOf(item)[method])
      if (typeof operation['operationId'] !== 'string') return []
      const content = membersOf(membersOf(operation['requestBody'])['content'])
      const types = Object.keys(content)
      return [
        {
          id: operation['operationId'],
          method: method.toUpperCase() as Operation['method'],
          path,
          summary: String(operation['summary'] ?? ''),
          tags: Array.isArray(operation['tags']) ? operation['tags'].map(String) : [],
          parameters: [...shared, ...parametersOf(operation['parameters'])],
          bodyTypes: [JSON_TYPE, FORM_TYPE, ...types].filter(
            (type, at, all) => types.includes(type) && all.indexOf(type) === at,
          ),
        },
      ]
    })
  })
}

/** @throws with the most similar names if there is no such operation. */
export function operationNamed(operations: readonly Operation[], name: string): Operation {
  const found = operations.find(({ id }) => id.toLowerCase() === name.toLowerCase())
  if (found !== undefined) return found
  const similar = operations
    .map(({ id }) => id)
    .toSorted(
      (a, b) =>
        distance(a.toLowerCase(), name.toLowerCase()) -
        distance(b.toLowerCase(), name.toLowerCase()),
    )
    .slice(0, SUGGESTIONS)
  throw new Error(`there is no operation ${name}. Similar: ${similar.join(', ')}`)
}

type Call = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string>>
}

/**
 * The request of an operation.
 * @param values parameters by name.
 * @param body the JSON body or the members of the form, undefined for none.
 * @throws if a parameter is unknown or missing, or if a body is missing or superfluous.
 */
export function callOf(
  { path, parameters, bodyTypes, id }: Operation,
  values: ReadonlyMap<string, readonly string[]>,
  body: unknown,
): Call {
  for (const name of values.keys()) {
    if (parameters.some((each) => each.name.toLowerCase() === name.toLowerCase())) continue
    const known = parameters.map((each) => each.name).join(', ')
    throw new Error(`${id} has no parameter ${name}. It has: ${known || 'none'}`)
  }
  const given = (name: string) =>
    [...values].find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1] ?? []
  const missing = parameters.find(({ name, required }) => required && given(name).length === 0)
  if (missing !== undefined)
    throw new Error(`${id} needs --param ${missing.name}=VALUE (in the ${missing.in})`)
  let filled = path
  const query = new URLSearchParams()
  const headers: Record<string, string> = {}
  for (const { name, in: place } of parameters) {
    const [first, ...more] = given(name)
    if (first === undefined) continue
    if (place === 'path') filled = filled.replaceAll(`{${name}}`, encodeURIComponent(first))
    else if (place === 'header') headers[name] = first
    else for (const value of [first, ...more]) query.append(name, value)
  }
  const target = query.size === 0 ? filled : `${filled}?${query.toString()}`
  if (body === undefined) return { path: target, headers }
  const [type] = bodyTypes
  if (type === JSON_TYPE) return { path: target, headers, json: body }
  if (type === FORM_TYPE) return { path: target, headers, form: formOf(body) }
  throw new Error(
    type === undefined
      ? `${id} takes no body`
      : `${id} takes ${type}, which this command cannot send`,
  )
}

/**
 * A body from `--field` options: `a.b=c` sets a member of a member. The value is JSON if it parses as JSON, otherwise a
 * text.
 * @throws if an option is not a name and a value.
 */
export function bodyOfFields(fields: readonly string[], before: unknown): unknown {
  if (fields.length === 0) return before
  const body: Record<string, unknown> = { ...membersOf(before) }
  for (const field of fields) {
    const at = field.indexOf('=')
    if (at < 1) throw new Error(`--field must be NAME=VALUE, not ${field}`)
    const names = field.slice(0, at).split('.')
    let inner = body
    for (const name of names.slice(0, -1)) {
      const next = { ...membersOf(own(inner, name)) }
      define(inner, name, next)
      inner = next
    }
    define(inner, names.at(-1)!, valueOf(field.slice(at + 1)))
  }
  return body
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function own(from: Members, name: string): unknown {
  return Object.hasOwn(from, name) ? from[name] : undefined
}

/** Also `__proto__` becomes an ordinary member. */
function define(into: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(into, name, { value, enumerable: true, writable: true, configurable: true })
}

function formOf(body: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(membersOf(body)).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
}

function parametersOf(list: unknown): readonly Parameter[] {
  if (!Array.isArray(list)) return []
  return list
    .map(membersOf)
    .flatMap(({ name, in: place, required }) =>
      typeof name === 'string' && (place === 'path' || place === 'query' || place === 'header')
        ? [{ name, in: place, required: required === true }]
        : [],
    )
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Members)
    : {}
}
