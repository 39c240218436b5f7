/**
 * Compares every response of the gateways in this process with the OpenAPI description of its
 * route: status, content type, body. It hooks the one function that sends responses, so it covers
 * all clients and transports.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Ajv, ValidateFunction } from 'ajv'
import { Responder } from '../../gateway/response/respond.js'
import { InputReader } from '../../gateway/request/input.js'
import { wantsPage } from '../../gateway/request/browser.js'
import type { HttpExchange } from '../../gateway/http-exchange.js'
import { isScimPath, SCIM_MEDIA_TYPE } from '../../gateway/response/scim-errors.js'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { PROBLEM_MEDIA_TYPE } from '../../gateway/response/problems.js'
import type { Route } from '../../gateway/route.js'
import { routes } from '../../gateway/route-table.js'
import { considerExample, isRecording, keepBody } from './examples.js'

const require = createRequire(import.meta.url)
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

const ISSUER = 'https://id.test'
// One for all routes, and without a check of the schemas, which the tests of the document make: an instance that
// compiles the schema of schemas costs as much time as the start of a service.
const ajv = new Ajv2020({
  strict: false,
  validateFormats: false,
  validateSchema: false,
  allErrors: true,
  // Most schemas check a few answers of a process: shorter code is not worth its time.
  code: { optimize: false },
})
/** Statuses of HTTP itself, which operations do not list: Not Modified, Not Acceptable. */
const OF_HTTP = new Set([304, 406])

type Content = Record<string, { schema?: object }>
type Response = { $ref?: string; content?: Content }
type Document = {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>
  components: { responses: Record<string, Response>; schemas?: Record<string, object> }
}

export interface GivenAnswer {
  readonly status: number
  /** With or without parameters. Null for a response without a body. */
  readonly contentType: string | null
  readonly body: string | Uint8Array | null
}

/** The description of some routes, in a comparable form. Routes that name one schema share what is compiled of it. */
class Description {
  readonly #document: Document
  /** Name of the document in the schemas. */
  readonly #id: string
  readonly #validators = new Map<object, ValidateFunction>()

  constructor(document: Document, id: string) {
    this.#document = document
    this.#id = id
    ajv.addSchema({ $id: id, components: document.components })
  }

  /** What differs from the description. Null when nothing does. */
  fault({ method, path }: Route, { status, contentType, body }: GivenAnswer): string | null {
    if (OF_HTTP.has(status)) return null
    const { responses } = this.#document.paths[path]![method.toLowerCase()]!
    const response = this.#resolved(responses[String(status)])
    if (response === undefined) return 'the status is not described'
    const type = contentType === null ? null : bare(contentType)
    const content = bareContent(response)
    if (type === null || body === null) {
      return content === undefined || type !== null ? null : 'a body is described, none came'
    }
    const media = content?.[type] ?? content?.['*/*']
    if (media === undefined) {
      return `${type} is not described: ${Object.keys(content ?? {}).join(', ') || 'no body is'}`
    }
    if (media.schema === undefined || !/[/+]json$/.test(type)) return null
    const validate = this.#validator(media.schema)
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
    const parsed: unknown = JSON.parse(text)
    return validate(parsed) ? describedFault(parsed) : ajv.errorsText(validate.errors)
  }

  #resolved(response: Response | undefined): Response | undefined {
    const name = response?.$ref?.split('/').at(-1)
    return name === undefined ? response : this.#document.components.responses[name]
  }

  #validator(schema: object): ValidateFunction {
    let validate = this.#validators.get(schema)
    if (validate === undefined) {
      const rooted = JSON.stringify(schema).replaceAll('"$ref":"#/', `"$ref":"${this.#id}#/`)
      validate = ajv.compile(JSON.parse(rooted) as object)
      this.#validators.set(schema, validate)
    }
    return validate
  }
}

