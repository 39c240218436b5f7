/** The secrets of `oauth2_client_credentials` and `oauth2_refresh` (docs/guides/vault/oauth-credentials.md). */
import { z } from 'zod'
import { SigningPem } from './private-keys.js'

/** Parameters that the service sets. */
const OWN_PARAMETERS = new Set([
  'grant_type',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'refresh_token',
  'scope',
  'audience',
  'resource',
])
const PARAMETERS_MAX = 32

const text = (max: number) => z.string().min(1).max(max)
const url = text(2048)
/** RFC 6749 appendix A: printable ASCII. */
const printable = (max: number) =>
  text(max).regex(/^[\x20-\x7e]+$/, 'Must have printable ASCII characters only.')

const AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'none',
] as const

const oauthMembers = {
  token_url: url,
  client_id: printable(1024),
  client_secret: printable(4096).optional(),
  scope: printable(4096).optional(),
  /** Default: private_key_jwt with a key, none without a secret; else the one of basic and post that works. */
  auth_method: z.enum(AUTH_METHODS).optional(),
  private_key: SigningPem.optional(),
  kid: printable(256).optional(),
  audience: printable(2048).optional(),
  resource: z.union([url, z.array(url).min(1).max(8)]).optional(),
  extra_params: z
    .record(printable(128), z.string().max(4096))
    .refine((given) => Object.keys(given).length <= PARAMETERS_MAX, 'Must have at most 32 members.')
    .refine(
      (given) => !Object.keys(given).some((name) => OWN_PARAMETERS.has(name)),
      'Must not have parameters that the service sets.',
    )
    .optional(),
  dpop: z.literal(false, 'Must be false: DPoP is not supported here.').optional(),
}

type Authentication = z.output<
  z.ZodObject<Pick<typeof oauthMembers, 'client_secret' | 'auth_method' | 'private_key'>>
>

/** Each method has the secret that it needs, and no other. */
function checkMethod({ value, issues }: z.core.ParsePayload<Authentication>): void {
  const { auth_method: method, client_secret: secret, private_key: key } = value
  const fault = (path: string, message: string) =>
    issues.push({ code: 'custom', input: undefined, path: [path], message })
  if (method === 'private_key_jwt' && key === undefined)
    fault('private_key', 'Required for auth_method private_key_jwt.')
  if (method?.startsWith('client_secret_') && secret === undefined)
    fault('client_secret', 'Required for this auth_method.')
  if (secret !== undefined && (method === 'none' || key !== undefined))
    fault('client_secret', 'Must be omitted: the auth_method does not send it.')
  if (key !== undefined && method !== undefined && method !== 'private_key_jwt')
    fault('private_key', 'Must be omitted: the auth_method does not use it.')
}

export const ClientCredentialsSecret = z
  .strictObject(oauthMembers)
  .check(checkMethod)
  .meta({ id: 'OAuthClientCredentialsSecret' })
export const RefreshSecret = z
  .strictObject({ ...oauthMembers, refresh_token: printable(16_384) })
  .check(checkMethod)
  .meta({ id: 'OAuthRefreshSecret' })

/** The document of an OAuth credential. */
export type OAuthDocument = z.output<typeof ClientCredentialsSecret> & {
  readonly refresh_token?: string | undefined
  /** Set for a connected account. Its token endpoint may be on another host. Documents of the API do not have it. */
  readonly connection_id?: string | undefined
  /** Where the provider of a connected account revokes tokens. */
  readonly revocation_url?: string | undefined
}
