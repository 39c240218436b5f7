/** Errors of SCIM (RFC 7644 section 3.12): on all paths below /scim/v2 instead of problem documents. */
import { z } from 'zod'
import { PROBLEM_TYPES, type Problem } from './problems.js'
import type { ReplyRule } from './replies.js'

export const SCIM_MEDIA_TYPE = 'application/scim+json'
const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error'

export const ScimError = z
  .object({
    schemas: z.array(z.string()),
    status: z.string().meta({ description: 'The HTTP status as a string.' }),
    scimType: z
      .string()
      .optional()
      .meta({ description: 'RFC 7644, table 9.', example: 'uniqueness' }),
    detail: z.string(),
  })
  .meta({ id: 'ScimError', description: 'Error of SCIM (RFC 7644 section 3.12).' })

/** True for paths of SCIM. */
export function isScimPath(path: string): boolean {
  return path === '/scim/v2' || path.startsWith('/scim/v2/')
}

function scimError(status: number, scimType: string | null, detail: string): string {
  return JSON.stringify({
    schemas: [ERROR_SCHEMA],
    status: String(status),
    ...(scimType === null ? {} : { scimType }),
    detail,
  })
}

/** The body for a refusal of the pipeline. */
export function scimErrorOf({ name, detail, errors }: Problem): string {
  const { status, title } = PROBLEM_TYPES[name]
  const isQuery = errors?.[0]?.pointer.startsWith('query:') === true
  const scimType = name === 'bad-request' ? (isQuery ? 'invalidValue' : 'invalidSyntax') : null
  return scimError(status, scimType, detail ?? title)
}

type ScimErrorOutcome = {
  readonly status: number
  readonly scimType: string | null
  readonly detail: string
}

/** The reply to refusals of an actor, with the statuses that they may have. */
export function scimRefused(statuses: readonly number[]): ReplyRule<ScimErrorOutcome> {
  return {
    docs: statuses.map((status) => ({ status, contentType: SCIM_MEDIA_TYPE, schema: ScimError })),
    render: ({ status, scimType, detail }) => ({
      form: 'body',
      status,
      contentType: SCIM_MEDIA_TYPE,
      body: scimError(status, scimType, detail),
    }),
  }
}
