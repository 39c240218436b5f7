/**
 * Records examples for the OpenAPI document from answers of a running service:
 *
 *     RECORD_EXAMPLES=missing npx ava dist/test/contract/openapi-examples.test.js
 *
 * `missing` records operations without an example, `all` records every operation that answers. The files are
 * gateway/apps/openapi/examples/*.json. Tokens, keys and the issuer are replaced, because examples are public.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { EXAMPLE_ISSUER, type RecordedExample } from '../../gateway/apps/openapi/examples.js'
import type { RequestContext } from '../../gateway/request/request-context.js'
import type { Route } from '../../gateway/route.js'

const FOLDER = new URL('../../../gateway/apps/openapi/examples/', import.meta.url)
/** Longer answers are recorded only if there is no shorter one. */
const CHARACTERS_GOOD = 2_500
const ITEMS_MAX = 2
/** One JSON document in each line. */
const LINES = 'application/x-ndjson'
/** Documents of this size show nothing. */
const CHARACTERS_MAX = 12_000

const MODE = process.env['RECORD_EXAMPLES']
type Found = RecordedExample & { readonly tag: string }
const found = new Map<string, Found>()
const bodies = new WeakMap<object, Uint8Array>()

/** True if examples are recorded in this run. */
export const isRecording = MODE === 'missing' || MODE === 'all'

/** Keeps the body of a request until it is answered. */
export function keepBody({ exchange }: RequestContext): void {
  const read = exchange.readBody.bind(exchange)
  exchange.readBody = async (...given: Parameters<typeof read>) => {
    const bytes = await read(...given)
    bodies.set(exchange, bytes)
    return bytes
  }
}

/** Considers an answer as the example of its operation. */
export function considerExample(
  { exchange, route }: RequestContext,
  status: number,
  contentType: string | null,
  body: string | Uint8Array | null,
): void {
  if (route === null || status < 200 || status >= 300) return
  const isLines = contentType?.startsWith(LINES) === true
  if (contentType !== null && !isLines && !/^application\/(?:[a-z.-]+\+)?json\b/.test(contentType))
    return
  const text = body === null ? undefined : Buffer.from(body as string).toString('utf8')
  const issuer = `http://${exchange.host}`
  if (text !== undefined && text.length > CHARACTERS_MAX && !isLines) return
  const answer = text === undefined ? undefined : exampleOf(clean(text, issuer), isLines)
  const request = requestOf(route.route, bodies.get(exchange), issuer)
  const { operationId, tags } = route.route
  const example: Found = {
    ...(request === undefined ? {} : { request }),
    status,
    ...(answer === undefined ? {} : { answer }),
    tag: tags[0] ?? 'other',
  }
  const kept = found.get(operationId)
  if (kept === undefined || rank(example) > rank(kept)) found.set(operationId, example)
}

/** Forgets what was found for an operation, so that the next good answer is its example. */
export async function recordAnew(operationId: string, send: () => Promise<unknown>): Promise<void> {
  const kept = found.get(operationId)
  found.delete(operationId)
  await send()
  if (!found.has(operationId) && kept !== undefined) found.set(operationId, kept)
}

/** Longer examples show more, until they are too long. */
function rank({ request, answer }: RecordedExample): number {
  const length = JSON.stringify([request, answer]).length
  return length <= CHARACTERS_GOOD ? length : CHARACTERS_GOOD / length - 1
}

function requestOf({ body }: Route, bytes: Uint8Array | undefined, issuer: string): unknown {
  if (body === undefined || bytes === undefined || bytes.length === 0) return undefined
  const text = clean(Buffer.from(bytes).toString('utf8'), issuer)
  if (body.kind === 'form' || body.kind === 'fields')
    return Object.fromEntries(new URLSearchParams(text))
  return body.kind === 'json' || text.startsWith('{') ? JSON.parse(text) : undefined
}

function clean(text: string, issuer: string): string {
  return text
    .replaceAll(issuer, EXAMPLE_ISSUER)
    .replaceAll(encodeURIComponent(issuer), encodeURIComponent(EXAMPLE_ISSUER))
    .replaceAll(
      /eyJ[\w-]{20,}\.[\w-]+\.[\w-]+/g,
      'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl',
    )
    .replaceAll(
      /-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END/gs,
      '-----BEGIN $1-----\\n…\\n-----END',
    )
    .replaceAll(/https:\/\/(?:localhost|127\.0\.0\.1):\d+/g, 'https://receiver.example.com')
}

function exampleOf(text: string, isLines: boolean): unknown {
  return isLines
    ? `${text.split('\n').slice(0, ITEMS_MAX).join('\n')}\n`
    : shortened(JSON.parse(text))
}

/** Lists keep their first items, which are enough for an example. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]))
}

/** Adds what was found to the files. */
function write(): void {
  mkdirSync(FOLDER, { recursive: true })
  const nameOf = ({ tag }: Found) => tag.toLowerCase().replaceAll(/\W+/g, '-')
  for (const name of new Set([...found.values()].map(nameOf))) {
    const examples = [...found].filter(([, one]) => nameOf(one) === name)
    const file = new URL(`${name}.json`, FOLDER)
    const known = existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, RecordedExample>)
      : {}
    for (const [operationId, { tag: _tag, ...example }] of examples) {
      if (MODE === 'all' || known[operationId] === undefined) known[operationId] = example
    }
    const sorted = Object.fromEntries(
      Object.entries(known).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
    writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`)
  }
}

if (isRecording) process.once('exit', write)
