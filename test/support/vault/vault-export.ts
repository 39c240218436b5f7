/** Token exchange for vault credentials, and its events. */
import type { Answer, Json } from '../api.js'
import { type EgressHouse, type Setting, settingOf } from './egress.js'
import { sql } from '../storage/sql.js'
import type { TokenUpstream } from './token-upstream.js'

export const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
export const VAULT_SECRET = 'urn:svc:params:oauth:token-type:vault-secret'
export const URN = 'urn:svc:vault:credential:'
/** Must reach the upstream only. */
export const CLIENT_SECRET = 'canary-client:+ secret'

type Asking = Pick<Setting, 'delegated' | 'direct' | 'credentialId'>

export function exchange(
  { api }: EgressHouse,
  setting: Asking,
  fields: Record<string, string> = {},
): Promise<Answer> {
  return api.form('/oauth/token', {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: setting.delegated,
    subject_token_type: ACCESS,
    actor_token: setting.direct,
    actor_token_type: ACCESS,
    requested_token_type: VAULT_SECRET,
    resource: URN + setting.credentialId,
    ...fields,
  })
}

/** The access token of an upstream. */
export function managed(at: EgressHouse, setting: Asking): Promise<Answer> {
  return exchange(at, setting, { requested_token_type: ACCESS })
}

export const refusedAs = ({ status, body }: Answer) => [status, body['error']]

export const accessedOf = ({ running }: EgressHouse, tenantId: string) =>
  sql<{ data: Json; grantId: string | null }>(running)`
    select e.data, a.grant_id as "grantId"
    from all_events e join audit_events a using (tenant_id, id)
    where e.tenant_id = ${tenantId} and e.type = 'vault.credential.accessed' order by e.sequence`

/** An oauth2 credential whose token endpoint is `upstream`, granted to an agent. */
export function oauthSetting(
  resources: EgressHouse,
  upstream: TokenUpstream,
  more: Json = {},
): Promise<Setting> {
  return settingOf(resources, {
    credential_type: 'oauth2',
    auth_scheme: undefined,
    non_exportable: false,
    secret: JSON.stringify({
      token_url: upstream.url,
      client_id: 'client one',
      client_secret: CLIENT_SECRET,
      refresh_token: 'rt-0',
      ...more,
    }),
  })
}

/** Changes the expiry of the cached token. */
export const expireIn = ({ running }: EgressHouse, { credentialId }: Setting, secs: number) =>
  sql(running)`
    update vault_managed_tokens set obtained_at = now() - interval '1 hour',
    expires_at = now() + make_interval(secs => ${secs}) where credential_id = ${credentialId}`
