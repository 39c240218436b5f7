/** A provider at which people connect accounts (docs/guides/vault/connected-accounts.md). */
import { z } from 'zod'
import { CONNECTOR_TEMPLATES } from '../vault/connector-templates.js'
import { type Draft, entity, type Row } from './entity.js'
import { HttpsUrl } from './https-url.js'

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** RFC 6749 appendix A: printable ASCII. */
const printable = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x20-\x7e]+$/, 'Must have printable ASCII characters only.')
const endpoint = HttpsUrl({ query: true })
const parameters = z
  .record(printable(128), z.string().max(1024))
  .refine((given) => Object.keys(given).length <= 32, 'Must have at most 32 members.')

const accountLabel = z
  .object({
    url: endpoint,
    pointer: z
      .string()
      .max(256)
      .regex(/^(?:\/[^/]*)*$/)
      .meta({ description: 'JSON pointer into the answer (RFC 6901).' }),
  })
  .meta({ id: 'AccountLabelSource' })

const stated = entity({
  name: 'connector',
  table: 'vault_connectors',
  schema: 'Connector',
  omitted: ['template', 'revocation_endpoint', 'issuer', 'account_label'],
  unstored: ['client_secret'],
  members: {
    name: z.string().regex(SLUG).meta({
      description: 'Unique in the tenant: lower-case letters, digits and hyphens.',
      example: 'github',
    }),
    template: z
      .enum(CONNECTOR_TEMPLATES)
      .nullable()
      .default(null)
      .meta({ description: 'Fills the members that a request leaves out.' }),
    client_id: printable(1024),
    client_secret: printable(4096)
      .nullable()
      .default(null)
      .meta({ description: 'The secret of the client at the provider. No answer has it.' }),
    authorization_endpoint: endpoint,
    token_endpoint: endpoint,
    revocation_endpoint: endpoint.nullable().default(null).meta({ description: 'RFC 7009.' }),
    issuer: HttpsUrl({})
      .nullable()
      .default(null)
      .meta({
        description:
          'The `iss` of authorization responses (RFC 9207), compared exactly. Without it the origin of an `iss` must be ' +
          'the origin of authorization_endpoint.',
      }),
    scopes: z
      .array(printable(256).regex(/^[^ ]+$/, 'Must have no spaces.'))
      .max(100)
      .default([]),
    allowed_hosts: z.array(z.string().max(253)).min(1).max(64).meta({
      description: 'Hosts to which the egress proxy sends the access tokens.',
    }),
    auth_scheme: z
      .enum(['bearer'])
      .default('bearer')
      .meta({ description: 'How a call sends the access token.' }),
    pkce: z.boolean().default(true).meta({ description: 'PKCE with S256 (RFC 7636).' }),
    token_endpoint_auth_method: z
      .enum(['client_secret_post', 'client_secret_basic', 'none'])
      .default('client_secret_post'),
    authorization_parameters: parameters.default({}).meta({
      description: 'Further parameters of the authorization request.',
    }),
    account_label: accountLabel.nullable().default(null).meta({
      description: 'Where the name of a connected account is read, on one of allowed_hosts.',
    }),
  },
  shown: {
    callback_url: z.string().meta({
      description: 'The redirect URI to register at the provider.',
    }),
  },
})

export const connector = {
  ...stated,
  /** What is absent comes from the template. */
  create: (stated.update as z.ZodObject)
    .required({ name: true, client_id: true })
    .meta({ id: 'NewConnector' }) as unknown as typeof stated.create,
}

export type ConnectorMembers = (typeof stated)['members']
export type Connector = Row<ConnectorMembers>
export type ConnectorDraft = Draft<ConnectorMembers>
