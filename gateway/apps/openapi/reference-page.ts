/**
 * The pages of the API at openapi.docs_path: the OpenAPI document as HTML, a page for each area, with samples in four
 * languages, search, and requests from the page. They load their files from this service only, and show everything without
 * their script.
 */
import { readFileSync } from 'node:fs'
import { Eta } from 'eta'
import { FONT_FACES } from '../../pages/platform/fonts.js'
import { highlighted } from '../../pages/platform/highlight.js'
import { CONTROLS_SCRIPT } from '../../pages/platform/script.js'
import type { JsonSchema } from './composed-example.js'
import { SAMPLES, type SampleRequest } from './samples.js'

const FOLDER = new URL('../../../../gateway/apps/openapi/page/', import.meta.url)
const file = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')
/** The custom properties of the design system, and nothing else of its sheet. */
const DESIGN = new URL('../../../../gateway/pages/templates/platform/style.css', import.meta.url)

const ROWS = `<% if (it.rows.length > 0) { %><dl><% for (const row of it.rows) { %><dt><code><%= row.name %></code> <span class="quiet"><% if (row.link) { %><a href="<%= it.folder %>/schemas#<%= row.link %>"><%= row.type %></a><% } else { %><%= row.type %><% } %></span><% if (row.required) { %> <strong>required</strong><% } %></dt><dd><%= row.words %></dd><% } %></dl><% } %>`
const eta = new Eta({ autoEscape: true, useWith: false, cache: true })
eta.loadTemplate('@rows', ROWS)
eta.loadTemplate('@reference', file('reference.eta'))

type Schema = JsonSchema & { readonly description?: string }
type Media = { readonly schema?: Schema; readonly example?: unknown }
type Content = Readonly<Record<string, Media>>
type Answer = { readonly $ref?: string; readonly description?: string; readonly content?: Content }
type Parameter = {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
  readonly example?: unknown
}
type Operation = {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly deprecated?: boolean
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content?: Content }
  readonly responses: Readonly<Record<string, Answer>>
}
type Document = {
  readonly info: { readonly version: string }
  readonly tags?: readonly { readonly name: string }[]
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: {
    readonly schemas?: Readonly<Record<string, Schema>>
    readonly responses?: Readonly<Record<string, Answer>>
  }
}

type Row = {
  readonly name: string
  readonly type: string
  /** Fragment of the schema's own entry. */
  readonly link: string | null
  readonly required: boolean
  readonly words: string
}

/** The files of the page besides its HTML. */
export const PAGE_FILES: Readonly<Record<string, { readonly type: string; text(): string }>> = {
  'reference.css': {
    type: 'text/css; charset=utf-8',
    text: () => [FONT_FACES, designTokens(), file('reference.css')].join('\n'),
  },
  'reference.js': { type: 'text/javascript; charset=utf-8', text: () => file('reference.js') },
}

function designTokens(): string {
  const sheet = readFileSync(DESIGN, 'utf8')
  return sheet.slice(sheet.indexOf(':root'), sheet.indexOf('/* Elements */'))
}

const SCHEMAS = { id: 'schemas', name: 'Schemas' }

/**
 * The pages by the last part of their path, each made when it is asked for. The page at `folder` has the empty name.
 * @param folder path of the pages, below which their files are too.
 */
export function referencePages(
  described: object,
  issuer: string,
  folder: string,
): ReadonlyMap<string, () => string> {
  const document = described as Document
  const { paths = {}, components = {}, tags = [] } = document
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
  const areas = tags
    .map(({ name }) => ({
      name,
      id: name.toLowerCase().replaceAll(/\W+/g, '-'),
      operations: operations.filter(({ operation }) => operation.tags?.[0] === name),
    }))
    .filter((area) => area.operations.length > 0)
  const listed = [...areas, SCHEMAS]
  const page = (id: string, title: string, content: () => object) => {
    const at = listed.findIndex((area) => area.id === id)
    const make = () =>
      eta.render('@reference', {
        folder,
        issuer,
        title,
        version: document.info.version,
        controls: CONTROLS_SCRIPT,
        areas: listed.map((area) => ({ ...area, here: area.id === id })),
        previous: listed[at - 1],
        next: listed[at + 1],
        ...content(),
      })
    return [id, make] as const
  }
  return new Map([
    page('', 'svc API reference', () => ({
      index: areas.map((area) => ({ ...area, operations: area.operations.map(nameOf) })),
    })),
    ...areas.map(({ id, name, operations: own }) =>
      page(id, `${name}: svc API reference`, () => ({
        operations: own.map((one) => shown(one, components, issuer)),
        scopes: scopesOf(own).join(' '),
      })),
    ),
    page(SCHEMAS.id, 'Schemas: svc API reference', () => ({
      schemas: Object.entries(components.schemas ?? {}).map(([name, schema]) => ({
        name,
        id: `schema-${name}`,
        words: schema.description ?? '',
        rows: rowsOf(schema),
      })),
    })),
  ])
}

type Described = { readonly path: string; readonly method: string; readonly operation: Operation }

