/**
 * Holds every answer that a gateway of this process gives against the OpenAPI description of its
 * route: status, content type, body. Whatever client asked, over whichever transport: it looks at
 * the one place through which all answers go.
 */
import { createRequire } from 'node:module'
import type { Ajv, ValidateFunction } from 'ajv'
import { Responder } from '../../gateway/response/respond.js'
import { wantsPage } from '../../gateway/request/browser.js'
import type { HttpExchange } from '../../gateway/http-exchange.js'
import { openapiDocument } from '../../gateway/openapi/openapi.js'
import { PROBLEM_MEDIA_TYPE } from '../../gateway/response/problems.js'
import type { Route } from '../../gateway/route.js'

const require = createRequire(import.meta.url)
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

const ISSUER = 'https://id.test'
const DOCUMENT = `${ISSUER}/openapi.json`
/** Answers of HTTP itself, which no operation lists: Not Modified, Not Acceptable. */
const OF_HTTP = new Set([304, 406])

type Content = Record<string, { schema?: object }>
type Response = { $ref?: string; content?: Content }
type Document = {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>
  components: { responses: Record<string, Response>; schemas?: Record<string, object> }
}

export interface GivenAnswer {
  readonly status: number
  /** With or without parameters; null where there is no body. */
  readonly contentType: string | null
  readonly body: string | Uint8Array | null
}

/** What one route may answer, ready to be compared. */
class Expectation {
  readonly #responses: Record<string, Response>
  readonly #document: Document
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  readonly #validators = new Map<object, ValidateFunction>()

  constructor(route: Route) {
    const routes = [route]
    this.#document = openapiDocument({ issuer: ISSUER, exposure: 'internal', routes }) as Document
    const [item] = Object.values(this.#document.paths)
    this.#responses = item![route.method.toLowerCase()]!.responses
    this.#ajv.addSchema({ $id: DOCUMENT, components: this.#document.components })
  }

  /** What is wrong with an answer; null when it is as described. */
  fault({ status, contentType, body }: GivenAnswer): string | null {
    if (OF_HTTP.has(status)) return null
    const response = this.#resolved(this.#responses[String(status)])
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
    return validate(parsed) ? describedFault(parsed) : this.#ajv.errorsText(validate.errors)
  }

  #resolved(response: Response | undefined): Response | undefined {
    const name = response?.$ref?.split('/').at(-1)
    return name === undefined ? response : this.#document.components.responses[name]
  }

  #validator(schema: object): ValidateFunction {
    let validate = this.#validators.get(schema)
    if (validate === undefined) {
      const rooted = JSON.stringify(schema).replaceAll('"$ref":"#/', `"$ref":"${DOCUMENT}#/`)
      validate = this.#ajv.compile(JSON.parse(rooted) as object)
      this.#validators.set(schema, validate)
    }
    return validate
  }
}

/** RFC 6749 section 5.2: the characters that an error_description may hold, wherever it stands. */
function describedFault(body: unknown): string | null {
  const { error_description: text } = (body ?? {}) as { readonly error_description?: unknown }
  return typeof text !== 'string' || /^[ !#-[\]-~]*$/.test(text)
    ? null
    : `error_description has characters that it may not have: ${text}`
}

const expectations = new WeakMap<Route, Expectation>()

/** What is wrong with an answer of a route; null when it is as described. */
export function contractFault(route: Route, answer: GivenAnswer): string | null {
  let expectation = expectations.get(route)
  if (expectation === undefined) {
    expectation = new Expectation(route)
    expectations.set(route, expectation)
  }
  return expectation.fault(answer)
}

const faults = new Set<string>()
let seen = 0
let watching = false

/**
 * A rejection that nobody handles: the runner fails the file for it, but not before its tests have
 * come to their ends and cleaned up.
 */
function report(fault: string): void {
  if (faults.has(fault)) return
  faults.add(fault)
  void Promise.reject(new Error(`not as the OpenAPI document describes it: ${fault}`))
}

/** From here on every answer of this process is held against its description. */
export function watchContract(): void {
  if (watching) return
  watching = true
  // oxlint-disable-next-line typescript/unbound-method
  const send = Responder.prototype.send
  Responder.prototype.send = function (...given) {
    const [visit, status, contentType, , , body] = given
    seen += 1
    const { route, exchange } = visit
    const answer = { status, contentType, body }
    const place = `${exchange.method} ${route?.route.path ?? exchange.path} ${status}`
    try {
      const fault =
        route === null ? unroutedFault(exchange, answer) : contractFault(route.route, answer)
      if (fault !== null) report(`${place}: ${fault}`)
    } catch (error) {
      report(`${place}: ${String(error)}`)
    }
    send.apply(this, given)
  }
}

/** What no route answers is a problem, its page for who reads pages, or the end of a preflight. */
function unroutedFault(
  { method, headers }: HttpExchange,
  { status, contentType }: GivenAnswer,
): string | null {
  if (method === 'OPTIONS' && status === 204) return null
  const expected = wantsPage(headers) ? 'text/html; charset=utf-8' : PROBLEM_MEDIA_TYPE
  return contentType === expected ? null : `${contentType} instead of ${expected}`
}

const bare = (type: string) => type.split(';')[0]!.trim()

/** By media type without its parameters; undefined where no body is described. */
function bareContent({ content }: Response): Content | undefined {
  if (content === undefined) return undefined
  return Object.fromEntries(Object.entries(content).map(([type, media]) => [bare(type), media]))
}

/** How many answers have been looked at. */
export function answersSeen(): number {
  return seen
}
