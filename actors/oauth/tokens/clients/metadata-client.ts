/**
 * Client authentication of clients that are identified by their metadata document. The tenant of the code or token in
 * the request decides, otherwise the tenant of the request. A code is redeemed under the document of its authorization
 * request: a document that changed in between cannot change how its client authenticates.
 */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { type Clock, CLOCK_STEP_SECS_MAX } from '../../../../runtime/kernel/clock.js'
import { findBackchannelClient } from '../../../../storage/oauth/backchannel-requests.js'
import { findClient } from '../../../../storage/oauth/applications.js'
import type { Coordination } from '../../../../storage/platform/coordination/port.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { Admitted, MetadataClients, NotAdmitted } from './metadata/metadata-clients.js'
import {
  NO_SUCH_RESOURCE,
  NO_TENANT,
  tenantOfRequest,
  type TenantOfRequestNeeds,
} from './metadata/tenant-of-request.js'
import type { OAuthForm } from '../form.js'
import type { BatchedLookups } from '../issue/batched-lookups.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { AccessTokenVerifier } from '../verify/access-token-verifier.js'
import { readAssertion, type ReadAssertion } from './client-assertion.js'
import type { ClientAuthentication } from './client-authentication.js'
import { isSignedByOneOf } from './client-keys.js'
import type { Client } from './clients.js'

const UNAVAILABLE_SECS = 10
/** Parameters that stand for a grant: without its grant the answer is the same for every client. */
const GRANT_PARAMETERS = ['code', 'refresh_token', 'device_code', 'auth_req_id'] as const

type MetadataClientNeeds = TenantOfRequestNeeds & {
  readonly database: Database
  readonly metadataClients: MetadataClients
  readonly lookups: BatchedLookups
  readonly verifier: AccessTokenVerifier
  readonly coordination: Pick<Coordination, 'once'>
  readonly clock: Clock
}

/** The grant that the request is about. */
type Grant = {
  readonly tenantId: string
  /** The id of the application. Null if only its client_id is known. */
  readonly applicationId: string | null
  /** The document under which a code is redeemed. */
  readonly documentSha256: string | null
}

/** The client_id of a request, if it names a metadata document. An assertion without client_id names it too. */
export function presentedUrl(
  metadataClients: Pick<MetadataClients, 'isUrl'>,
  presented: ClientAuthentication,
  assertion: ReadAssertion | { readonly fault: string } | null,
): string | null {
  const named =
    presented.clientId ??
    (assertion !== null && 'clientId' in assertion ? assertion.clientId : null)
  return named !== null && metadataClients.isUrl(named) ? named : null
}

export async function authenticateMetadataClient(
  needs: MetadataClientNeeds,
  clientId: string,
  request: {
    readonly presented: ClientAuthentication
    readonly form: OAuthForm
    readonly host: string
  },
  context: MessageContext,
): Promise<Client | OAuthRefused> {
  const { database, metadataClients, clock, issuer } = needs
  const { presented, form, host } = request
  if (presented.method === 'secret')
    return refuse('invalid_client', 'this client has no secret', 'client_method_wrong')
  const grant = await grantOf(needs, clientId, form, context)
  const tenantId = grant?.tenantId ?? (await ofRequest(needs, form, host, context))
  if (typeof tenantId !== 'string') return tenantId
  const bound =
    grant?.applicationId != null && grant.documentSha256 !== null
      ? await metadataClients.admitAs(
          clientId,
          { tenantId, id: grant.applicationId, documentSha256: grant.documentSha256 },
          context,
        )
      : null
  const admitted =
    bound ?? (await metadataClients.admit(clientId, tenantId, grant !== null, context))
  if (admitted.tag === 'not_admitted') return refusalOf(admitted)

  const { members } = admitted.document
  const confidential = members.tokenEndpointAuthMethod === 'private_key_jwt'
  if (!confidential && presented.method !== 'none')
    return refuse(
      'invalid_client',
      'the metadata document names no client authentication',
      'client_metadata_invalid',
    )
  if (confidential) {
    if (presented.method !== 'assertion')
      return refuse(
        'invalid_client',
        'this client must authenticate with private_key_jwt',
        'client_method_wrong',
      )
    const read = readAssertion(presented.assertion, issuer, clock.nowSecs())
    if ('fault' in read)
      return refuse(
        'invalid_client',
        `client authentication failed, client_assertion: ${read.fault}`,
        'client_authentication_failed',
      )
    const refused = await assertionRefusal(needs, clientId, read, admitted)
    if (refused !== undefined) return refused
  }
  // The row was just written, and the statement finds it by its id.
  const row = await database.system((tx) => findClient(tx, admitted.id), { pool: 'identity' })
  if (row?.status !== 'active' || row.tenantStatus !== 'active')
    return refuse('invalid_client', 'client authentication failed', 'client_authentication_failed')
  const { clientType, tokenEndpointAuthMethod, grantTypes, scopes, jwks, jwksUri } = members
  const documentSha256 = admitted.document.sha256
  return {
    kind: 'application',
    confidential,
    row: {
      ...row,
      clientType,
      tokenEndpointAuthMethod,
      grantTypes,
      scopes,
      jwks,
      jwksUri,
      dpopBoundAccessTokens: members.dpopBoundAccessTokens,
    },
    documentSha256,
  }
}

