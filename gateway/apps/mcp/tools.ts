/** The tools of the MCP endpoint. All of them are public, read-only and without side effects. */
import { z } from 'zod'
import { EVENT_CATALOGUE } from '../../../actors/domain/event-catalogue.js'
import type { AskOptions } from '../../../runtime/kernel/actor.js'
import { checked } from '../../body/read.js'
import { PROBLEM_TYPES } from '../../response/problems.js'
import type { AnyRouteRequest } from '../../route.js'
import type { Documents, Read } from './documents.js'
import { GUIDE_TOPICS, GUIDES } from './guides.js'

/** Paths of the documents of `get_discovery_document`. */
const DISCOVERY_PATHS = {
  'openid-configuration': '/.well-known/openid-configuration',
  'oauth-authorization-server': '/.well-known/oauth-authorization-server',
  'oauth-protected-resource': '/.well-known/oauth-protected-resource',
  'openid-credential-issuer': '/.well-known/openid-credential-issuer',
  'jwt-vc-issuer': '/.well-known/jwt-vc-issuer',
  jwks: '/.well-known/jwks.json',
} as const
const BOOTSTRAP_PATH = '/api/v1/agents/workspace/bootstrap'
const CAPABILITIES_PATH = '/api/v1/capabilities'

/** Paths of what the tools read. */
export const TOOL_PATHS: readonly string[] = [
  ...Object.values(DISCOVERY_PATHS),
  BOOTSTRAP_PATH,
  CAPABILITIES_PATH,
]

export type Outcome =
  | { readonly tag: 'done'; readonly content: Readonly<Record<string, unknown>> }
  /** The arguments do not fit the schema of the tool. */
  | { readonly tag: 'bad_arguments'; readonly message: string }
  /** The arguments fit, and there is no result. */
  | { readonly tag: 'failed'; readonly message: string }

/** The host and the deadline of a call. */
type Call = {
  readonly documents: Documents
  readonly request: AnyRouteRequest
  readonly asking: AskOptions
}

type Tool = {
  readonly title: string
  readonly description: string
  readonly input: z.ZodType
  /** JSON Schema of `structuredContent`. */
  readonly output: object
  readonly run: (input: never, call: Call) => Promise<Outcome> | Outcome
}

function tool<Schema extends z.ZodType>(
  facts: Omit<Tool, 'run' | 'input'> & {
    readonly input: Schema
    readonly run: (input: z.output<Schema>, call: Call) => Promise<Outcome> | Outcome
  },
): Tool {
  return facts
}

const NONE = z.strictObject({})
const CATEGORIES = Object.keys(EVENT_CATALOGUE).join(', ')
const DOCUMENT = { type: 'object' }
const listOf = (...members: string[]) => ({
  type: 'object',
  properties: { items: { type: 'array', items: { type: 'object', required: members } } },
  required: ['items'],
})
const text = (max: number, description: string) => z.string().max(max).describe(description)
const done = (content: Readonly<Record<string, unknown>>): Outcome => ({ tag: 'done', content })
const items = (list: readonly object[]): Outcome => done({ items: list })

