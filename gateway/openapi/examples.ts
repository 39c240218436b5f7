/**
 * Examples of requests and answers in the OpenAPI document. Those in `examples/*.json` are recorded from a running service
 * and sent to it again by a test (test/contract/openapi-examples.test.ts). An operation without a recorded example gets one
 * that is composed from its schemas.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { composed, type JsonSchema } from './composed-example.js'

/** What a service was sent and what it answered. */
export type RecordedExample = {
  /** The body: JSON, or the fields of a form. Absent where the request has no body. */
  readonly request?: unknown
  readonly status: number
  /** The JSON body. Absent where the answer has none. */
  readonly answer?: unknown
}

/** The issuer in recorded examples, which the document replaces by its own. */
export const EXAMPLE_ISSUER = 'https://id.example.com'
/** Compiled with the sources: the same folder beside this module. */
const FOLDER = new URL('./examples/', import.meta.url)
const PAGE = '<!doctype html>\n<html lang="en">…</html>\n'

type Media = { schema?: JsonSchema; example?: unknown }
type Content = Record<string, Media>
type Operation = {
  operationId: string
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

/** Adds an example to each request body and each answer that has a JSON body, a form or a page. Changes the document. */
export function addExamples(document: object, issuer: string): void {
  const { paths = {}, components = {} } = document as Document
  const recorded = recordedExamples(issuer)
  const schemas = components.schemas ?? {}
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    const found = recorded[operation.operationId]
    for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
      if (!isJson(type) && type !== 'application/x-www-form-urlencoded') continue
      give(media, found?.request ?? composed(media.schema, schemas, 'request'))
    }
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      for (const [type, media] of Object.entries(content)) {
        if (type.startsWith('text/html')) give(media, PAGE)
        if (!isJson(type)) continue
        const same = found?.status === Number(status) ? found.answer : undefined
        give(media, same ?? composed(media.schema, schemas, 'answer'))
      }
    }
  }
}

function give(media: Media, example: unknown): void {
  if (example !== undefined) media.example ??= example
}

const isJson = (type: string) => /^application\/(?:[a-z.-]+\+)?json\b/.test(type)