/** What the list of all operations shows of one. */
function nameOf({ path, method: lower, operation }: Described) {
  const method = lower.toUpperCase()
  const { operationId, summary = '', deprecated } = operation
  return {
    id: `operation-${operationId}`,
    operationId,
    method,
    path,
    summary,
    deprecated: deprecated === true,
    words: [method, path, operationId, summary].join(' ').toLowerCase(),
  }
}

/** The scopes that open the operations of an area. */
function scopesOf(operations: readonly Described[]): readonly string[] {
  const ways = operations.flatMap(({ operation }) => operation.security ?? [])
  return [...new Set(ways.flatMap((way) => way['bearer'] ?? []))].toSorted()
}

function shown(one: Described, components: NonNullable<Document['components']>, issuer: string) {
  const { path, operation } = one
  const { description = '', parameters = [], security = [] } = operation
  const name = nameOf(one)
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const url = `${issuer}${exampleOf(path, parameters)}`
  const request = { method: name.method, url, access: credentialsOf(security), type }
  return {
    ...name,
    description: description.split('\n\n').filter(Boolean).map(withCode),
    access: accessOf(security),
    parameters: parameters.map(
      ({ name, in: place, required = false, description: words = '', schema = {} }) => ({
        name,
        type: `${place}, ${typeOf(schema)}`,
        required,
        words: words === '' ? (schema.description ?? '') : words,
      }),
    ),
    request:
      type === undefined
        ? null
        : {
            type,
            example: exampleHtml(media?.example),
            rows: rowsOf(media?.schema ?? {}, components),
          },
    samples: samplesOf({ ...request, example: media?.example }),
    answers: Object.entries(operation.responses).map(([status, answer]) => {
      const full =
        answer.$ref === undefined
          ? answer
          : (components.responses?.[answer.$ref.split('/').at(-1)!] ?? {})
      const [, body] = Object.entries(full.content ?? {})[0] ?? []
      const isSuccess = status.startsWith('2')
      return {
        status,
        words: full.description ?? '',
        rows: isSuccess ? rowsOf(body?.schema ?? {}, components) : [],
        example: isSuccess ? exampleHtml(body?.example) : null,
      }
    }),
  }
}

function samplesOf(request: SampleRequest) {
  return SAMPLES.map(({ title, language, write }) => ({
    title,
    html: highlighted(write(request), language, escaped),
  }))
}

/** The path with the examples of its parameters. One without an example keeps its name. */
function exampleOf(path: string, parameters: readonly Parameter[]): string {
  return parameters.reduce(
    (text, { name, example }) =>
      example === undefined ? text : text.replace(`{${name}}`, encodeURIComponent(String(example))),
    path,
  )
}

function credentialsOf(security: NonNullable<Operation['security']>): SampleRequest['access'] {
  const schemes = security.flatMap((way) => Object.keys(way))
  if (schemes.includes('client_basic')) return 'basic'
  return schemes.some((name) => ['bearer', 'scim', 'metrics'].includes(name)) ? 'bearer' : null
}

function accessOf(security: NonNullable<Operation['security']>): string {
  if (security.length === 0) return 'No credentials'
  const ways = security.map((way) => {
    const [scheme, scopes = []] = Object.entries(way)[0] ?? ['none']
    return scopes.length === 0 ? scheme : `${scheme} with ${scopes.join(' ')}`
  })
  return `Credentials: ${[...new Set(ways)].join(', or ')}`
}

/** The members of a schema. A list is described by its items. */
function rowsOf(schema: Schema, components: NonNullable<Document['components']> = {}): Row[] {
  const named = schema.$ref?.split('/').at(-1)
  const target = named === undefined ? schema : (components.schemas?.[named] ?? {})
  const { properties, items, required = [] } = target
  if (properties === undefined) {
    return items === undefined ? [] : rowsOf(items, components)
  }
  return Object.entries(properties).map(([name, member]) => ({
    name,
    type: typeOf(member),
    link: linkOf(member),
    required: required.includes(name),
    words: (member as Schema).description ?? '',
  }))
}

const refOf = ({ $ref, items }: Schema) => ($ref ?? items?.$ref)?.split('/').at(-1)

function linkOf(schema: Schema): string | null {
  const name = refOf(schema)
  return name === undefined ? null : `schema-${name}`
}

function typeOf(schema: Schema): string {
  const name = refOf(schema)
  if (name !== undefined) return schema.items === undefined ? name : `list of ${name}`
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' or ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`
  const type = typeof schema.type === 'string' ? schema.type : (schema.type ?? []).join(' or ')
  const format = schema.format === undefined ? '' : ` (${schema.format})`
  return `${type === '' ? 'any' : type}${format}`
}

const escaped = (text: string) => eta.config.escapeFunction(text)

/** HTML of an example, with colours. */
function exampleHtml(example: unknown): string | null {
  if (example === undefined) return null
  return typeof example === 'string'
    ? escaped(example)
    : highlighted(JSON.stringify(example, null, 2), 'json', escaped)
}

/** HTML of a paragraph with code in backticks. */
function withCode(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}