/** The characters of an error_description (RFC 6749 section 5.2). */
function describedFault(body: unknown): string | null {
  const { error_description: text } = (body ?? {}) as { readonly error_description?: unknown }
  return typeof text !== 'string' || /^[ !#-[\]-~]*$/.test(text)
    ? null
    : `error_description has characters that it may not have: ${text}`
}

/**
 * The document of all routes as text: what a process of the runner has made for the others (TEST_DESCRIPTION), or what
 * this one makes. It takes as long as the start of a service.
 */
export function describedRoutes(): string {
  const path = process.env['TEST_DESCRIPTION']
  return path === undefined ? JSON.stringify(documentOf(routes)) : readFileSync(path, 'utf8')
}

function documentOf(described: readonly Route[]): object {
  return openapiDocument({ issuer: ISSUER, exposure: 'internal', routes: described })
}

const inTable: ReadonlySet<Route> = new Set(routes)
let ofTable: Description | undefined
/** Descriptions of routes that tests make. */
const ofOthers = new WeakMap<Route, Description>()
let others = 0

function descriptionOf(route: Route): Description {
  if (inTable.has(route)) {
    ofTable ??= new Description(JSON.parse(describedRoutes()) as Document, `${ISSUER}/openapi.json`)
    return ofTable
  }
  let description = ofOthers.get(route)
  if (description === undefined) {
    others += 1
    description = new Description(documentOf([route]) as Document, `${ISSUER}/${others}.json`)
    ofOthers.set(route, description)
  }
  return description
}

/** What differs between a response and the description of its route. Null when nothing does. */
export function contractFault(route: Route, answer: GivenAnswer): string | null {
  return descriptionOf(route).fault(route, answer)
}

let seen = 0
let report: ((fault: string) => void) | undefined

/**
 * An unhandled rejection: the test runner fails the file for it, after its tests have ended and
 * cleaned up.
 */
function reject(fault: string): void {
  void Promise.reject(new Error(fault))
}

/** From now on every response of this process is compared with its description. */
export function watchContract(onFault = reject): void {
  const isWatching = report !== undefined
  const faults = new Set<string>()
  report = (fault) => {
    if (faults.has(fault)) return
    faults.add(fault)
    onFault(`not as the OpenAPI document describes it: ${fault}`)
  }
  if (isWatching) return
  if (isRecording) keepBodies()
  // oxlint-disable-next-line typescript/unbound-method
  const send = Responder.prototype.send
  Responder.prototype.send = function (...given) {
    const [visit, { status, contentType = null, body = null }] = given
    seen += 1
    const { route, exchange } = visit
    if (isRecording) considerExample(visit, status, contentType, body)
    const answer = { status, contentType, body }
    const place = `${exchange.method} ${route?.route.path ?? exchange.path} ${status}`
    try {
      const fault =
        route === null ? unroutedFault(exchange, answer) : contractFault(route.route, answer)
      if (fault !== null) report?.(`${place}: ${fault}`)
    } catch (error) {
      report?.(`${place}: ${String(error)}`)
    }
    send.apply(this, given)
  }
}

function keepBodies(): void {
  // oxlint-disable-next-line typescript/unbound-method
  const read = InputReader.prototype.read
  InputReader.prototype.read = function (...given) {
    keepBody(given[0])
    return read.apply(this, given)
  }
}

/** A response without a route is a problem, its page for browsers, or the answer to a preflight. */
function unroutedFault(
  { method, headers, path }: HttpExchange,
  { status, contentType }: GivenAnswer,
): string | null {
  if (method === 'OPTIONS' && status === 204) return null
  if (isScimPath(path) && contentType === SCIM_MEDIA_TYPE) return null
  const expected = wantsPage(headers) ? 'text/html; charset=utf-8' : PROBLEM_MEDIA_TYPE
  return contentType === expected ? null : `${contentType} instead of ${expected}`
}

const bare = (type: string) => type.split(';')[0]!.trim()

/** By media type without its parameters. Undefined when no body is described. */
function bareContent({ content }: Response): Content | undefined {
  if (content === undefined) return undefined
  return Object.fromEntries(Object.entries(content).map(([type, media]) => [bare(type), media]))
}

/** How many responses have been compared. */
export function answersSeen(): number {
  return seen
}
