/**
 * Where codes, tokens and the client secret of a connector go. They reach only origins to which the person, or who gave the
 * secret, let them go: a manager who changes an endpoint afterwards receives nothing of them.
 */
import { normalizeHostname } from '../../../domain/hostnames.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import {
  connectorSecretContext,
  type SecretConnector,
} from '../../../../storage/vault/connectors.js'
import type { Connector } from '../../../domain/entities/connector.js'
import { TEMPLATES } from '../../../domain/vault/connector-templates.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { OAuthDocument } from '../../../domain/vault/secret-documents/oauth.js'

type Receivers = Pick<Connector, 'tokenEndpoint' | 'revocationEndpoint'>
type Endpoints = Receivers & Pick<Connector, 'authorizationEndpoint' | 'issuer'>

const isElsewhere = (url: string, before: string) => new URL(url).origin !== new URL(before).origin

/** True if tokens or the secret would reach another origin. A first revocation endpoint is compared with the token endpoint. */
const receivesElsewhere = (after: Receivers, before: Receivers): boolean =>
  isElsewhere(after.tokenEndpoint, before.tokenEndpoint) ||
  (after.revocationEndpoint !== null &&
    isElsewhere(after.revocationEndpoint, before.revocationEndpoint ?? before.tokenEndpoint))

/** True if an endpoint is at another origin: accounts were not connected there, and the secret was not given for it. */
export const hasMoved = (before: Endpoints, after: Endpoints): boolean =>
  receivesElsewhere(after, before) ||
  isElsewhere(after.authorizationEndpoint, before.authorizationEndpoint) ||
  (after.issuer !== null &&
    isElsewhere(after.issuer, before.issuer ?? before.authorizationEndpoint))

/** Stands for all that a person agrees to send, and to whom: 43 characters. Another change of the connector keeps it. */
export const agreedOf = (
  connector: Endpoints &
    Pick<Connector, 'clientId' | 'allowedHosts' | 'accountLabel' | 'authorizationParameters'>,
) =>
  sha256(
    JSON.stringify([
      connector.authorizationEndpoint,
      connector.tokenEndpoint,
      connector.revocationEndpoint,
      connector.issuer,
      connector.clientId,
      connector.allowedHosts,
      connector.accountLabel?.url,
      connector.authorizationParameters,
    ]),
  ).toString('base64url')

/**
 * The member of a draft that sends what people authorize at a known provider elsewhere. All connectors have one callback
 * address: a client of another tenant, used with a token endpoint of a stranger, would give the stranger its codes.
 */
export function strayEndpoint(draft: Endpoints & Pick<Connector, 'pkce'>): string | undefined {
  const known = Object.values(TEMPLATES).find(
    ({ authorization_endpoint: url }) => !isElsewhere(draft.authorizationEndpoint, url),
  )
  if (known === undefined) return undefined
  if (isElsewhere(draft.tokenEndpoint, known.token_endpoint)) return '/token_endpoint'
  const revocation = known.revocation_endpoint ?? known.token_endpoint
  if (draft.revocationEndpoint !== null && isElsewhere(draft.revocationEndpoint, revocation))
    return '/revocation_endpoint'
  return draft.pkce || known.pkce === false ? undefined : '/pkce'
}

/** True if the name of an account may be read there with its access token: on a host to which the proxy sends it too. */
export const mayReadLabel = ({
  accountLabel,
  allowedHosts,
}: Pick<Connector, 'accountLabel' | 'allowedHosts'>): boolean =>
  accountLabel === null ||
  allowedHosts.includes(normalizeHostname(new URL(accountLabel.url).hostname) ?? '')

/**
 * The document of a connected account with the client that its connector has now. Undefined: the connector is at another
 * origin, which gets neither the tokens of this account nor is its new secret sent to the earlier one.
 */
export async function withClientOf(
  sealer: Sealer,
  stored: SecretConnector,
  { client_secret: _secret, ...document }: OAuthDocument,
): Promise<OAuthDocument | undefined> {
  const { token_url, revocation_url = null } = document
  if (receivesElsewhere(stored, { tokenEndpoint: token_url, revocationEndpoint: revocation_url }))
    return undefined
  const { tokenEndpoint, clientId, clientSecret, ...connector } = await withSecret(sealer, stored)
  return {
    ...document,
    token_url: tokenEndpoint,
    revocation_url: connector.revocationEndpoint ?? revocation_url ?? undefined,
    client_id: clientId,
    ...(clientSecret !== null && { client_secret: clientSecret }),
    auth_method: clientSecret === null ? 'none' : connector.tokenEndpointAuthMethod,
  }
}

/** The connector with its secret, unsealed. */
export async function withSecret(sealer: Sealer, stored: SecretConnector): Promise<Connector> {
  const { clientSecretSealed: sealed, ...connector } = stored
  if (sealed === null) return { ...connector, clientSecret: null }
  const bytes = await sealer.open(stored.tenantId, connectorSecretContext(stored.id), sealed)
  return { ...connector, clientSecret: Buffer.from(bytes).toString('utf8') }
}
