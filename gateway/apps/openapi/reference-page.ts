/**
 * The page of the API at openapi.docs_path: the OpenAPI document as HTML, with search and requests from the page. It loads its
 * files from this service only, and shows everything without its script.
 */
import { readFileSync } from 'node:fs'
import { Eta } from 'eta'
import { FONT_FACES } from '../../pages/platform/fonts.js'
import type { JsonSchema } from './composed-example.js'

const FOLDER = new URL('../../../../gateway/apps/openapi/page/', import.meta.url)
const file = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')
/** The custom properties of the design system, and nothing else of its sheet. */
const DESIGN = new URL('../../../../gateway/pages/templates/platform/style.css', import.meta.url)

const ROWS = `<% if (it.length > 0) { %><dl><% for (const row of it) { %><dt><code><%= row.name %></code> <span class="quiet"><% if (row.link) { %><a href="#<%= row.link %>"><%= row.type %></a><% } else { %><%= row.type %><% } %></span><% if (row.required) { %> <strong>required</strong><% } %></dt><dd><%= row.words %></dd><% } %></dl><% } %>`
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

/** @param folder path of the page, below which its files are. */
export function referencePage(described: object, issuer: string, folder: string): string {
  const document = described as Document
  const { paths = {}, components = {}, tags = [] } = document
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, one]) => shown(method, path, one, components, issuer)),
  )
  return eta.render('@reference', {
    folder,
    issuer,
    version: document.info.version,
    tags: tags
      .map(({ name }) => ({
        name,
        id: `area-${name.toLowerCase().replaceAll(/\W+/g, '-')}`,
        operations: operations.filter(({ tag }) => tag === name),
      }))
      .filter((tag) => tag.operations.length > 0),
    schemas: Object.entries(components.schemas ?? {}).map(([name, schema]) => ({
      name,
      id: `schema-${name}`,
      words: schema.description ?? '',
      rows: rowsOf(schema),
    })),
  })
}

function shown(
  lower: string,
  path: string,
  operation: Operation,
  components: NonNullable<Document['components']>,
  issuer: string,
) {
  const method = lower.toUpperCase()
  const { operationId, summary = '', description = '', parameters = [], security = [] } = operation
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const example = type === undefined ? null : exampleText(media?.example)
  return {
    id: `operation-${operationId}`,
    operationId,
    method,
    path,
    summary,
    tag: operation.tags?.[0],
    deprecated: operation.deprecated === true,
    words: [method, path, operationId, summary].join(' ').toLowerCase(),
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
      type === undefined ? null : { type, example, rows: rowsOf(media?.schema ?? {}, components) },
    curl: commandOf(method, `${issuer}${path}`, type, media?.example, security),
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
        example: isSuccess ? exampleText(body?.example) : null,
      }
    }),
  }
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

function exampleText(example: unknown): string | null {
  if (example === undefined) return null
  return typeof example === 'string' ? example : JSON.stringify(example, null, 2)
}

/** HTML of a paragraph with code in backticks. */
function withCode(text: string): string {
  return eta.config.escapeFunction(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

function commandOf(
  method: string,
  url: string,
  type: string | undefined,
  example: unknown,
  security: NonNullable<Operation['security']>,
): string {
  const parts = [`curl -X ${method} ${quoted(url)}`]
  const schemes = security.flatMap((way) => Object.keys(way))
  if (schemes.includes('client_basic')) parts.push(`-u "$CLIENT_ID:$CLIENT_SECRET"`)
  else if (schemes.some((name) => ['bearer', 'scim', 'metrics'].includes(name)))
    parts.push(`-H "Authorization: Bearer $TOKEN"`)
  if (type === 'application/x-www-form-urlencoded') {
    for (const [name, value] of Object.entries((example ?? {}) as object))
      parts.push(`--data-urlencode ${quoted(`${name}=${String(value)}`)}`)
  } else if (type !== undefined && example !== undefined) {
    parts.push(`-H 'Content-Type: ${type}'`, `-d ${quoted(JSON.stringify(example))}`)
  }
  return parts.join(' \\\n  ')
}