/** The grant of the code or token in the form, if it belongs to this client. */
async function grantOf(
  { database, lookups, verifier }: MetadataClientNeeds,
  clientId: string,
  form: OAuthForm,
  context: MessageContext,
): Promise<Grant | null> {
  const code = form.get('code')
  const refreshToken = form.get('refresh_token')
  const deviceCode = form.get('device_code')
  const token = form.get('token')
  let grant: Grant | null = null
  if (code !== null) {
    const row = await lookups.code(sha256(code))
    if (row !== undefined)
      grant = {
        tenantId: row.tenantId,
        applicationId: row.clientId,
        documentSha256: row.documentSha256,
      }
  } else if (token?.includes('.') === true) {
    const read = await verifier.read(token, context)
    if (read?.principal.clientId === clientId)
      return { tenantId: read.principal.tenantId, applicationId: null, documentSha256: null }
  } else if (refreshToken !== null || token !== null) {
    const row = await lookups.refreshToken(sha256((refreshToken ?? token)!))
    if (row !== undefined)
      grant = { tenantId: row.tenantId, applicationId: row.clientId, documentSha256: null }
  } else if (deviceCode !== null) {
    // The tenant is unknown until the request is found, so the look-up crosses tenants.
    const row = await database.system((tx) =>
      findBackchannelClient(tx, 'device', sha256(deviceCode)),
    )
    if (row !== undefined)
      grant = { tenantId: row.tenantId, applicationId: row.clientId, documentSha256: null }
  }
  const { applicationId = null } = grant ?? {}
  if (grant === null || applicationId === null || !isUuid(applicationId)) return null
  const row = await database.system((tx) => findClient(tx, applicationId), { pool: 'identity' })
  return row?.metadataUrl === clientId ? grant : null
}

async function ofRequest(
  needs: MetadataClientNeeds,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<string | OAuthRefused> {
  const found = await tenantOfRequest(needs, { host, resources: form.all('resource') }, context)
  if (found.tag === 'tenant') return found.tenantId
  const named = GRANT_PARAMETERS.find((name) => form.get(name) !== null)
  if (named !== undefined)
    return refuse(
      'invalid_grant',
      `the ${named} is unknown or belongs to another client`,
      'code_unknown',
    )
  return found.tag === 'unknown_resource'
    ? refuse('invalid_target', NO_SUCH_RESOURCE, 'resource_unknown')
    : refuse('invalid_request', NO_TENANT, 'tenant_unknown')
}

/** Undefined if one of the client's keys signed the assertion, which is used up by it. */
async function assertionRefusal(
  { metadataClients, coordination, clock }: MetadataClientNeeds,
  clientId: string,
  assertion: ReadAssertion,
  { document: { members } }: Admitted,
): Promise<OAuthRefused | undefined> {
  const failed = refuse(
    'invalid_client',
    'client authentication failed',
    'client_authentication_failed',
  )
  if (assertion.clientId !== clientId) return failed
  const { jwks, jwksUri } = members
  const isSigned = async (refresh: boolean) => {
    const keys = jwksUri === null ? jwks?.keys : await metadataClients.keysAt(jwksUri, refresh)
    return keys == null ? null : isSignedByOneOf(assertion.jws, keys)
  }
  let signed = await isSigned(false)
  // The client may have rotated its keys since the last fetch (OpenID Connect Core section 10.1.1).
  if (signed === false && jwksUri !== null) signed = await isSigned(true)
  if (signed === null)
    return {
      ...refuse(
        'temporarily_unavailable',
        'the key set of the client cannot be fetched',
        'client_document_unavailable',
      ),
      retryAfterSecs: UNAVAILABLE_SECS,
    }
  if (!signed) return failed
  // Used up only after the signature is valid, so that no other party can use it up.
  const id = createHash('sha256').update(`${clientId} ${assertion.id}`).digest('base64url')
  const ttlSecs = assertion.expiresAtSecs - clock.nowSecs() + 1 + CLOCK_STEP_SECS_MAX
  return (await coordination.once(`assertion:${id}`, ttlSecs)) ? undefined : failed
}

/** A client drops its tokens at `invalid_client`, so a host that is away answers with a temporary error. */
function refusalOf(refused: NotAdmitted): OAuthRefused {
  const { description } = refused
  switch (refused.why) {
    case 'faulty':
      return refuse('invalid_client', description, 'client_metadata_invalid')
    case 'unreachable':
      return {
        ...refuse('temporarily_unavailable', description, 'client_document_unavailable'),
        retryAfterSecs: UNAVAILABLE_SECS,
      }
    case 'rate_limited':
      return {
        ...refuse('rate_limited', description, 'limit_exceeded'),
        retryAfterSecs: refused.retryAfterSecs,
      }
  }
}