const TOOLS: Readonly<Record<string, Tool>> = {
  get_bootstrap_metadata: tool({
    title: 'Workspace bootstrap metadata',
    description: 'Returns what the key ownership proof of an agent registration must sign.',
    input: NONE,
    output: DOCUMENT,
    run: async (_, call) => found(await read(call, BOOTSTRAP_PATH)),
  }),
  get_capabilities: tool({
    title: 'Capabilities',
    description: 'Returns the features that this deployment has enabled.',
    input: NONE,
    output: DOCUMENT,
    run: async (_, call) => found(await read(call, CAPABILITIES_PATH)),
  }),
  get_discovery_document: tool({
    title: 'Discovery document',
    description: 'Returns a discovery document or the key set of the issuer.',
    input: z.strictObject({
      document: z
        .enum(Object.keys(DISCOVERY_PATHS) as (keyof typeof DISCOVERY_PATHS)[])
        .describe('The name of the document below /.well-known.'),
    }),
    output: DOCUMENT,
    run: async ({ document }, call) => found(await read(call, DISCOVERY_PATHS[document])),
  }),
  get_guide: tool({
    title: 'Guide',
    description: 'Returns the steps of a common task and the operations that they use.',
    input: z.strictObject({ topic: z.enum(GUIDE_TOPICS).describe('The task.') }),
    output: { type: 'object', required: ['topic', 'title', 'operations', 'text'] },
    run: ({ topic }) => done({ topic, ...GUIDES[topic] }),
  }),
  get_operation: tool({
    title: 'API operation',
    description:
      'Returns one operation of the public OpenAPI document, with the schemas that it refers to.',
    input: z.strictObject({
      operation_id: text(128, 'The operation_id of an item of list_operations.'),
    }),
    output: { type: 'object', required: ['operation_id', 'method', 'path', 'operation'] },
    run({ operation_id: id }, { documents }) {
      const operation = documents.operations.read(id)
      return operation === null
        ? failed('There is no operation with this operation_id.')
        : done(operation)
    },
  }),
  list_error_codes: tool({
    title: 'Error codes',
    description: 'Lists the error codes of the API and of OAuth with their status and meaning.',
    input: NONE,
    output: listOf('status', 'code', 'meaning'),
    run: (_, { documents }) => items(documents.errorCodes()),
  }),
  list_event_types: tool({
    title: 'Event types',
    description: 'Lists the types of events that webhooks of this deployment can receive.',
    input: z.strictObject({
      category: text(64, `Lists one category only: ${CATEGORIES}.`).optional(),
    }),
    output: listOf('type', 'category'),
    run: ({ category }, { documents }) => items(documents.eventTypes(category)),
  }),
  list_operations: tool({
    title: 'API operations',
    description: 'Lists operations of the public OpenAPI document.',
    input: z.strictObject({
      tag: text(64, 'Lists operations with this tag only.').optional(),
      query: text(200, 'Lists operations whose description has all of these words.').optional(),
    }),
    output: listOf('operation_id', 'method', 'path', 'summary', 'auth'),
    run: (filter, { documents }) => items(documents.operations.list(filter)),
  }),
  list_scopes: tool({
    title: 'Scopes',
    description: 'Lists the scopes of access tokens and the operations that accept each.',
    input: NONE,
    output: listOf('scope', 'meaning', 'operations'),
    run: (_, { documents }) => items(documents.scopes()),
  }),
}

/** The items of `tools/list`, sorted by name. */
export const TOOL_LIST: readonly object[] = Object.keys(TOOLS)
  .toSorted()
  .map((name) => {
    const { title, description, input, output } = TOOLS[name]!
    return {
      name,
      title,
      description,
      inputSchema: inputSchemaOf(input),
      outputSchema: output,
      annotations: {
        title,
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      },
    }
  })

function inputSchemaOf(input: z.ZodType): object {
  const { $schema: _, ...schema } = z.toJSONSchema(input)
  return { properties: {}, ...schema }
}

/**
 * Runs a tool.
 * @returns null if there is no tool with this name
 * @throws {ActorUnavailable}
 */
export async function runTool(name: string, input: unknown, call: Call): Promise<Outcome | null> {
  if (!Object.hasOwn(TOOLS, name)) return null
  const { input: schema, run } = TOOLS[name]!
  const parsed = checked(schema, input, (path) => path.join('.') || 'arguments')
  if (!parsed.ok) return { tag: 'bad_arguments', message: parsed.problem.detail ?? '' }
  return run(parsed.value as never, call)
}

function read({ documents, request, asking }: Call, path: string): Promise<Read> {
  return documents.read(path, request, asking)
}

function found(result: Read): Outcome {
  if (result.tag === 'read') return done(result.document)
  const { name, detail } = result.problem
  return failed(detail ?? PROBLEM_TYPES[name].title)
}

function failed(message: string): Outcome {
  return { tag: 'failed', message }
}
