/** An API or MCP server for which this service issues access tokens (RFC 8707, docs/guides/oauth/api-resources.md). */
import { z } from 'zod'
import { SHOWN_NAME } from '../shown-names.js'
import { type Draft, entity, type Row } from './entity.js'
import { ChosenName } from './names.js'

const SCOPES_MAX = 100
const CLIENTS_MAX = 200

const scope = z
  .object({
    name: z.string().min(1).max(128),
    description: z
      .string()
      .max(300)
      .regex(SHOWN_NAME)
      .or(z.literal(''))
      .default('')
      .meta({ description: 'Shown on the consent page.' }),
    kind: z
      .enum(['read', 'write', 'money'])
      .default('read')
      .meta({ description: 'What the scope permits: reading, changing, or spending money.' }),
  })
  .meta({ id: 'ResourceScope' })

export const apiResource = entity({
  name: 'api_resource',
  table: 'api_resources',
  schema: 'ApiResource',
  omitted: ['access_token_lifetime_secs'],
  members: {
    resource: z
      .string()
      .min(1)
      .max(512)
      .meta({
        description:
          'Absolute https URI without fragment (http for loopback hosts). It is the `aud` of the tokens as it is ' +
          'written here. Its host is a verified domain of the tenant or below one, a loopback host, or in a ' +
          'sandbox a name below .test, .example or .localhost.',
        example: 'https://mcp.example.com/mcp',
      }),
    name: ChosenName,
    scopes: z.array(scope).max(SCOPES_MAX),
    access_token_lifetime_secs: z
      .int()
      .min(60)
      .max(86_400)
      .nullable()
      .meta({
        description: 'Lifetime of access tokens. Null selects the lifetime of the deployment.',
      })
      .default(null),
    require_dpop: z
      .boolean()
      .meta({ description: 'Tokens need a DPoP proof (RFC 9449).' })
      .default(false),
    token_status_list: z
      .boolean()
      .meta({
        description:
          'Access tokens have the claim `status` (draft-ietf-oauth-status-list), so that the resource server learns of ' +
          'a revocation without a request per token.',
      })
      .default(false),
    allowed_clients: z
      .enum(['any', 'listed'])
      .meta({
        description: 'Whether every client of the tenant may request tokens, or only client_ids.',
      })
      .default('any'),
    client_ids: z
      .array(z.string().min(1).max(2048))
      .max(CLIENTS_MAX)
      .meta({
        description:
          'Clients that may use the resource. With client_credentials they get all of its scopes.',
      })
      .default([]),
  },
})

export type ApiResourceMembers = (typeof apiResource)['members']
export type ApiResource = Row<ApiResourceMembers>
export type ApiResourceDraft = Draft<ApiResourceMembers>
