/**
 * Examples of requests and answers in the OpenAPI document. Those in `examples/*.json` are recorded from a running service
 * and sent to it again by a test (test/contract/openapi-examples.test.ts). An operation without a recorded example gets one
 * that is composed from its schemas.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { composed, EXAMPLE_JWT, type JsonSchema } from './composed-example.js'

/** What a service was sent and what it answered. */
export type RecordedExample = {
  /** The body: JSON, or the fields of a form. Absent where the request has no body. */
  readonly request?: unknown
  readonly status: number
  /** The body: JSON, or the text of another media type. Absent where the answer has none. */
  readonly answer?: unknown
}

/** The issuer in recorded examples, which the document replaces by its own. */
export const EXAMPLE_ISSUER = 'https://id.example.com'
/** Compiled with the sources: the same folder next to this module. */
const FOLDER = new URL('./examples/', import.meta.url)
const PAGE = '<!doctype html>\n<html lang="en">…</html>\n'

type Media = { schema?: JsonSchema; example?: unknown }
type Content = Record<string, Media>
type Parameter = {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: JsonSchema
  example?: unknown
}
type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content?: Content }
  responses: Record<string, { content?: Content }>
}
type Document = {
  paths?: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, JsonSchema> }
}

type Examples = Readonly<Record<string, RecordedExample>>

let files: string | undefined
let last: { readonly issuer: string; readonly examples: Examples } | undefined

/** The recorded examples by operation id, with this issuer. Documents of one issuer share them: do not change them. */
export function recordedExamples(issuer: string): Examples {
  if (last?.issuer === issuer) return last.examples
  files ??= JSON.stringify(
    Object.assign(
      {},
      ...(existsSync(FOLDER) ? readdirSync(FOLDER) : [])
        .filter((name) => name.endsWith('.json'))
        .map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as object),
    ),
  )
  const examples = JSON.parse(files.replaceAll(EXAMPLE_ISSUER, issuer)) as Examples
  last = { issuer, examples }
  return examples
}

/** Bodies that are neither JSON, a form nor a page, by their media type. Images and the like have no example as text. */
const OTHERS: Readonly<Record<string, string>> = {
  'application/jwt': EXAMPLE_JWT,
  'application/token-introspection+jwt': EXAMPLE_JWT,
  'application/statuslist+jwt': EXAMPLE_JWT,
  'application/secevent+jwt': EXAMPLE_JWT,
  'application/x-ndjson': '{"id":"0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e"}\n',
  'text/csv': 'email,name\r\nann@example.com,Ann\r\n',
  'text/css': ':root { color-scheme: light dark }\n',
  'text/javascript': 'export {}\n',
  'text/markdown': '# svc\n',
  'text/plain': 'example',
  // What an upstream gets and answers.
  '*/*': '{"object":"list","data":[]}',
}

/** Answers whose text has a form that its media type does not say. */
const TEXTS: Readonly<Record<string, string>> = {
  getMetrics:
    '# HELP svc_share_refused_total Refusals.\n# TYPE svc_share_refused_total counter\nsvc_share_refused_total{resource="egress_calls"} 1\n',
}

/** Parameters whose name means something else elsewhere. */
const PARAMETERS: Readonly<Record<string, string>> = {
  'readScimResourceType name': 'User',
  'readDocsPicture name': 'sign-in-light.png',
}

/** Adds an example to each required parameter, request body and answer that is text. Changes the document. */
export function addExamples(document: object, issuer: string): void {
  const { paths = {}, components = {} } = document as Document
  const recorded = recordedExamples(issuer)
  const schemas = components.schemas ?? {}
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    const found = recorded[operation.operationId]
    for (const parameter of operation.parameters ?? []) {
      const { name, required, schema } = parameter
      if (required !== true || schema?.example !== undefined) continue
      const own = PARAMETERS[`${operation.operationId} ${name}`]
      parameter.example ??= own ?? composed(schema, schemas, 'request', name)
    }
    for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
      if (isJson(type) || type === 'application/x-www-form-urlencoded')
        give(media, found?.request ?? composed(media.schema, schemas, 'request'))
      else give(media, OTHERS[type])
    }
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      for (const [type, media] of Object.entries(content)) {
        const same = found?.status === Number(status) ? found.answer : undefined
        if (type.startsWith('text/html')) give(media, PAGE)
        else if (isJson(type)) give(media, same ?? composed(media.schema, schemas, 'answer'))
        else if (Number(status) < 300) {
          // One of the media types of an operation is recorded.
          const isSame = typeof same === 'string' && same.startsWith('{') === type.includes('json')
          give(media, isSame ? same : (TEXTS[operation.operationId] ?? OTHERS[type.split(';')[0]!]))
        }
      }
    }
  }
}

function give(media: Media, example: unknown): void {
  if (example !== undefined) media.example ??= example
}

const isJson = (type: string) => /^application\/(?:[a-z.-]+\+)?json\b/.test(type)
